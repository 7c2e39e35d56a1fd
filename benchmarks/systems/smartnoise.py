# SPDX-License-Identifier: Apache-2.0
"""SmartNoise SQL over SQLite, which it supports on one machine: the questions that it can say.

It has one limit, of rows of a user, and no list of public groups.
"""

import sqlite3
from functools import cache, partial
from pathlib import Path
from typing import Any

import duckdb
from snsql import Privacy, from_connection  # type: ignore[import-not-found]

from benchmarks.systems import Call, Make
from benchmarks.systems.truth import errors

PACKAGES = ("smartnoise-sql", "opendp")
_DATA = Path(__file__).resolve().parents[2] / ".bench" / "data"
_SUMS = "COUNT(*) AS n, SUM(amount) AS s, AVG(amount) AS m"
# the rows of a user that count, and the question
_QUESTIONS = {
    "W1": (10, f"SELECT {_SUMS} FROM main.events"),
    "W2": (50, f"SELECT region, {_SUMS} FROM main.events GROUP BY region"),
    "W4": (5, "SELECT day_, COUNT(DISTINCT user_id) AS n FROM main.events GROUP BY day_"),
}


@cache
def _connection(n: int) -> Any:
    read = f"SELECT user_id, region, CAST(day AS VARCHAR), amount FROM '{_DATA}/events-{n}/events.parquet'"
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE events (user_id INTEGER, region TEXT, day_ TEXT, amount REAL)")
    rows = duckdb.connect().execute(read).fetchall()
    connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?)", rows)
    return connection


def _work(name: str, scale: float, n: int) -> Call:
    rows, question = _QUESTIONS[name]
    columns = {
        "max_ids": rows,
        "user_id": {"type": "int", "private_id": True},
        "region": {"type": "string"},
        "day_": {"type": "string"},
        "amount": {"type": "float", "lower": 0.0, "upper": 200.0},
    }
    metadata = {"": {"main": {"events": columns}}}

    def call() -> object:
        privacy = Privacy(epsilon=1.0, delta=1e-6)
        reader = from_connection(
            _connection(n), engine="sqlite", privacy=privacy, metadata=metadata
        )
        return reader.execute(question)

    _connection(n)
    return call


_WORKS: dict[str, Make] = {name: partial(_work, name) for name in _QUESTIONS}
# the first row are the names
_GROUPS = dict.fromkeys(("W2", "W4"), lambda rows: {row[0]: row[1] for row in rows[1:]})
WORKS = _WORKS | errors(_WORKS, _GROUPS | {"W1": lambda rows: {"all": rows[1][0]}})
