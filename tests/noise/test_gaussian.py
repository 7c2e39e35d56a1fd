# SPDX-License-Identifier: Apache-2.0
"""Discrete Gaussian: what is drawn is what is stated, and what is stated is outward."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from sfumato.errors import InvalidNumber
from sfumato.noise import SYSTEM, DiscreteGaussian, DiscreteLaplace, Entropy, gaussian
from sfumato.testing import Replay, assert_follows
from tests.noise.truth import (
    PRECISION,
    GaussianTruth,
    LaplaceTruth,
    Script,
    ball,
    every_path,
    is_outward,
)

# Both sides of 64, where sums give way to integrals, and the tiny ones.
SIGMAS = [Fraction(text) for text in ("0.01", "0.1", "1/3", "1", "7/3", "20", "63.999", "64", "64.001", "100", "500")]
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
@settings(deadline=None, max_examples=30)
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


def test_the_bounds_notice_a_continuous_tail_taken_for_the_discrete_one(monkeypatch: pytest.MonkeyPatch) -> None:
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
@settings(deadline=None, max_examples=30)
def test_quantile_is_the_smallest_that_reaches_its_probability(variance: Fraction, probability: Fraction) -> None:
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


class _Proposed(Exception):
    """A second proposal: the first was rejected."""


def mass_of_acceptance(variance: Fraction, candidate: int) -> arb:
    """P(propose ``candidate``) P(accept it), with the proposal's law and the coins of e^-gamma given."""
    proposals: list[DiscreteLaplace] = []

    def propose(proposal: DiscreteLaplace, entropy: Entropy) -> int:
        proposals.append(proposal)
        if len(proposals) > 1:
            raise _Proposed
        return candidate

    def draw(script: Script) -> int:
        proposals.clear()
        try:
            return DiscreteGaussian(sigma_squared=variance).sample_one(script)
        except _Proposed:
            return candidate + 1

    def coin(over: int, under: int, script: Script) -> bool:
        return script.coin((-ball(Fraction(over, under))).exp())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DiscreteLaplace, "sample_one", propose)
        patch.setattr(gaussian, "bernoulli_exp", coin)
        law, _ = every_path(draw, 0.0)
    with ctx.workprec(PRECISION):
        return ball(law[candidate]) * LaplaceTruth(proposals[0].scale).pmf(candidate)


def is_sampled_exactly(variance: Fraction) -> bool:
    """Whether accepted masses stand to each other as the weights do, within 1e-50."""
    with ctx.workprec(PRECISION):
        base = mass_of_acceptance(variance, 0)
        weights = {x: (-ball(Fraction(x * x) / (2 * variance))).exp() for x in range(-8, 9)}
        shares = {x: mass_of_acceptance(variance, x) / base for x in weights}
        return all(bool(abs(shares[x] / weights[x] - 1) < 1e-50) for x in weights)


@pytest.mark.parametrize("variance", ["1/9", "1/2", "1", "2", "16/3", "9", "100"])
def test_the_sampler_accepts_each_integer_with_its_very_weight(variance: str) -> None:
    assert is_sampled_exactly(Fraction(variance))


def test_the_exact_law_notices_a_centre_that_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DiscreteGaussian, "sample_one", forgets_the_centre)
    assert not is_sampled_exactly(Fraction(2))


def forgets_the_centre(noise: DiscreteGaussian, entropy: Entropy) -> int:
    """A broken sampler: accepts with exp(-y^2 / (2 sigma^2)) whatever was proposed."""
    proposal = DiscreteLaplace(math.isqrt(int(noise.sigma_squared)) + 1)
    while True:
        candidate = proposal.sample_one(entropy)
        rate = Fraction(candidate * candidate) / (2 * noise.sigma_squared)
        if gaussian.bernoulli_exp(rate.numerator, rate.denominator, entropy):
            return candidate


def wide_by_a_fifth(noise: DiscreteGaussian, entropy: Entropy) -> int:
    """A broken sampler: too much noise by 20%."""
    return DiscreteGaussian(sigma_squared=noise.sigma_squared * Fraction(36, 25)).sample_one(entropy)


def narrow_by_a_fifth(noise: DiscreteGaussian, entropy: Entropy) -> int:
    """A broken sampler: too little noise by 20%, which is a loss of privacy."""
    return DiscreteGaussian(sigma_squared=noise.sigma_squared * Fraction(16, 25)).sample_one(entropy)


def cdf_of(sigma: float) -> Callable[[int], float]:
    """The law in doubles, by adding up to 12 sigma."""
    reach = int(12 * sigma) + 2
    weights = [math.exp(-x * x / (2 * sigma * sigma)) for x in range(-reach, reach + 1)]
    sums = list(accumulate(weights))
    return lambda x: sums[min(max(x + reach, 0), 2 * reach)] / sums[-1]


def follows_its_law(noise: DiscreteGaussian, draws: list[int]) -> None:
    """Fails unless the draws are from the stated law; sure to notice a sigma that is 20% off."""
    sigma = float(noise.sigma_squared) ** 0.5
    assert_follows(draws, cdf_of(sigma), notices=cdf_of(sigma * 1.2))


SOURCES = [pytest.param(SYSTEM, id="system"), pytest.param(Replay(2024), id="replay")]


@pytest.mark.parametrize("entropy", SOURCES)
@pytest.mark.parametrize("sigma", ["7/3", "63.5", "1000"])
def test_gaussian_draws_follow_the_stated_law(sigma: str, entropy: Entropy) -> None:
    noise = DiscreteGaussian(sigma)
    follows_its_law(noise, noise.sample(40_000, entropy))


@pytest.mark.parametrize("entropy", SOURCES)
@pytest.mark.parametrize("broken", [forgets_the_centre, wide_by_a_fifth, narrow_by_a_fifth])
def test_the_law_notices_a_broken_sampler(broken: Callable[..., int], entropy: Entropy) -> None:
    noise = DiscreteGaussian(3)
    with pytest.raises(AssertionError, match="from the stated law"):
        follows_its_law(noise, [broken(noise, entropy) for _ in range(40_000)])


def test_a_tiny_sigma_draws_zeros() -> None:
    assert set(DiscreteGaussian("0.01").sample(1000)) == {0}


def test_draws_repeat_under_replay_and_not_under_the_system() -> None:
    noise = DiscreteGaussian(10**9)
    assert noise.sample(20, Replay(1)) == noise.sample(20, Replay(1))
    assert noise.sample(20) != noise.sample(20)
    assert noise.sample(0) == []
