# SPDX-License-Identifier: Apache-2.0
"""Discrete Gaussian: what is drawn is what is stated, and what is stated is outward."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from flint import ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from sfumato.errors import InvalidNumber
from sfumato.noise import SYSTEM, DiscreteGaussian, Entropy, gaussian, plain
from sfumato.testing import Replay, assert_counts_agree
from tests.noise import tallies
from tests.noise.truth import PRECISION, GaussianTruth, ball, is_outward

# Both sides of 64, where sums give way to integrals, and the tiny ones.
SIGMAS = [
    Fraction(text)
    for text in ("0.01", "0.1", "1/3", "1", "7/3", "20", "63.999", "64", "64.001", "100", "500")
]
VARIANCES = st.fractions(min_value=Fraction(1, 50), max_value=150**2, max_denominator=1000)
law_of = lru_cache(maxsize=32)(GaussianTruth)


def around(sigma: Fraction) -> list[int]:
    """Integers where a law of this sigma is worth asking."""
    far = [int(sigma * factor) for factor in (Fraction(1, 2), 1, 2, 5, 13, 14, 30)]
    return sorted({0, 1, -1, 2, 3, -3, *far, *(-x for x in far)})


def is_stated_outward(noise: DiscreteGaussian, x: int) -> bool:
    """Whether everything stated about ``x`` holds the truth."""
    truth = law_of(noise.sigma_squared)
    # the variance of a wide law is below sigma^2 by less than 400 bits can tell
    pmf, cdf, tail, spread = noise.pmf(x), noise.cdf(x), noise.tail(abs(x)), noise.variance
    return (
        is_outward(pmf.lower, truth.pmf(x), pmf.upper, truth.tail(0) if x == 0 else None)
        and is_outward(cdf.lower, truth.cdf(x), cdf.upper, truth.above(x))
        and is_outward(tail.lower, truth.tail(abs(x)), tail.upper)
        and is_outward(spread.lower, truth.variance(), Fraction(spread.upper) + Fraction(1, 10**60))
    )


@pytest.mark.parametrize("sigma", SIGMAS, ids=str)
def test_gaussian_statements_are_outward_bounds(sigma: Fraction) -> None:
    noise = DiscreteGaussian(sigma)
    assert all(is_stated_outward(noise, x) for x in around(sigma))


@given(VARIANCES, st.integers(-400, 400))
@settings(deadline=None)
def test_gaussian_statements_are_outward_bounds_of_any_variance(variance: Fraction, x: int) -> None:
    reach = 30 * math.isqrt(int(variance)) + 5
    assert is_stated_outward(DiscreteGaussian(sigma_squared=variance), max(-reach, min(x, reach)))


@pytest.mark.parametrize("sigma", SIGMAS, ids=str)
def test_gaussian_statements_are_tight(sigma: Fraction) -> None:
    noise = DiscreteGaussian(sigma)
    loose = 1e-14 if sigma <= 64 else 12 / float(sigma)
    for x in (0, 1, int(sigma), 3 * int(sigma), 10 * int(sigma)):
        assert noise.pmf(x).width <= 1e-14 * noise.pmf(x).upper + 5e-324
        tail = noise.tail(x)
        assert tail.width <= loose * tail.upper + 1e-38
        assert noise.cdf(-x).width <= loose * noise.cdf(-x).upper + 1e-38


def test_the_bounds_notice_a_continuous_tail_taken_for_the_discrete_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def continuous(noise: DiscreteGaussian, x: int) -> gaussian.Bracket:
        tail = float(norm.sf(x + 1 / 2, scale=float(noise.sigma_squared) ** 0.5))
        return gaussian.Bracket(tail * (1 - 1e-9), tail * (1 + 1e-9))

    monkeypatch.setattr(DiscreteGaussian, "_above", continuous)
    assert not is_stated_outward(DiscreteGaussian(3), 5)
    assert not is_stated_outward(DiscreteGaussian(100), 300)


def test_sums_and_integrals_meet_at_their_border() -> None:
    summed, integrated = DiscreteGaussian(64), DiscreteGaussian("64.000001")
    for x in (0, 64, 200):
        assert summed.pmf(x).upper == pytest.approx(integrated.pmf(x).upper, rel=1e-6)
        assert integrated.tail(x).lower <= summed.tail(x).upper <= integrated.tail(x).upper


def test_a_wide_law_is_close_to_the_normal_one() -> None:
    noise = DiscreteGaussian(10**6)
    for x in (0, 10**6, 3 * 10**6):
        assert noise.tail(x).upper == pytest.approx(2 * norm.sf(x / 1e6), rel=1e-4)
        assert noise.pmf(x).upper == pytest.approx(norm.pdf(x / 1e6) / 1e6, rel=1e-9)


def test_a_negative_half_width_is_always_exceeded() -> None:
    assert DiscreteGaussian(3).tail(-1).lower == 1.0


def smallest_covering(sigma: Fraction, confidence: Fraction) -> int:
    """The smallest h whose tail is at most 1 - confidence, by adding up."""
    law = law_of(sigma * sigma)
    return next(h for h in range(len(law.weights)) if bool(law.tail(h) <= ball(1 - confidence)))


@pytest.mark.parametrize("confidence", ["0.5", "0.95", "0.999", "0.999999999999"])
@pytest.mark.parametrize("sigma", SIGMAS, ids=str)
def test_half_width_is_the_smallest_that_covers(sigma: Fraction, confidence: str) -> None:
    stated = DiscreteGaussian(sigma).half_width(confidence)
    truth = smallest_covering(sigma, Fraction(confidence))
    assert truth <= stated <= truth + (sigma > 64)


@given(VARIANCES, st.fractions(min_value=Fraction(1, 1000), max_value=Fraction(999_999, 1_000_000)))
@settings(deadline=None)
def test_quantile_is_the_smallest_that_reaches_its_probability(
    variance: Fraction, probability: Fraction
) -> None:
    x, truth = DiscreteGaussian(sigma_squared=variance).quantile(probability), law_of(variance)
    slack = 1 + (variance > 64**2)
    with ctx.workprec(PRECISION):
        assert bool(truth.cdf(x) >= ball(probability))
        assert bool(truth.cdf(x - slack) <= ball(probability + Fraction(1, 2**50)))


def test_sigma_and_its_square_name_the_same_law() -> None:
    assert DiscreteGaussian("1/3") == DiscreteGaussian(sigma_squared="1/9")
    assert DiscreteGaussian(0.1).sigma_squared == Fraction(1, 100)
    assert hash(DiscreteGaussian(2)) == hash(DiscreteGaussian(sigma_squared=4))


@pytest.mark.parametrize("sigma", [0, -1, float("inf"), float("nan"), True, "wide", None])
def test_a_sigma_that_is_not_positive_is_refused(sigma: object) -> None:
    with pytest.raises(InvalidNumber):
        DiscreteGaussian(sigma)


@pytest.mark.parametrize("variance", [0, -1, float("inf"), float("nan"), True, "wide"])
def test_a_variance_that_is_not_positive_is_refused(variance: object) -> None:
    with pytest.raises(InvalidNumber):
        DiscreteGaussian(sigma_squared=variance)


@pytest.mark.parametrize("probability", [0, 1, "1.5", -1, float("nan"), "0.9999999999999999"])
def test_a_probability_outside_the_open_unit_is_refused(probability: object) -> None:
    with pytest.raises(InvalidNumber):
        DiscreteGaussian(1).quantile(probability)
    with pytest.raises(InvalidNumber):
        DiscreteGaussian(1).half_width(probability)


# ---------------------------------------------------------------- draws

EVERY = ["1/3", "1", "7/3", "16", "63.5", "100", "1000", "1e6", str(2**40), str(2**52)]
DRAWN = [*((each, SYSTEM) for each in EVERY), ("16", Replay(2024))]


@pytest.mark.parametrize(("sigma", "entropy"), DRAWN)
def test_gaussian_draws_follow_the_stated_law(sigma: str, entropy: Entropy) -> None:
    noise, width = DiscreteGaussian(sigma), float(Fraction(sigma))
    # sure to notice a sigma that is 1% off: that takes 4e6 draws, where 1e6 notice 2%
    case = tallies.case(tallies.gaussian, width, 1.01 * width)
    tallies.assert_draws_follow(case, lambda count: noise.sample(count, entropy), 4_000_000)


@pytest.mark.parametrize("sigma", ["1e5", str(2**40), str(2**52)])
def test_the_low_bits_follow_the_stated_law(sigma: str) -> None:
    law = tallies.low_bits_of_gaussian(float(sigma))
    tallies.assert_low_bits_follow(law, DiscreteGaussian(sigma).sample, 8_000_000)


def test_draws_agree_with_the_plain_sampler() -> None:
    case = tallies.case(tallies.gaussian, 7 / 3, 7 / 3 * 1.15)
    slow = tallies.counted(case.count, tallies.plainly(plain.gaussian, Fraction(49, 9)), 100_000)
    fast = tallies.counted(case.count, DiscreteGaussian("7/3").sample, 8_000_000)
    # sure to notice sigmas that are 15% apart
    assert_counts_agree(fast, slow, notices=(case.cells(case.right), case.cells(case.wrong)))


def rounded(noise: DiscreteGaussian) -> tallies.Draw:
    """A broken sampler: the continuous law, rounded."""
    generator = np.random.default_rng(7)
    sigma = float(noise.sigma_squared) ** 0.5
    return lambda count: np.rint(generator.normal(0, sigma, count)).astype(np.int64)


def scaled(factor: str) -> Callable[[DiscreteGaussian], tallies.Draw]:
    """A broken sampler: too much noise, or too little, which is a loss of privacy."""
    return lambda noise: (
        DiscreteGaussian(sigma_squared=noise.sigma_squared * Fraction(factor) ** 2).sample
    )


# from sigma 4 on the rounded law is the discrete one with another sigma, of relative distance 1/(24
# sigma^2)
@pytest.mark.parametrize(
    ("broken", "sigma"),
    [(rounded, "1/2"), (rounded, "2")]
    + [(scaled(factor), sigma) for factor in ("1.01", "0.99") for sigma in ("3", "1e6")],
)
def test_the_law_notices_a_broken_sampler(
    broken: Callable[[DiscreteGaussian], tallies.Draw], sigma: str
) -> None:
    noise, width = DiscreteGaussian(sigma), float(Fraction(sigma))
    case = tallies.case(tallies.gaussian, width, 1.01 * width)
    with pytest.raises(AssertionError, match="counts are"):
        tallies.assert_draws_follow(case, broken(noise), 4_000_000)


def test_a_tiny_sigma_draws_zeros() -> None:
    assert not DiscreteGaussian("0.01").sample(1000).any()


def test_draws_repeat_under_replay_and_not_under_the_system() -> None:
    noise = DiscreteGaussian(10**9)
    for shape in (20, 1000):
        assert np.array_equal(noise.sample(shape, Replay(1)), noise.sample(shape, Replay(1)))
        # two draws are equal with a probability below 1e-9, five pairs of 1000 with one below 1e-30
        assert (noise.sample(shape) == noise.sample(shape)).sum() < 5
    assert noise.sample(0).tolist() == []
