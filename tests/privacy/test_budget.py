# SPDX-License-Identifier: Apache-2.0
"""A budget is exact, positive and finite."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidNumber
from sfumato.privacy import Budget


@given(
    st.fractions(min_value=Fraction(1, 10**9), max_value=10**6),
    st.fractions(min_value=0, max_value=Fraction(999, 1000)),
)
@settings(deadline=None)
def test_a_budget_keeps_its_numbers_exactly(epsilon, delta):
    budget = Budget(epsilon, delta)
    assert (budget.epsilon, budget.delta) == (epsilon, delta)


@pytest.mark.parametrize("epsilon", [3, 3.0, "3", Decimal(3), "6/2", Fraction(3)])
def test_every_way_to_write_three_is_the_same_budget(epsilon):
    assert Budget(epsilon, delta=1e-6) == Budget(3, delta="0.000001")


@pytest.mark.parametrize(
    "epsilon",
    [
        0,
        -1,
        float("nan"),
        float("inf"),
        "inf",
        1e-400,
        "three",
        True,
        None,
        10**6 + 1,
        "1000000.0000001",
        "1e-400000000",
    ],
)
def test_an_epsilon_outside_its_range_is_refused(epsilon):
    with pytest.raises(InvalidNumber, match="epsilon"):
        Budget(epsilon)


@pytest.mark.parametrize(
    "delta", [-1e-6, 1, 1.0, 2, "1", float("nan"), float("inf"), "tiny", True, None]
)
def test_a_delta_outside_its_range_is_refused(delta):
    with pytest.raises(InvalidNumber, match="delta"):
        Budget(1, delta)


def test_a_budget_without_delta_is_pure():
    assert Budget(1).delta == 0
    assert Budget(1, delta=0.0) == Budget(1)


def test_the_largest_budget_is_allowed():
    assert Budget(10**6).epsilon == 10**6


def test_a_budget_shows_its_exact_numbers():
    assert repr(Budget(0.1, "1e-6")) == "Budget(epsilon=0.1, delta=0.000001)"
    assert repr(Budget("1/3")) == "Budget(epsilon=1/3, delta=0)"
