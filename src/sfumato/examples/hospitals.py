# SPDX-License-Identifier: Apache-2.0
"""``sfumato demo hospitals``: questions about three tables that share one privacy unit."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
import duckdb
from rich.console import Console

from sfumato.errors import Failed, Refused
from sfumato.examples.census import Asked
from sfumato.examples.demo import say, shown_left
from sfumato.examples.hospitals_data import write_hospitals
from sfumato.examples.hospitals_study import (
    OFFICE,
    PATIENT,
    REFUSED,
    STUDY,
    UNITS,
    VISIT,
    hospitals,
    visits,
)
from sfumato.privacy.budget import Budget
from sfumato.privacy.event import Json
from sfumato.privacy.unit import Unit
from sfumato.query.answer import Answer
from sfumato.query.connect import connect
from sfumato.query.session import Session
from sfumato.show.render import interval, number, text_table

BUDGET = Budget(epsilon=3, delta="1e-6")
DATASET = "hospitals-2025"
Truth = Mapping[tuple[object, ...], tuple[object, ...]]


@click.command("hospitals")
@click.option("--tables", metavar="FOLDER", help="Write the made-up tables there; ask nothing.")
def command(tables: str | None) -> None:
    """Ask the questions of a study and of a statistics office; no file is left behind."""
    if tables is not None:
        place = Path(tables)
        place.mkdir(parents=True, exist_ok=True)
        for path in write_hospitals(place).values():
            click.echo(path)
        return
    with tempfile.TemporaryDirectory(prefix="sfumato-hospitals-") as folder:
        tell(Console(highlight=False), Path(folder))


def tell(console: Console, folder: Path) -> None:
    """Runs the demo and prints it."""
    paths = write_hospitals(folder)
    tables, ledger = hospitals(paths), folder / "ledger.db"
    with connect(tables, dataset=DATASET, budget=BUDGET, ledger=ledger) as session:
        title = "Three hospitals, made up: 5,000 patients, their visits and prescriptions"
        say(console, title, _declared(session))
        with duckdb.connect() as raw:
            _open(raw, paths)
            for title, questions in (("The study", STUDY), ("The statistics office", OFFICE)):
                for place, asked in enumerate(questions, start=1):
                    _question(console, f"{title}, {place}. {asked.title}", asked, session, raw)
        _refusal(console, session)
        say(console, "The account", f"{session.budget!r}")
    _units(console, paths, folder)


def _declared(session: Session) -> str:
    """Returns the budget and the units of the tables, as text."""
    lines = [f"{BUDGET!r}, protected: the patient, in all tables at once"]
    for name, table in session.dataset.tables.items():
        lines.append(f"{name}: {table.about}")
    lines.append(
        "Beside each answer stands the truth. "
        "Only a demo on made-up data may show it: it has no noise."
    )
    lines.append(
        "The interval is that of the bounded answer; "
        "what bounding changes is said below it, as bias."
    )
    return "\n".join(lines)


def _open(raw: duckdb.DuckDBPyConnection, paths: Mapping[str, Path]) -> None:
    """Creates views with the names of the declared tables, so that plain SQL runs the questions."""
    for name, path in paths.items():
        raw.read_parquet(str(path)).create_view(f"raw_{name}" if name == "prescriptions" else name)
    raw.execute(
        "CREATE VIEW prescriptions AS "
        "SELECT r.* REPLACE (response::INTEGER AS response), v.patient_id "
        "FROM raw_prescriptions r JOIN visits v ON r.visit_id = v.visit_id"
    )


def _question(
    console: Console, title: str, asked: Asked, session: Session, raw: duckdb.DuckDBPyConnection
) -> None:
    """Asks a question, and prints its answer beside the exact one of plain SQL."""
    answer = asked.ask(session)
    say(console, title, f"{asked.sql}\n{asked.shown_price}\n")
    lines = [compared(answer, _truth(asked, answer, raw))]
    lines += [f"note: {note}" for note in answer.notes]
    lines += [f"bias: {line}" for line in answer.bias]
    lines += [f"cost {answer.cost}", shown_left(session)]
    console.print("\n".join(lines), markup=False)


def _truth(asked: Asked, answer: Answer, raw: duckdb.DuckDBPyConnection) -> Truth:
    """Returns the exact numbers by group keys, computed with plain SQL; "-" for a clipped column.

    LIMIT is left out: it could drop groups that the answer has.
    """
    truth: dict[tuple[object, ...], tuple[object, ...]] = {}
    sql, _, _ = asked.sql.partition(" LIMIT ")
    found = raw.execute(sql)
    names = [str(column[0]) for column in found.description or ()]
    keys = [str(column["name"]) for column in answer.columns if not column["released"]]
    released = [str(column["name"]) for column in answer.columns if column["released"]]
    for row in found.fetchall():
        cells = dict(zip(names, row, strict=True))
        key = tuple(cells[name] for name in keys)
        truth[key] = tuple(cells.get(name, "-") for name in released)
    return truth


def compared(answer: Answer, truth: Truth) -> str:
    """Returns an answer as a table with intervals, and the exact number beside each released one."""
    header: list[str] = []
    for column in answer.columns:
        header.append(str(column["name"]))
        if column["released"]:
            header += ["95% interval", "truth"]
    body = []
    for row, errors in zip(answer.rows, answer.error(), strict=True):
        body.append(_line(answer, row, errors, truth))
    return text_table(header, body)


def _line(
    answer: Answer, row: Sequence[Json], errors: Mapping[str, Json], truth: Truth
) -> list[str]:
    """Returns a row of an answer as text, with intervals and true numbers."""
    released = [bool(column["released"]) for column in answer.columns]
    key = tuple(value for value, is_released in zip(row, released, strict=True) if not is_released)
    true = iter(truth.get(key, ("none",) * sum(released)))
    line: list[str] = []
    for column, value in zip(answer.columns, row, strict=True):
        line.append(number(value))
        if column["released"]:
            error = errors[str(column["name"])]
            line += [interval(error), _plain(next(true))]
    return line


def _plain(value: object) -> str:
    """Returns a value of plain SQL as text."""
    return number(value) if isinstance(value, int | float) else str(value)


def _refusal(console: Console, session: Session) -> None:
    """Asks a question that must be refused, and prints the refusal."""
    try:
        REFUSED.ask(session)
    except Refused as refusal:
        say(console, f"Refused: {REFUSED.title}", f"{REFUSED.sql}\n{refusal}")
        return
    raise Failed("A question that must be refused was answered.")


def _units(console: Console, paths: Mapping[str, Path], folder: Path) -> None:
    """Prints the error of one question for two privacy units, a visit and a patient."""
    rows = []
    for whom, unit in (("one visit", VISIT), ("a patient, with all visits", PATIENT)):
        rows.append([whom, repr(unit), f"+- {number(half_width(paths, unit, folder))}"])
    text = text_table(["hidden is", "unit", "95% error of each number"], rows)
    closing = "The first hides any one visit; that a patient comes often, it does not hide."
    say(console, "A visit or a patient?", f"{UNITS.sql}\n{UNITS.shown_price}\n\n{text}\n{closing}")


def half_width(paths: Mapping[str, Path], unit: Unit, folder: Path) -> float:
    """Returns the expected error of the question for a privacy unit, from a preview."""
    ledger = folder / f"{unit.columns[0]}.db"
    with connect(
        {"visits": visits(paths, unit)}, dataset="units", budget=BUDGET, ledger=ledger
    ) as session:
        preview = session.preview(UNITS.sql, epsilon=dict(UNITS.price)["epsilon"])
    return max(float(str(line["half_width"])) for line in preview.error())
