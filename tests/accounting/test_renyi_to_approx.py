# SPDX-License-Identifier: Apache-2.0
"""The two-point optimum of one Renyi order: never exceeded by any pair, and reached by one."""

import math
from fractions import Fraction

import pytest
from flint import arb, ctx, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import renyi_to_approx
from sfumato.accounting.convert import approx_from_renyi
from sfumato.accounting.renyi_to_approx import delta_of_renyi, epsilon_of_renyi, tangent
from sfumato.accounting.zcdp import conversion_cost
from sfumato.privacy.guarantee import RenyiDP
from tests.accounting.laws import PRECISION, number, renyi

ORDERS = st.fractions(min_value=Fraction(6, 5), max_value=60)
LOSSES = st.fractions(min_value=Fraction(1, 1000), max_value=3)
DELTAS = st.sampled_from([Fraction(1, 10**power) for power in (1, 3, 6, 9, 12)])
UNIT = st.fractions(min_value=Fraction(1, 10**6), max_value=1 - Fraction(1, 10**6))


def pair(p: Fraction, q: Fraction) -> tuple[dict, dict]:
    return {0: number(p), 1: number(1 - p)}, {0: number(q), 1: number(1 - q)}


def most_seen(order: Fraction, divergence: Fraction, epsilon: Fraction) -> arb:
    """The largest p - e^epsilon q over a fine grid of pairs whose divergence of p against q is
    small enough.
    """
    best, power = arb(0), fmpq(order.numerator, order.denominator)
    limit = number(divergence)
    with ctx.workprec(PRECISION):
        factor = number(epsilon).exp()
        for step in range(1, 120):
            q = Fraction(1, 2) / Fraction(3, 2) ** step
            low, high = q, Fraction(1)
            # the divergence grows with p: the largest p that is allowed
            for _ in range(45):
                middle = (low + high) / 2
                one = middle**1
                moment = number(one) * (number(one) / number(q)).log().__mul__(arb(power) - 1).exp()
                moment += (
                    number(1 - one)
                    * (((number(1 - one) / number(1 - q)).log()) * (arb(power) - 1)).exp()
                )
                low, high = (
                    (middle, high)
                    if bool(moment.log() / (arb(power) - 1) <= limit)
                    else (low, middle)
                )
            best = best.max(number(low) - factor * number(q))
    return best


@given(ORDERS, LOSSES, UNIT, UNIT, UNIT, UNIT)
@settings(deadline=None)
def test_every_tangent_is_a_true_statement(order, divergence, one, other, p, q):
    line = tangent(order, divergence, one, other)
    exact = renyi(*pair(p, q), fmpq(order.numerator, order.denominator))
    with ctx.workprec(PRECISION):
        # renyi looks at both directions; the line needs one
        if line is None or not bool(exact <= number(divergence)):
            return
        assert bool(number(p) <= number(line.epsilon).exp() * number(q) + number(line.delta))


CASES = [
    ("2", "1", "1e-6"),
    ("8", "0.01", "1e-6"),
    ("40", "2", "1e-10"),
    ("3/2", "0.3", "1e-5"),
    ("5", "0.5", "0.1"),
]


@pytest.mark.parametrize(("order", "divergence", "delta"), CASES)
def test_the_two_point_optimum_is_never_exceeded(order, divergence, delta):
    order, divergence, delta = Fraction(order), Fraction(divergence), Fraction(delta)
    stated = approx_from_renyi(RenyiDP(order, divergence), delta).epsilon
    reached = most_seen(order, divergence, stated)
    assert bool(reached <= number(delta))
    # and nearly reached by a pair of the grid
    assert bool(reached >= number(delta) * arb("0.9"))


def test_a_tangent_of_a_smaller_set_would_be_noticed(monkeypatch):
    real = renyi_to_approx.tangent
    monkeypatch.setattr(
        renyi_to_approx,
        "tangent",
        lambda order, divergence, *point: real(order, divergence * Fraction(9, 10), *point),
    )
    stated = delta_of_renyi(Fraction(2), Fraction(1), Fraction(5))
    assert not bool(most_seen(Fraction(2), Fraction(1), Fraction(5)) <= number(stated))


@given(ORDERS, LOSSES, DELTAS)
@settings(deadline=None)
def test_the_optimum_is_no_worse_than_the_closed_form(order, divergence, delta):
    found = epsilon_of_renyi(order, divergence, delta)
    if found is None:
        return
    closed = max(divergence + conversion_cost(delta, order), Fraction(0))
    assert found <= closed + Fraction(1, 10**9)
    back = delta_of_renyi(order, divergence, found)
    assert back is None or found == 0 or math.isclose(back, delta, rel_tol=1e-6)


def test_where_floats_see_nothing_nothing_is_stated():
    assert epsilon_of_renyi(Fraction(300), Fraction(5), Fraction(1, 10**6)) is None
    assert epsilon_of_renyi(Fraction(10**300), Fraction(5), Fraction(1, 10**6)) is None
    assert delta_of_renyi(Fraction(2), Fraction(10**300), Fraction(1)) is None
    assert tangent(Fraction(2), Fraction(1), Fraction(1, 2), Fraction(2, 3)) is None
    # p and q so near each other that their powers cannot be told apart
    near = Fraction(1, 2) + Fraction(1, 10**60)
    assert tangent(Fraction(2), Fraction(1), near, Fraction(1, 2)) is None
