# SPDX-License-Identifier: Apache-2.0
"""Guarantees are exact values, and the ones of one number are ordered by strength."""

import dataclasses
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.privacy.guarantee import (
    ApproxDP,
    BoundedRangeDP,
    GaussianDP,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)

AMOUNTS = st.fractions(min_value=0)
ORDERS = st.fractions(min_value=Fraction(11, 10), max_value=100)
DELTAS = st.fractions(min_value=0, max_value=1)
ONE_NUMBER = [PureDP, BoundedRangeDP, ZeroConcentratedDP, GaussianDP]
EACH = [
    PureDP(1),
    BoundedRangeDP(1),
    ApproxDP(1, "1e-6"),
    ZeroConcentratedDP(1),
    RenyiDP(8, 1),
    GaussianDP(1),
]


@pytest.mark.parametrize("kind", ONE_NUMBER)
@given(one=AMOUNTS, other=AMOUNTS)
@settings(deadline=None)
def test_a_guarantee_of_one_number_is_ordered_by_it(kind, one, other):
    assert (kind(one) < kind(other)) == (one < other)
    assert kind(one).implies(kind(other)) == (one <= other)


@given(ORDERS, AMOUNTS, AMOUNTS)
@settings(deadline=None)
def test_renyi_guarantees_of_one_order_are_ordered(order, one, other):
    first, second = RenyiDP(order, one), RenyiDP(order, other)
    assert (first < second, first <= second) == (one < other, one <= other)
    assert (first > second, first >= second) == (one > other, one >= other)


def test_renyi_guarantees_of_two_orders_are_not_ordered():
    with pytest.raises(TypeError):
        assert RenyiDP(2, 1) < RenyiDP(3, 1)
    with pytest.raises(TypeError):
        assert RenyiDP(2, 1) <= RenyiDP(3, 1)


@given(st.tuples(ORDERS, AMOUNTS), st.tuples(ORDERS, AMOUNTS))
@settings(deadline=None)
def test_a_renyi_guarantee_implies_smaller_orders_and_larger_losses(one, other):
    assert RenyiDP(*one).implies(RenyiDP(*other)) == (one[0] >= other[0] and one[1] <= other[1])


@given(st.tuples(AMOUNTS, DELTAS), st.tuples(AMOUNTS, DELTAS))
@settings(deadline=None)
def test_an_approximate_guarantee_implies_where_both_numbers_do(one, other):
    expected = other[1] == 1 or (one[0] <= other[0] and one[1] <= other[1])
    assert ApproxDP(*one).implies(ApproxDP(*other)) == expected


@given(st.lists(st.tuples(AMOUNTS, DELTAS), min_size=3, max_size=3))
@settings(deadline=None)
def test_implication_is_a_partial_order(numbers):
    a, b, c = (ApproxDP(*each) for each in numbers)
    assert a.implies(a)
    assert not (a.implies(b) and b.implies(c)) or a.implies(c)


@pytest.mark.parametrize("one", EACH, ids=repr)
@pytest.mark.parametrize("other", EACH, ids=repr)
def test_guarantees_of_different_kinds_do_not_compare(one, other):
    if type(one) is type(other):
        assert one == other
        return
    assert one != other
    with pytest.raises(TypeError):
        sorted([one, other])
    with pytest.raises(InvalidDeclaration, match=type(other).__name__):
        one.implies(other)


def test_an_approximate_guarantee_has_no_order():
    with pytest.raises(TypeError):
        sorted([ApproxDP(1, 0), ApproxDP(2, 0)])


@pytest.mark.parametrize("guarantee", EACH, ids=repr)
def test_a_guarantee_cannot_be_changed(guarantee):
    for field in dataclasses.fields(guarantee):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(guarantee, field.name, Fraction(0))


def test_numbers_enter_exactly():
    assert PureDP(0.1).epsilon * 10 == 1
    assert ApproxDP("0.1", 1e-6) == ApproxDP(Fraction(1, 10), Fraction(1, 10**6))
    # what was computed may be of any length; what is written may not
    assert PureDP(Fraction(1, 10**500)).epsilon > 0


@pytest.mark.parametrize(
    "build",
    [
        *(lambda wrong, kind=kind: kind(wrong) for kind in ONE_NUMBER),
        lambda wrong: ApproxDP(wrong, 0),
        lambda wrong: ApproxDP(0, wrong),
        lambda wrong: RenyiDP(2, wrong),
        lambda wrong: RenyiDP(wrong, 0),
    ],
)
@pytest.mark.parametrize(
    "wrong", [-1, "-1e-9", float("nan"), float("inf"), "1e999", True, None, "x"]
)
def test_a_guarantee_cannot_be_built_wrong(build, wrong):
    with pytest.raises(InvalidNumber):
        build(wrong)


@pytest.mark.parametrize(
    "build", [lambda: ApproxDP(1, "1.001"), lambda: RenyiDP(1, 0), lambda: RenyiDP("0.5", 0)]
)
def test_a_delta_above_one_and_an_order_of_one_are_refused(build):
    with pytest.raises(InvalidNumber):
        build()
