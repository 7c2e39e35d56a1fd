# SPDX-License-Identifier: Apache-2.0
"""Guarantees for groups, against chains of laws each one step from the next."""

from fractions import Fraction

import pytest
from flint import ctx, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import group
from sfumato.accounting.group import for_group, replace_one_from_add_remove
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.privacy.guarantee import (
    ApproxDP,
    BoundedRangeDP,
    GaussianDP,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)
from tests.accounting.laws import (
    PRECISION,
    SLACK,
    gaussian,
    hockey_stick,
    laplace,
    loss,
    number,
    renyi,
    shifted,
)

SIZES = st.integers(1, 4)
VARIANCES = st.sampled_from([Fraction(1), Fraction(5, 2), Fraction(9)])


@given(
    SIZES,
    VARIANCES,
    st.sampled_from([Fraction(1, 2), Fraction(1), Fraction(2)]),
    st.sampled_from([2, 3, 8]),
)
@settings(deadline=None)
def test_a_group_loses_at_most_what_its_guarantee_says(size, variance, epsilon, order):
    # a count of the group in noise: each unit moves it by 1
    noisy, exact = shifted(gaussian(variance), 0), laplace(variance)
    moved = shifted(gaussian(variance), size)
    concentrated = for_group(ZeroConcentratedDP(1 / (2 * variance)), size)
    grown = for_group(RenyiDP(order, order / (2 * variance)), size)
    one = hockey_stick(noisy, shifted(gaussian(variance), 1), epsilon)
    with ctx.workprec(PRECISION):
        pure = for_group(PureDP(1 / variance), size)
        assert bool(loss(shifted(exact, 0), shifted(exact, size)) <= number(pure.epsilon) + SLACK)
        delta = Fraction(one.upper().str(40, radius=False)) if not bool(one == 0) else Fraction(0)
        several = for_group(ApproxDP(epsilon, delta * (1 + Fraction(1, 10**30))), size)
        assert bool(renyi(noisy, moved, fmpq(order)) <= number(order * concentrated.rho) + SLACK)
        at = fmpq(grown.order.numerator, grown.order.denominator)
        assert bool(renyi(noisy, moved, at) <= number(grown.epsilon) + SLACK)
        assert bool(hockey_stick(noisy, moved, several.epsilon) <= number(several.delta) + SLACK)


def test_a_group_that_costs_as_one_would_be_noticed(monkeypatch):
    monkeypatch.setitem(
        group._RULES, RenyiDP, lambda one, size: RenyiDP(Fraction(16, 7), one.epsilon)
    )
    grown = for_group(RenyiDP(4, 2), 2)
    moved = renyi(shifted(gaussian(Fraction(1)), 0), shifted(gaussian(Fraction(1)), 2), fmpq(16, 7))
    assert not bool(moved <= number(grown.epsilon))


@pytest.mark.parametrize(
    "guarantee", [PureDP(1), BoundedRangeDP(1), ApproxDP(1, "0.1"), RenyiDP(3, 1), GaussianDP(1)]
)
def test_a_group_of_one_is_a_unit(guarantee):
    assert for_group(guarantee, 1) == guarantee


def test_groups_in_exact_numbers():
    assert for_group(PureDP("0.1"), 10) == PureDP(1)
    assert for_group(BoundedRangeDP("0.1"), 10) == BoundedRangeDP(1)
    assert for_group(ZeroConcentratedDP("0.01"), 10) == ZeroConcentratedDP(1)
    assert for_group(GaussianDP("0.01"), 10) == GaussianDP(1)
    assert for_group(ApproxDP("0.1", 0), 10) == ApproxDP(1, 0)
    assert for_group(ApproxDP(0, "0.1"), 3) == ApproxDP(0, "0.3")
    assert for_group(ApproxDP(9000, "0.1"), 3) == ApproxDP(27000, 1)
    assert replace_one_from_add_remove(ZeroConcentratedDP(1)) == ZeroConcentratedDP(4)


@given(st.fractions(min_value=Fraction(3, 2), max_value=40), st.integers(1, 6), st.integers(1, 6))
@settings(deadline=None)
def test_renyi_groups_of_groups_are_groups(order, first, second):
    one = RenyiDP(order, 1)
    assert for_group(for_group(one, first), second).order == for_group(one, first * second).order
    # Mironov (2017), Proposition 2, for pairs: order halved, three times the loss
    if order >= 4:
        pair = for_group(one, 2)
        assert pair.order >= order / 2 and pair.epsilon <= 3


@pytest.mark.parametrize("size", [0, -1, True, 1.5, "2"])
def test_a_group_has_a_whole_size(size):
    with pytest.raises(InvalidNumber):
        for_group(PureDP(1), size)


def test_a_group_too_large_for_renyi_and_no_guarantee_raise():
    with pytest.raises(InvalidNumber):
        for_group(RenyiDP(2, 1), 10**12)
    assert for_group(PureDP(1), 10**12) == PureDP(10**12)
    with pytest.raises(InvalidDeclaration):
        for_group(Fraction(1), 2)
