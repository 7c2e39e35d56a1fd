# SPDX-License-Identifier: Apache-2.0
"""What a promise means, against attackers that are gone through one by one."""

import math
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from sfumato.accounting.approx_statement import Statement
from sfumato.accounting.interpret import Attacker, unprotected
from sfumato.errors import InvalidNumber
from sfumato.exact import Bracket
from sfumato.exact.rounding import exp_down, exp_up
from sfumato.privacy import AddRemove, ApproxDP, PureDP, ReplaceOne, ZeroConcentratedDP
from sfumato.privacy.guarantee import BoundedRangeDP, GaussianDP, RenyiDP
from tests.accounting.test_approx_statement import Laplace, least_misses, response

UNIT = st.fractions(Fraction(1, 40), Fraction(39, 40), max_denominator=40)
EPSILONS = st.fractions(0, 6, max_denominator=20)
DELTAS = st.sampled_from([Fraction(0), Fraction(1, 10**9), Fraction(1, 100), Fraction(1, 3)])


def laws(epsilon: Fraction, delta: Fraction) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
    """A mechanism that has exactly this guarantee, its odds rounded down."""
    return response(exp_down(epsilon), delta)


def promise(epsilon: Fraction, delta: Fraction) -> PureDP | ApproxDP:
    return ApproxDP(epsilon, delta) if delta else PureDP(epsilon)


@given(EPSILONS, DELTAS, UNIT)
@settings(deadline=None)
def test_no_attacker_beats_the_stated_trade_off(epsilon, delta, false_alarms):
    attacker, (p, q) = Attacker(promise(epsilon, delta)), laws(epsilon, delta)
    truth = max(least_misses(p, q, false_alarms), Fraction(0))
    assert (
        attacker.misses(false_alarms)
        <= truth
        <= Fraction(attacker.misses(false_alarms)) + Fraction(1, 10**15)
    )


@given(EPSILONS, DELTAS, UNIT)
@settings(deadline=None)
def test_no_attacker_beats_the_stated_accuracy(epsilon, delta, prior):
    attacker, (p, q) = Attacker(promise(epsilon, delta)), laws(epsilon, delta)
    # the best guess names the likelier of the two after each answer
    truth = sum(
        (max(prior * here, (1 - prior) * there) for here, there in zip(p, q, strict=True)),
        Fraction(0),
    )
    apart = sum(
        (max(here - there, Fraction(0)) for here, there in zip(p, q, strict=True)), Fraction(0)
    )
    assert (
        Fraction(attacker.accuracy(prior)) - Fraction(1, 10**15)
        <= truth
        <= attacker.accuracy(prior)
    )
    assert Fraction(attacker.advantage) - Fraction(1, 10**15) <= apart <= attacker.advantage


@given(EPSILONS, DELTAS, UNIT, UNIT)
@settings(deadline=None)
def test_no_naming_is_more_precise_than_stated(epsilon, delta, prior, recall):
    attacker, (p, q) = Attacker(promise(epsilon, delta)), laws(epsilon, delta)
    # the fewest false alarms of a test that finds so many: the same curve, read from the other side
    alarms = max(least_misses(q, p, 1 - recall), Fraction(0))
    truth = prior * recall / (prior * recall + (1 - prior) * alarms)
    assert (
        Fraction(attacker.precision(prior, recall)) - Fraction(1, 10**14)
        <= truth
        <= attacker.precision(prior, recall)
    )


def failing(
    p: tuple[Fraction, ...], q: tuple[Fraction, ...], prior: Fraction, highest: float
) -> Fraction:
    """How likely the belief rises above ``highest``, if the unit is in the data."""
    pairs = [
        (here, prior * here / (prior * here + (1 - prior) * there))
        for here, there in zip(p, q, strict=True)
        if here
    ]
    return sum((chance for chance, belief in pairs if belief > highest), Fraction(0))


def split(
    law: tuple[Fraction, ...], other: tuple[Fraction, ...], share: Fraction
) -> tuple[Fraction, ...]:
    """A law whose telling outcome takes a part of the next one along: its odds are finite, and as
    high as delta allows.
    """
    return (law[0] + share * law[1], (1 - share) * law[1], *law[2:])


@given(EPSILONS, DELTAS, UNIT, st.fractions(0, Fraction(1, 2), max_denominator=1000), UNIT)
@settings(deadline=None)
def test_no_belief_leaves_the_stated_posterior_more_often_than_stated(
    epsilon, delta, prior, failure, share
):
    stated = Attacker(promise(epsilon, delta)).posterior(prior, failure)
    p, q = laws(epsilon, delta)
    for here, there in ((p, q), (split(p, q, share), split(q, p, share))):
        assert failing(here, there, prior, stated.highest) <= failure
        assert failing(there, here, 1 - prior, 1 - stated.lowest) <= failure


