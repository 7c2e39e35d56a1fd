# SPDX-License-Identifier: Apache-2.0
"""Discrete Laplace: what is drawn is what is stated, and what is stated is outward."""

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import dlaplace

from sfumato.errors import InvalidNumber
from sfumato.noise import SYSTEM, DiscreteLaplace, Entropy, laplace
from sfumato.noise.bernoulli import bernoulli_exp
from sfumato.noise.entropy import below
from sfumato.testing import Replay, assert_follows
from tests.noise.truth import PRECISION, LaplaceTruth, Restarted, Script, ball, every_path, is_outward

SCALES = [Fraction(text) for text in ("1/1000", "1/50", "1/3", "1", "5/2", "100", "123456.789", str(2**52), "1e30")]
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
@settings(deadline=None, max_examples=100)
def test_laplace_statements_are_outward_bounds_of_any_scale(scale: Fraction, x: int) -> None:
    assert is_stated_outward(DiscreteLaplace(scale), max(min(x, int(600 * scale)), int(-600 * scale)))


@given(ANY_SCALE, st.integers(-30, 30))
@settings(deadline=None, max_examples=100)
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
@settings(deadline=None, max_examples=80)
def test_quantile_is_the_smallest_that_reaches_its_probability(scale: Fraction, probability: Fraction) -> None:
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


def law_of_one_round(scale: str) -> tuple[dict[int, arb], arb]:
    """The law of a round that is not rejected, all paths followed; coins of e^-gamma are given."""

    def first_round(bound: int, script: Script) -> int:
        script.rounds += 1
        if script.rounds > 1:
            raise Restarted
        return script.choose([(value, Fraction(1, bound)) for value in range(bound)])

    def coin(over: int, under: int, script: Script) -> bool:
        return script.coin((-ball(Fraction(over, under))).exp())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(laplace, "below", first_round)
        patch.setattr(laplace, "bernoulli_exp", coin)
        return every_path(DiscreteLaplace(scale).sample_one, 1e-30)


def is_sampled_exactly(scale: str) -> bool:
    """Whether every outcome's share of the accepted mass is its probability, within 1e-25."""
    law, rest = law_of_one_round(scale)
    with ctx.workprec(PRECISION):
        truth, accepted = LaplaceTruth(Fraction(scale)), sum(law.values(), ball(rest))
        errors = [abs(law.get(x, arb(0)) / accepted - truth.pmf(x)) for x in range(-40, 41)]
        return float(rest) < 1e-25 and all(bool(error < 1e-25) for error in errors)


@pytest.mark.parametrize("scale", ["1/3", "2/3", "1", "2", "5/2", "7"])
def test_the_sampler_draws_each_integer_with_its_very_probability(scale: str) -> None:
    assert is_sampled_exactly(scale)


def test_the_exact_law_notices_draws_of_one_parity(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = DiscreteLaplace.sample_one
    monkeypatch.setattr(DiscreteLaplace, "sample_one", lambda noise, script: honest(noise, script) // 2 * 2)
    assert not is_sampled_exactly("2")


def zero_counted_twice(noise: DiscreteLaplace, entropy: Entropy) -> int:
    """A broken sampler: minus zero is not rejected."""
    over, under = noise.scale.numerator, noise.scale.denominator
    while not bernoulli_exp(offset := below(over, entropy), over, entropy):
        pass
    turns = 0
    while bernoulli_exp(1, 1, entropy):
        turns += 1
    return (offset + over * turns) // under * (1 - 2 * entropy.bits(1))


def wide_by_a_fifth(noise: DiscreteLaplace, entropy: Entropy) -> int:
    """A broken sampler: too much noise by 20%."""
    return DiscreteLaplace(noise.scale * Fraction(6, 5)).sample_one(entropy)


def narrow_by_a_fifth(noise: DiscreteLaplace, entropy: Entropy) -> int:
    """A broken sampler: too little noise by 20%, which is a loss of privacy."""
    return DiscreteLaplace(noise.scale * Fraction(4, 5)).sample_one(entropy)


def cdf_of(scale: float) -> Callable[[int], float]:
    """The closed form in doubles, written down here."""
    return lambda x: (
        1 - math.exp(-(x + 1) / scale) / (1 + math.exp(-1 / scale))
        if x >= 0
        else math.exp(x / scale) / (1 + math.exp(-1 / scale))
    )


def follows_its_law(noise: DiscreteLaplace, draws: list[int]) -> None:
    """Fails unless the draws are from the stated law; sure to notice a scale that is 20% off."""
    assert_follows(draws, cdf_of(float(noise.scale)), notices=cdf_of(float(noise.scale) * 1.2))


SOURCES = [pytest.param(SYSTEM, id="system"), pytest.param(Replay(2024), id="replay")]


@pytest.mark.parametrize("entropy", SOURCES)
@pytest.mark.parametrize("scale", ["2", "20/3", str(2**52)])
def test_laplace_draws_follow_the_stated_law(scale: str, entropy: Entropy) -> None:
    noise = DiscreteLaplace(scale)
    follows_its_law(noise, noise.sample(50_000, entropy))


@pytest.mark.parametrize("entropy", SOURCES)
@pytest.mark.parametrize("broken", [zero_counted_twice, wide_by_a_fifth, narrow_by_a_fifth])
def test_the_law_notices_a_broken_sampler(broken: Callable[..., int], entropy: Entropy) -> None:
    noise = DiscreteLaplace(2)
    with pytest.raises(AssertionError, match="from the stated law"):
        follows_its_law(noise, [broken(noise, entropy) for _ in range(50_000)])


def test_a_tiny_scale_draws_zeros() -> None:
    assert set(DiscreteLaplace("1e-3").sample(1000)) == {0}


def test_draws_repeat_under_replay_and_not_under_the_system() -> None:
    noise = DiscreteLaplace(10**9)
    assert noise.sample(20, Replay(1)) == noise.sample(20, Replay(1))
    assert noise.sample(20) != noise.sample(20)
    assert noise.sample(0) == []
