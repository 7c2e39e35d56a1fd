# SPDX-License-Identifier: Apache-2.0
"""The data of the workloads: events of users with a heavy tail, made up, the same on every machine."""

import json
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

REGIONS, DAYS, PRODUCTS, AGES = (
    50,
    365,
    10_000,
    ("18-24", "25-34", "35-44", "45-54", "55-64", "65+"),
)
_PIECE = 5_000_000


def events(folder: Path, rows: int) -> Path:
    """``events.parquet`` with about so many rows, made once, and ``users.parquet`` beside it."""
    place = folder / f"events-{rows}"
    if not (place / "users.parquet").exists():
        place.mkdir(parents=True, exist_ok=True)
        users = rows // 10
        # made-up data, not noise: a fixed seed gives the same on every machine
        generator = np.random.default_rng(2026)
        held = np.maximum(generator.pareto(1.6, users) * 6.4 + 1, 1).astype(np.int64)
        owners = np.repeat(np.arange(users), held)
        generator.shuffle(owners)
        _write_events(place / "events.parquet", owners[:rows], generator)
        ages = pa.array(AGES).take(pa.array(generator.integers(0, len(AGES), users)))
        pq.write_table(
            pa.table({"user_id": np.arange(users) + 1_000_000, "age_band": ages}),
            place / "users.parquet",
        )
    if not (place / "exact.json").exists():
        (place / "exact.json").write_text(json.dumps(_exact(place / "events.parquet")))
    return place


def _exact(path: Path) -> dict[str, dict[str, float]]:
    """The true numbers that answers are compared with: counts in all and by region, users a day, medians by region."""
    read = duckdb.connect().read_parquet(str(path))
    asked = {
        "W1": read.aggregate("'all', count(*)"),
        "W2": read.aggregate("region, count(*)"),
        "W4": read.aggregate("CAST(day AS VARCHAR), count(DISTINCT user_id)"),
        "W5": read.filter("NOT isnan(amount)").aggregate("region, quantile_cont(amount, 0.5)"),
    }
    return {name: dict(rows.fetchall()) for name, rows in asked.items()}


def _write_events(
    path: Path, owners: "np.typing.NDArray[np.int64]", generator: np.random.Generator
) -> None:
    writer = None
    for start in range(0, len(owners), _PIECE):
        piece = owners[start : start + _PIECE]
        size = len(piece)
        amount = np.minimum(generator.lognormal(3.3, 1.0, size), 500.0)
        amount[generator.random(size) < 0.002] = np.nan
        missing = generator.random(size) < 0.01
        day = np.datetime64("2024-01-01") + generator.integers(0, DAYS, size)
        table = pa.table(
            {
                "user_id": piece + 1_000_000,
                "region": _texts("R", 2, REGIONS).take(
                    pa.array(generator.integers(0, REGIONS, size))
                ),
                "product": _texts("P", 5, PRODUCTS).take(
                    pa.array(np.minimum(generator.zipf(1.3, size), PRODUCTS) - 1)
                ),
                "day": day.astype("datetime64[D]"),
                "amount": pa.array(amount, mask=missing),
            }
        )
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def _texts(letter: str, digits: int, count: int) -> pa.Array:
    return pa.array([f"{letter}{index:0{digits}}" for index in range(count)])
