# SPDX-License-Identifier: Apache-2.0
"""Small tables for the tests of learning, and sessions over them."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import sfumato as sf

CITIES = ("east", "north", "west")
COLUMNS: dict[str, Any] = {
    "age": sf.Integer(0, 99),
    "city": sf.Category(*CITIES),
    "pay": sf.Real(0, 100),
    "ill": sf.Boolean(),
}
SELECT = "SELECT age, city, pay, ill FROM people"


def frame(count: int, seed: int = 0) -> pa.Table:
    """Rows in which the old of the north are ill."""
    random = np.random.default_rng(seed)
    age = random.integers(0, 100, count)
    city = random.integers(0, 3, count)
    pay = random.uniform(0, 100, count)
    score = (age - 50) / 15 + 1.5 * (city == 1) - 0.5
    ill = random.uniform(size=count) < 1 / (1 + np.exp(-score))
    return pa.table({"age": age, "city": [CITIES[place] for place in city], "pay": pay, "ill": ill})


def connected(
    folder: Path,
    rows: pa.Table,
    budget: sf.Budget,
    *,
    unit: sf.Unit | None = None,
    relation: Any = None,
) -> sf.Session:
    """A session over one table."""
    more: dict[str, Any] = {} if unit is None else {"unit": unit}
    people = sf.Table(rows, columns=COLUMNS, **more)
    asked: dict[str, Any] = {} if relation is None else {"relation": relation}
    return sf.connect(
        {"people": people}, dataset="town", budget=budget, ledger=folder / "ledger.db", **asked
    )
