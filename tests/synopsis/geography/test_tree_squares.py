# SPDX-License-Identifier: Apache-2.0
"""Least squares on a tree against the normal equations, written out."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sfumato.synopsis.geography.tree_squares import TreeSquares
from tests.synopsis.geography.trees import membership, tree_of, trees

PRECISION = st.sampled_from([0.0, 0.3, 1.0, 5.0])


@given(trees(), st.data())
def test_estimates_and_variances_are_those_of_the_normal_equations(tree, data):
    given_ = [data.draw(PRECISION) for _ in range(tree.levels - 1)]
    precisions = (*given_, data.draw(st.sampled_from([0.5, 2.0])))
    noise = np.random.default_rng(data.draw(st.integers(0, 99)))
    sums = [membership(tree, level) for level in range(tree.levels)]
    measured = [noise.normal(size=(size, 2)) for size in tree.sizes]
    pairs = list(zip(precisions, sums, strict=True))
    covariance = np.linalg.inv(sum(weight * each.T @ each for weight, each in pairs))
    score = sum(
        weight * each.T @ values for (weight, each), values in zip(pairs, measured, strict=True)
    )
    squares = TreeSquares(tree, precisions)
    asked = [
        values if weight else None for weight, values in zip(precisions, measured, strict=True)
    ]
    estimates = squares.estimates(asked)
    for level, each in enumerate(sums):
        np.testing.assert_allclose(estimates[level], each @ covariance @ score, atol=1e-9)
        exact = np.diag(each @ covariance @ each.T)
        np.testing.assert_allclose(squares.variances[level], exact, atol=1e-9)


def test_a_known_area_is_kept_and_moves_its_neighbours():
    tree = tree_of([2], [2, 2])
    known = (np.array([False]), np.array([True, False]), np.zeros(4, bool))
    squares = TreeSquares(tree, (0.5, 1.0, 2.0), known)
    measured = [np.array([[30.0]]), np.array([[10.0], [9.0]]), np.array([[3.0], [4], [5], [6]])]
    found = squares.estimates(measured)
    assert found[1][0, 0] == 10
    # a known area is measured with as good as no noise
    nearly = [np.array([[30.0]]), measured[1], measured[2]]
    sums = [membership(tree, level) for level in range(3)]
    weights = [np.array([0.5]), np.array([1e9, 1.0]), np.full(4, 2.0)]
    information = sum(
        each.T @ np.diag(weight) @ each for each, weight in zip(sums, weights, strict=True)
    )
    score = sum(
        each.T @ np.diag(weight) @ values
        for each, weight, values in zip(sums, weights, nearly, strict=True)
    )
    wanted = np.linalg.solve(information, score)
    for level, each in enumerate(sums):
        np.testing.assert_allclose(found[level], each @ wanted, atol=1e-6)
        exact = np.diag(each @ np.linalg.inv(information) @ each.T)
        np.testing.assert_allclose(squares.variances[level], exact, atol=1e-6)


def test_an_area_whose_children_are_all_known_is_known():
    tree = tree_of([2])
    known = (np.array([False]), np.array([True, True]))
    squares = TreeSquares(tree, (1.0, 1.0), known)
    estimates = squares.estimates([np.array([[9.0]]), np.array([[3.0], [4.0]])])
    assert [each.ravel().tolist() for each in estimates] == [[7.0], [3.0, 4.0]]
    assert [each.tolist() for each in squares.variances] == [[0.0], [0.0, 0.0]]
