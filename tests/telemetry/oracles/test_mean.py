# SPDX-License-Identifier: Apache-2.0
"""The oracle of a mean: every output of every number in exact fractions, and mutants."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from sfumato.accounting import account
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.telemetry.oracles.form import oracle_from_json, oracle_to_json
from sfumato.telemetry.oracles.mean import MeanOracle, mean
from sfumato.testing import Replay, assert_counts_follow
from tests.contracts.oracles import dearest, steps

WHOLE = 1 << 64


def law(oracle, value):
    """The exact probability of each report."""
    found = {}
    for coin, weight in ((0, oracle.share), (WHOLE - 1, WHOLE - oracle.share)):
        if weight:
            counts = steps(lambda word, coin=coin: oracle.encode(value, [coin, word]))
            for report, words in counts.items():
                found[report] = Fraction(words * weight, WHOLE**2)
    assert sum(found.values()) == 1
    return found


def expected(oracle, value):
    """The exact mean of the readings of one number."""
    readings = oracle.readings()
    return sum(chance * readings[report[0]] for report, chance in law(oracle, value).items())


@pytest.mark.parametrize("epsilon", ["0.5", "1", "2", "4"])
def test_a_place_and_a_bit_have_exactly_the_stated_weights(epsilon):
    oracle = mean(8, epsilon)
    laws = [law(oracle, value) for value in range(8)]
    assert dearest(laws) == oracle.event.odds
    assert account(oracle.event).epsilon <= Fraction(epsilon)
    bits = Fraction(WHOLE - oracle.share, WHOLE)
    assert laws[0][b"\x01"] == bits * Fraction(oracle.low, WHOLE)
    assert laws[7][b"\x01"] == bits * Fraction(oracle.high, WHOLE)


@pytest.mark.parametrize("epsilon", ["0.5", "1", "3"])
@pytest.mark.parametrize("values", [2, 3, 8, 13])
def test_a_report_is_unbiased_for_its_number(values, epsilon):
    oracle = mean(values, epsilon)
    found = [expected(oracle, value) for value in range(values)]
    assert found == [Fraction(value, values - 1) for value in range(values)]


class OneWordMore(MeanOracle):
    """A threshold that is off by one word."""

    __slots__ = ()

    def _bit(self, value, word):
        return MeanOracle._bit(self, value, max(word - 1, 0))


class Turned(MeanOracle):
    """The two bits exchanged."""

    __slots__ = ()

    def _bit(self, value, word):
        return 1 - MeanOracle._bit(self, value, word)


class Narrow(MeanOracle):
    """A window that does not move."""

    __slots__ = ()

    def _place(self, value, word):
        return MeanOracle._place(self, 0, word)


@pytest.mark.parametrize("mutant", [OneWordMore, Turned, Narrow])
def test_a_law_that_is_not_the_stated_one_is_noticed(mutant):
    good = mean(8, 1)
    fields = {name: getattr(good, name) for name in good.__match_args__}
    bad = mutant(**fields)
    wanted = [Fraction(value, 7) for value in range(8)]
    assert [expected(bad, value) for value in range(8)] != wanted


def test_a_weight_that_is_rounded_the_wrong_way_costs_too_much():
    good = mean(8, "0.5")
    bad = replace(good, low=good.low - 7, high=good.high + 7)
    assert account(good.event).epsilon <= Fraction(1, 2) < account(bad.event).epsilon


@pytest.mark.parametrize("values", [2, 3, 17, 1025])
@pytest.mark.parametrize("epsilon", ["1e-3", "0.5", "1", "4", "40", "100"])
def test_it_costs_at_most_what_was_asked(values, epsilon):
    oracle = mean(values, epsilon)
    assert account(oracle.event).epsilon <= Fraction(epsilon)
    assert oracle_from_json(oracle_to_json(oracle)) == oracle


def test_the_worst_variance_is_that_of_the_hybrid_mechanism():
    # Wang et al. 2019, on the range -1 to 1; the bit alone has ((e + 1)/(e - 1))^2 = 4.683
    assert 4.28 < 4 * mean(1025, 1).worst <= 4.30
    exact = law(mean(8, 1), 3)
    readings = mean(8, 1).readings()
    second = sum(chance * readings[report[0]] ** 2 for report, chance in exact.items())
    assert abs(float(second) - (3 / 7) ** 2 - mean(8, 1).variances()[3]) < 1e-12


def test_many_are_encoded_as_one_is():
    oracle = mean(300, 2)
    values = np.arange(1000) % 300
    buffer = np.empty(16_000, np.uint8)
    Replay(5).fill(buffer)
    words = zip(values.tolist(), *buffer.view("<u8").reshape(2, -1).tolist(), strict=True)
    many = oracle.encode_many(values, Replay(5))
    assert many.tobytes() == b"".join(oracle.encode(value, pair) for value, *pair in words)
    assert oracle.valid(many).all() and len(oracle.tally(many)) == oracle.cells


def test_reports_follow_the_law():
    oracle = mean(8, 1)
    counts = oracle.tally(oracle.encode_many(np.full(50_000, 2), Replay(2)))
    chances = [float(law(oracle, 2)[bytes([said])]) for said in range(oracle.cells)]
    wrong = [float(law(oracle, 6)[bytes([said])]) for said in range(oracle.cells)]
    assert_counts_follow(counts, chances, notices=wrong)


@pytest.mark.parametrize("values", [1, 1 << 17, True, "8"])
def test_numbers_that_cannot_be_reported_are_refused(values):
    with pytest.raises(InvalidDeclaration):
        mean(values, 1)


@pytest.mark.parametrize(
    "fields",
    [
        {"low": 1 << 63, "high": 1 << 62},
        {"high": (1 << 63) + 1},
        {"share": 1 << 64},
        {"share": 0},
        {"near": 1},
        {"window": 5},
    ],
)
def test_weights_that_do_not_fit_are_refused(fields):
    with pytest.raises(InvalidDeclaration):
        replace(mean(8, 1), **fields)


def test_an_epsilon_that_tells_nothing_is_refused():
    for epsilon in (0, "1e-30"):
        with pytest.raises((InvalidNumber, InvalidDeclaration)):
            mean(8, epsilon)
