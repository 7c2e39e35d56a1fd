# SPDX-License-Identifier: Apache-2.0
"""``sfumato demo-hospitals``: one unit over three tables answers a study and a statistics office."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
import duckdb
from rich.console import Console

from sfumato.cli.census import Asked
from sfumato.cli.demo import say, shown_left
from sfumato.cli.hospitals_data import write_hospitals
from sfumato.cli.hospitals_study import (
    OFFICE,
    PATIENT,
    REFUSED,
    STUDY,
    UNITS,
    VISIT,
    hospitals,
    visits,
)
from sfumato.errors import Failed, Refused
from sfumato.privacy.budget import Budget
from sfumato.privacy.event import Json
from sfumato.privacy.unit import Unit
from sfumato.query.answer import Answer
from sfumato.query.connect import connect
from sfumato.query.render import interval, number, text_table
from sfumato.query.session import Session

BUDGET = Budget(epsilon=3, delta="1e-6")
DATASET = "hospitals-2025"
Truth = Mapping[tuple[object, ...], tuple[object, ...]]


@click.command("demo-hospitals")
def command() -> None:
    """Ask the questions of a study and of a statistics office; no file is left behind."""
    with tempfile.TemporaryDirectory(prefix="sfumato-hospitals-") as folder:
        tell(Console(highlight=False), Path(folder))


def tell(console: Console, folder: Path) -> None:
    """The whole demo, printed as it happens."""
    paths = write_hospitals(folder)
    tables, ledger = hospitals(paths), folder / "ledger.db"
    with connect(tables, dataset=DATASET, budget=BUDGET, ledger=ledger) as session:
        say(
            console,
            "Three hospitals, made up: 5,000 patients, their visits and prescriptions",
            _declared(session),
        )
        with duckdb.connect() as raw:
            _open(raw, paths)
            for title, questions in (("The study", STUDY), ("The statistics office", OFFICE)):
                for place, asked in enumerate(questions, start=1):
                    _question(console, f"{title}, {place}. {asked.title}", asked, session, raw)
        _refusal(console, session)
        say(console, "The account", f"{session.budget!r}")
    _units(console, paths, folder)


def _declared(session: Session) -> str:
    lines = [f"{name}: {table.about}" for name, table in session.dataset.tables.items()]
    return "\n".join(
        [
            f"{BUDGET!r}, protected: the patient, in all tables at once",
            *lines,
            "Beside each answer stands the truth. Only a demo on made-up data may show it: it has no noise.",
            "The interval is that of the bounded answer; what bounding changes is said below it, as bias.",
        ]
    )


def _open(raw: duckdb.DuckDBPyConnection, paths: Mapping[str, Path]) -> None:
    """The same names on plain SQL, so that the very same text can be asked of it."""
    for name, path in paths.items():
        raw.read_parquet(str(path)).create_view(f"raw_{name}" if name == "prescriptions" else name)
    raw.execute(
        "CREATE VIEW prescriptions AS SELECT r.* REPLACE (response::INTEGER AS response), v.patient_id "
        "FROM raw_prescriptions r JOIN visits v ON r.visit_id = v.visit_id"
    )


def _question(
    console: Console, title: str, asked: Asked, session: Session, raw: duckdb.DuckDBPyConnection
) -> None:
    answer = asked.ask(session)
    say(console, title, f"{asked.sql}\n{asked.shown_price}\n")
    notes = [
        *(f"note: {note}" for note in answer.notes),
        *(f"bias: {line}" for line in answer.bias),
    ]
    lines = [
        compared(answer, _truth(asked, answer, raw)),
        *notes,
        f"cost {answer.cost}",
        shown_left(session),
    ]
    console.print("\n".join(lines), markup=False)


def _truth(asked: Asked, answer: Answer, raw: duckdb.DuckDBPyConnection) -> Truth:
    """What plain SQL answers to the same text, by the keys; LIMIT may leave out what the answer shows."""
    released = [bool(column["released"]) for column in answer.columns]
    found = {}
    for row in raw.execute(asked.sql.partition(" LIMIT ")[0]).fetchall():
        key, values = (
            tuple(
                value
                for value, is_released in zip(row, released, strict=True)
                if is_released is wanted
            )
            for wanted in (False, True)
        )
        found[key] = values
    return found


def compared(answer: Answer, truth: Truth) -> str:
    """The answer as a table, each released number with its interval and the truth."""
    released = [bool(column["released"]) for column in answer.columns]
    header: list[str] = []
    for column, is_released in zip(answer.columns, released, strict=True):
        header += (
            [str(column["name"]), "95% interval", "truth"] if is_released else [str(column["name"])]
        )
    body = [
        _line(row, errors, released, truth)
        for row, errors in zip(answer.rows, _errors(answer), strict=True)
    ]
    return text_table(header, body)


def _errors(answer: Answer) -> list[list[Json]]:
    names = [str(column["name"]) for column in answer.columns]
    return [[row[name] for name in names] for row in answer.error()]


def _line(
    row: Sequence[Json], errors: Sequence[Json], released: Sequence[bool], truth: Truth
) -> list[str]:
    key = tuple(value for value, is_released in zip(row, released, strict=True) if not is_released)
    true = iter(truth.get(key, ("none",) * sum(released)))
    shown: list[str] = []
    for value, error, is_released in zip(row, errors, released, strict=True):
        shown += (
            [number(value), interval(error), _plain(next(true))] if is_released else [number(value)]
        )
    return shown


def _plain(value: object) -> str:
    return number(value) if isinstance(value, int | float) else str(value)


def _refusal(console: Console, session: Session) -> None:
    try:
        REFUSED.ask(session)
    except Refused as refusal:
        say(console, f"Refused: {REFUSED.title}", f"{REFUSED.sql}\n{refusal}")
        return
    raise Failed("A question that must be refused was answered.")


def _units(console: Console, paths: Mapping[str, Path], folder: Path) -> None:
    """Event level against user level: the previews of one question, free, in accounts of their own."""
    rows = []
    for whom, unit in (("one visit", VISIT), ("a patient, with all visits", PATIENT)):
        rows.append([whom, repr(unit), f"+- {number(half_width(paths, unit, folder))}"])
    text = text_table(["hidden is", "unit", "95% error of each number"], rows)
    closing = "The first hides any one visit; that a patient comes often, it does not hide."
    say(console, "A visit or a patient?", f"{UNITS.sql}\n{UNITS.shown_price}\n\n{text}\n{closing}")


def half_width(paths: Mapping[str, Path], unit: Unit, folder: Path) -> float:
    """The error that a preview states for the question under a unit."""
    ledger = folder / f"{unit.columns[0]}.db"
    with connect(
        {"visits": visits(paths, unit)}, dataset="units", budget=BUDGET, ledger=ledger
    ) as session:
        preview = session.preview(UNITS.sql, **dict(UNITS.price))
    return max(float(str(line["half_width"])) for line in preview.error())
