# SPDX-License-Identifier: Apache-2.0
"""Dense layers, and least squares from them, against matrices written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sfumato.errors import WrongUse
from sfumato.synopsis.dense import DenseLayer, DenseStack
from sfumato.synopsis.workload import Cells, Prefixes, Ranges
from tests.synopsis.matrices import queries

CELLS = 6
LAYERS = st.builds(
    DenseLayer.of,
    arrays(int, CELLS, elements=st.integers(1, 50)),
    arrays(int, st.tuples(st.integers(0, 3), st.just(CELLS)), elements=st.integers(-20, 50)),
)


def matrix(layer: DenseLayer) -> np.ndarray:
    """The matrix, column by column."""
    return np.array([layer.apply(column) for column in np.eye(CELLS, dtype=int)]).T


@given(LAYERS)
def test_the_norm_is_the_largest_sum_of_absolute_values_of_a_column_of_the_matrix_that_is_applied(
    layer,
):
    assert layer.norm == np.abs(matrix(layer)).sum(axis=0).max()
    assert layer.size(CELLS) == len(matrix(layer))
    cells = np.arange(CELLS, dtype=float)
    assert layer.apply(cells) == pytest.approx(matrix(layer) @ cells)


@given(LAYERS, st.integers(0, 10**6), st.sampled_from([Cells, Prefixes, Ranges]))
def test_estimates_and_errors_are_those_of_dense_least_squares(layer, seed, kind):
    random, stack, written = np.random.default_rng(seed), DenseStack(CELLS, layer), matrix(layer)
    noisy, query = random.normal(size=len(written)), random.normal(size=CELLS)
    inverse = np.linalg.inv(written.T @ written)
    assert stack.estimate([noisy], [2.0]) == pytest.approx(inverse @ written.T @ noisy, abs=1e-6)
    assert stack.variance(query, [2.0]) == pytest.approx(query @ inverse @ query / 2)
    (coefficients,) = stack.coefficients(query, [2.0])
    assert coefficients == pytest.approx(written @ inverse @ query, abs=1e-6)
    asked = queries(kind(CELLS))
    mean = np.einsum("ij,jk,ik->i", asked, inverse, asked).mean()
    assert stack.error(kind(CELLS), [1.0]) == pytest.approx(mean)


def test_sums_beyond_64_bits_are_clipped():
    layer = DenseLayer.of([2**30, 1], [[2**30, 2**30]])
    assert layer.apply(np.array([2**60, -(2**62)])).tolist() == [2**61, -(2**61), -(2**61)]


def test_another_matrix_has_another_digest():
    one, other = DenseLayer.of([1, 2], [[1, 1]]), DenseLayer.of([1, 2], [[1, 2]])
    assert one.digest != other.digest
    assert one == DenseLayer.of([1, 2], [[1, 1]])


@pytest.mark.parametrize("diagonal", [[], [0, 1], [1] * 1025])
def test_too_many_cells_or_one_that_is_not_measured_are_refused(diagonal):
    with pytest.raises(WrongUse, match="dense strategy"):
        DenseLayer.of(diagonal, np.zeros((0, len(diagonal))))
