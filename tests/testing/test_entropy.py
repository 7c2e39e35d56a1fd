# SPDX-License-Identifier: Apache-2.0
"""Replayed bits repeat, differ by seed, and are fair."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.testing import Replay, assert_follows

COUNTS = st.lists(st.integers(0, 200), max_size=30)


def filled(source, size):
    """The next ``size`` bytes of a source."""
    buffer = np.empty(size, np.uint8)
    source.fill(buffer)
    return buffer.tobytes()


@given(st.integers(), COUNTS)
@settings(deadline=None)
def test_a_seed_repeats_its_stream(seed, counts):
    one, other = Replay(seed), Replay(seed)
    drawn = [one.bits(count) for count in counts]
    assert drawn == [other.bits(count) for count in counts]
    assert all(0 <= value < 2**count for value, count in zip(drawn, counts, strict=True))


@given(st.integers(), st.lists(st.integers(0, 3000), max_size=80))
@settings(deadline=None)
def test_the_stream_does_not_depend_on_how_it_is_cut(seed, sizes):
    pieces = Replay(seed)
    assert b"".join(filled(pieces, size) for size in sizes) == filled(Replay(seed), sum(sizes))


@given(st.integers(), COUNTS)
@settings(deadline=None)
def test_bits_are_the_high_bits_of_the_next_whole_bytes(seed, counts):
    bits, raw = Replay(seed), Replay(seed)
    for count in counts:
        size = (count + 7) // 8
        assert bits.bits(count) == int.from_bytes(filled(raw, size), "little") >> (8 * size - count)


@given(st.integers(), st.integers())
@settings(deadline=None)
def test_two_seeds_are_two_streams(one, other):
    assert (Replay(one).bits(256) == Replay(other).bits(256)) == (one == other)


def test_the_stream_goes_on_beyond_a_block_without_repeating():
    source = Replay(1)
    values = [source.bits(128) for _ in range(9000)]
    assert len(set(values)) == 9000


def test_the_stream_is_shake_256_of_the_seed_and_the_block():
    blocks = [hashlib.shake_256(f"7/{block}".encode()).digest(65536) for block in (0, 1, 2)]
    assert filled(Replay(7), 3 * 65536) == b"".join(blocks)


def follows_a_coin(bits):
    """Fails unless the bits are fair; sure to notice a coin of 2/3."""

    def cdf_of(bias):
        return lambda x: 0.0 if x < 0 else 1.0 if x >= 1 else 1 - bias

    assert_follows(bits, cdf_of(1 / 2), notices=cdf_of(2 / 3))


@pytest.mark.parametrize("seed", [0, 1, -5])
def test_replayed_bits_are_fair(seed):
    source = Replay(seed)
    follows_a_coin([source.bits(1) for _ in range(5000)])


def test_fairness_notices_a_loaded_source():
    source = Replay(0)
    with pytest.raises(AssertionError, match="from the stated law"):
        follows_a_coin([source.bits(1) | source.bits(1) for _ in range(5000)])
