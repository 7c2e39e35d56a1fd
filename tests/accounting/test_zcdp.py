# SPDX-License-Identifier: Apache-2.0
"""The conversions of a charge agree with a direct optimisation, and never promise too much."""

import math
from fractions import Fraction

import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from sfumato.accounting import zcdp
from sfumato.accounting.zcdp import (
    approx_from_zcdp,
    conversion_cost,
    order_for,
    zcdp_from_pure,
    zcdp_within,
)
from sfumato.privacy.guarantee import PureDP, ZeroConcentratedDP
from tests.noise.truth import PRECISION, GaussianTruth, ball

RHOS = st.fractions(min_value=Fraction(1, 10**6), max_value=50)
DELTAS = st.sampled_from([Fraction(1, 10**power) for power in (2, 4, 6, 9, 12)])


@given(st.fractions(min_value=0, max_value=10**6))
@settings(deadline=None)
def test_pure_becomes_half_its_square(epsilon):
    assert zcdp_from_pure(PureDP(epsilon)) == ZeroConcentratedDP(epsilon * epsilon / 2)


def minimised(rho: float, delta: float) -> float:
    """The least epsilon of Canonne, Kamath, Steinke, Proposition 12, over the order."""

    def epsilon(log_gap: float) -> float:
        gap = math.exp(log_gap)
        return (1 + gap) * rho + (-math.log(delta) - math.log1p(gap)) / gap - math.log1p(1 / gap)

    best = min(range(-100, 200), key=lambda step: epsilon(step / 5))
    return minimize_scalar(epsilon, bounds=(best / 5 - 0.3, best / 5 + 0.3), method="bounded").fun


@given(RHOS, DELTAS)
@settings(deadline=None)
def test_the_conversion_is_the_minimum_over_orders(rho, delta):
    stated = approx_from_zcdp(ZeroConcentratedDP(rho), delta)
    truth = max(minimised(float(rho), float(delta)), 0.0)
    assert stated.delta == delta
    assert truth - 1e-9 <= float(stated.epsilon) <= truth * 1.002 + 1e-9


@given(RHOS, DELTAS, st.fractions(min_value=Fraction(11, 10), max_value=1000))
@settings(deadline=None)
def test_no_given_order_beats_the_chosen_one_by_much(rho, delta, order):
    guarantee = ZeroConcentratedDP(rho)
    assert approx_from_zcdp(guarantee, delta).epsilon <= approx_from_zcdp(
        guarantee, delta, order
    ).epsilon * Fraction(1002, 1000) + Fraction(1, 10**9)


@given(DELTAS, st.fractions(min_value=Fraction(1001, 1000), max_value=10**6))
@settings(deadline=None)
def test_the_cost_of_a_conversion_rounds_up_and_hardly(delta, order):
    with ctx.workprec(PRECISION):
        gap = ball(order - 1)
        truth = (-ball(delta * order).log()) / gap + (1 - 1 / ball(order)).log()
        stated = ball(conversion_cost(delta, order))
        assert bool(truth <= stated) and bool(stated - truth < arb("1e-40"))


@given(st.fractions(min_value=Fraction(1, 100), max_value=20), DELTAS)
@settings(deadline=None)
def test_the_order_for_a_budget_buys_the_most_rho(epsilon, delta):
    def bought(order: Fraction) -> Fraction:
        return (epsilon - conversion_cost(delta, order)) / order

    chosen = order_for(epsilon, delta)
    others = [
        1 + (chosen - 1) * factor
        for factor in (Fraction(1, 2), Fraction(9, 10), Fraction(11, 10), Fraction(2))
    ]
    assert all(bought(other) <= bought(chosen) * Fraction(1001, 1000) for other in others)


def true_delta(variance: Fraction, epsilon: Fraction) -> arb:
    """The exact delta of sensitivity-one discrete Gaussian noise, by adding up (p - e^eps q)+."""
    law = GaussianTruth(variance)
    with ctx.workprec(PRECISION):
        # p(x) > e^eps q(x) = e^eps p(x + 1) from here on, as p/q grows with x
        first = math.floor(variance * epsilon - Fraction(1, 2)) + 1
        return law.above(first - 1) - ball(epsilon).exp() * law.above(first)


def keeps_its_delta(variance: Fraction, delta: Fraction) -> bool:
    """Whether the epsilon stated for this noise has a true delta of at most ``delta``."""
    stated = approx_from_zcdp(ZeroConcentratedDP(1 / (2 * variance)), delta)
    return bool(true_delta(variance, stated.epsilon) <= ball(delta))


@pytest.mark.parametrize(
    "delta", [Fraction(1, 100), Fraction(1, 10**6), Fraction(1, 10**10)], ids=str
)
@pytest.mark.parametrize("variance", ["1/4", "1", "7/3", "25", "400", "10000"])
def test_the_stated_delta_is_above_the_true_one(variance, delta):
    assert keeps_its_delta(Fraction(variance), delta)


@pytest.mark.parametrize("variance", ["1", "25", "400"])
def test_the_profile_notices_a_conversion_that_promises_too_much(monkeypatch, variance):
    real = zcdp.conversion_cost
    monkeypatch.setattr(
        zcdp, "conversion_cost", lambda delta, order: real(delta, order) * Fraction(1, 2)
    )
    assert not keeps_its_delta(Fraction(variance), Fraction(1, 10**6))


@pytest.mark.parametrize("epsilon", ["0.01", "1", "30"])
@pytest.mark.parametrize("delta", ["1e-3", "1e-12"])
def test_the_zcdp_within_an_approximate_guarantee_converts_to_at_most_its_epsilon(epsilon, delta):
    epsilon, delta = Fraction(epsilon), Fraction(delta)
    rho = zcdp_within(epsilon, delta)
    if rho <= 0:
        assert epsilon < Fraction(1, 10)
        return
    # no order of a grid buys more
    orders = [
        1 + Fraction(times, 4) * Fraction(2) ** power
        for power in range(-12, 16)
        for times in (4, 5, 6, 7)
    ]
    assert max(
        (epsilon - conversion_cost(delta, order)) / order for order in orders
    ) <= rho * Fraction(10001, 10000)
    assert approx_from_zcdp(ZeroConcentratedDP(rho), delta).epsilon <= epsilon * (
        1 + Fraction(1, 10**9)
    )
    assert approx_from_zcdp(ZeroConcentratedDP(rho * Fraction(11, 10)), delta).epsilon > epsilon
