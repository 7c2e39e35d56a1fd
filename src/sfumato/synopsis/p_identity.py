# SPDX-License-Identifier: Apache-2.0
"""p-identity strategies for Laplace noise: every cell, and p weighted sums of cells.

``strategy`` adds it to its candidates. A = [1; T] diag(1 / d), where d is 1 plus the sum of a
column of T >= 0, so that each column of A adds up to 1. The error of a workload with Gram matrix G
is tr((1 + T^T T)^-1 C) with C = diag(d) G diag(d), whose gradient costs p n^2. It is minimised from
a start of blocks of three widths. Source: McKenna, Miklau, Hay, Machanavajjhala (2018), "Optimizing
error of high-dimensional statistical queries under differential privacy" (HDMM).

The optimisation only chooses a matrix: it is rounded to integers, and the noise, the error and the
estimates are those of the rounded matrix.
"""

from collections import deque
from functools import lru_cache

import numpy as np

from sfumato.synopsis.dense import MOST_CELLS, DenseLayer, DenseStack
from sfumato.synopsis.workload import Floats, Workload

# Entries are multiples of one over this.
_LATTICE = 2**14
# Fewer cells are not worth the search.
_FEWEST = 12
_ROUNDS, _MEMORY, _HALVINGS = 400, 10, 30
# The search ends when a round lowers the error by less.
_GAIN = 1e-6


@lru_cache(maxsize=16)
def p_identity(workload: Workload) -> DenseStack | None:
    """Searches a p-identity strategy of least error for a workload of 12 to 1,024 cells.

    Returns None for other sizes. At 1,024 cells it takes about three seconds.

    >>> from sfumato.synopsis.workload import Ranges
    >>> round(p_identity(Ranges(64)).error(Ranges(64), [1.0]) * 16384**2, 1)
    15.5
    """
    if not _FEWEST <= workload.cells <= MOST_CELLS:
        return None
    gram = workload.gram() / workload.queries
    more = _searched(gram, _start(workload.cells)) ** 2
    scale = _LATTICE / (1 + more.sum(axis=0))
    # rounded down, so that no column adds up to more than the lattice
    rows = np.floor(more * scale).astype(int)
    rows = rows[rows.any(axis=1)]
    return DenseStack(workload.cells, DenseLayer.of(_LATTICE - rows.sum(axis=0), rows))


def _start(cells: int) -> Floats:
    """The roots of the first rows: blocks of an eighth, a half and twice the root of the cells."""
    rows = []
    for width in {max(round(cells**0.5 * times), 2) for times in (1, 4, 16)}:
        for first in range(0, cells, width):
            row = np.zeros(cells)
            row[first : first + width] = 1.0
            rows.append(row)
    # a little of every cell, so that none is left out for good: its slope would be 0
    wave = np.sin(np.arange(len(rows) * cells)).reshape(len(rows), cells) ** 2
    started: Floats = np.sqrt(np.array(rows) + 0.05 * wave)
    return started


def _error(gram: Floats, roots: Floats) -> tuple[float, Floats]:
    """The error, and its slope in the roots of the rows (their squares are never negative)."""
    rows = roots**2
    sums = 1 + rows.sum(axis=0)
    scaled = gram * np.outer(sums, sums)
    kept = np.linalg.solve(np.eye(len(rows)) + rows @ rows.T, rows)
    read = kept @ scaled
    error = float(np.trace(scaled) - (read * rows).sum())
    slope = -2 * (read - (read @ rows.T) @ kept)
    # what a larger sum of a column costs
    slope += 2 * (sums * np.diag(gram) - (rows * ((kept * sums) @ gram)).sum(axis=0))
    return error, slope * 2 * roots


def _searched(gram: Floats, roots: Floats) -> Floats:
    """Lowers the error by L-BFGS (Nocedal 1980) with halved steps."""
    error, slope = _error(gram, roots)
    past: deque[tuple[Floats, Floats]] = deque(maxlen=_MEMORY)
    for _ in range(_ROUNDS):
        way = _direction(slope, past)
        step, fall = 1.0, float((slope * way).sum())
        for _ in range(_HALVINGS):
            tried = roots - step * way
            reached, there = _error(gram, tried)
            if reached <= error - 1e-4 * step * fall:
                break
            step /= 2
        else:
            return roots
        moved, turned = tried - roots, there - slope
        if (moved * turned).sum() > 0:
            past.append((moved, turned))
        gained = error - reached
        roots, error, slope = tried, reached, there
        if gained < _GAIN * error:
            return roots
    return roots


def _direction(slope: Floats, past: deque[tuple[Floats, Floats]]) -> Floats:
    """Returns the slope, turned by what is known of the curvature."""
    way: Floats = slope.copy()
    weights: list[float] = []
    if not past:
        way *= 1e-3 / float(np.abs(slope).max())
        return way
    for moved, turned in reversed(past):
        weight = float((moved * way).sum() / (moved * turned).sum())
        way -= weight * turned
        weights.append(weight)
    moved, turned = past[-1]
    way *= float((moved * turned).sum() / (turned * turned).sum())
    for (moved, turned), weight in zip(past, reversed(weights), strict=True):
        back = float((turned * way).sum() / (moved * turned).sum())
        way += (weight - back) * moved
    return way