def test_the_odds_bound_itself_fails_more_often_than_delta():
    # (1, 1%)-DP, and yet the odds grow more than e times with probability 12%: a failure has to be
    # above delta
    p, q = (split(law, law, Fraction(3, 20)) for law in laws(Fraction(1), Fraction(1, 100)))
    naive = float(exp_up(Fraction(1)) / (1 + exp_up(Fraction(1))))
    assert failing(p, q, Fraction(1, 2), naive) > Fraction(1, 10)
    assert failing(
        p, q, Fraction(1, 2), Attacker(ApproxDP(1, "0.01")).posterior("0.5", "0.1").highest
    ) <= Fraction(1, 10)


@given(EPSILONS, DELTAS, st.lists(st.fractions(0, 5, max_denominator=10), min_size=4, max_size=4))
@settings(deadline=None)
def test_no_harm_exceeds_the_stated_one_in_expectation(epsilon, delta, harms):
    p, q = laws(epsilon, delta)
    usual = sum((chance * harm for chance, harm in zip(q, harms, strict=True)), Fraction(0))
    caused = sum((chance * harm for chance, harm in zip(p, harms, strict=True)), Fraction(0))
    bound = Attacker(promise(epsilon, delta)).harm(usual, largest=max(harms))
    assert caused <= bound
    # never weaker than the form that everybody quotes
    assert Fraction(bound) <= exp_up(epsilon) * usual + delta * max(harms) + Fraction(1, 10**12)


def test_pure_harm_needs_no_largest_and_every_other_does():
    assert Attacker(PureDP(1)).harm(2) == pytest.approx(2 * math.e)
    assert Attacker(PureDP(1)).harm(0, largest=0) == 0
    for other in (ApproxDP(1, "1e-9"), GaussianDP(1), PureDP(3000)):
        with pytest.raises(InvalidNumber, match="no harm that has no largest"):
            Attacker(other).harm(2)
    with pytest.raises(InvalidNumber, match="above largest"):
        Attacker(PureDP(1)).harm(2, largest=1)


@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
def test_gaussian_noise_has_its_known_curve(mu):
    # Dong, Roth, Su (2022), equation (6)
    attacker = Attacker(GaussianDP(str(mu * mu)))
    for alarms in (1e-6, 0.01, 0.3, 0.9):
        truth = norm.cdf(norm.isf(alarms) - mu)
        assert truth * (1 - 1e-5) - 1e-9 <= attacker.misses(alarms) <= truth * (1 + 1e-12)
    assert attacker.advantage == pytest.approx(2 * norm.cdf(mu / 2) - 1, rel=1e-9)
    # the chance that the loss is above a level is known too
    level = mu * norm.isf(1e-4) + mu * mu / 2
    stated = attacker.posterior("0.5", "1e-4").highest
    assert stated >= 1 / (1 + math.exp(-level)) - 1e-9


def test_a_promise_is_read_as_well_as_its_strongest_form():
    # Gaussian noise of mu = 1 is 1/2-zCDP and (8, 4)-Renyi DP: the weaker the words, the more is
    # allowed
    forms = (GaussianDP(1), ZeroConcentratedDP("0.5"), RenyiDP(8, 4))
    for measure in (
        lambda each: each.advantage,
        lambda each: -each.misses("0.01"),
        lambda each: each.accuracy("0.2"),
    ):
        values = [measure(Attacker(form)) for form in forms]
        assert values == sorted(values)
    # the exact region of 0.1-zCDP, by scipy over 4,000 orders; the usual conversion gives 0.2591
    assert Attacker(ZeroConcentratedDP("0.1")).advantage == pytest.approx(0.2217419, rel=1e-5)
    assert Attacker(ZeroConcentratedDP("0.1")).advantage >= 0.2217419


def test_a_curve_is_interpreted_like_a_guarantee():
    # Laplace noise of scale 1: misses 1 - e a, then 1/(4 e a), then e^-1 (1 - a) (Dong, Roth, Su
    # 2022, Lemma A.6)
    attacker = Attacker(Laplace())
    for alarms in (0.05, 0.1, 0.3, 0.6):
        truth = 1 - math.e * alarms if alarms < 0.5 / math.e else 1 / (4 * math.e * alarms)
        truth = truth if alarms < 0.5 else (1 - alarms) / math.e
        assert truth - 1e-6 <= attacker.misses(alarms) <= truth + 1e-12
    assert attacker.advantage == pytest.approx(1 - math.exp(-0.5), abs=1e-9)


def test_numbers_that_papers_state():
    # Kairouz, Oh, Viswanath (2015): advantage (e^eps - 1 + 2 delta)/(e^eps + 1)
    assert Attacker(PureDP(1)).advantage == pytest.approx(math.tanh(0.5), abs=1e-15)
    assert Attacker(ApproxDP(1, "0.1")).advantage == pytest.approx(
        (math.e - 0.8) / (math.e + 1), abs=1e-15
    )
    # bounded range is half as bad as its epsilon, to first order (Dong, Durfee, Rogers 2020)
    assert Attacker(BoundedRangeDP(1)).advantage == pytest.approx(math.tanh(0.25), abs=1e-6)


