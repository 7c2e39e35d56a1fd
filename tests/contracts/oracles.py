# SPDX-License-Identifier: Apache-2.0
"""What every oracle keeps: exact laws by enumeration of all outputs, for all pairs of values."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from sfumato.accounting import account
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.telemetry.oracles.form import oracle_from_json, oracle_to_json
from sfumato.testing import Replay, assert_counts_follow

WHOLE = 1 << 64


def steps(draw, low=0, high=WHOLE - 1):
    """The words of each result of a function of one word, if each result has one run of words.

    A run is found by bisection: where both ends give the same, so does all between.
    """
    first, last = draw(low), draw(high)
    if first == last:
        return {first: high - low + 1}
    middle = (low + high) // 2
    found = steps(draw, low, middle)
    for result, words in steps(draw, middle + 1, high).items():
        found[result] = found.get(result, 0) + words
    return found


def law_of_one_word(oracle, value):
    """The probability of each report of an oracle that draws one word."""
    counts = steps(lambda word: oracle.encode(value, [word]))
    assert sum(counts.values()) == WHOLE
    return {report: Fraction(words, WHOLE) for report, words in counts.items()}


def dearest(laws):
    """The largest ratio of the probabilities of one report under two values."""
    assert all(law.keys() == laws[0].keys() for law in laws)
    pairs = itertools.permutations(laws, 2)
    return max(max(one[report] / other[report] for report in one) for one, other in pairs)


def supports(oracle, report):
    """The values that one report supports."""
    payload = np.frombuffer(report, np.uint8).reshape(1, -1)
    return oracle.support(oracle.tally(payload), 1).tolist()


def check_law(oracle, laws):
    """The laws of all values have the stated odds and support what is stated, exactly."""
    assert dearest(laws) == oracle.event.odds
    for value, law in enumerate(laws):
        assert sum(law.values()) == 1
        found = [Fraction(0)] * oracle.values
        for report, chance in law.items():
            for place, supported in enumerate(supports(oracle, report)):
                found[place] += chance * supported
        wanted = [oracle.other] * oracle.values
        wanted[value] = oracle.own
        assert found == wanted


class OracleContract:
    """Inherit and state ``make`` and ``laws``; ``wrong`` is a damaged oracle."""

    epsilons = ("0.5", "1", "2", "4")

    def make(self, values, epsilon):
        raise NotImplementedError

    def laws(self, oracle):
        """For each value, the exact probability of every report."""
        return [law_of_one_word(oracle, value) for value in range(oracle.values)]

    @pytest.mark.parametrize("epsilon", epsilons)
    def test_every_output_of_every_pair_of_values_is_as_stated(self, epsilon):
        oracle = self.make(8, epsilon)
        check_law(oracle, self.laws(oracle))

    @pytest.mark.parametrize("epsilon", ["1e-3", *epsilons, "100"])
    @pytest.mark.parametrize("values", [2, 3, 8, 1000])
    def test_it_costs_at_most_what_was_asked_and_hardly_less(self, values, epsilon):
        cost = account(self.make(values, epsilon).event).epsilon
        wanted = Fraction(epsilon)
        assert cost <= wanted
        if wanted < 40:
            assert cost > wanted * Fraction(999, 1000)

    @pytest.mark.parametrize("values", [0, 1, 1 << 25, 1 << 31, True, 8.0, "8", None])
    def test_a_domain_that_cannot_be_reported_is_refused(self, values):
        with pytest.raises(InvalidDeclaration):
            self.make(values, "1")

    @pytest.mark.parametrize("epsilon", ["0", "-1", "nan", 0, "1e-25"])
    def test_an_epsilon_that_tells_nothing_is_refused(self, epsilon):
        with pytest.raises((InvalidNumber, InvalidDeclaration)):
            self.make(8, epsilon)

    def test_weights_that_tell_nothing_are_refused(self):
        oracle = self.make(8, "1")
        with pytest.raises((InvalidNumber, InvalidDeclaration)):
            self.swapped(oracle)

    def test_the_form_in_a_task_gives_the_same_oracle(self):
        oracle = self.make(100, "1.5")
        form = oracle_to_json(oracle)
        assert oracle_from_json(form) == oracle
        with pytest.raises((InvalidDeclaration, KeyError, TypeError, ValueError)):
            oracle_from_json({**form, "kind": "other"})
        with pytest.raises(KeyError):
            oracle_from_json({**form, "more": 1})

    def test_reports_of_many_devices_have_the_law_of_one(self):
        oracle = self.make(8, "1")
        payloads = oracle.encode_many(np.full(20_000, 3), Replay(21))
        assert oracle.valid(payloads).all()
        supported = oracle.support(oracle.tally(payloads), len(payloads))
        assert payloads.shape == (20_000, oracle.size)
        for value, count in enumerate(supported.tolist()):
            chance, wrong = float(oracle.other), float(oracle.own)
            if value == 3:
                chance, wrong = wrong, chance
            rest = 20_000 - count
            assert_counts_follow([count, rest], [chance, 1 - chance], notices=[wrong, 1 - wrong])

    def test_tallies_add_up(self):
        oracle = self.make(50, "1")
        payloads = oracle.encode_many(np.arange(600) % 50, Replay(3))
        parts = oracle.tally(payloads[:200]) + oracle.tally(payloads[200:])
        assert parts.tolist() == oracle.tally(payloads).tolist()
        assert len(parts) == oracle.cells

    def test_every_report_has_the_same_size_and_takes_as_many_words(self):
        oracle = self.make(300, "1")
        words = [0] * oracle.draws
        sizes = {len(oracle.encode(value, words)) for value in range(300)}
        assert sizes == {oracle.size}

    def test_a_lone_report_is_no_different_from_many(self):
        oracle = self.make(300, "2")
        single = [oracle.encode(7, [Replay(k).bits(64)] * oracle.draws) for k in range(50)]
        rows = np.frombuffer(b"".join(single), np.uint8).reshape(-1, oracle.size)
        assert oracle.valid(rows).all()

    def swapped(self, oracle):
        """The oracle with its two weights exchanged."""
        raise NotImplementedError


def swap(oracle, one, other):
    """An oracle with two fields exchanged."""
    return replace(oracle, **{one: getattr(oracle, other), other: getattr(oracle, one)})


def best_odds(epsilon):
    """e^epsilon as a float."""
    return math.exp(float(epsilon))
