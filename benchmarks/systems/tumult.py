# SPDX-License-Identifier: Apache-2.0
"""Tumult Analytics on a local Spark: two questions, because each takes long."""

import os
import sys
from functools import cache, partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession  # type: ignore[import-not-found, unused-ignore]
from tmlt.analytics import (  # type: ignore[import-not-found]
    AddRowsWithID,
    KeySet,
    MaxGroupsPerID,
    MaxRowsPerGroupPerID,
    PureDPBudget,
    QueryBuilder,
    Session,
)

from benchmarks.systems import Call, Make
from benchmarks.systems.truth import errors

# the workers of Spark in the environment of this process
os.environ["PYSPARK_PYTHON"] = sys.executable
PACKAGES = ("tmlt.analytics", "tmlt.core", "pyspark")
_DATA = Path(__file__).resolve().parents[2] / ".bench" / "data"
# the key, the rows of a user and group
_KEYS = {"W2": ("region", 10), "W4": ("day", 1)}


@cache
def _session(n: int) -> Any:
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    frame = spark.read.parquet(f"{_DATA}/events-{n}/events.parquet").drop("product")
    budget = PureDPBudget(float("inf"))
    return Session.from_dataframe(
        budget, "events", frame, protected_change=AddRowsWithID("user_id")
    )


def _work(name: str, scale: float, n: int) -> Call:
    session, (key, rows) = _session(n), _KEYS[name]
    values = {
        "region": [f"R{index:02}" for index in range(50)],
        "day": [each[0] for each in _days(n)],
    }[key]
    limited = (
        QueryBuilder("events")
        .enforce(MaxGroupsPerID(key, 5))
        .enforce(MaxRowsPerGroupPerID(key, rows))
    )
    grouped = limited.groupby(KeySet.from_dict({key: values}))
    asked = grouped.count() if name == "W4" else grouped.sum("amount", 0.0, 200.0)
    return lambda: session.evaluate(asked, PureDPBudget(1)).collect()


def _days(n: int) -> Any:
    """The declared days, as Spark reads them."""
    spark = SparkSession.builder.getOrCreate()
    return spark.sql("SELECT explode(sequence(DATE '2024-01-01', DATE '2024-12-30'))").collect()


_WORKS: dict[str, Make] = {name: partial(_work, name) for name in _KEYS}
WORKS = _WORKS | errors(_WORKS, {"W4": lambda rows: {row[0]: row[1] for row in rows}})
