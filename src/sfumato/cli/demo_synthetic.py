# SPDX-License-Identifier: Apache-2.0
"""``sfumato demo-synthetic``: synthetic rows of the census extract, and a page about them."""

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import click
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console

from sfumato.cli.census import census
from sfumato.cli.demo import say
from sfumato.cli.hospitals_data import write_hospitals
from sfumato.cli.hospitals_study import hospitals
from sfumato.cli.options import require_spared, write_file
from sfumato.cli.page_language import in_language
from sfumato.metadata.column import Category
from sfumato.metadata.table import Table
from sfumato.privacy.budget import Budget
from sfumato.query.connect import connect
from sfumato.query.render import number, text_table
from sfumato.query.session import Session
from sfumato.synthetic.constraints import implies
from sfumato.synthetic.fit import Options, fit, preview
from sfumato.synthetic.model import Model

BUDGET = Budget(epsilon=3, delta="1e-6")
EPSILON, DELTA = 1, "1e-9"
CLINICS = Budget(epsilon=3, delta="1e-6")
_TABLES = ["patients", "visits", "prescriptions"]
# Children have neither an income nor a marital status, by the codebook.
RULES = (implies("AGEP < 15", "MSP IS NULL"), implies("AGEP < 15", "PINCP IS NULL"))
# Where many people have one value, it has a bin of its own: no income, and all of 501 and above.
BINS = {
    "PINCP": [0, 1, 10_000, 20_000, 30_000, 45_000, 60_000, 90_000, 150_000, 300_000],
    "POVPIP": [1, 50, 100, 150, 200, 250, 300, 400, 501],
}
QUESTION = "SELECT MSP, COUNT(*) AS n, AVG(AGEP) AS age FROM people GROUP BY MSP ORDER BY n DESC"


@click.command("demo-synthetic")
@click.option(
    "--report", default="demo-synthetic.html", show_default=True, help="Where to write the page."
)
@click.option(
    "-o", "--output", default="demo-synthetic", show_default=True, help="The folder of the rows."
)
def command(report: str, output: str) -> None:
    """Make synthetic rows of the census extract, ask them a question, and write a page."""
    require_spared(report)
    console = Console(highlight=False)
    with tempfile.TemporaryDirectory(prefix="sfumato-synthetic-") as folder:
        ledger = Path(folder) / "ledger.db"
        with connect({"people": people()}, dataset="acs", budget=BUDGET, ledger=ledger) as session:
            model = _fitted(console, session)
        _clinics(console, Path(folder))
    say(console, "Rows", _first(model.sample(5)["people"]))
    say(console, f"{QUESTION}, with intervals", _first(model.query(QUESTION)))
    page = model.report()
    say(console, "Report", repr(page))
    write_file(report, in_language(page.html).encode())
    for path in model.save(output):
        console.print(f"written: {path}", soft_wrap=True)
    console.print(f"written: {report}", soft_wrap=True)


def _clinics(console: Console, folder: Path) -> None:
    """Rows of three hospital tables, whose keys fit together."""
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


def _share(rows: Mapping[str, pa.Table]) -> float:
    """The share of visits whose patient is among the patients."""
    known = pc.is_in(rows["visits"]["patient_id"], value_set=rows["patients"]["patient_id"])
    return float(pc.mean(known).as_py())


def people() -> Table:
    """The extract; that a marital status can be missing is declared too."""
    declared = census()
    columns = dict(declared.columns)
    for name in ("MSP", "EDU"):
        kind = columns[name]
        assert isinstance(kind, Category), "the codebook lists its values"
        stated = dict(zip(kind.values, kind.labels, strict=True))
        columns[name] = Category(stated, missing="N")
    return replace(declared, columns=columns)


def _fitted(console: Console, session: Session) -> Model:
    """The model, after its preview."""
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