@pytest.mark.parametrize(
    "weak",
    [
        lambda self, alarms: (
            max(1 - self.delta - self.odds * alarms, Fraction(0)) * Fraction(11, 10)
        ),
        lambda self, alarms: max(1 - self.odds * alarms, (1 - alarms) / self.odds, Fraction(0)),
    ],
    ids=["too steep", "without delta"],
)
def test_a_trade_off_that_promises_too_much_is_noticed(monkeypatch, weak):
    monkeypatch.setattr(Statement, "misses", weak)
    attacker, (p, q) = Attacker(ApproxDP(1, "0.1")), laws(Fraction(1), Fraction(1, 10))
    assert any(
        attacker.misses(Fraction(each, 50)) > least_misses(p, q, Fraction(each, 50))
        for each in range(50)
    )


def test_certain_priors_stay_and_harmless_promises_say_so():
    attacker = Attacker(PureDP(1))
    for prior in (0, 1):
        assert attacker.accuracy(prior) == 1
        assert (attacker.posterior(prior).lowest, attacker.posterior(prior).highest) == (
            prior,
            prior,
        )
        assert attacker.precision(prior, "0.5") == prior
    told = Attacker(PureDP(0)).posterior("0.25")
    assert (told.lowest, told.highest, Attacker(PureDP(0)).advantage) == (0.25, 0.25, 0.0)


@pytest.mark.parametrize(
    "hopeless",
    [PureDP(10**300), ApproxDP(1, 1), ZeroConcentratedDP(10**300), GaussianDP(10**12)],
    ids=repr,
)
def test_no_protection_is_said_without_infinity(hopeless):
    attacker = Attacker(hopeless)
    assert (attacker.advantage, attacker.misses("0.5"), attacker.accuracy("0.3")) == (1.0, 0.0, 1.0)
    assert (attacker.posterior("0.3").lowest, attacker.posterior("0.3").highest) == (0.0, 1.0)


@pytest.mark.parametrize("ugly", ["-0.1", "1.1", "nan", "inf", None, True])
def test_a_share_is_from_0_to_1(ugly):
    attacker = Attacker(PureDP(1))
    for ask in (
        attacker.misses,
        attacker.accuracy,
        attacker.posterior,
        lambda share: attacker.precision(share, "0.5"),
    ):
        with pytest.raises(InvalidNumber):
            ask(ugly)


@pytest.mark.parametrize("ugly", ["-1", "nan", None])
def test_a_harm_is_a_number_from_0(ugly):
    with pytest.raises(InvalidNumber):
        Attacker(PureDP(1)).harm(ugly, largest=1)


def test_the_drawn_curve_falls_from_corner_to_corner():
    for each in (
        PureDP(2),
        ApproxDP(1, "0.05"),
        GaussianDP(2),
        ZeroConcentratedDP("0.2"),
        Laplace(),
    ):
        points = Attacker(each).trade_off(40)
        assert points[0][0] == 0 and points[-1][0] == 1 and points[-1][1] == 0
        assert all(y >= z for (_, y), (_, z) in pairwise(points))
    corner = (1 - Fraction(1, 20)) / (1 + exp_up(Fraction(1)))
    assert any(
        x == pytest.approx(y) == pytest.approx(float(corner))
        for x, y in Attacker(ApproxDP(1, "0.05")).trade_off(3)
    )
    for ugly in (0, -1, True, 10**9, 1.5):
        with pytest.raises(InvalidNumber):
            Attacker(PureDP(1)).trade_off(ugly)


def test_the_posterior_says_when_it_fails():
    assert "whatever the answers are" in str(Attacker(PureDP(1)).posterior("0.1"))
    assert "except with probability up to 0.01" in str(
        Attacker(ApproxDP(1, "1e-3")).posterior("0.1", "0.01")
    )


def test_the_words_name_the_secret_of_the_relation():
    assert "presence" in unprotected(AddRemove)[0] and "a group of 2" in unprotected(AddRemove)[0]
    assert "value" in unprotected(ReplaceOne)[0]
    assert any("population" in line for line in unprotected(AddRemove))


def test_every_pair_of_answers_of_a_curve_bracket_is_used_from_above():
    class Wide:
        def delta(self, epsilon: Fraction, /) -> Bracket:
            return Bracket(0.0, math.exp(-min(float(epsilon), 700)) / 4)

    assert Attacker(Wide()).advantage == pytest.approx(0.25)


def test_more_promise_never_means_less():
    for kind in (PureDP, BoundedRangeDP, GaussianDP, ZeroConcentratedDP):
        best = [Attacker(kind(amount)).accuracy("0.3") for amount in ("0.01", "0.1", "0.5", "2")]
        assert best == sorted(best)
