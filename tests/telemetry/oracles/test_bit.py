# SPDX-License-Identifier: Apache-2.0
"""One-bit Hadamard response: every row and bit in exact fractions, and its transform."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.telemetry.oracles.bit import BitOracle, bit, hadamard
from sfumato.testing import Replay
from tests.contracts.oracles import OracleContract, check_law, steps

WHOLE = 1 << 64


def laws(oracle):
    """Each row is the top bits of a word; the bit is a step of the other word."""
    return [
        {
            report: words * rows / WHOLE**2
            for top, rows in _rows(oracle).items()
            for report, words in _bits(oracle, value, top).items()
        }
        for value in range(oracle.values)
    ]


def _rows(oracle):
    """A word of each row, and how many words have it."""
    share = WHOLE >> 3
    assert oracle.cells == 8
    return {row * share: Fraction(share) for row in range(8)}


def _bits(oracle, value, top):
    return steps(lambda word: oracle.encode(value, [top, word]))


class TestBit(OracleContract):
    def make(self, values, epsilon):
        return bit(values, epsilon)

    def laws(self, oracle):
        return laws(oracle)

    def swapped(self, oracle):
        return BitOracle(oracle.values, WHOLE - oracle.truth)


def test_a_bit_has_exactly_the_stated_weight():
    oracle = bit(8, 1)
    # row 3 and value 1: popcount(3 & 1) = 1
    found = _bits(oracle, 1, 3 << 61)
    assert found == {bytes([7]): oracle.truth, bytes([6]): WHOLE - oracle.truth}


class OneWordMore(BitOracle):
    """A threshold that is off by one word."""

    __slots__ = ()

    def encode(self, value, words):
        return BitOracle.encode(self, value, [words[0], max(words[1] - 1, 0)])


class Swapped(BitOracle):
    """Lies as often as it should tell the truth."""

    __slots__ = ()

    def encode(self, value, words):
        report = BitOracle.encode(self, value, words)
        return bytes([report[0] ^ 1])


@pytest.mark.parametrize("mutant", [OneWordMore, Swapped])
def test_a_law_that_is_not_the_stated_one_is_noticed(mutant):
    bad = mutant(8, bit(8, 1).truth)
    with pytest.raises(AssertionError):
        check_law(bad, laws(bad))


@given(st.integers(0, 6), st.integers(0, 1000))
def test_the_transform_is_the_sum_over_all_rows(levels, seed):
    rows = np.arange(1 << levels)
    tally = np.random.default_rng(seed).integers(-(1 << 40), 1 << 40, 1 << levels)
    signs = 1 - 2 * (np.bitwise_count(rows[:, None] & rows) % 2).astype(np.int64)
    assert hadamard(tally).tolist() == (signs @ tally).tolist()
    small = tally >> 20
    assert hadamard(small).tolist() == (signs @ small).tolist()


def test_many_are_encoded_as_one_is():
    oracle = bit(300, 1)
    values = np.arange(1000) % 300
    buffer = np.empty(16_000, np.uint8)
    Replay(5).fill(buffer)
    first, second = buffer.view("<u8").reshape(2, -1).tolist()
    many = oracle.encode_many(values, Replay(5))
    words = zip(values.tolist(), first, second, strict=True)
    assert many.tobytes() == b"".join(oracle.encode(value, pair) for value, *pair in words)


def test_what_is_no_row_is_no_report():
    rows = np.array([[3, 255], [4, 0]], np.uint8)
    assert bit(300, 1).valid(rows).tolist() == [True, False]
