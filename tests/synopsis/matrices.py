# SPDX-License-Identifier: Apache-2.0
"""Layers and workloads written out, to compute independently what the room has in closed form."""

import numpy as np

from sfumato.synopsis.layers import Layer
from sfumato.synopsis.workload import Cells, Prefixes, Ranges, Workload


def matrix(layer: Layer, cells: int) -> np.ndarray:
    """The matrix of a layer, column by column."""
    columns = [layer.apply(column) for column in np.eye(cells, dtype=np.int64)]
    return np.array(columns).T


def queries(workload: Workload) -> np.ndarray:
    """Every query of a workload, a row each."""
    cells = workload.cells
    match workload:
        case Cells():
            return np.eye(cells)
        case Prefixes():
            return np.tril(np.ones((cells, cells)))
        case Ranges():
            rows = []
            for first in range(cells):
                for last in range(first, cells):
                    row = np.zeros(cells)
                    row[first : last + 1] = 1
                    rows.append(row)
            return np.array(rows)
        case _:
            raise AssertionError
