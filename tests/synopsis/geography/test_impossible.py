# SPDX-License-Identifier: Apache-2.0
"""Conditioning on impossible cells, against the conditional mean of a Gaussian, written out."""

import numpy as np
import pytest

from sfumato.synopsis.geography import impossible as module
from sfumato.synopsis.geography.design import Design
from sfumato.synopsis.geography.impossible import conditioned, impossible_in
from sfumato.synopsis.geography.least_squares import LeastSquares
from tests.synopsis.geography.trees import measurement, tree_of

DESIGN = Design(tree_of([2]), (3, 2), ((0, (0, 1)), (0, (0,)), (1, (0, 1)), (1, ())))
PRECISIONS = (1.0, 0.5, 2.0, 0.7)
NEVER = np.array([[True, False], [False, False], [False, True]])


def covariance(level: int) -> np.ndarray:
    """The covariance of the cells of the first area of a level, by the normal equations."""
    matrices = [measurement(DESIGN, place) for place in range(4)]
    information = sum(w * m.T @ m for w, m in zip(PRECISIONS, matrices, strict=True))
    wanted = measurement(Design(DESIGN.tree, (3, 2), ((level, (0, 1)),)), 0)[:6]
    return wanted @ np.linalg.inv(information) @ wanted.T


@pytest.mark.parametrize("level", [0, 1])
def test_the_others_are_estimated_given_the_impossible_cells(level):
    draws = np.random.default_rng(1)
    estimates = [draws.normal(size=(size, 3, 2)) for size in DESIGN.tree.sizes]
    found = conditioned(LeastSquares(DESIGN, PRECISIONS), estimates, NEVER)
    never = NEVER.ravel()
    exact = covariance(level)
    gain = exact[:, never] @ np.linalg.inv(exact[np.ix_(never, never)])
    for one, other in zip(found[level], estimates[level], strict=True):
        wanted = other.ravel() - gain @ other.ravel()[never]
        np.testing.assert_allclose(one.ravel(), wanted, atol=1e-9)
    assert np.abs(found[level][:, NEVER]).max() < 1e-9


def test_without_impossible_cells_or_with_too_many_cells_nothing_moves(monkeypatch):
    estimates = [np.ones((size, 3, 2)) for size in DESIGN.tree.sizes]
    squares = LeastSquares(DESIGN, PRECISIONS)
    for one in conditioned(squares, estimates, np.zeros((3, 2), bool)):
        assert (one == 1).all()
    monkeypatch.setattr(module, "_MOST_CELLS", 5)
    for one in conditioned(squares, estimates, NEVER):
        assert (one == 1).all()


def test_a_cell_of_a_table_is_impossible_if_all_its_cells_are():
    assert impossible_in(NEVER, (0,)).tolist() == [False, False, False]
    never = NEVER | np.array([[True], [False], [False]])
    assert impossible_in(never, (0,)).tolist() == [True, False, False]
    assert impossible_in(never, (0, 1)).tolist() == never.tolist()
