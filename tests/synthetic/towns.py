# SPDX-License-Identifier: Apache-2.0
"""A small public table and sessions over it, for tests."""

from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa

import sfumato as sf

COLUMNS = {
    "age": sf.Integer(0, 99),
    "job": sf.Category("none", "nurse", "smith", "clerk", missing=""),
    "rich": sf.Boolean(),
    "pay": sf.Real(0, 100_000),
}


def town(rows: int = 4000, seed: int = 1) -> pa.Table:
    """Age decides the job and the job decides pay; the old are rich."""
    random = np.random.default_rng(seed)
    age = random.integers(0, 100, rows)
    jobs = np.where(age < 18, 0, random.integers(1, 4, rows))
    rich = random.uniform(size=rows) < age / 120
    pay = jobs * 20_000 + random.integers(0, 10_000, rows)
    names = np.array(["none", "nurse", "smith", "clerk"])[jobs]
    return pa.table({"age": age, "job": names, "rich": rich, "pay": pay.astype(float)})


def session(folder: Path, rows: pa.Table | None = None, **other: Any) -> sf.Session:
    """A session over the town."""
    given = town() if rows is None else rows
    given_columns = other.pop("columns", COLUMNS)
    columns = {name: kind for name, kind in given_columns.items() if name in given.column_names}
    table = sf.Table(given, columns=columns, unit=other.pop("unit", None))
    return sf.connect(
        {"people": table},
        dataset="town",
        budget=other.pop("budget", sf.Budget(1000, "1e-5")),
        ledger=folder / "l.db",
        **other,
    )


def emptied(address: str) -> str:
    """The address of a database, without the tables that it had."""
    with psycopg.connect(address, autocommit=True) as server:
        server.execute("DROP SCHEMA IF EXISTS public CASCADE")
        server.execute("CREATE SCHEMA public")
    return address
