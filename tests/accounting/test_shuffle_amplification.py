# SPDX-License-Identifier: Apache-2.0
"""Sums over clones against the same sums in exact fractions, term by term."""

import math
from fractions import Fraction

import pytest
from flint import arb, ctx, fmpz
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import shuffle_amplification
from sfumato.accounting.shuffle_amplification import (
    binomial_weights,
    chance_of,
    hidden_delta,
    log_factorial,
    lone_delta,
)

HALF, TINY = Fraction(1, 2), Fraction(1, 2**80)
CHANCES = st.fractions(min_value=Fraction(1, 50), max_value=Fraction(49, 50), max_denominator=50)
ODDS = st.fractions(min_value=Fraction(11, 10), max_value=60, max_denominator=20)
PARTS = st.fractions(min_value=0, max_value=Fraction(19, 20), max_denominator=20)


def binomial(trials: int, successes: int, chance: Fraction) -> Fraction:
    if not 0 <= successes <= trials:
        return Fraction(0)
    return math.comb(trials, successes) * chance**successes * (1 - chance) ** (trials - successes)


def among_clones(odds: Fraction, rate: Fraction, others: int, factor: Fraction) -> Fraction:
    """The delta of the pair by its words: every number of clones, every number of reports of 0."""
    total = Fraction(0)
    for number in range(others + 1):
        for zeros in range(number + 2):
            with_victim, without = binomial(number, zeros - 1, HALF), binomial(number, zeros, HALF)
            here, there = odds * with_victim + without, with_victim + odds * without
            total += (
                binomial(others, number, rate)
                * max(here - factor * there, Fraction(0))
                / (odds + 1)
            )
    return total


def counted(high: Fraction, low: Fraction, others: int, factor: Fraction) -> Fraction:
    """The delta of a number of answers, in the direction in which it is larger."""
    laws = [
        [
            chance * binomial(others, yes - 1, low) + (1 - chance) * binomial(others, yes, low)
            for yes in range(others + 2)
        ]
        for chance in (high, low)
    ]
    return max(
        sum(max(p - factor * q, Fraction(0)) for p, q in zip(one, other, strict=True))
        for one, other in (laws, laws[::-1])
    )


def is_close_above(found: Fraction, truth: Fraction) -> bool:
    return truth <= found <= truth * (1 + Fraction(1, 10**12)) + 2 * TINY


@given(ODDS, CHANCES, st.integers(0, 25), PARTS)
@settings(deadline=None)
def test_a_victim_among_clones_hides_at_least_so_well(odds, rate, others, part):
    factor = 1 + part * (odds - 1)
    assert is_close_above(
        hidden_delta(odds, rate, others, factor, TINY), among_clones(odds, rate, others, factor)
    )


def test_many_clones_are_summed_as_few_are():
    case = (Fraction(5), Fraction(1, 5), 120, Fraction(3, 2))
    found = hidden_delta(*case, TINY)
    assert is_close_above(found, among_clones(*case))
    # what is left out is at most what was said
    assert found <= hidden_delta(*case, Fraction(1, 1000)) <= found + Fraction(1, 1000)


def wrong_verdicts(clones_number, odds, factor, bits):
    """As if every clone were certain to report as the victim does not."""
    for here, beyond in _verdicts(clones_number, odds, factor, bits):
        yield here // 2, beyond


_verdicts, _run = shuffle_amplification._verdicts, shuffle_amplification._run


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("_verdicts", wrong_verdicts),
        ("_verdicts", lambda number, *rest: _verdicts(number + 1, *rest)),
        (
            "_verdicts",
            lambda number, odds, factor, bits: _verdicts(
                number, odds, factor * Fraction(3, 2), bits
            ),
        ),
        ("_run", lambda weight, *rest: (_run(weight, *rest)[0][:1], Fraction(0))),
    ],
    ids=["half a point", "a clone too many", "another epsilon", "clones left out"],
)
def test_a_wrong_sum_is_caught(name, wrong, monkeypatch):
    binomial_weights.cache_clear()
    monkeypatch.setattr(shuffle_amplification, name, wrong)
    case = (Fraction(4), Fraction(1, 3), 20, Fraction(6, 5))
    assert not is_close_above(hidden_delta(*case, TINY), among_clones(*case))
    binomial_weights.cache_clear()


@given(CHANCES, CHANCES, st.integers(0, 25), PARTS)
@settings(deadline=None)
def test_a_lone_report_shows_at_least_so_much(one, other, others, part):
    high, low = max(one, other), min(one, other)
    if high > low:
        factor = 1 + part * (high / low - 1)
        found, truth = lone_delta(high, low, others, factor), counted(high, low, others, factor)
        assert found <= truth <= found * (1 + Fraction(1, 10**12)) + TINY


def test_a_lone_report_that_shows_too_much_is_caught(monkeypatch):
    monkeypatch.setattr(shuffle_amplification, "_tail", lambda *_, **__: 0)
    case = (Fraction(3, 4), Fraction(1, 4), 20, Fraction(6, 5))
    assert lone_delta(*case) > counted(*case)


@given(st.integers(0, 60), st.integers(0, 60), CHANCES)
@settings(deadline=None)
def test_the_chance_of_a_number_of_successes_lies_between_its_bounds(one, other, chance):
    exact = binomial(one + other, one, chance)
    low, high = (chance_of(one + other, one, chance, upper=upper) for upper in (False, True))
    assert low <= exact <= high <= low * (1 + Fraction(1, 10**16))


@pytest.mark.parametrize(
    ("trials", "successes"), [(1000, 0), (2500, 1200), (5000, 1001), (3001, 3001), (4000, 7)]
)
def test_chances_of_many_trials_lie_between_their_bounds(trials, successes):
    exact = binomial(trials, successes, Fraction(2, 5))
    low, high = (
        chance_of(trials, successes, Fraction(2, 5), upper=upper) for upper in (False, True)
    )
    assert low <= exact <= high <= low * (1 + Fraction(1, 10**16))


@pytest.mark.parametrize("number", [0, 1, 2, 10, 999, 1000, 1001, 12345, 10**6, 10**9, 10**12])
def test_the_logarithm_of_a_factorial_lies_between_its_bounds(number):
    low, high = log_factorial(number)
    with ctx.workprec(300):
        truth = arb(number + 1).lgamma()
        assert bool(exactly(low) <= truth + arb(2) ** -200) and bool(
            truth - arb(2) ** -200 <= exactly(high)
        )
    assert high - low <= Fraction(1, 10**17)


def exactly(number: Fraction) -> arb:
    return arb(fmpz(number.numerator)) / arb(fmpz(number.denominator))


def test_a_series_cut_short_is_caught():
    """Without the term 1/(12 n) the lower bound is still below, the upper one no more above."""
    with ctx.workprec(300):
        assert bool(exactly(log_factorial(1000)[1] - Fraction(1, 12000)) < arb(1001).lgamma())


@given(
    st.integers(0, 40),
    CHANCES,
    st.fractions(min_value=Fraction(1, 10**6), max_value=Fraction(1, 10)),
)
@settings(deadline=None)
def test_weights_and_what_is_left_out_are_not_below_the_truth(trials, chance, ignored):
    bits = 120
    first, weights, rest = binomial_weights(trials, chance, bits, ignored)
    exact = [binomial(trials, k, chance) for k in range(trials + 1)]
    assert all(Fraction(weight, 2**bits) >= exact[k] for k, weight in enumerate(weights, first))
    assert sum(exact) - sum(exact[first : first + len(weights)]) <= rest <= ignored
