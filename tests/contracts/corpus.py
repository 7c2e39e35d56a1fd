# SPDX-License-Identifier: Apache-2.0
"""The statements that analysts write, each with its verdict, and the dataset that they ask.

``tests/query/corpus/*.sql``: comment lines ``-- name: value``, then the statement. A refused
one has its error, its message, and under ``instead`` the statement that its refusal leads to.
What follows a line ``-- bounded:`` is the bounded SQL, in comments; it is written by
``tools/corpus.py`` and not read here.
"""

import datetime
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import sfumato as sf
from sfumato.metadata.column import ColumnType
from sfumato.metadata.dataset import Dataset

FOLDER = Path(__file__).parents[1] / "query" / "corpus"

# What CURRENT_DATE is to the corpus.
TODAY = datetime.date(2024, 6, 1)
UNIT = sf.Unit("user_id", max_rows=10, max_groups=5)
EVENTS: dict[str, ColumnType] = {
    "region": sf.Category("R01", "R02", "R03", missing="N"),
    "product": sf.Text(),
    "amount": sf.Real(0, 500),
    "day": sf.Date("2024-01-01", "2024-12-31"),
}
DATASET = Dataset(
    "shop",
    {
        "events": sf.Table("events.csv", unit=UNIT, columns=EVENTS),
        "users": sf.Table(
            "users.csv",
            unit=sf.Unit("user_id", max_rows=1),
            columns={
                "age_band": sf.Category("18-24", "25-34", "35-64", "65+"),
                "joined": sf.Date("2020-01-01", "2024-12-31"),
            },
        ),
        "products": sf.Table(
            "products.csv",
            public=True,
            columns={"product": sf.Text(), "category": sf.Category("food", "toys", "books")},
        ),
        "orders": sf.Table(
            "orders.csv", unit=UNIT, columns={"price": sf.Real(0, 100), "quantity": sf.Text()}
        ),
        "events_unbounded": sf.Table(
            "more.csv", unit=UNIT, columns={"amount": sf.Text(), "product": sf.Text()}
        ),
    },
)


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of the corpus and what is known of it."""

    name: str
    verdict: str
    text: str
    facts: dict[str, str]


def statement(path: Path) -> Statement:
    """The statement of a file."""
    facts: dict[str, str] = {}
    lines = path.read_text(encoding="utf-8").split("-- bounded:")[0].splitlines()
    for line in lines:
        found = re.fullmatch(r"-- (\w+): (.*)", line)
        if found:
            earlier = facts.get(found[1])
            facts[found[1]] = found[2] if earlier is None else f"{earlier}\n{found[2]}"
    text = "\n".join(line for line in lines if not line.startswith("--")).strip()
    return Statement(path.stem, facts.pop("verdict"), text, facts)


def statements() -> Iterator[Statement]:
    """The corpus, by name."""
    for path in sorted(FOLDER.glob("*.sql")):
        yield statement(path)
