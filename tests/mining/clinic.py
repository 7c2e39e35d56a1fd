# SPDX-License-Identifier: Apache-2.0
"""Made notes of 3,000 people in two wards, where words, wards and days go together."""

from pathlib import Path
from typing import Any

import pyarrow as pa

import sfumato as sf

PEOPLE = 3000
SPLIT = sf.Text(tokens=sf.Tokens(stop=["the"], dictionary=["眼睛"]))
COLUMNS: dict[str, Any] = {
    "note": SPLIT,
    "plain": sf.Text(),
    "ward": sf.Category("eye", "ear"),
    "day": sf.Integer(0, 9),
    "age": sf.Integer(0, 5000),
    "scan": sf.Array(2, 0, 1),
}


def people(count: int = PEOPLE) -> dict[str, list[Any]]:
    """Two rows of each person: first in one ward, then in the ward of ears."""
    rows: dict[str, list[Any]] = {name: [] for name in ("who", *COLUMNS)}
    for who in range(count):
        is_eye = who % 3 > 0
        note = "the red eye 眼睛" if is_eye else "left ear hurts"
        if who == 7:
            note += " 4711081547110815"
        for day in (1, 5):
            rows["who"].append(str(who))
            rows["note"].append(note)
            rows["plain"].append("flu" if who % 2 else "cold")
            rows["ward"].append("eye" if is_eye and day == 1 else "ear")
            rows["day"].append(day)
            rows["age"].append(who % 90)
            rows["scan"].append([0, 1])
    return rows


def table_of(rows: dict[str, list[Any]]) -> sf.Table:
    """The rows as a table, at most two of a person."""
    return sf.Table(pa.table(rows), unit=sf.Unit("who", max_rows_total=2), columns=COLUMNS)


TABLE = table_of(people())


def open_clinic(folder: Path, table: sf.Table) -> sf.Session:
    """A session over notes."""
    budget = sf.Budget(1000, "1e-3")
    return sf.connect(
        {"notes": table}, dataset="clinic", budget=budget, ledger=folder / "ledger.db"
    )
