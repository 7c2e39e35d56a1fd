# SPDX-License-Identifier: Apache-2.0
"""Guesses about the coins of one run refute false claims, and true ones as rarely as stated."""

import importlib
import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.accounting.group import for_group
from sfumato.accounting.interpret import Attacker
from sfumato.audit import Verdict, guesses, one_run
from sfumato.audit.one_run import p_values
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.privacy import ApproxDP, GaussianDP, PureDP, ZeroConcentratedDP
from sfumato.testing import assert_at_most

ONE_RUN = importlib.import_module("sfumato.audit.one_run")
# mu^2 of (1, 1e-5), by bisection of delta(mu) in closed form
MU = 0.26805


def exact_tail(right, made, odds):
    """P(X >= right), X binomial with these odds, as a fraction."""
    chance = Fraction(odds) / (1 + Fraction(odds))
    return sum(
        math.comb(made, count) * chance**count * (1 - chance) ** (made - count)
        for count in range(right, made + 1)
    )


def coins_of(seed, count):
    generator = np.random.default_rng(seed)
    return generator, generator.random(count) < 0.5


@pytest.mark.parametrize(("right", "made"), [(0, 5), (3, 5), (60, 70), (400, 500), (500, 500)])
@pytest.mark.parametrize("epsilon", [0, 1, 3])
def test_pure_claims_have_the_binomial_tail(right, made, epsilon):
    exact = float(exact_tail(right, made, math.exp(epsilon)))
    assert exact <= p_values(PureDP(epsilon))(right, made, 1000) <= min(1, exact * (1 + 3e-6))


def theorem(right, made, coins, epsilon, delta):
    """Theorem 5.2 of Steinke, Nasr, Jagielski, in fractions."""
    tails = [exact_tail(count, made, math.exp(epsilon)) for count in range(right + 1)]
    worst = max((tails[right - i] - tails[right]) / i for i in range(1, right + 1))
    return float(tails[right] + 2 * coins * Fraction(delta) * worst)


@pytest.mark.parametrize(("right", "made"), [(9, 10), (28, 30), (40, 40)])
def test_approximate_claims_follow_the_theorem(right, made):
    exact = theorem(right, made, 100, 1, 1e-6)
    assert exact <= p_values(ApproxDP(1, "1e-6"))(right, made, 100) <= exact * (1 + 1e-5)


def attained(coins, right, odds):
    """P(at least ``right`` of ``coins`` right) of randomised response, which attains the claim."""
    return float(exact_tail(right, coins, odds))


@pytest.mark.parametrize("claim", [GaussianDP("0.2"), ZeroConcentratedDP("0.1")])
def test_no_curve_refutes_a_mechanism_that_has_it(claim):
    # a fair coin is right with at most (1 + total variation) / 2; independent coins attain less
    chance = Attacker(claim).accuracy("0.5") - 0.05
    p_value = p_values(claim)
    for right in (12, 16, 18, 20):
        assert p_value(right, 20, 20) >= attained(20, right, chance / (1 - chance))


@pytest.mark.parametrize("kind", [PureDP, GaussianDP, ZeroConcentratedDP])
def test_small_numbers_are_enumerated(kind):
    # two coins, both guessed, right with the most that the claim of odds 3 allows: independent
    claim = PureDP(Fraction(math.log(3)))
    assert p_values(claim)(2, 2, 2) >= 9 / 16
    # the recursion on the same claim is a bound too, and not far off
    inverse = ONE_RUN.inverse_of(ONE_RUN.family(claim))
    assert 9 / 16 <= ONE_RUN._curve(2, 2, 2, inverse=inverse) <= 0.76
    assert p_values(kind(0))(2, 2, 2) >= 1 / 4


def test_the_claim_and_the_least_one():
    result = one_run(right=180, made=200, coins=1000, claim=PureDP(1), confidence="0.95")
    assert result.verdict is Verdict.VIOLATED and result.p_value < 1e-6
    least = result.least
    assert 1.5 < least.epsilon < math.log(9)
    assert (
        one_run(right=180, made=200, coins=1000, claim=least, confidence="0.95").verdict
        is Verdict.UNDECIDED
    )
    closer = PureDP(least.epsilon * Fraction(99, 100))
    assert (
        one_run(right=180, made=200, coins=1000, claim=closer, confidence="0.95").verdict
        is Verdict.VIOLATED
    )
    delta = one_run(right=180, made=200, coins=200, claim=ApproxDP(1, "1e-9"), confidence="0.95")
    assert delta.least.delta == Fraction("1e-9") and delta.least.epsilon > 1.4
    assert one_run(right=5, made=10, coins=10, claim=PureDP(0)).least == PureDP(0)


