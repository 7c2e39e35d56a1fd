# SPDX-License-Identifier: Apache-2.0
"""The delta of a guarantee at an epsilon, against mechanisms that have it."""

from fractions import Fraction

import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import delta as module
from sfumato.accounting.convert import CONVERSIONS
from sfumato.accounting.delta import delta_at
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
    exponential,
    gaussian,
    hockey_stick,
    number,
    response,
    shifted,
)

LOSSES = st.fractions(min_value=Fraction(1, 100), max_value=6)
EPSILONS = st.fractions(min_value=0, max_value=7)
SLACK = arb("1e-25")


@given(LOSSES, EPSILONS)
@settings(deadline=None)
def test_no_mechanism_of_a_guarantee_exceeds_its_delta(own, epsilon):
    answer = response(0, own, 2), response(1, own, 2)
    choice = exponential((0, 0, 0), own / 2), exponential((1, -1, 0), own / 2)
    noisy = shifted(gaussian(Fraction(4)), 0), shifted(gaussian(Fraction(4)), 1)
    # one half each: a rho of 1/8 is mu^2 = 1/4 of the continuous law, whose curve the discrete one
    # may cross
    facts = [
        (PureDP(own), answer, True),
        (BoundedRangeDP(2 * own), choice, False),
        (ZeroConcentratedDP(own**2 / 2), answer, False),
        (RenyiDP(4, 2 * own**2), answer, False),
        (ZeroConcentratedDP(Fraction(1, 8)), noisy, False),
        (RenyiDP(8, 1), noisy, False),
    ]
    for guarantee, pair, tight in facts:
        stated, true = number(delta_at(guarantee, epsilon).delta), hockey_stick(*pair, epsilon)
        with ctx.workprec(PRECISION):
            assert bool(true <= stated + SLACK), guarantee
            assert not tight or bool(stated <= true + SLACK)


def test_a_delta_of_half_the_loss_would_be_noticed(monkeypatch):
    monkeypatch.setitem(
        module._RULES,
        PureDP,
        lambda one, epsilon: module._of_pure(PureDP(one.epsilon / 2), epsilon),
    )
    true = hockey_stick(response(0, Fraction(1), 2), response(1, Fraction(1), 2), Fraction(1, 4))
    assert not bool(true <= number(delta_at(PureDP(1), "0.25").delta))


@pytest.mark.parametrize(
    "guarantee",
    [
        PureDP(2),
        BoundedRangeDP(2),
        ApproxDP(2, "1e-9"),
        ZeroConcentratedDP(1),
        RenyiDP(8, 1),
        GaussianDP(2),
    ],
)
@pytest.mark.parametrize("delta", ["0.2", "1e-3", "1e-8"])
def test_the_two_ways_to_ask_are_inverse(guarantee, delta):
    stated = CONVERSIONS[type(guarantee), ApproxDP](guarantee, Fraction(delta))
    back = delta_at(guarantee, stated.epsilon).delta
    # zCDP is asked on a grid of orders, so only nearly
    allowed = (
        Fraction(102, 100) if isinstance(guarantee, ZeroConcentratedDP) else 1 + Fraction(1, 10**6)
    )
    assert back <= Fraction(delta) * allowed
    assert stated.epsilon == 0 or back >= Fraction(delta) / allowed


def test_from_its_own_epsilon_on_a_pure_guarantee_has_no_delta():
    assert delta_at(PureDP("0.1"), "0.1") == ApproxDP("0.1", 0)
    assert delta_at(BoundedRangeDP("0.1"), "0.2").delta == 0
    assert delta_at(ApproxDP(1, "1e-6"), 5).delta == Fraction(1, 10**6)
    assert delta_at(PureDP(0), 0).delta == 0


@pytest.mark.parametrize("nothing", [ZeroConcentratedDP(0), RenyiDP(2, 0), GaussianDP(0)])
def test_what_costs_nothing_has_no_delta(nothing):
    assert delta_at(nothing, 0) == ApproxDP(0, 0)


def test_extreme_numbers_stay_between_zero_and_one():
    for cost in (Fraction(10**300), Fraction(1, 10**300), Fraction(10**5)):
        kinds = [kind(cost) for kind in (PureDP, BoundedRangeDP, ZeroConcentratedDP, GaussianDP)]
        for guarantee in [*kinds, ApproxDP(cost, "0.5"), RenyiDP(1 + cost, cost)]:
            for epsilon in (0, 1, Fraction(10**300)):
                assert 0 <= delta_at(guarantee, epsilon).delta <= 1


def test_what_is_no_guarantee_and_what_is_no_epsilon_raise():
    with pytest.raises(InvalidDeclaration):
        delta_at(Fraction(1), 1)
    with pytest.raises(InvalidNumber):
        delta_at(PureDP(1), -1)
