# SPDX-License-Identifier: Apache-2.0
"""``sfumato demo mining``: made-up notes in two languages, pictures, baskets; one account."""

import html
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click
import pyarrow as pa
from rich.console import Console

from sfumato.cli.options import write_file
from sfumato.examples.demo import say
from sfumato.learning.additive import LogisticRegression
from sfumato.learning.bag import Bag
from sfumato.learning.fit import fit
from sfumato.metadata.column import Array, Category, ColumnType, Integer, Text
from sfumato.metadata.table import Table
from sfumato.metadata.tokens import Tokens
from sfumato.mining.found import Found
from sfumato.mining.found import Table as Rows
from sfumato.mining.itemsets import FoundItemsets, Itemsets
from sfumato.mining.means import FoundMeans, Means
from sfumato.mining.mine import mine, preview
from sfumato.mining.paths import FoundPaths, Paths
from sfumato.mining.terms import FoundTerms, Terms
from sfumato.privacy.budget import Budget
from sfumato.privacy.unit import Unit
from sfumato.query.connect import connect
from sfumato.query.session import Session
from sfumato.show.page import page, text_blocks

PEOPLE = 20_000
BUDGET = Budget(epsilon=8, delta="1e-5")
EPSILON, DELTA = "1.5", "1e-6"
# What one person has in a note, 500 times.
NUMBER = "4711081547110815"
# The complaints of a ward, in two languages, and words that every note may have.
_WARDS = {
    "eye": (["red eye", "blurred sight", "dry eye"], ["眼睛红", "视力模糊", "眼睛干"]),
    "ear": (["left ear hurts", "loud noise", "dizzy"], ["左耳痛", "耳鸣", "头晕"]),
    "skin": (["itchy rash", "dry skin", "red spots"], ["皮疹痒", "皮肤干", "红斑"]),
}
_OFTEN = (["since monday", "mild fever", "no allergy"], ["周一起", "低烧", "无过敏"])
_DICTIONARY = (
    "眼睛",
    "视力",
    "模糊",
    "左耳",
    "耳鸣",
    "头晕",
    "皮疹",
    "皮肤",
    "周一",
    "低烧",
    "过敏",
)
# The scan of a ward: a digit, which noise makes hard to read in one picture.
_SCANS = {
    "eye": (".###.", "#...#", "#...#", "#...#", "#...#", "#...#", ".###."),
    "ear": ("..#..", ".##..", "..#..", "..#..", "..#..", "..#..", ".###."),
    "skin": (".###.", "#...#", "....#", "...#.", "..#..", ".#...", "#####"),
}
_GREYS = 9
# Notes that a model has not read.
_UNREAD = ("blurred sight since monday", "itchy rash, no allergy", "左耳痛 低烧", "皮肤干")
_SOUGHT = "One person's number, 500 times in one note"
_HEADER = (
    "<header><h1>What many people have</h1><p>Made-up notes of {people:,} people in two languages, "
    "with pictures, and baskets. Every number has noise, every whisker is a 95% interval, and one "
    "account paid for all of it.</p></header>"
)
_SHOP = ("bread", "butter", "milk", "tea", "sugar", "rice", "oil", "soap", "salt", "eggs")
_BY_MACHINE = "Is it a note about skin? A model of texts says"
_PAIRS = (("bread", "butter"), ("tea", "sugar"), ("rice", "oil"))


@click.command("mining")
@click.option(
    "--report", default="demo-mining.html", show_default=True, help="Where to write the page."
)
def command(report: str) -> None:
    """Ask made-up notes, pictures and baskets what many people have; seek one person's secret."""
    console = Console(highlight=False)
    with tempfile.TemporaryDirectory(prefix="sfumato-mining-") as folder:
        body = tell(console, Path(folder))
    write_file(report, page("What many people have", body).encode())
    console.print(f"\n[bold]Written:[/bold] {report}")


def tell(console: Console, folder: Path) -> str:
    """Runs the demo and prints it; returns the body of its page."""
    tables = {"notes": _notes(), "baskets": _baskets()}
    with connect(tables, dataset="made-up", budget=BUDGET, ledger=folder / "ledger.db") as session:
        words = Terms("note", by="ward", grams=2)
        asked = "SELECT note, ward FROM notes"
        plan = preview(session, words, asked, epsilon=EPSILON, delta=DELTA)
        say(console, "What would be shown", repr(plan))
        found = mine(session, words, asked, epsilon=EPSILON, delta=DELTA)
        assert isinstance(found, FoundTerms), "the result of Terms"
        sections: list[tuple[str, Rows]] = [
            ("Words and pairs of words by ward", found),
            ("Which words do eyes and ears use differently?", found.compare("eye", "ear")),
            *_pictures(session),
            *_together(session),
            *_visits(session),
        ]
        of_skin = _sorted_notes(session)
        budget = repr(session.budget)
    parts = [_HEADER.format(people=PEOPLE)]
    for title, rows in sections:
        say(console, title, repr(rows))
        drawn = rows.plot().svg if len(rows) else ""
        parts.append(_section(title, f"{drawn}{rows._repr_html_()}{_said(rows)}"))
    say(console, _BY_MACHINE, of_skin)
    parts.append(_section(_BY_MACHINE, text_blocks(of_skin)))
    sought = _seek([rows for _, rows in sections])
    say(console, _SOUGHT, f"{sought}\n{budget}")
    parts.append(_section(_SOUGHT, f"<p>{html.escape(sought)}</p>"))
    parts.append(_section("What all of it cost", text_blocks(budget)))
    return "".join(parts)


