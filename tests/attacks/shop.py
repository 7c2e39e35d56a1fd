# SPDX-License-Identifier: Apache-2.0
"""The dataset of the corpus with a few rows in it, as an attacker would lay them out."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

import sfumato as sf
from tests.contracts.corpus import DATASET

Rows = list[dict[str, object]]
Data = Mapping[str, Rows]

USERS = tuple(f"u{number:02}" for number in range(12))
_TYPES = {
    "user_id": pa.string(),
    "region": pa.string(),
    "product": pa.string(),
    "amount": pa.float64(),
    "day": pa.string(),
    "age_band": pa.string(),
    "joined": pa.string(),
    "category": pa.string(),
    "price": pa.string(),
    "quantity": pa.string(),
}
_COLUMNS = {
    "events": ("user_id", "region", "product", "amount", "day"),
    "users": ("user_id", "age_band", "joined"),
    "products": ("product", "category"),
    "orders": ("user_id", "price", "quantity"),
    "events_unbounded": ("user_id", "amount", "product"),
}


def event(
    user: object, region: object, product: object, amount: object, day: object
) -> dict[str, object]:
    """A row of ``events``."""
    return {"user_id": user, "region": region, "product": product, "amount": amount, "day": day}


def data() -> dict[str, Rows]:
    """Twelve users, within every limit: at most 4 events, in at most 4 regions, products and
    days.
    """
    events = [
        event(
            user,
            (None if turn == 3 else f"R0{1 + (place + turn) % 3}"),
            ("tea", "cup", "pot", "map")[(place * turn) % 4],
            (place * 37 + turn * 91) % 480 + 0.5,
            f"2024-{1 + (place + 5 * turn) % 12:02}-{1 + (place * turn) % 28:02}",
        )
        for place, user in enumerate(USERS)
        for turn in range(1 + place % 4)
    ]
    bands = ("18-24", "25-34", "35-64", "65+")
    return {
        "events": events,
        "users": [
            {"user_id": user, "age_band": bands[place % 4], "joined": f"2022-0{1 + place % 9}-15"}
            for place, user in enumerate(USERS)
        ],
        "products": [
            {"product": "tea", "category": "food"},
            {"product": "cup", "category": "toys"},
            {"product": "map", "category": "books"},
        ],
        "orders": [
            {"user_id": user, "price": str(place * 8), "quantity": "1"}
            for place, user in enumerate(USERS)
        ],
        "events_unbounded": [{"user_id": user, "amount": 1.0, "product": "tea"} for user in USERS],
    }


def arrow(table: str, rows: Rows) -> pa.Table:
    """The rows as an engine reads them."""
    return pa.table(
        {name: pa.array([row[name] for row in rows], _TYPES[name]) for name in _COLUMNS[table]}
    )


def tables(content: Data) -> dict[str, sf.Table]:
    """The declared tables over these rows."""
    return {
        name: sf.Table(
            arrow(name, content[name]), unit=each.unit, columns=each.columns, public=each.public
        )
        for name, each in DATASET.tables.items()
    }


def connected(
    folder: Path, content: Data, *, name: str = "ledger", relation: object = sf.AddRemove
) -> sf.Session:
    """A session over these rows; the same dataset, whatever they are."""
    return sf.connect(
        tables(content),
        dataset="shop",
        budget=sf.Budget(10**6, "1e-3"),
        ledger=folder / f"{name}.db",
        relation=relation,
    )
