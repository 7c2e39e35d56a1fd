# SPDX-License-Identifier: Apache-2.0
"""The weight of a window, against sums and integrals in balls of 400 bits."""

from dataclasses import dataclass
from fractions import Fraction

import pytest
from flint import arb, ctx, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.noise import window
from sfumato.noise.window import ExponentialWeight, GaussianWeight, Weight, moments, shortfall

PRECISION = 2500
SCALES = st.fractions(min_value=Fraction(1, 20), max_value=400, max_denominator=1000)
WINDOWS = st.tuples(st.integers(0, 1500), st.integers(0, 300))


def ball(number: Fraction | int) -> arb:
    """A ball that holds ``number``; the weights tested here go down to 2^-2000."""
    return arb(fmpq(Fraction(number).numerator, Fraction(number).denominator))


def added(weight: Weight, first: int, last: int, power: int = 0) -> arb:
    """The sum of x^power w(x), term by term."""
    with ctx.workprec(PRECISION):
        return sum(
            (x**power * (-ball(weight.energy(x))).exp() for x in range(first, last + 1)), arb(0)
        )


def holds(bounds: tuple[Fraction, Fraction], truth: arb) -> bool:
    """Whether the bounds hold the truth for certain."""
    with ctx.workprec(PRECISION):
        return bool(ball(bounds[0]) <= truth) and bool(truth <= ball(bounds[1]))


def is_tight(bounds: tuple[Fraction, Fraction], relative: float) -> bool:
    """Whether the bounds are as close as stated."""
    return bounds[1] - bounds[0] <= Fraction(relative) * bounds[1]


@given(SCALES, WINDOWS)
@settings(deadline=None)
def test_an_exponential_window_holds_its_sum(scale: Fraction, place: tuple[int, int]) -> None:
    first, last = place[0], place[0] + place[1]
    weight = ExponentialWeight(scale)
    bounds = weight.mass(first, last)
    assert holds(bounds, added(weight, first, last))
    assert is_tight(bounds, 1e-40) or weight.energy(first) > 9000


@given(SCALES, WINDOWS)
@settings(deadline=None)
def test_a_gaussian_window_holds_its_sum(sigma: Fraction, place: tuple[int, int]) -> None:
    first, last = place[0], place[0] + place[1]
    weight = GaussianWeight(sigma * sigma, last + 5)
    bounds = weight.mass(first, last)
    assert holds(bounds, added(weight, first, last))
    # a step is at most a 64th of sigma: e^(-1/2 (1/64)^2) at the worst
    assert is_tight(bounds, 1.3e-4) or weight.energy(first) > 800


def test_a_broken_window_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    weight = GaussianWeight(Fraction(300**2), 1000)
    truth = added(weight, 5, 900)
    assert holds(weight.mass(5, 900), truth)
    window._steps.cache_clear()
    # without the factor for the curvature within a step the lower bound is an upper one
    honest = window.exp_down
    monkeypatch.setattr(
        window, "exp_down", lambda x: Fraction(1) if x == -weight.energy(3) else honest(x)
    )
    assert not holds(weight.mass(5, 900), truth)
    window._steps.cache_clear()


@pytest.mark.parametrize(
    ("first", "last"), [(0, 10**7), (10**6, 3 * 10**6), (0, 30), (5 * 10**6, 5 * 10**6 + 7)]
)
def test_a_wide_gaussian_window_holds_its_integral(first: int, last: int) -> None:
    sigma = 10**6
    bounds = GaussianWeight(Fraction(sigma**2), 10**7).mass(first, last)
    with ctx.workprec(PRECISION):
        root = ball(2).sqrt() * sigma
        ends = [
            (ball(Fraction(2 * end, 2)) + side) / root
            for end, side in ((first, -ball(Fraction(1, 2))), (last, ball(Fraction(1, 2))))
        ]
        integral = (ends[0].erfc() - ends[1].erfc()) * (arb.pi() / 2).sqrt() * sigma
        # the midpoint rule errs by 1/24 of the second derivative, below (x^2/sigma^2 + 1)/sigma^2
        # of the value
        off = 101 / ball(24 * sigma**2) * integral
        assert bool(ball(bounds[0]) <= integral + off)
        assert bool(integral - off <= ball(bounds[1]))
    assert is_tight(bounds, 1.3e-4)