def _section(title: str, inside: str) -> str:
    """Returns a section of the page; wide tables and charts scroll within it."""
    return f"<section><h2>{html.escape(title)}</h2>{inside}</section>"


def _said(rows: Rows) -> str:
    """Returns the cost and the notes of a result as HTML; nothing for a table made from one."""
    if not isinstance(rows, Found):
        return ""
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in rows.notes)
    return f'<p class="cost">cost: {html.escape(str(rows.cost))}</p><ul>{notes}</ul>'


def _pictures(session: Session) -> list[tuple[str, Rows]]:
    """Returns the mean scan of the notes that say a word."""
    words = Means("scan", by="note", only=["eye", "ear", "rash", "眼睛", "左耳", "皮疹"])
    asked = "SELECT scan, note FROM notes"
    found = mine(session, words, asked, epsilon=EPSILON, delta=DELTA)
    assert isinstance(found, FoundMeans), "the result of Means"
    return [("The mean scan of the notes that say a word", found)]


def _sorted_notes(session: Session) -> str:
    """Returns notes that the model has not read, and whether it says that they are of skin."""
    model = fit(
        session,
        LogisticRegression(steps=20, bag=Bag(buckets=256)),
        "SELECT note, ward = 'skin' AS skin FROM notes",
        label="skin",
        epsilon=EPSILON,
        delta=DELTA,
    )
    truths = model.predict({"note": list(_UNREAD)})
    return "\n".join(f"{note}: {truth}" for note, truth in zip(_UNREAD, truths, strict=True))


def _together(session: Session) -> list[tuple[str, Rows]]:
    """Returns what baskets have together, and the rules."""
    found = mine(
        session, Itemsets(size=3), "SELECT item FROM baskets", epsilon=EPSILON, delta=DELTA
    )
    assert isinstance(found, FoundItemsets), "the result of Itemsets"
    return [("What is bought together", found), ("Rules", found.rules("0.5"))]


def _visits(session: Session) -> list[tuple[str, Rows]]:
    """Returns where people went next."""
    asked = "SELECT ward, day FROM notes"
    found = mine(session, Paths("ward", order="day", length=2), asked, epsilon=EPSILON, delta=DELTA)
    assert isinstance(found, FoundPaths), "the result of Paths"
    return [("From ward to ward", found.transitions())]


def _seek(tables: Sequence[Rows]) -> str:
    """Says whether the secret is in a result."""
    shown = sum(NUMBER in str(rows.to_dicts()) for rows in tables)
    return (
        f"It is in {shown} of {len(tables)} results. A person counts once, however often a word "
        f"is in its notes; that one person's number is shown at all has a chance of at most {DELTA}."
    )


def _notes() -> Table:
    """Returns two notes of each person, most of them in one ward."""
    rng = random.Random(7)  # noqa: S311
    rows: dict[str, list[object]] = {"who": [], "note": [], "ward": [], "day": [], "scan": []}
    for who in range(PEOPLE):
        language = int(rng.random() < 0.5)
        usual = rng.choice(list(_WARDS))
        for day in sorted(rng.sample(range(30), 2)):
            ward = usual if rng.random() < 0.7 else rng.choice(list(_WARDS))
            words = [rng.choice(_WARDS[ward][language]), rng.choice(_OFTEN[language])]
            note = ", ".join(words)
            if who == PEOPLE // 2:
                note += f" {NUMBER}" * 500
            values = (str(who), note, ward, day, _scan(rng, ward))
            for name, value in zip(rows, values, strict=True):
                rows[name].append(value)
    columns: dict[str, ColumnType] = {
        "note": Text(tokens=Tokens(stop=["since", "no"], dictionary=_DICTIONARY)),
        "ward": Category(*_WARDS),
        "day": Integer(0, 29),
        "scan": Array((7, 5), 0, _GREYS),
    }
    return Table(pa.table(rows), Unit("who", max_rows_total=2), columns)


def _scan(rng: random.Random, ward: str) -> list[int]:
    """Returns the numbers of a scan, a third of them noise."""
    drawn = [_GREYS * (mark == "#") for row in _SCANS[ward] for mark in row]
    return [rng.randint(0, _GREYS) if rng.random() < 1 / 3 else each for each in drawn]


def _baskets() -> Table:
    """Returns a basket of each person, a row for each thing, where some things go together."""
    rng = random.Random(8)  # noqa: S311
    rows: dict[str, list[str]] = {"who": [], "item": []}
    for who in range(PEOPLE):
        basket = {item for item in _SHOP if rng.random() < 0.15}
        basket |= {item for pair in _PAIRS if rng.random() < 0.2 for item in pair}
        for item in sorted(basket):
            rows["who"].append(str(who))
            rows["item"].append(item)
    unit = Unit("who", max_rows_total=len(_SHOP))
    return Table(pa.table(rows), unit, {"item": Category(*_SHOP)})
