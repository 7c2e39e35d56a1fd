# SPDX-License-Identifier: Apache-2.0
"""What all oracles share: packed numbers, and odds that are rounded down."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidNumber
from sfumato.telemetry.oracles.oracle import bytes_for, least_weight, odds_of, packed, unpacked


@given(st.lists(st.integers(0, 2**24 - 1), min_size=1), st.integers(3, 8))
def test_packed_numbers_are_big_endian(numbers, size):
    rows = packed(np.array(numbers, np.uint64), size)
    assert rows.tobytes() == b"".join(number.to_bytes(size, "big") for number in numbers)
    assert unpacked(rows).tolist() == numbers


@pytest.mark.parametrize("most", [0, 1, 255, 256, 65_535, 65_536])
def test_a_size_holds_the_largest_number_and_no_smaller_one_does(most):
    size = bytes_for(most)
    assert most < 256**size and (size == 1 or most >= 256 ** (size - 1))


def test_odds_are_rounded_down_and_stop_at_fifty():
    assert 0 < Fraction(math.exp(1)) - odds_of(Fraction(1)) < 1e-15 or odds_of(Fraction(1)) < 2.7183
    assert odds_of(Fraction(100)) == odds_of(Fraction(50))
    with pytest.raises(InvalidNumber):
        odds_of(Fraction(0))


@given(st.fractions(1, 10**6))
def test_the_least_weight_is_the_least_that_is_enough(total):
    weight = least_weight(total)
    assert weight * total >= 1 << 64 > (weight - 1) * total
