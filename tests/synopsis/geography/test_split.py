# SPDX-License-Identifier: Apache-2.0
"""Splits of the cost: exact errors, slopes by differences, and no better split by search."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.privacy.distance import Norm
from sfumato.synopsis.geography.design import Design
from sfumato.synopsis.geography.least_squares import LeastSquares
from sfumato.synopsis.geography.split import Objective, even, least_error
from tests.synopsis.geography.trees import tree_of

DESIGN = Design(
    tree_of([3], [2, 1, 4]), (3, 2), ((0, (0, 1)), (0, ()), (1, (0, 1)), (2, (1,)), (2, ()))
)
WEIGHTS = (0.5, 0.5, 2.0, 0.5, 0.5)
SHARES = np.array([0.1, 0.3, 0.2, 0.25, 0.15])


@pytest.mark.parametrize("norm", [Norm.L1, Norm.L2])
def test_errors_are_those_of_least_squares_and_slopes_those_of_differences(norm):
    objective = Objective(DESIGN, WEIGHTS, norm)
    precisions = SHARES**2 if norm is Norm.L1 else SHARES
    squares = LeastSquares(DESIGN, tuple(precisions))
    wanted = [squares.variances(level, axes).mean() for level, axes in DESIGN.tables]
    assert objective.table_errors(SHARES) == pytest.approx(wanted)
    for place, fall in enumerate(objective.falls(SHARES)):
        moved = SHARES.copy()
        moved[place] += 1e-6
        change = (objective.error(SHARES) - objective.error(moved)) / 1e-6
        assert fall == pytest.approx(change, rel=1e-3)


@given(st.lists(st.floats(0.01, 1), min_size=5, max_size=5))
def test_no_split_has_less_error_than_the_least_in_l2(raw):
    objective = Objective(DESIGN, WEIGHTS, Norm.L2)
    best = np.array([float(share) for share in least_error(objective)])
    other = np.array(raw) / sum(raw)
    assert objective.error(best) <= objective.error(other) * 1.001


def test_in_l1_a_level_that_wins_nothing_is_left_out():
    design = Design(tree_of([2], [2, 2]), (2,), ((0, (0,)), (1, (0,)), (2, (0,))))
    objective = Objective(design, (1.0, 1.0, 1.0), Norm.L1)
    found = least_error(objective)
    assert found.count(0) > 0
    reached = objective.error(np.array([float(share) for share in found]))
    # no better split on a grid of 1/40
    grid = [
        np.array([one, other, 40 - one - other]) / 40
        for one in range(40)
        for other in range(40 - one)
    ]
    assert reached <= min(map(objective.error, grid)) * 1.005


@pytest.mark.parametrize("norm", [Norm.L1, Norm.L2])
def test_shares_add_up_to_one_exactly(norm):
    for found in (least_error(Objective(DESIGN, WEIGHTS, norm)), even(DESIGN)):
        assert sum(found) == 1
        assert min(found) >= 0


def test_even_means_even_by_level_then_by_table():
    assert [str(share) for share in even(DESIGN)] == ["1/6", "1/6", "1/3", "1/6", "1/6"]


def test_what_alone_determines_a_table_is_measured_whatever_it_wins():
    # the weight of the only table with the axis 0 is next to nothing
    design = Design(tree_of([2]), (2, 2), ((0, (0,)), (1, (1,))))
    found = least_error(Objective(design, (1e-12, 1.0), Norm.L2))
    assert min(found) > 0


def test_a_split_without_a_needed_table_has_no_finite_error():
    assert Objective(DESIGN, WEIGHTS, Norm.L2).error(np.array([1.0, 0, 0, 0, 0])) == np.inf