def test_one_run_says_how_many_coins_would_do():
    few = one_run(right=10, made=10, coins=10, claim=PureDP(1))
    assert few.verdict is Verdict.UNDECIDED
    # (e / (1 + e))^n <= 1e-9
    assert few.needed == math.ceil(math.log(1e9) / math.log1p(math.exp(-1)))
    assert f"{few.needed} coins" in few.sentence
    never = one_run(right=10, made=10, coins=10, claim=ApproxDP(1, "1e-5"))
    assert never.needed is None and "claim the privacy curve" in never.sentence
    assert one_run(right=10, made=10, coins=10, claim=GaussianDP("0.25")).needed < 200


def test_a_lost_clip_and_forgotten_steps_are_noticed():
    for factor, verdict in (
        (1, Verdict.UNDECIDED),
        (3, Verdict.VIOLATED),
        (60**0.5, Verdict.VIOLATED),
    ):
        generator, coins = coins_of(4, 20_000 if factor == 1 else 100_000)
        scores = generator.normal(size=len(coins)) + MU * factor * coins
        result = guesses(scores, coins, claim=GaussianDP(str(MU**2)))
        assert result.verdict is verdict, (factor, result.sentence)


def accused(seed, runs, doubt="0.05"):
    """How many of ``runs`` sound mechanisms of 200 coins are called VIOLATED."""
    generator = np.random.default_rng(seed)
    count = 0
    for _ in range(runs):
        coins = generator.random(200) < 0.5
        scores = generator.laplace(size=200) + 0.5 * coins
        result = guesses(scores, coins, claim=PureDP("0.5"), confidence=1 - Fraction(doubt))
        count += result.verdict is Verdict.VIOLATED
    return count


def test_a_true_claim_is_refuted_as_rarely_as_stated():
    # a bound of 5% of 1,000 runs; the mutant below is far above it
    assert_at_most(accused(7, 1000), 1000, 0.05, notices=0.26)


def test_trying_several_numbers_of_guesses_is_paid_for():
    # scores without any secret: at the limit of the claim, the best of six is lucky six times as often
    generator = np.random.default_rng(3)
    lucky = honest = 0
    for _ in range(400):
        coins = generator.random(1000) < 0.5
        result = guesses(generator.normal(size=1000), coins, claim=PureDP(0), confidence="0.9")
        honest += result.p_value <= 0.1
        lucky += result.p_value / result.tries <= 0.1
    assert honest <= 60 < lucky


def test_mutant_of_a_recursion_that_forgets_a_guess(monkeypatch):
    # without the first term, (r - i + 1) in place of (r - i + 2), a true claim is refuted
    def wrong(right, made, coins, inverse, probability):
        tail = total = probability
        for i in range(right, 0, -1):
            lower = (total + coins * inverse(((i - 1) * tail + total) / coins)) / (made - i + 0.5)
            if lower > 1 or lower <= tail:
                return lower > 1
            tail, total = lower, total + lower
        return False

    claim = PureDP(Fraction(math.log(3)))
    inverse = ONE_RUN.inverse_of(ONE_RUN.family(claim))
    truth = attained(60, 50, 3)
    assert ONE_RUN._curve(50, 60, 60, inverse=inverse) >= truth
    monkeypatch.setattr(ONE_RUN, "_impossible", wrong)
    assert ONE_RUN._curve(50, 60, 60, inverse=inverse) < truth


def test_a_value_that_a_coin_chooses_is_two_steps():
    claim = GaussianDP("0.25")
    assert for_group(claim, 2) == GaussianDP(1)
    one = p_values(claim)(45, 50, 50)
    assert p_values(for_group(claim, 2))(45, 50, 50) > one


@pytest.mark.parametrize(
    ("right", "made", "coins"), [(11, 10, 10), (5, 20, 10), (0, 0, 10), (-1, 5, 10), (1, 2, 10**8)]
)
def test_counts_that_cannot_be_are_refused(right, made, coins):
    with pytest.raises(InvalidNumber):
        one_run(right=right, made=made, coins=coins, claim=PureDP(1))


def test_other_input_that_is_refused():
    with pytest.raises(InvalidNumber):
        one_run(right=True, made=2, coins=3, claim=PureDP(1))
    with pytest.raises(InvalidNumber):
        one_run(right=1, made=2, coins=3, claim=PureDP(1), confidence=1)
    with pytest.raises(InvalidNumber):
        PureDP(math.nan)
    with pytest.raises(InvalidDeclaration):
        one_run(right=1, made=2, coins=3, claim="epsilon 1")
    coins = np.array([True, False, True])
    for scores, included in (
        ([1, 2], coins),
        ([1, 2, math.nan], coins),
        ([1, 2, 3], coins.astype(int)),
        ([1, 2, 3], np.ones(3, bool)),
        (["a", "b", "c"], coins),
    ):
        with pytest.raises(InvalidDeclaration):
            guesses(scores, included, claim=PureDP(1))
    assert guesses([3, 1, 2], coins, claim=PureDP(0)).verdict is Verdict.UNDECIDED
