# SPDX-License-Identifier: Apache-2.0
"""Unary encoding: every vector of bits in exact fractions, and its fast form."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.telemetry.oracles.unary import UnaryOracle, unary
from sfumato.testing import Replay, assert_counts_follow
from tests.contracts.oracles import OracleContract, check_law, steps, swap

WHOLE = 1 << 64
ALL = WHOLE - 1


def chances(oracle, value):
    """The probability that each bit is 1: a step of its own word, whatever the others are."""
    found = []
    for place in range(oracle.values):
        counts = steps(lambda word, place=place: _bit(oracle, value, place, word))
        found.append(Fraction(counts.get(1, 0), WHOLE))
    return found


def _bit(oracle, value, place, word):
    """Bit ``place`` of a report of which one word is given."""
    words = [ALL] * oracle.values
    words[place] = word
    report = int.from_bytes(oracle.encode(value, words), "little")
    assert report in (0, 1 << place)
    return report >> place


def laws(oracle):
    found = []
    for value in range(oracle.values):
        ones = chances(oracle, value)
        law = {}
        for bits in itertools.product((0, 1), repeat=oracle.values):
            number = sum(bit << place for place, bit in enumerate(bits))
            parts = [one if bit else 1 - one for one, bit in zip(ones, bits, strict=True)]
            law[number.to_bytes(oracle.size, "little")] = math.prod(parts)
        found.append(law)
    return found


class TestUnary(OracleContract):
    def make(self, values, epsilon):
        return unary(values, epsilon)

    def laws(self, oracle):
        return laws(oracle)

    def swapped(self, oracle):
        return swap(oracle, "kept", "added")


def test_unary_bits_have_exactly_the_stated_weights():
    oracle = unary(8, 2)
    added = Fraction(oracle.added, WHOLE)
    assert chances(oracle, 6) == [added] * 6 + [Fraction(1, 2), added]


class OneWordMore(UnaryOracle):
    """A threshold that is off by one word."""

    __slots__ = ()

    def encode(self, value, words):
        return UnaryOracle.encode(self, value, [max(word - 1, 0) for word in words])


class Swapped(UnaryOracle):
    """Keeps as seldom as it should add."""

    __slots__ = ()

    def encode(self, value, words):
        turned = list(words)
        turned[value] = ALL if words[value] < self.added else 0
        return UnaryOracle.encode(self, value, turned)


@pytest.mark.parametrize("mutant", [OneWordMore, Swapped])
def test_a_law_that_is_not_the_stated_one_is_noticed(mutant):
    good = unary(8, 1)
    bad = mutant(8, good.kept, good.added)
    with pytest.raises(AssertionError):
        check_law(bad, laws(bad))


@pytest.mark.parametrize("values", [5, 64, 65])
def test_the_fast_form_has_the_same_law(values):
    oracle = unary(values, 1)
    payloads = oracle.encode_many(np.full(30_000, values - 1), Replay(9))
    bits = np.unpackbits(payloads, axis=1, bitorder="little")[:, :values]
    # two bits together: apart from each other
    pairs = 2 * bits[:, 0] + bits[:, -1]
    one, own = float(oracle.other), float(oracle.own)
    law = [(1 - one) * (1 - own), (1 - one) * own, one * (1 - own), one * own]
    counts = np.bincount(pairs, minlength=4)
    assert_counts_follow(counts, law, notices=[0.25] * 4)


def test_a_bit_beyond_the_last_value_is_no_report():
    rows = np.array([[255, 15], [0, 16]], np.uint8)
    assert unary(12, 1).valid(rows).tolist() == [True, False]
    assert unary(16, 1).valid(np.array([[255, 255]], np.uint8)).all()
