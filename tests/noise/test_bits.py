# SPDX-License-Identifier: Apache-2.0
"""Packed bits: every path of digits has its mass, every lane its own number, at any depth of the
comparison.
"""

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidNumber
from sfumato.exact.exponential import exp_scaled
from sfumato.noise import SYSTEM, bits
from sfumato.noise.bits import random_bits
from sfumato.noise.entropy import words
from sfumato.testing import Replay, assert_at_most
from tests.noise.truth import PRECISION, Script, ball, every_path

FULL = ~np.uint64(0)


def ratio(bias: Fraction):
    """The bounds of a rational."""
    return lambda precision: (
        (bias.numerator << precision) // bias.denominator,
        -((-bias.numerator << precision) // bias.denominator),
    )


def decay(gamma: Fraction):
    """The bounds of e^-gamma."""
    return lambda precision: exp_scaled(gamma.numerator, gamma.denominator, precision)


def exp(gamma: Fraction) -> arb:
    with ctx.workprec(PRECISION):
        return (-ball(gamma)).exp()


RATIOS = [
    Fraction(text) for text in ("0", "1", "1/2", "3/8", "1/3", "2/3", "5/7", "1/1000", "999/1000")
]
BIASES = [pytest.param(ratio(each), ball(each), id=str(each)) for each in RATIOS] + [
    pytest.param(decay(Fraction(each)), exp(Fraction(each)), id=f"e^-{each}")
    for each in ("1/100", "1", "5/2", "9")
]


def has_its_bias(bias, truth: arb, levels: int) -> bool:
    """Whether the mass of the paths to True is the bias, up to the undecided.

    All lanes take the same digits.
    """

    def same_in_all_lanes(count: int, script: Script) -> np.ndarray:
        return np.array([FULL if script.bits(1) else 0 for _ in range(count)], np.uint64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bits, "words", same_in_all_lanes)
        law, rest = every_path(
            lambda script: bool(random_bits(1, bias, script, levels=levels)[0]), 2.0**-13
        )
    sure = ball(law.get(True, Fraction(0)))
    with ctx.workprec(PRECISION):
        return (
            rest <= Fraction(1, 2**8) and bool(sure <= truth) and bool(truth <= sure + ball(rest))
        )


@pytest.mark.parametrize("levels", [1, 2, 3, 5])
@pytest.mark.parametrize(("bias", "truth"), BIASES)
def test_packed_bits_have_exactly_their_bias(bias, truth, levels):
    assert has_its_bias(bias, truth, levels)


def test_the_paths_notice_a_comparison_that_ends_at_its_first_digits(monkeypatch):
    honest = bits._below

    def shallow(lanes, digits, entropy, depth=0):
        return honest(lanes, digits, entropy, depth) if depth < 2 else np.zeros_like(lanes)

    monkeypatch.setattr(bits, "_below", shallow)
    assert not has_its_bias(ratio(Fraction(1, 3)), ball(Fraction(1, 3)), 2)


def test_the_paths_notice_digits_rounded_up(monkeypatch):
    monkeypatch.setattr(bits, "_digits", lambda bias, skipped, levels: [True] * levels)
    assert not has_its_bias(ratio(Fraction(2, 3)), ball(Fraction(2, 3)), 1)


@pytest.mark.parametrize("levels", [1, 4, 12])
def test_every_lane_compares_a_number_of_its_own(levels):
    count = 64 * 50
    drawn = words(50 * levels, Replay(5)).reshape(levels, 50)
    digits = np.unpackbits(drawn.view(np.uint8), axis=1, bitorder="little").astype(np.int64)
    numbers = sum((1 - digits[level]) << level for level in range(levels))
    for top in {0, 1, 2**levels // 3, 2**levels - 1}:
        packed = random_bits(count, ratio(Fraction(top, 2**levels)), Replay(5), levels=levels)
        assert unpacked(packed, count).tolist() == (numbers < top).tolist()


def unpacked(packed: np.ndarray, count: int) -> np.ndarray:
    return np.unpackbits(packed.view(np.uint8), bitorder="little", count=count).astype(bool)


@pytest.mark.parametrize("levels", [1, 5, 12])
@pytest.mark.parametrize(
    ("bias", "share"),
    [(ratio(Fraction(1, 3)), 1 / 3), (decay(Fraction(3)), 0.049787068367863944)],
    ids=["1/3", "e^-3"],
)
def test_shares_are_the_bias(bias, share, levels):
    shares_hold(random_bits(4_000_000, bias, SYSTEM, levels=levels), 4_000_000, share)


def shares_hold(packed: np.ndarray, count: int, share: float) -> None:
    """Fails unless bits, and pairs of bits at several distances, are set as often as independent
    ones.

    Sure to notice 1%; a block of 2^19 bits is among the distances.
    """
    lanes = unpacked(packed, count)
    expected = [(lanes, share)]
    expected += [
        (lanes[distance:] & lanes[:-distance], share * share) for distance in (1, 7, 64, 64 * 2**13)
    ]
    for seen, probability in expected:
        hits = int(np.count_nonzero(seen))
        assert_at_most(hits, len(seen), probability, notices=probability + 0.01)
        assert_at_most(len(seen) - hits, len(seen), 1 - probability, notices=1 - probability + 0.01)


def test_the_shares_notice_a_bias_of_four_digits(monkeypatch):
    monkeypatch.setattr(bits, "_digits", lambda bias, skipped, levels: [False, True, False, True])
    with pytest.raises(AssertionError, match="was stated"):
        shares_hold(
            random_bits(1_000_000, ratio(Fraction(1, 3)), SYSTEM, levels=4) & FULL, 1_000_000, 0.4
        )


def test_the_shares_notice_blocks_that_repeat_each_other(monkeypatch):
    once = {}
    monkeypatch.setattr(
        bits, "words", lambda count, entropy: once.setdefault(count, words(count, entropy))
    )
    with pytest.raises(AssertionError, match="was stated"):
        shares_hold(random_bits(2_000_000, ratio(Fraction(1, 3))), 2_000_000, 1 / 3)


@given(st.integers(0, 2000), st.fractions(0, 1, max_denominator=50))
@settings(deadline=None)
def test_bits_beyond_the_count_are_zero(count, bias):
    drawn = random_bits(count, ratio(bias), SYSTEM, levels=3)
    assert (drawn.dtype, drawn.shape) == (np.uint64, (-(-count // 64),))
    assert is_clean(drawn, count)


def is_clean(drawn: np.ndarray, count: int) -> bool:
    """Whether no bit is set from ``count`` on."""
    return not any(int(word) >> max(count - 64 * place, 0) for place, word in enumerate(drawn))


def test_the_check_notices_a_bit_beyond_the_count():
    assert is_clean(np.array([1 << 36], np.uint64), 37)
    assert not is_clean(np.array([1 << 37], np.uint64), 37)
    assert not is_clean(random_bits(128, ratio(Fraction(1))), 100)


def test_certain_and_impossible_bits():
    assert set(random_bits(6400, ratio(Fraction(1))).tolist()) == {int(FULL)}
    assert set(random_bits(6400, ratio(Fraction(0))).tolist()) == {0}


@given(st.fractions(0, 40, max_denominator=10**6), st.integers(0, 60), st.integers(1, 20))
@settings(deadline=None)
def test_the_digits_are_those_of_the_bias(gamma, skipped, levels):
    found = sum(
        digit << level for level, digit in enumerate(bits._digits(decay(gamma), skipped, levels))
    )
    with ctx.workprec(PRECISION):
        prefix = (
            int((exp(gamma) * 2 ** (skipped + levels)).floor().unique_fmpz())
            if gamma
            else (1 << 90) - 1
        )
    assert found == prefix & (1 << levels) - 1


@pytest.mark.parametrize("gamma", ["1e-400", "1e400"])
def test_a_bias_closer_to_its_end_than_any_float_is_followed_to_its_digits(gamma):
    drawn = random_bits(6400, decay(Fraction(gamma)), SYSTEM, levels=1)
    assert set(drawn.tolist()) == {int(FULL) if gamma == "1e-400" else 0}


def test_the_same_entropy_gives_the_same_bits():
    pair = [random_bits(100_000, decay(Fraction(1)), Replay(3)).tolist() for _ in range(2)]
    assert pair[0] == pair[1]


def test_memory_above_the_output_is_small():
    tracemalloc.start()
    try:
        drawn = random_bits(40_000_000, decay(Fraction(1)))
        above = tracemalloc.get_traced_memory()[1] - drawn.nbytes
    finally:
        tracemalloc.stop()
    assert above <= 2_000_000


@pytest.mark.parametrize(
    ("count", "levels"), [(-1, 12), (True, 12), (1.5, 12), (2**61, 12), (10, 0), (10, -3)]
)
def test_a_count_or_a_depth_that_cannot_be_is_refused(count, levels):
    with pytest.raises(InvalidNumber):
        random_bits(count, ratio(Fraction(1, 2)), levels=levels)
