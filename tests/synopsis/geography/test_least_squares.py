# SPDX-License-Identifier: Apache-2.0
"""Least squares of tables of several levels against the normal equations, written out."""

import numpy as np
import pytest

from sfumato.synopsis.geography.design import Design
from sfumato.synopsis.geography.least_squares import LeastSquares, PublicTotals, by_axes
from tests.synopsis.geography.trees import measurement, tree_of

DESIGNS = [
    Design(tree_of([2], [1, 3]), (3, 2), ((0, (0, 1)), (0, ()), (1, (0, 1)), (2, (1,)), (2, ()))),
    Design(tree_of([2], [2, 2]), (2, 2, 2), ((0, (0, 1)), (0, (1, 2)), (1, (2,)), (2, (0, 1)))),
    Design(tree_of([2, 1], roots=2), (3,), ((0, ()), (1, (0,)))),
]


@pytest.mark.parametrize("design", DESIGNS)
def test_all_tables_are_fitted_together_and_their_variances_are_exact(design):
    noise = np.random.default_rng(3)
    precisions = tuple(noise.uniform(0.3, 3, len(design.tables)))
    matrices = [measurement(design, place) for place in range(len(design.tables))]
    noisy = []
    for (level, axes), matrix in zip(design.tables, matrices, strict=True):
        shape = [design.tree.sizes[level], *(design.sizes[axis] for axis in axes)]
        noisy.append(noise.normal(size=len(matrix)).reshape(shape))
    pairs = list(zip(precisions, matrices, strict=True))
    covariance = np.linalg.pinv(sum(weight * each.T @ each for weight, each in pairs))
    score = sum(
        weight * each.T @ table.ravel() for (weight, each), table in zip(pairs, noisy, strict=True)
    )
    squares = LeastSquares(design, precisions)
    estimates = squares.estimates(noisy)
    for (level, axes), matrix in zip(design.tables, matrices, strict=True):
        found = by_axes(estimates[level], design.detail(level), axes)
        np.testing.assert_allclose(found.ravel(), matrix @ covariance @ score, atol=1e-9)
        exact = np.diag(matrix @ covariance @ matrix.T).reshape(design.tree.sizes[level], -1)
        each = np.broadcast_to(squares.variances(level, axes)[:, None], exact.shape)
        np.testing.assert_allclose(each, exact, atol=1e-9)


def test_a_table_that_is_not_measured_is_none():
    design = DESIGNS[0]
    noise = np.random.default_rng(4)
    noisy = [noise.normal(size=size) for size in [(1, 3, 2), (1,), (2, 3, 2), (4, 2), (4,)]]
    without = Design(design.tree, design.sizes, tuple(design.tables[place] for place in (0, 2, 3)))
    wanted = LeastSquares(without, (1.0, 2.0, 3.0)).estimates([noisy[0], noisy[2], noisy[3]])
    squares = LeastSquares(design, (1.0, 0.0, 2.0, 3.0, 0.0))
    found = squares.estimates([noisy[0], None, noisy[2], noisy[3], None])
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


def test_public_totals_are_kept_and_those_of_others_gain():
    design = Design(tree_of([2], [2, 2]), (2,), ((0, ()), (1, ()), (2, (0,))))
    known = (np.array([True]), np.array([True, False]), np.zeros(4, bool))
    public = PublicTotals(known, (np.array([50.0]), np.array([20.0, 0]), np.zeros(4)))
    squares = LeastSquares(design, (1.0, 1.0, 1.0), public)
    noise = np.random.default_rng(5)
    noisy = [noise.normal(50, 3, 1), noise.normal(25, 3, 2), noise.normal(6, 3, (4, 2))]
    found = squares.estimates(noisy)
    assert found[0].sum() == pytest.approx(50)
    assert found[1].sum(axis=1).tolist() == pytest.approx([20, 30])
    assert squares.variances(1, ()).tolist() == pytest.approx([0, 0])
    alone = LeastSquares(design, (1.0, 1.0, 1.0)).variances(2, (0,))
    assert (squares.variances(2, (0,)) < alone).all()
