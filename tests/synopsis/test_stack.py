# SPDX-License-Identifier: Apache-2.0
"""Stacks of layers: exact errors and least squares, against dense linear algebra."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import WrongUse
from sfumato.synopsis.layers import Layer
from sfumato.synopsis.stack import Stack
from sfumato.synopsis.workload import Cells, Prefixes, Ranges
from tests.synopsis.matrices import matrix, queries


@st.composite
def stacks(draw: st.DrawFn) -> tuple[Stack, list[float]]:
    """A stack that fills its blocks, with layers of both kinds, and their precisions."""
    factors = draw(st.lists(st.integers(2, 4), max_size=3).filter(lambda each: np.prod(each) <= 32))
    widths = (1, *np.cumprod(factors).tolist()) if factors else (1,)
    layers = [Layer(1)]
    for narrow, wide in itertools.pairwise(widths):
        if draw(st.booleans()):
            layers.append(Layer(wide))
        if wide == 2 * narrow and draw(st.booleans()):
            layers.append(Layer(wide, halves=True))
    precisions = [draw(st.floats(0.01, 100)) for _ in layers]
    return Stack(widths[-1], widths, tuple(layers)), precisions


def dense(stack: Stack, precisions: list[float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The matrix of all layers, the precision of each row, and the covariance of the cells."""
    rows = np.vstack([matrix(layer, stack.cells) for layer in stack.layers]).astype(float)
    sizes = [layer.size(stack.cells) for layer in stack.layers]
    weights = np.repeat(precisions, sizes)
    return rows, weights, np.linalg.inv(rows.T @ (weights[:, None] * rows))


@given(stacks(), st.sampled_from([Cells, Prefixes, Ranges]))
def test_the_error_of_a_workload_is_that_of_dense_least_squares(drawn, kind):
    stack, precisions = drawn
    _, _, covariance = dense(stack, precisions)
    workload = kind(stack.cells)
    written = queries(workload)
    expected = np.trace(written @ covariance @ written.T) / len(written)
    assert stack.error(workload, precisions) == pytest.approx(expected, rel=1e-8)
    one = written[len(written) // 2]
    assert stack.variance(one, precisions) == pytest.approx(one @ covariance @ one, rel=1e-8)


@given(stacks(), st.integers(0, 2**32 - 1))
def test_estimates_are_those_of_dense_least_squares(drawn, seed):
    stack, precisions = drawn
    rows, weights, covariance = dense(stack, precisions)
    entropy = np.random.default_rng(seed)
    noisy = [entropy.integers(-50, 50, layer.size(stack.cells)) for layer in stack.layers]
    estimate = covariance @ rows.T @ (weights * np.concatenate(noisy))
    assert stack.estimate(noisy, precisions) == pytest.approx(estimate, rel=1e-7, abs=1e-7)
    query = entropy.integers(0, 2, stack.cells).astype(float)
    counted = np.concatenate(stack.coefficients(query, precisions))
    assert counted == pytest.approx(weights * (rows @ covariance @ query), rel=1e-7, abs=1e-9)


@given(stacks(), st.integers(0, 2**32 - 1))
def test_without_noise_the_cells_come_back(drawn, seed):
    stack, precisions = drawn
    cells = np.random.default_rng(seed).integers(0, 1000, stack.cells)
    exact = [layer.apply(cells) for layer in stack.layers]
    assert stack.estimate(exact, precisions) == pytest.approx(cells, abs=1e-6)


def test_cells_that_do_not_fill_the_blocks_have_at_most_the_stated_error():
    """Nine cells in blocks of 2, 4, 8 and 16: unbiased, and the variance is an upper bound."""
    stack = Stack(9, (1, 2, 4, 8, 16), (Layer(1), Layer(2), Layer(8)))
    precisions = [1.0, 2.0, 0.5]
    rows = np.vstack([matrix(layer, 9) for layer in stack.layers]).astype(float)
    weights = np.repeat(precisions, [layer.size(9) for layer in stack.layers])
    cells = np.arange(9) * 7
    exact = [layer.apply(cells) for layer in stack.layers]
    assert stack.estimate(exact, precisions) == pytest.approx(cells)
    for query in queries(Ranges(9)):
        counted = np.concatenate(stack.coefficients(query, precisions))
        assert rows.T @ counted == pytest.approx(query)
        assert (counted**2 / weights).sum() <= stack.variance(query, precisions) * (1 + 1e-9)


def test_a_query_that_no_layer_sees_has_no_finite_error():
    stack = Stack(4, (1, 2, 4), (Layer(2), Layer(4)))
    assert stack.error(Cells(4), [1.0, 1.0]) == float("inf")
    assert stack.variance(np.array([1.0, 1, 0, 0]), [1.0, 1.0]) < 2


@pytest.mark.parametrize(
    ("cells", "widths", "layers"),
    [
        (4, (2, 4), ()),
        (4, (1, 3, 4), ()),
        (5, (1, 2, 4), ()),
        (4, (1, 1, 4), ()),
        (4, (1, 2, 4), (Layer(3),)),
        (4, (1, 4), (Layer(2, halves=True),)),
        (4, (1, 4), (Layer(4, halves=True),)),
    ],
)
def test_widths_that_do_not_divide_one_another_are_refused(cells, widths, layers):
    with pytest.raises(WrongUse):
        Stack(cells, widths, layers)
