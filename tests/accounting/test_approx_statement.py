# SPDX-License-Identifier: Apache-2.0
"""Every statement of a family is true of laws that have the guarantee, and the families are
tight.
"""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import approx_statement
from sfumato.accounting.approx_statement import NOTHING, Family, Statement, family
from sfumato.errors import InvalidDeclaration
from sfumato.exact import Bracket
from sfumato.privacy import ApproxDP, PureDP, ZeroConcentratedDP
from sfumato.privacy.guarantee import BoundedRangeDP, GaussianDP, RenyiDP
from tests.contracts.labels import label

ctx.prec = 200
PLACES = [0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.97, 1.0]
UNIT = st.fractions(Fraction(1, 50), Fraction(49, 50), max_denominator=50)
Law = tuple[Fraction, ...]


def ball(number: Fraction) -> arb:
    return arb(number.numerator) / number.denominator


def tail(x: arb) -> arb:
    return (x / arb(2).sqrt()).erfc() / 2


def excess(p: Law, q: Law, odds: Fraction) -> Fraction:
    """The largest P(A) - odds Q(A), by going through the outcomes."""
    return sum(
        (max(here - odds * there, Fraction(0)) for here, there in zip(p, q, strict=True)),
        Fraction(0),
    )


def response(odds: Fraction, delta: Fraction) -> tuple[Law, Law]:
    """Kairouz, Oh, Viswanath (2015): told with probability delta, else randomised response."""
    yes, no = (1 - delta) * odds / (1 + odds), (1 - delta) / (1 + odds)
    return (delta, yes, no, Fraction(0)), (Fraction(0), no, yes, delta)


def least_misses(p: Law, q: Law, false_alarms: Fraction) -> Fraction:
    """The best randomised test: outcomes by falling ratio until the false alarms are used up."""
    ranked = sorted(
        zip(p, q, strict=True),
        key=lambda pair: -(pair[0] / pair[1] if pair[1] else Fraction(10**30)),
    )
    found, left = Fraction(0), false_alarms
    for here, there in ranked:
        share = min(Fraction(1), left / there) if there else Fraction(1)
        found, left = found + share * here, left - share * there
    return 1 - found


@given(
    st.fractions(1, 100, max_denominator=20), UNIT, UNIT, st.fractions(0, 200, max_denominator=20)
)
@settings(deadline=None)
def test_a_statement_allows_what_randomised_response_attains(odds, delta, false_alarms, at):
    stated, (p, q) = Statement(odds, delta), response(odds, delta)
    assert stated.misses(false_alarms) == max(least_misses(p, q, false_alarms), Fraction(0))
    assert stated.excess(at) == excess(p, q, at)
    assert stated.misses(stated.corner) == stated.corner


def test_no_statement_allows_everything():
    assert NOTHING.misses(Fraction(1, 3)) == 0
    assert NOTHING.excess(Fraction(3)) == 1
    assert NOTHING.corner == 0


def gaussian_excess(mu: Fraction, odds: Fraction) -> arb:
    """Balle and Wang (2018), Theorem 8, in balls."""
    shift, level = ball(mu), ball(odds).log()
    return tail(level / shift - shift / 2) - ball(odds) * tail(level / shift + shift / 2)


def range_excess(eta: Fraction, odds: Fraction) -> arb:
    """The worst of many two-outcome laws whose loss is in an interval of length eta."""
    worst, length = arb(0), ball(eta)
    for step in range(1, 200):
        top = length * step / 200
        hit = (1 - (top - length).exp()) / (1 - (-length).exp())
        worst = max(worst, hit - ball(odds) * hit / top.exp(), key=lambda each: each.mid())
    return worst


EXACT = [
    (GaussianDP(1), lambda odds: gaussian_excess(Fraction(1), odds)),
    (GaussianDP("0.0001"), lambda odds: gaussian_excess(Fraction(1, 100), odds)),
    (GaussianDP(25), lambda odds: gaussian_excess(Fraction(5), odds)),
    (BoundedRangeDP(1), lambda odds: range_excess(Fraction(1), odds)),
    (BoundedRangeDP(8), lambda odds: range_excess(Fraction(8), odds)),
    # Gaussian noise has these guarantees too: their statements must hold of it
    (ZeroConcentratedDP("0.5"), lambda odds: gaussian_excess(Fraction(1), odds)),
    (ZeroConcentratedDP("0.00005"), lambda odds: gaussian_excess(Fraction(1, 100), odds)),
    (ZeroConcentratedDP("12.5"), lambda odds: gaussian_excess(Fraction(5), odds)),
    (RenyiDP(8, 4), lambda odds: gaussian_excess(Fraction(1), odds)),
    (RenyiDP("1.01", "0.505"), lambda odds: gaussian_excess(Fraction(1), odds)),
]


def holds(at: Family, true: object) -> bool:
    """Whether every statement is at least the true excess at its odds."""
    assert callable(true)
    return all(
        each is NOTHING or bool(true(each.odds) <= ball(each.delta)) for each in map(at, PLACES)
    )


@pytest.mark.parametrize(("promise", "true"), EXACT, ids=label)
def test_each_statement_of_a_family_holds(promise, true):
    assert holds(family(promise), true)


