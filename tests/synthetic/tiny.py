# SPDX-License-Identifier: Apache-2.0
"""Tiny tables of units with up to two rows, for exhaustive searches."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

import sfumato as sf
from sfumato.engines.reference import Reference
from sfumato.metadata.dataset import Dataset
from sfumato.plan.cube import BoundedCube
from sfumato.query.marginals import marginal_cube
from sfumato.query.statistic import Opened

CELLS = list(itertools.product((0, 1, 2, None), ("F", "M", None)))


def cube(relation: Any = sf.AddRemove) -> BoundedCube:
    """Two rows of each unit count in full."""
    table = sf.Table(
        pa.table({"who": ["a"], "v": [0], "s": ["F"]}),
        unit=sf.Unit("who", max_rows_total=2),
        columns={"v": sf.Integer(0, 2), "s": sf.Category("F", "M")},
    )
    return marginal_cube(Dataset("tiny", {"t": table}, relation), "t", [("v", "s")])


def units(who: str, most: int = 2) -> Iterator[list[dict[str, object]]]:
    """Every choice of up to so many rows of a unit."""
    for size in range(most + 1):
        for cells in itertools.combinations_with_replacement(CELLS, size):
            yield [{"who": who, "v": value, "s": sex} for value, sex in cells]


def exact(statistic: Any, table: list[dict[str, object]]) -> np.ndarray:
    """The exact integers of a statistic of a table."""
    opened = Opened(statistic.plan, cube=Reference({"t": table}).cube(statistic.plan))
    with opened:
        return np.array(statistic.exact(opened), dtype=object)
