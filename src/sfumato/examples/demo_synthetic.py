# SPDX-License-Identifier: Apache-2.0
"""``sfumato demo synthetic``: synthetic rows of the census extract, and a page about them."""

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import click
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console

from sfumato.cli.options import require_spared, write_file
from sfumato.cli.page_language import in_language
from sfumato.examples.census import census
from sfumato.examples.demo import say
from sfumato.examples.hospitals_data import write_hospitals
from sfumato.examples.hospitals_study import hospitals
from sfumato.metadata.column import Category
from sfumato.metadata.table import Table
from sfumato.privacy.budget import Budget
from sfumato.query.connect import connect
from sfumato.query.session import Session
from sfumato.show.render import number, text_table
from sfumato.synthetic.constraints import implies
from sfumato.synthetic.fit import Options, fit, preview
from sfumato.synthetic.model import Model

BUDGET = Budget(epsilon=3, delta="1e-6")
EPSILON, DELTA = 1, "1e-9"
CLINICS = Budget(epsilon=3, delta="1e-6")
_TABLES = ["patients", "visits", "prescriptions"]
# What is not asked of children is missing, and of no one else, by the codebook.
_ASKED_FROM = {"MSP": 15, "PINCP": 15, "EDU": 3, "DREM": 5, "DPHY": 5}
RULES = tuple(
    implies(*pair)
    for name, age in _ASKED_FROM.items()
    for pair in permutations((f"AGEP < {age}", f"{name} IS NULL"))
)
# Where many people have one value, it has a bin of its own: no income, and all of 501 and above.
_FROM_18 = [18, *range(20, 90, 5)]
BINS = {
    "AGEP": [3, 5, 10, 15, *_FROM_18],
    "PINCP": [0, 1, 10_000, 20_000, 30_000, 45_000, 60_000, 90_000, 150_000, 300_000],
    "POVPIP": [1, 50, 100, 150, 200, 250, 300, 400, 501],
}
QUESTION = "SELECT MSP, COUNT(*) AS n, AVG(AGEP) AS age FROM people GROUP BY MSP ORDER BY n DESC"


@click.command("synthetic")
@click.option(
    "--report",
    default="demo-synthetic.html",
    show_default=True,
    help="Where to write the page; that of the hospitals beside it.",
)
@click.option(
    "-o", "--output", default="demo-synthetic", show_default=True, help="The folder of the rows."
)
def command(report: str, output: str) -> None:
    """Make synthetic rows of a census extract and of three hospital tables, and a page of each."""
    require_spared(report)
    console = Console(highlight=False)
    with tempfile.TemporaryDirectory(prefix="sfumato-synthetic-") as folder:
        ledger = Path(folder) / "ledger.db"
        with connect({"people": people()}, dataset="acs", budget=BUDGET, ledger=ledger) as session:
            model = _fit_model(console, session)
        say(console, "Rows", _first(model.sample(5)["people"]))
        say(console, f"{QUESTION}, with intervals", _first(model.query(QUESTION)))
        say(console, "Report", repr(model.report()))
        clinics = _fit_hospitals(console, Path(folder))
    beside = Path(report).with_stem(f"{Path(report).stem}-hospitals")
    _write(console, model, Path(report), Path(output))
    _write(console, clinics, beside, Path(output) / "hospitals")
    console.print(
        "No row is that of a person. Open the pages: they say what the rows keep and what they "
        "do not."
    )


def _write(
    console: Console,
    model: Model,
    report: Path,
    output: Path,
) -> None:
    """Writes the rows of a model and its page."""
    for path in model.save(output):
        console.print(f"written: {path}", soft_wrap=True)
    write_file(str(report), in_language(model.report().html).encode())
    console.print(f"written: {report}", soft_wrap=True)


def _fit_hospitals(console: Console, folder: Path) -> Model:
    """Fits a model of three hospital tables that are linked by keys."""
    tables, ledger = hospitals(write_hospitals(folder)), folder / "hospitals.db"
    with connect(tables, dataset="hospitals", budget=CLINICS, ledger=ledger) as session:
        model = fit(session, _TABLES, epsilon=2, delta="1e-7")
        rows = model.sample()
    lines = []
    for table in _TABLES:
        found = rows[table]
        lines.append(f"{table}: {found.num_rows:,} rows of {', '.join(found.column_names)}")
    lines.append(f"patients of visits that are in patients: {_share(rows):.0%}; {model.cost}")
    say(console, "Three tables of made-up hospitals, one charge", "\n".join(lines))
    return model


def _share(rows: Mapping[str, pa.Table]) -> float:
    """The share of visits whose patient is in the table of patients."""
    known = pc.is_in(rows["visits"]["patient_id"], value_set=rows["patients"]["patient_id"])
    return float(pc.mean(known).as_py())


def people() -> Table:
    """The census extract, with the marital status declared as possibly missing."""
    declared = census()
    columns = dict(declared.columns)
    for name in ("MSP", "EDU"):
        kind = columns[name]
        assert isinstance(kind, Category), "the codebook lists its values"
        stated = dict(zip(kind.values, kind.labels, strict=True))
        columns[name] = Category(stated, missing="N")
    return replace(declared, columns=columns)


def _fit_model(console: Console, session: Session) -> Model:
    """Prints the preview of a model, then fits it."""
    options = Options(bins=BINS)
    planned = preview(
        session, "people", epsilon=EPSILON, delta=DELTA, constraints=RULES, options=options
    )
    say(console, "What would be measured", repr(planned))
    model = fit(session, "people", epsilon=EPSILON, delta=DELTA, constraints=RULES, options=options)
    say(console, "Measured once", f"{model!r}\n{session.budget!r}")
    return model


def _first(table: pa.Table) -> str:
    """A table as text."""
    rows = []
    for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
        rows.append([number(value) for value in row])
    return text_table(table.column_names, rows)