def test_a_window_beyond_every_step_is_still_bounded() -> None:
    weight = GaussianWeight(Fraction(10**12), 10**9)
    low, high = weight.mass(39 * 10**6, 10**9)
    assert 0 < low < high < Fraction(1, 10**320)
    low, high = weight.mass(50 * 10**6, 10**9)
    assert 0 <= low < high < Fraction(1, 10**530)


@pytest.mark.parametrize(
    "weight", [ExponentialWeight(Fraction(7)), GaussianWeight(Fraction(49), 100)]
)
def test_an_empty_window_weighs_nothing(weight: Weight) -> None:
    assert weight.mass(5, 4) == (0, 0)
    assert weight.mass(5, -3) == (0, 0)


@given(SCALES, st.integers(0, 300), st.booleans())
@settings(deadline=None)
def test_moments_of_few_integers_are_exact_to_many_digits(
    scale: Fraction, last: int, exponential: bool
) -> None:
    weight = ExponentialWeight(scale) if exponential else GaussianWeight(scale * scale, last)
    one, two = moments(weight, last)
    assert holds(one, added(weight, 0, last, 1))
    assert holds(two, added(weight, 0, last, 2))
    assert last == 0 or is_tight(two, 1e-19)


@pytest.mark.parametrize("scale", [3, 50, 400])
@pytest.mark.parametrize("last", [1500, 6000])
@pytest.mark.parametrize("exponential", [True, False])
def test_moments_of_many_integers_hold_their_sums(scale: int, last: int, exponential: bool) -> None:
    weight = (
        ExponentialWeight(Fraction(scale))
        if exponential
        else GaussianWeight(Fraction(scale * scale), last)
    )
    one, two = moments(weight, last)
    assert holds(one, added(weight, 0, last, 1))
    assert holds(two, added(weight, 0, last, 2))
    assert is_tight(one, 3e-3)
    assert is_tight(two, 3e-3)


@dataclass(frozen=True)
class Flattened:
    """A weight that is wrongly said to change nowhere."""

    weight: Weight
    panel: int = 25

    def energy(self, x: int) -> Fraction:
        return Fraction(0)

    def mass(self, first: int, last: int) -> tuple[Fraction, Fraction]:
        return self.weight.mass(first, last)


def test_a_moment_that_ignores_the_slope_is_noticed() -> None:
    weight = GaussianWeight(Fraction(400**2), 3000)
    assert holds(moments(weight, 3000)[0], added(weight, 0, 3000, 1))
    assert not holds(moments(Flattened(weight), 3000)[0], added(weight, 0, 3000, 1))


@given(
    st.fractions(min_value=0, max_value=20)
    | st.fractions(min_value=0, max_value=Fraction(1, 10**19))
)
@settings(deadline=None)
def test_a_shortfall_holds_its_value(rate: Fraction) -> None:
    with ctx.workprec(PRECISION):
        truth = -(-ball(rate)).expm1()
    bounds = shortfall(rate)
    assert holds(bounds, truth)
    assert is_tight(bounds, 1e-19)


@pytest.mark.parametrize("bits", [10, 82, 120])
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(7), Fraction(22, 7), Fraction(10**30)])
def test_a_rate_is_rounded_down(scale: Fraction, bits: int) -> None:
    assert (
        ExponentialWeight(scale).rate(bits)
        <= 2**bits / scale
        < ExponentialWeight(scale).rate(bits) + 1
    )
    found = GaussianWeight(scale, 1).rate(bits)
    assert found**2 <= 4**bits / scale < (found + 1) ** 2


def test_what_is_narrower_than_a_scale() -> None:
    assert ExponentialWeight(Fraction(5, 2)).exceeds(2)
    assert not ExponentialWeight(Fraction(5, 2)).exceeds(3)
    assert not ExponentialWeight(Fraction(3)).exceeds(3)
    assert GaussianWeight(Fraction(10), 9).exceeds(3)
    assert not GaussianWeight(Fraction(9), 9).exceeds(3)
