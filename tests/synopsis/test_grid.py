# SPDX-License-Identifier: Apache-2.0
"""Layers over several columns against dense least squares."""

import math
from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.synopsis.chain import Chain
from sfumato.synopsis.grid import Grid, Place
from sfumato.synopsis.solution import Solution

CHAINS = (Chain(4, (1, 2, 4)), Chain(3, (1, 3)), Chain(5, (1, 2, 6)))
PLACES = [
    (), ((0, 0),), ((0, 1),), ((1, 0),), ((2, 1),), ((0, 0), (1, 0)), ((0, 1), (2, 0)),
    ((0, 0), (2, 1)), ((1, 0), (2, 0)), ((0, 1), (1, 0), (2, 1)),
]  # fmt: skip


def dense(place: Place) -> np.ndarray:
    """The matrix of a layer over all padded cells."""
    levels, factors = dict(place), []
    for axis, chain in enumerate(CHAINS):
        width = chain.widths[levels.get(axis, chain.top)]
        blocks = np.arange(chain.padded) // width
        factors.append((np.arange(chain.padded // width)[:, None] == blocks).astype(float))
    return reduce(np.kron, factors)


def padded(place: Place, integers: np.ndarray) -> np.ndarray:
    """The integers of a layer with 0 for the blocks that have no cells."""
    full = [CHAINS[axis].padded // CHAINS[axis].widths[level] for axis, level in place]
    table = np.zeros(full)
    table[tuple(map(slice, integers.shape))] = integers
    return table.ravel()


QUERIES = st.fixed_dictionaries(
    {},
    optional={
        axis: st.lists(st.sampled_from([0.0, 1.0]), min_size=chain.cells, max_size=chain.cells).map(
            np.array
        )
        for axis, chain in enumerate(CHAINS)
    },
)


@given(
    st.lists(st.sampled_from(PLACES), min_size=1, max_size=6, unique=True),
    st.integers(0, 10**6),
    QUERIES,
)
def test_estimates_and_variances_are_those_of_dense_least_squares(places, seed, query):
    random = np.random.default_rng(seed)
    grid, precisions = Grid(CHAINS, tuple(places)), random.uniform(0.5, 2, len(places))
    noisy = [random.normal(size=grid.shape(place)) for place in places]
    matrices = list(map(dense, places))
    information = sum(p * a.T @ a for p, a in zip(precisions, matrices, strict=True))
    score = 0.0
    for place, p, a, y in zip(places, precisions, matrices, noisy, strict=True):
        score = score + p * a.T @ padded(place, y)
    factors = []
    for axis, chain in enumerate(CHAINS):
        cells = query.get(axis, np.ones(chain.cells))
        rest = float((cells == 1).all())
        factors.append(np.append(cells, np.full(chain.padded - chain.cells, rest)))
    row = reduce(np.kron, factors)
    known = grid.information(precisions)
    ((value, variance),) = Solution(grid, known, grid.scores(noisy, precisions)).estimates([query])
    inverse = np.linalg.pinv(information)
    if np.abs(information @ inverse @ row - row).max() > 1e-6:
        assert variance == math.inf
        return
    assert variance == pytest.approx(row @ inverse @ row, abs=1e-9)
    assert value == pytest.approx(row @ inverse @ score, abs=1e-7)


def test_residuals_of_marginals_have_the_closed_form():
    """ResidualPlanner: 1/v_A is the sum over S containing A of w_S over the rest of S."""
    sizes, weights = (20, 18, 2), {(0,): 0.3, (0, 1): 0.5, (0, 1, 2): 0.2}
    chains = tuple(Chain(size, (1, size)) for size in sizes)
    places = tuple(tuple((axis, 0) for axis in chosen) for chosen in weights)
    known = Grid(chains, places).information(list(weights.values()))
    for residual in ((), (0,), (1,), (0, 1), (0, 2)):
        expected = 0.0
        for chosen, weight in weights.items():
            if set(residual) <= set(chosen):
                rest = math.prod(sizes[axis] for axis in chosen if axis not in residual)
                expected += weight / rest
        # a space of length 1 in each cell, not in each value of the residual
        scale = math.prod(sizes[axis] for axis in residual)
        assert known[tuple((axis, 0) for axis in residual)] * scale == pytest.approx(expected)


def test_an_estimator_that_forgets_a_layer_is_noticed():
    """The mutant reads the noise of the first layer alone at the weights of both."""
    grid = Grid(CHAINS[:1], (((0, 0),), ((0, 1),)))
    known, ones = grid.information([1.0, 1.0]), np.ones(4)
    honest = grid.scores([ones, np.full(2, 2.0)], [1.0, 1.0])
    mutant = grid.scores([ones, np.zeros(2)], [1.0, 1.0])
    query = {0: np.array([1.0, 1, 0, 0])}
    assert Solution(grid, known, honest).estimates([query])[0][0] == pytest.approx(2)
    assert Solution(grid, known, mutant).estimates([query])[0][0] != pytest.approx(2)
