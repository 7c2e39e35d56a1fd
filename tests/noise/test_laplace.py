# SPDX-License-Identifier: Apache-2.0
"""Discrete Laplace: what is drawn is what is stated, and what is stated is outward."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from flint import ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import dlaplace

from sfumato.errors import InvalidNumber
from sfumato.noise import SYSTEM, DiscreteLaplace, Entropy, Geometric, Integers, laplace, plain
from sfumato.noise.entropy import words
from sfumato.testing import Replay, assert_counts_agree
from tests.noise import tallies
from tests.noise.truth import PRECISION, LaplaceTruth, ball, is_outward

SCALES = [
    Fraction(text)
    for text in ("1/1000", "1/50", "1/3", "1", "5/2", "100", "123456.789", str(2**52), "1e30")
]
ANY_SCALE = st.fractions(min_value=Fraction(1, 100), max_value=10**9, max_denominator=10**6)


def around(scale: Fraction) -> list[int]:
    """Integers where a law of this scale is worth asking."""
    far = [int(scale * factor) for factor in (Fraction(1, 2), 1, 3, 20, 100)]
    return sorted({0, 1, 2, 7, *far, *(-x for x in far), -1, -2})


def is_stated_outward(noise: DiscreteLaplace, x: int) -> bool:
    """Whether everything stated about ``x`` holds the truth."""
    truth = LaplaceTruth(noise.scale)
    pmf, cdf, tail, spread = noise.pmf(x), noise.cdf(x), noise.tail(abs(x)), noise.variance
    return (
        is_outward(pmf.lower, truth.pmf(x), pmf.upper, truth.tail(0) if x == 0 else None)
        and is_outward(cdf.lower, truth.cdf(x), cdf.upper, truth.above(x))
        and is_outward(tail.lower, truth.tail(abs(x)), tail.upper)
        and is_outward(spread.lower, truth.variance(), spread.upper)
    )


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_laplace_statements_are_outward_bounds(scale: Fraction) -> None:
    noise = DiscreteLaplace(scale)
    assert all(is_stated_outward(noise, x) for x in around(scale))


@given(ANY_SCALE, st.integers(-(10**6), 10**6))
@settings(deadline=None)
def test_laplace_statements_are_outward_bounds_of_any_scale(scale: Fraction, x: int) -> None:
    assert is_stated_outward(
        DiscreteLaplace(scale), max(min(x, int(600 * scale)), int(-600 * scale))
    )


@given(ANY_SCALE, st.integers(-30, 30))
@settings(deadline=None)
def test_laplace_statements_are_tight(scale: Fraction, x: int) -> None:
    noise = DiscreteLaplace(scale)
    for stated in (noise.pmf(x), noise.cdf(x), noise.tail(abs(x)), noise.variance):
        assert stated.width <= 4e-16 * stated.upper + 5e-324


def test_the_bounds_notice_a_statement_rounded_to_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(laplace, "float_down", float)
    monkeypatch.setattr(laplace, "float_up", float)
    assert not is_stated_outward(DiscreteLaplace(3), 2)


@pytest.mark.parametrize("scale", [0.2, 1.0, 2.5, 400.0])
def test_statements_agree_with_scipy(scale: float) -> None:
    noise = DiscreteLaplace(scale)
    for x in (-40, -3, -1, 0, 1, 2, 25):
        assert noise.pmf(x).upper == pytest.approx(dlaplace.pmf(x, 1 / scale), rel=1e-9)
        assert noise.cdf(x).upper == pytest.approx(dlaplace.cdf(x, 1 / scale), rel=1e-9)
    assert noise.variance.upper == pytest.approx(dlaplace.var(1 / scale), rel=1e-9)


def test_a_negative_half_width_is_always_exceeded() -> None:
    assert DiscreteLaplace(3).tail(-1).lower == 1.0


def smallest_covering(scale: Fraction, confidence: Fraction) -> int:
    """The smallest h with 2 g^(h+1) / (1 + g) <= 1 - confidence, by the closed form."""
    with ctx.workprec(PRECISION):
        g = LaplaceTruth(scale).g
        bound = (2 / (ball(1 - confidence) * (1 + g))).log() * ball(scale) - 1
    return max(math.ceil(Fraction(bound.mid().str(60, radius=False))), 0)


@pytest.mark.parametrize("confidence", ["0.5", "0.95", "0.999", "0.999999999999"])
@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_half_width_is_the_smallest_that_covers(scale: Fraction, confidence: str) -> None:
    stated = DiscreteLaplace(scale).half_width(confidence)
    truth = smallest_covering(scale, Fraction(confidence))
    # a float statement can only see 2^-53 of the scale
    assert truth <= stated <= truth + int(scale / 2**50)


@given(ANY_SCALE, st.fractions(min_value=Fraction(1, 1000), max_value=Fraction(999_999, 1_000_000)))
@settings(deadline=None)
def test_quantile_is_the_smallest_that_reaches_its_probability(
    scale: Fraction, probability: Fraction
) -> None:
    x, truth = DiscreteLaplace(scale).quantile(probability), LaplaceTruth(scale)
    with ctx.workprec(PRECISION):
        assert bool(truth.cdf(x) >= ball(probability))
        assert bool(truth.cdf(x - 1) <= ball(probability + Fraction(1, 2**50)))


@pytest.mark.parametrize("probability", [0, 1, "1.5", -1, float("nan"), "0.9999999999999999"])
def test_a_probability_outside_the_open_unit_is_refused(probability: object) -> None:
    with pytest.raises(InvalidNumber):
        DiscreteLaplace(1).quantile(probability)
    with pytest.raises(InvalidNumber):
        DiscreteLaplace(1).half_width(probability)


@pytest.mark.parametrize("scale", [0, -1, "0", float("inf"), float("nan"), True, "wide", None])
def test_a_scale_that_is_not_positive_is_refused(scale: object) -> None:
    with pytest.raises(InvalidNumber):
        DiscreteLaplace(scale)


# ---------------------------------------------------------------- draws

EVERY = ["1/3", "1", "20/3", "16", "100", "1e6", str(2**40), str(2**52)]
DRAWN = [*((each, SYSTEM) for each in EVERY), ("16", Replay(2024))]


@pytest.mark.parametrize(("scale", "entropy"), DRAWN)
def test_laplace_draws_follow_the_stated_law(scale: str, entropy: Entropy) -> None:
    noise, width = DiscreteLaplace(scale), float(Fraction(scale))
    # sure to notice a scale that is 1% off: that takes 8e6 draws, where 1e6 notice 3%
    case = tallies.case(tallies.laplace, width, 1.01 * width)
    tallies.assert_draws_follow(case, lambda count: noise.sample(count, entropy), 8_000_000)


@pytest.mark.parametrize("scale", ["1e5", str(2**40), str(2**52)])
def test_the_low_bits_follow_the_stated_law(scale: str) -> None:
    law = tallies.low_bits_of_laplace(float(Fraction(scale)))
    tallies.assert_low_bits_follow(law, DiscreteLaplace(scale).sample, 8_000_000)


def test_the_low_bits_notice_a_bit_that_is_lost() -> None:
    law = tallies.low_bits_of_laplace(1e5)
    with pytest.raises(AssertionError, match="counts are"):
        tallies.assert_low_bits_follow(
            law, lambda count: DiscreteLaplace(10**5).sample(count) & ~8, 8_000_000
        )


def test_draws_agree_with_the_plain_sampler() -> None:
    case = tallies.case(tallies.laplace, 20 / 3, 20 / 3 * 1.15)
    slow = tallies.counted(case.count, tallies.plainly(plain.laplace, Fraction(20, 3)), 100_000)
    fast = tallies.counted(case.count, DiscreteLaplace("20/3").sample, 8_000_000)
    # sure to notice scales that are 15% apart
    assert_counts_agree(fast, slow, notices=(case.cells(case.right), case.cells(case.wrong)))
    wider = tallies.counted(case.count, DiscreteLaplace("23/3").sample, 8_000_000)
    with pytest.raises(AssertionError, match="apart"):
        assert_counts_agree(wider, slow, notices=(case.cells(case.right), case.cells(case.wrong)))


def zero_counted_twice(noise: DiscreteLaplace) -> tallies.Draw:
    """A broken sampler: minus zero is not rejected."""

    def draw(count: int) -> Integers:
        magnitudes = Geometric(noise.scale).sample(count)
        return np.where(words(count, SYSTEM) >> 63, magnitudes, -magnitudes)

    return draw


def scaled(factor: str) -> Callable[[DiscreteLaplace], tallies.Draw]:
    """A broken sampler: too much noise, or too little, which is a loss of privacy."""
    return lambda noise: DiscreteLaplace(noise.scale * Fraction(factor)).sample


# a zero that counts twice is half a millionth of the draws at 1e6: only the enumeration sees that
# (test_cells)
@pytest.mark.parametrize(
    ("broken", "scale"),
    [(zero_counted_twice, "2")]
    + [(scaled(factor), scale) for factor in ("1.01", "0.99") for scale in ("2", "1e6")],
)
def test_the_law_notices_a_broken_sampler(
    broken: Callable[[DiscreteLaplace], tallies.Draw], scale: str
) -> None:
    noise, width = DiscreteLaplace(scale), float(scale)
    case = tallies.case(tallies.laplace, width, 1.01 * width)
    with pytest.raises(AssertionError, match="counts are"):
        tallies.assert_draws_follow(case, broken(noise), 8_000_000)


def test_a_tiny_scale_draws_zeros() -> None:
    assert not DiscreteLaplace("1e-3").sample(1000).any()


def test_draws_repeat_under_replay_and_not_under_the_system() -> None:
    noise = DiscreteLaplace(10**9)
    for shape in (20, 1000):
        assert np.array_equal(noise.sample(shape, Replay(1)), noise.sample(shape, Replay(1)))
        # two draws are equal with a probability below 1e-9, five pairs of 1000 with one below 1e-30
        assert (noise.sample(shape) == noise.sample(shape)).sum() < 5
    assert noise.sample(0).tolist() == []
