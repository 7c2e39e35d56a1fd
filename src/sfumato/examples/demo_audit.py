# SPDX-License-Identifier: Apache-2.0
"""``sfumato demo audit``: what tables give away, an audit of declarations, and its documents."""

import csv
import html
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
from rich.console import Console

from sfumato.audit.published import Published, published
from sfumato.audit.system import System, system
from sfumato.cli.audit_system import to_json
from sfumato.cli.options import as_json, require_spared, write_file
from sfumato.examples.demo import say
from sfumato.examples.hospitals_data import write_hospitals
from sfumato.examples.hospitals_study import hospitals
from sfumato.ledger.assessment import KINDS, as_html, assess, registry_record
from sfumato.ledger.assessment_facts import Evidence, mechanisms_of
from sfumato.ledger.report_text import LANGUAGES
from sfumato.ledger.spend import Ledger
from sfumato.ledger.summary import summary
from sfumato.metadata.column import Category
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.table import Table
from sfumato.privacy.budget import Budget
from sfumato.query.connect import connect
from sfumato.show.page import page

# One area of the survey of 2019, and the columns of which all tables of three are published.
AREA = "13-04600"
# the values of the survey's codebook, not those that occur
_VALUES = {"sex": "12", "decade": "0123456789", "married": "123456N", "race": "123456789"}
NAMES = tuple(_VALUES)
ROUNDS = 4
PATIENTS = 2_000
_SUPPRESSED = (1, 9)
_EPSILON = "0.25"
_BUDGET = Budget(epsilon=2)
_QUESTIONS = (
    "SELECT hospital, COUNT(*) AS n FROM patients GROUP BY hospital",
    "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
)


@click.command("audit")
@click.option(
    "--report", default="demo-audit.html", show_default=True, help="Where to write the page."
)
@click.option(
    "-o",
    "--output",
    default="demo-audit",
    show_default=True,
    type=click.Path(file_okay=False),
    help="The folder of the documents.",
)
def command(report: str, output: str) -> None:
    """Reconstruct a census area from its tables, audit made-up hospitals, write their documents."""
    require_spared(report)
    console = Console(highlight=False)
    with tempfile.TemporaryDirectory(prefix="sfumato-demo-") as folder:
        body = tell(console, Path(folder), Path(output))
    write_file(report, page("Audits", body).encode())
    console.print(f"\n[bold]Written:[/bold] {report}, and the documents in {output}")


def tell(console: Console, folder: Path, output: Path) -> str:
    """Runs the demo and prints it; returns the body of its page."""
    persons = area_persons()
    lines = [f"{name}: {found_in(result)}" for name, result in releases(persons, folder)]
    intro = f"{len(persons)} persons of one area; all tables of three of {', '.join(NAMES)}"
    say(console, intro, "\n".join(lines))
    dataset, result = audited(folder)
    say(console, "The declarations of three made-up hospitals, with made-up rows", result.sentence)
    names = list(documents(dataset, result, folder, output))
    say(console, "What an officer signs and what is published", "\n".join(names))
    items = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
    links = "".join(
        f'<li><a href="{html.escape(f"{output}/{name}")}">{html.escape(name)}</a></li>'
        for name in names
    )
    return (
        f"<h1>Audits</h1><section><h2>{html.escape(intro)}</h2><ul>{items}</ul></section>"
        f"<section><h2>Three made-up hospitals</h2><p>{html.escape(result.sentence)}</p>"
        f"<ul>{links}</ul></section>"
    )


def area_persons() -> list[tuple[str, ...]]:
    """Returns the persons of the area: sex, decade of age, marital status, race."""
    path = files("sfumato.examples") / "census" / "national2019.csv"
    with path.open(encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines) if row["PUMA"] == AREA]
    return [(row["SEX"], str(int(row["AGEP"]) // 10), row["MSP"], row["RAC1P"]) for row in rows]


def releases(persons: Sequence[tuple[str, ...]], folder: Path) -> Iterator[tuple[str, Published]]:
    """Yields what follows from the tables: exact, with small counts suppressed, with noise."""
    exact = [counted(persons, chosen) for chosen in combinations(NAMES, 3)]
    yield "exact", published(exact)
    low, high = _SUPPRESSED
    suppressed = [
        [{**row, "n": None if low <= row["n"] <= high else row["n"]} for row in rows]
        for rows in exact
    ]
    yield "1 to 9 suppressed", published(suppressed, suppressed=_SUPPRESSED)
    yield f"noisy, epsilon {4 * float(_EPSILON):g} in all", published(noisy(persons, folder))


def counted(persons: Sequence[tuple[str, ...]], chosen: tuple[str, ...]) -> list[dict[str, Any]]:
    """Returns the exact table of some columns."""
    places = [NAMES.index(name) for name in chosen]
    counts = Counter(tuple(person[place] for place in places) for person in persons)
    return [{**dict(zip(chosen, key, strict=True)), "n": n} for key, n in counts.items()]


def noisy(persons: Sequence[tuple[str, ...]], folder: Path) -> list[list[dict[str, Any]]]:
    """Asks for the same tables from an account."""
    values = dict(zip(NAMES, zip(*persons, strict=True), strict=True))
    columns = {name: Category(*codes) for name, codes in _VALUES.items()}
    tables = {"persons": Table(pa.table(values), columns=columns)}
    published_tables = []
    with connect(tables, dataset="area", budget=_BUDGET, ledger=folder / "area.db") as session:
        for chosen in combinations(NAMES, 3):
            names = ", ".join(chosen)
            text = f"SELECT {names}, COUNT(*) AS n FROM persons GROUP BY {names}"
            answer = session.query(text, epsilon=_EPSILON)
            rows = [
                {**dict(zip(chosen, keys, strict=True)), "n": max(int(str(count)), 0)}
                for *keys, count in answer.rows
            ]
            published_tables.append(rows)
    return published_tables


def found_in(result: Published) -> str:
    """Says what follows from published tables."""
    if result.reason:
        return f"nothing follows: {result.reason}"
    return f"of {result.determined} the whole combination follows, {result.unique} alone in theirs"


def audited(folder: Path) -> tuple[Dataset, System]:
    """Audits the declarations of the hospitals; their files are not opened."""
    paths = write_hospitals(folder, patients=PATIENTS)
    tables = hospitals(paths)
    # the unit of prescriptions is reached by way of visits, which no audit makes up
    dataset = Dataset("hospitals", {name: tables[name] for name in ("patients", "visits")})
    return dataset, system(dataset, _QUESTIONS, rounds=ROUNDS)


def documents(dataset: Dataset, result: System, folder: Path, output: Path) -> Iterator[str]:
    """Asks two questions, writes the documents in both languages, and yields their names."""
    ledger = folder / "hospitals.db"
    with connect(
        dataset.tables, dataset=dataset.name, budget=_BUDGET, ledger=ledger, purpose="teaching"
    ) as session:
        for text in _QUESTIONS:
            session.query(text, epsilon=_EPSILON)
    opened = Ledger.open(ledger, read_only=True)
    try:
        evidence = Evidence(
            summary(opened, dataset.name),
            dataset,
            mechanisms_of(opened, dataset.name),
            has_heads=False,
            audit=to_json(result),
        )
    finally:
        opened.close()
    output.mkdir(exist_ok=True)
    for kind in KINDS:
        for language in LANGUAGES:
            name = f"{kind}.{language}.html"
            write_file(str(output / name), as_html(assess(kind, evidence, {}, language)).encode())
            yield name
    record = as_json(registry_record(evidence, {}))
    write_file(str(output / "registry.json"), record.encode())
    yield "registry.json"