@pytest.mark.parametrize(("promise", "true"), EXACT[:3], ids=label)
def test_a_gaussian_statement_is_exact(promise, true):
    for each in map(family(promise), PLACES[1:]):
        assert float(ball(each.delta) - true(each.odds)) <= 1e-14 * float(each.delta)


def test_half_a_divergence_is_noticed(monkeypatch):
    right = approx_statement.tangent
    monkeypatch.setattr(
        approx_statement, "tangent", lambda order, budget, *odds: right(order, budget / 2, *odds)
    )
    assert not holds(family(ZeroConcentratedDP("0.5")), EXACT[5][1])


def test_a_part_of_delta_is_noticed(monkeypatch):
    right = approx_statement.delta_at
    monkeypatch.setattr(
        approx_statement,
        "delta_at",
        lambda promise, at: ApproxDP(at, right(promise, at).delta * Fraction(99, 100)),
    )
    assert not holds(family(GaussianDP(1)), EXACT[0][1])
    assert not holds(family(BoundedRangeDP(1)), EXACT[3][1])


GAPS = 2.0 ** np.arange(-16, 20, 1 / 128)


def beyond(found: float, alarms: float, rho: float) -> float:
    """By how much a law of two outcomes is above rho-zCDP: the Renyi divergences of many orders,
    and Kullback and Leibler's.
    """
    yes, no = math.log(found / alarms), math.log((1 - found) / (1 - alarms))
    of_orders = (
        np.logaddexp(math.log(found) + GAPS * yes, math.log1p(-found) + GAPS * no) / GAPS
        - (1 + GAPS) * rho
    )
    return max(float(of_orders.max()), found * yes + (1 - found) * no - rho)


@pytest.mark.parametrize(
    ("rho", "place"), [*product(["0.001", "0.1", "1"], [0.5, 0.8, 0.9]), ("4", 0.8)]
)
def test_the_concentrated_family_is_tight(rho, place):
    # where it touches, a law of two outcomes has every divergence that it may have; along the line
    # none has less
    stated, number = family(ZeroConcentratedDP(rho))(place), float(rho)
    odds, delta = float(stated.odds), float(stated.delta)
    touch = 0.5 * 2e-40 ** ((1 - place) ** 2)
    assert beyond(delta + odds * touch, touch, number) <= 1e-3 * number
    for step in range(-50, 51):
        alarms = touch * math.exp(step / 25)
        if alarms < (found := delta + odds * alarms) < 1:
            assert beyond(found, alarms, number) >= -1e-5 * number


def test_an_order_near_one_and_a_huge_one_promise_little_but_no_nonsense():
    for promise in (
        RenyiDP(1 + Fraction(1, 10**30), 1),
        RenyiDP(10**30, 1),
        RenyiDP(2, 10**9),
        ZeroConcentratedDP(10**9),
    ):
        for each in map(family(promise), PLACES):
            assert each is NOTHING or (each.odds >= 1 and 0 <= each.delta < 1)


@pytest.mark.parametrize("order", [10**4, 10**7])
def test_a_large_order_is_nearly_pure(order):
    alarms = Fraction(1, 5)
    pure = family(PureDP(1))(0.5).misses(alarms)
    found = max(
        each.misses(alarms)
        for each in map(family(RenyiDP(order, 1)), [step / 50 for step in range(51)])
    )
    assert pure * Fraction(98, 100) <= found <= pure


@pytest.mark.parametrize("mu", [5, 40])
def test_a_large_mu_is_read_to_its_end(mu):
    assert float(family(GaussianDP(mu * mu))(0.0).delta) <= 1e-30


def test_no_loss_is_no_loss():
    nothing_told = Statement(Fraction(1), Fraction(0))
    for promise in (
        PureDP(0),
        ApproxDP(0, 0),
        BoundedRangeDP(0),
        GaussianDP(0),
        ZeroConcentratedDP(0),
        RenyiDP(2, 0),
    ):
        assert family(promise)(0.5) == nothing_told


class Laplace:
    """The curve of continuous Laplace noise: delta = 1 - e^((epsilon - 1)/2) up to epsilon 1."""

    def delta(self, epsilon: Fraction, /) -> Bracket:
        exact = max(-math.expm1((min(float(epsilon), 9.0) - 1) / 2), 0.0)
        return Bracket(exact * (1 - 1e-12), exact * (1 + 1e-12))


class Floor:
    """A curve that never falls below one in a thousand."""

    def delta(self, epsilon: Fraction, /) -> Bracket:
        return Bracket(0.001, 0.001 + 0.3 * math.exp(-min(float(epsilon), 700)))


def test_a_curve_is_read_over_all_epsilons_that_matter():
    ends = [family(curve)(0.0) for curve in (Laplace(), Floor())]
    assert ends[0].odds == pytest.approx(math.e) and ends[0].delta == 0
    assert float(ends[1].delta) <= 0.00102
    for curve in (Laplace(), Floor()):
        for each in map(family(curve), PLACES):
            assert each.delta >= Fraction(
                curve.delta(Fraction(math.log(each.odds)) + Fraction(1, 10**9)).lower
            )


@pytest.mark.parametrize("other", [None, 1, "epsilon"])
def test_what_promises_nothing_is_refused(other):
    with pytest.raises(InvalidDeclaration):
        family(other)
