# SPDX-License-Identifier: Apache-2.0
"""Amounts of units of 5 rows in 20 areas, and how far medians are off them, in ranks."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

AREAS, ROWS, GROUPS, MOST = 20, 5, 4, 500.0
_DATA = Path(__file__).resolve().parents[2] / ".bench" / "data"


def amounts(n: int) -> Path:
    """The file of so many rows, made once: most amounts are small beside the range."""
    path = _DATA / f"areas-{n}.parquet"
    if not path.exists():
        chance = np.random.default_rng(3)
        columns = {
            "person": chance.permutation(np.arange(n) // ROWS),
            "area": chance.integers(0, AREAS, n),
            "amount": np.minimum(chance.exponential(MOST / 20, n), MOST),
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(pa.table(columns), path)
    return path


@cache
def _sorted(n: int) -> Mapping[int, Any]:
    rows = parquet.read_table(amounts(n))
    areas, values = (rows[name].to_numpy() for name in ("area", "amount"))
    return {area: np.sort(values[areas == area]) for area in range(AREAS)}


def rank_error(n: int, medians: Mapping[int, float]) -> float:
    """The middle one of the areas."""
    truth = _sorted(n)
    return median(
        abs(float(np.searchsorted(truth[area], value)) - len(truth[area]) / 2)
        for area, value in medians.items()
    )
