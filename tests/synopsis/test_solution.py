# SPDX-License-Identifier: Apache-2.0
"""Many queries of one solution; each by itself is compared with dense least squares in test_grid."""

import math

import numpy as np
import pytest

from sfumato.synopsis import solution
from sfumato.synopsis.chain import Chain
from sfumato.synopsis.grid import Grid
from sfumato.synopsis.solution import Solution

RANDOM = np.random.default_rng(5)
GRID = Grid((Chain(5, (1, 2, 4, 8)), Chain(3, (1, 3))), (((0, 0), (1, 0)), ((0, 1),), ((1, 0),)))
NOISY = [RANDOM.normal(size=GRID.shape(place)) for place in GRID.layers]


def solved(grid: Grid = GRID, noisy: list[np.ndarray] = NOISY) -> Solution:
    ones = [1.0] * len(grid.layers)
    return Solution(grid, grid.information(ones), grid.scores(noisy, ones))


def test_answers_add_up_exactly_as_their_queries_do():
    """R is linear: the cells of a row add up to the row, to rounding."""
    found = solved()
    row = np.array([1.0, 1, 0, 0, 1])
    cells = [{0: row, 1: np.eye(3)[place]} for place in range(3)]
    parts = found.estimates(cells)
    ((whole, _),) = found.estimates([{0: row, 1: np.ones(3)}])
    assert sum(value for value, _ in parts) == pytest.approx(whole, abs=1e-12)


def test_it_is_idempotent():
    """The layers of the estimated table are estimated as that table."""
    first = solved()
    table = np.array(
        [
            [first.estimates([{0: one, 1: other}])[0][0] for other in np.eye(3)]
            for one in np.eye(5)
        ]
    )  # fmt: skip
    blocks = np.add.reduceat(table.sum(axis=1), [0, 2, 4])
    again = solved(noisy=[table, blocks, table.sum(axis=0)])
    ((value, _),) = again.estimates([{0: np.eye(5)[3], 1: np.eye(3)[1]}])
    assert value == pytest.approx(table[3, 1], abs=1e-12)


def test_many_at_once_are_as_each_alone():
    shared = np.array([0.0, 1, 1, 0, 0])
    asked = [{0: shared}, {1: np.array([1.0, 0, 1])}, {}, {0: shared, 1: np.array([0.0, 1, 0])}]
    together = solved().estimates(asked)
    assert together == [solved().estimates([query])[0] for query in asked]


def test_tables_are_forgotten_when_they_are_too_many(monkeypatch):
    monkeypatch.setattr(solution, "_KEPT", 6)
    monkeypatch.setattr(solution, "_FACTORS", 1)
    found = solved()
    asked = [{0: np.eye(5)[0]}, {1: np.eye(3)[0]}, {0: np.eye(5)[0]}]
    assert found.estimates(asked) == solved().estimates(asked)


def test_what_no_layer_tells_has_no_error_bound():
    alone = Grid(GRID.chains, (((0, 1),), ((1, 0),)))
    found = solved(alone, NOISY[1:])
    value, variance = found.estimates([{0: np.eye(5)[0]}])[0]
    assert math.isnan(value)
    assert variance == math.inf
    assert found.estimates([{0: np.array([1.0, 1, 0, 0, 0])}])[0][1] < math.inf
