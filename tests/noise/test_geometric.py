# SPDX-License-Identifier: Apache-2.0
"""Geometric: what is drawn is what is stated, and what is stated is outward."""

import math
from fractions import Fraction

import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import geom

from sfumato.errors import InvalidNumber
from sfumato.noise import SYSTEM, Entropy, Geometric, geometric
from sfumato.testing import Replay, assert_counts_agree
from tests.noise import tallies
from tests.noise.truth import PRECISION, ball, is_outward

SCALES = [
    Fraction(text)
    for text in ("1/1000", "1/50", "1/3", "1", "5/2", "100", "123456.789", str(2**52), "1e30")
]
ANY_SCALE = st.fractions(min_value=Fraction(1, 100), max_value=10**9, max_denominator=10**6)


class GeometricTruth:
    """The law by its closed forms, in 400 bits."""

    def __init__(self, scale: Fraction) -> None:
        self.scale = scale

    def above(self, x: int) -> arb:
        """P(X > x) = g^(x+1)."""
        with ctx.workprec(PRECISION):
            return (-ball(max(x + 1, 0) / self.scale)).exp()

    def pmf(self, x: int) -> arb:
        with ctx.workprec(PRECISION):
            return self.above(x - 1) * (1 - self.above(0)) if x >= 0 else arb(0)

    def variance(self) -> arb:
        """g / (1 - g)^2."""
        with ctx.workprec(PRECISION):
            return self.above(0) / (1 - self.above(0)) ** 2


def around(scale: Fraction) -> list[int]:
    """Integers where a law of this scale is worth asking."""
    far = [int(scale * factor) for factor in (Fraction(1, 2), 1, 3, 20, 100)]
    return sorted({-1, -2, 0, 1, 2, 7, *far, -far[0] - 1})


def is_stated_outward(noise: Geometric, x: int) -> bool:
    """Whether everything stated about ``x`` holds the truth."""
    truth = GeometricTruth(noise.scale)
    with ctx.workprec(PRECISION):
        below = 1 - truth.above(x)
    pmf, cdf, above, spread = noise.pmf(x), noise.cdf(x), noise.above(x), noise.variance
    return (
        is_outward(pmf.lower, truth.pmf(x), pmf.upper, truth.above(0) if x == 0 else None)
        and is_outward(cdf.lower, below, cdf.upper, truth.above(x))
        and is_outward(above.lower, truth.above(x), above.upper, below)
        and noise.tail(x) == above
        and is_outward(spread.lower, truth.variance(), spread.upper)
    )


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_geometric_statements_are_outward_bounds(scale: Fraction) -> None:
    noise = Geometric(scale)
    assert all(is_stated_outward(noise, x) for x in around(scale))


@given(ANY_SCALE, st.integers(-5, 10**6))
@settings(deadline=None)
def test_geometric_statements_are_outward_bounds_of_any_scale(scale: Fraction, x: int) -> None:
    assert is_stated_outward(Geometric(scale), min(x, int(600 * scale)))


@given(ANY_SCALE, st.integers(-3, 30))
@settings(deadline=None)
def test_geometric_statements_are_tight(scale: Fraction, x: int) -> None:
    noise = Geometric(scale)
    for stated in (noise.pmf(x), noise.cdf(x), noise.above(x), noise.variance):
        assert stated.width <= 4e-16 * stated.upper + 5e-324


def test_the_bounds_notice_a_statement_rounded_to_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    nearest = geometric.Bracket
    monkeypatch.setattr(
        geometric, "bracket", lambda lower, upper: nearest(float(lower), float(upper))
    )
    assert not all(is_stated_outward(Geometric(3), x) for x in range(9))


@pytest.mark.parametrize("scale", [0.2, 1.0, 2.5, 400.0])
def test_statements_agree_with_scipy(scale: float) -> None:
    noise, p = Geometric(scale), -math.expm1(-1 / scale)
    for x in (0, 1, 2, 25):
        assert noise.pmf(x).upper == pytest.approx(geom.pmf(x + 1, p), rel=1e-9)
        assert noise.cdf(x).upper == pytest.approx(geom.cdf(x + 1, p), rel=1e-9)
    assert noise.variance.upper == pytest.approx(geom.var(p), rel=1e-9)


@pytest.mark.parametrize("confidence", ["0.5", "0.95", "0.999", "0.999999999999"])
@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_half_width_is_the_smallest_that_covers(scale: Fraction, confidence: str) -> None:
    noise = Geometric(scale)
    with ctx.workprec(PRECISION):
        bound = -ball(1 - Fraction(confidence)).log() * ball(scale) - 1
    least = max(math.ceil(Fraction(bound.mid().str(60, radius=False))), 0)
    # a float statement can only see 2^-53 of the scale
    assert least <= noise.half_width(confidence) <= least + int(scale / 2**50)
    # the quantile asks the same of the cdf, a float that sees 2^-53 of what is left
    assert (
        least
        <= noise.quantile(confidence)
        <= least + 1 + int(scale / 2**52 / (1 - Fraction(confidence)))
    )


@pytest.mark.parametrize("probability", [0, 1, "1.5", -1, float("nan"), "0.9999999999999999"])
def test_a_probability_outside_the_open_unit_is_refused(probability: object) -> None:
    with pytest.raises(InvalidNumber):
        Geometric(1).quantile(probability)
    with pytest.raises(InvalidNumber):
        Geometric(1).half_width(probability)


# ---------------------------------------------------------------- draws

EVERY = ["1/3", "1", "20/3", "16", "100", "1e6", str(2**40), str(2**52)]
DRAWN = [*((each, SYSTEM) for each in EVERY), ("16", Replay(2024))]


@pytest.mark.parametrize(("scale", "entropy"), DRAWN)
def test_geometric_draws_follow_the_stated_law(scale: str, entropy: Entropy) -> None:
    noise, width = Geometric(scale), float(Fraction(scale))
    # sure to notice a scale that is 1% off
    case = tallies.case(tallies.geometric, width, 1.01 * width)
    tallies.assert_draws_follow(case, lambda count: noise.sample(count, entropy), 8_000_000)


@pytest.mark.parametrize("scale", ["1e5", str(2**40), str(2**52)])
def test_the_low_bits_follow_the_stated_law(scale: str) -> None:
    law = tallies.low_bits_of_geometric(float(Fraction(scale)))
    tallies.assert_low_bits_follow(law, Geometric(scale).sample, 8_000_000)


def test_draws_agree_with_the_plain_sampler() -> None:
    case = tallies.case(tallies.geometric, 20 / 3, 20 / 3 * 1.15)
    slow = tallies.counted(
        case.count, tallies.plainly(geometric.plain.geometric, Fraction(20, 3)), 100_000
    )
    fast = tallies.counted(case.count, Geometric("20/3").sample, 8_000_000)
    # sure to notice scales that are 15% apart
    assert_counts_agree(fast, slow, notices=(case.cells(case.right), case.cells(case.wrong)))


@pytest.mark.parametrize("broken", ["101/10", "99/10"])
def test_the_law_notices_a_scale_that_is_one_per_cent_off(broken: str) -> None:
    case = tallies.case(tallies.geometric, 10.0, 10.1)
    with pytest.raises(AssertionError, match="counts are"):
        tallies.assert_draws_follow(case, Geometric(broken).sample, 8_000_000)


def test_a_tiny_scale_draws_zeros() -> None:
    assert not Geometric("1e-3").sample(1000).any()
