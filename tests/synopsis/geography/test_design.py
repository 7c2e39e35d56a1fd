# SPDX-License-Identifier: Apache-2.0
"""Designs: the detail of a level, its residuals, and the chain in which it is refined."""

import numpy as np

from sfumato.synopsis.geography.design import Design, parts, residual_of, spread_over
from tests.synopsis.geography.trees import tree_of

TREE = tree_of([2], [2, 2])
DESIGN = Design(TREE, (3, 2, 4), ((0, (0, 1)), (0, (1, 2)), (1, (0,)), (2, ()), (2, (1,))))


def test_the_detail_has_the_axes_of_a_level_and_below():
    assert [DESIGN.detail(level) for level in range(3)] == [(0, 1, 2), (0, 1), (1,)]
    assert not DESIGN.is_complete(0)
    assert not DESIGN.is_complete(1)
    assert DESIGN.is_complete(2)


def test_a_residual_is_determined_down_to_its_deepest_table():
    assert DESIGN.deepest == {(): 2, (0,): 1, (1,): 2, (0, 1): 0, (2,): 0, (1, 2): 0}
    assert DESIGN.residuals(1) == ((), (0,), (1,))


def test_a_chain_is_nested_from_the_total_to_the_detail():
    assert DESIGN.chain(0) == ((), (1,), (0, 1), (0, 1, 2))
    assert DESIGN.chain(1) == ((), (0,), (0, 1))
    assert DESIGN.chain(2) == ((), (1,))


def test_precisions_are_those_of_the_sums_of_cells():
    # a table of 4 cells an area measures a total with four times the variance
    assert DESIGN.precisions((1,), [2.0, 4.0, 1.0, 1.0, 3.0]) == (2 / 3 + 1.0, 0.0, 3.0)


def test_a_table_is_the_sum_of_its_residuals():
    values = np.random.default_rng(1).normal(size=(2, 3, 4))
    total = np.zeros_like(values)
    for part in parts((0, 2)):
        residual = residual_of(values, (0, 2), part)
        outside = DESIGN.outside(part, (0, 2))
        total = total + spread_over(residual, part, (0, 2), outside)
        for place in range(1, residual.ndim):
            np.testing.assert_allclose(residual.sum(axis=place), 0, atol=1e-9)
    np.testing.assert_allclose(total, values)
