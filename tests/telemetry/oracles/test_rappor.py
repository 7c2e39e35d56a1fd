# SPDX-License-Identifier: Apache-2.0
"""RAPPOR: both steps in exact fractions for every pair of small Bloom filters, and mutants."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from sfumato.accounting import account
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.telemetry.oracles.form import oracle_from_json, oracle_to_json
from sfumato.telemetry.oracles.rappor import RapporOracle, rappor
from sfumato.testing import Replay, assert_counts_follow
from tests.contracts.oracles import dearest, steps

WHOLE = 1 << 64
ALL = WHOLE - 1
NUMBERS = range(8)


def small(hashes=1, **fields):
    return rappor(bits=8, hashes=hashes, cohorts=1, **fields)


def ones(draw, oracle):
    """The probability that each bit is 1: a step of its own word."""
    found = []
    for bit in range(oracle.bits):

        def held(word, bit=bit):
            words = [ALL] * oracle.bits
            words[bit] = word
            return draw(words)[2] >> bit & 1

        found.append(Fraction(steps(held).get(1, 0), WHOLE))
    return found


def product_law(chances):
    """The law of independent bits."""
    law = {}
    for bits in itertools.product((0, 1), repeat=len(chances)):
        parts = [one if bit else 1 - one for bit, one in zip(bits, chances, strict=True)]
        law[bits] = math.prod(parts)
    return law


def permanent(oracle, number):
    return ones(lambda words: oracle.encode(number, [0, *words]), oracle)


@pytest.mark.parametrize("hashes", [1, 2])
@pytest.mark.parametrize("f", ["1/2", "1/4"])
def test_permanent_bits_have_exactly_the_stated_weights(hashes, f):
    oracle = small(hashes, f=Fraction(f))
    kept, added = Fraction(oracle.kept, WHOLE), Fraction(oracle.added, WHOLE)
    chances = [permanent(oracle, number) for number in NUMBERS]
    for number, found in zip(NUMBERS, chances, strict=True):
        own = set(oracle.places(number, 0))
        assert found == [kept if bit in own else added for bit in range(8)]
    found = dearest([product_law(each) for each in chances])
    assert found <= oracle.event.odds
    if hashes == 1:
        assert found == oracle.event.odds


def test_a_blurred_answer_tells_no_more_than_the_answer():
    oracle = small()
    blurred = {
        bit: ones(lambda w, b=bit: oracle.blur(bytes([0, 0, 255 * b]), w), oracle) for bit in (0, 1)
    }
    one, zero = Fraction(oracle.one, WHOLE), Fraction(oracle.zero, WHOLE)
    assert blurred == {1: [one] * 8, 0: [zero] * 8}
    first = []
    for number in NUMBERS:
        chances = [share * one + (1 - share) * zero for share in permanent(oracle, number)]
        assert set(chances) == {oracle.own, oracle.other}
        first.append(product_law(chances))
    assert dearest(first) == oracle.first_odds < oracle.event.odds


class AddsWhatItKeeps(RapporOracle):
    """The two weights of the permanent step exchanged."""

    __slots__ = ()

    def encode(self, value, words):
        return replace(self, kept=self.added, added=self.kept).encode(value, words)


def test_a_permanent_step_that_is_not_the_stated_one_is_noticed():
    good = small()
    fields = {name: getattr(good, name) for name in good.__match_args__}
    with pytest.raises((AssertionError, InvalidNumber)):
        assert permanent(AddsWhatItKeeps(**fields), 3) == permanent(good, 3)


def test_the_usual_parameters_have_the_published_epsilons():
    oracle = rappor()
    assert math.isclose(account(oracle.event).epsilon, 2 * math.log(3), rel_tol=1e-12)
    assert math.isclose(math.log(oracle.first_odds), 1.0217, rel_tol=1e-4)
    assert oracle_from_json(oracle_to_json(oracle)) == oracle


def test_reports_of_many_devices_have_the_law_of_one():
    oracle = rappor(bits=16, hashes=2, cohorts=3)
    held = np.full(30_000, 77, np.uint64)
    payloads = oracle.encode_many(held, Replay(8))
    assert oracle.valid(payloads).all()
    reports, bits = oracle.split(oracle.tally(payloads))
    assert_counts_follow(reports, [1 / 3] * 3, notices=[0.5, 0.25, 0.25])
    for cohort in range(3):
        own = set(oracle.places(77, cohort))
        for bit in range(16):
            chance, wrong = float(oracle.own), float(oracle.other)
            if bit not in own:
                chance, wrong = wrong, chance
            count, rest = int(bits[cohort, bit]), int(reports[cohort] - bits[cohort, bit])
            assert_counts_follow([count, rest], [chance, 1 - chance], notices=[wrong, 1 - wrong])


def test_cohorts_spread_and_tallies_add_up():
    oracle = rappor()
    firsts = {oracle.encode(5, [word << 58] + [0] * 32)[:2] for word in range(64)}
    assert len(firsts) == 64
    payloads = oracle.encode_many(np.arange(500, dtype=np.uint64), Replay(1))
    parts = oracle.tally(payloads[:99]) + oracle.tally(payloads[99:])
    assert parts.tolist() == oracle.tally(payloads).tolist()
    wrong = np.array([[0, 64, 0, 0, 0, 0]], np.uint8)
    assert oracle.valid(wrong).tolist() == [False]


@pytest.mark.parametrize(
    "fields",
    [
        {"bits": 12},
        {"bits": 2048},
        {"hashes": 0},
        {"hashes": 9},
        {"cohorts": 0},
        {"cohorts": 1 << 17},
        {"f": Fraction(0)},
        {"q": Fraction(1)},
        {"p": Fraction(3, 4), "q": Fraction(1, 4)},
    ],
)
def test_parameters_that_do_not_fit_are_refused(fields):
    with pytest.raises((InvalidDeclaration, InvalidNumber)):
        rappor(**fields)
