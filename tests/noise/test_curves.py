# SPDX-License-Identifier: Apache-2.0
"""The two curves give the engine what its proof asks: rises, bounds and halvings, worked out
exactly.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.noise import curves
from sfumato.noise.curves import Exponential, LinearRise, Parabola, QuadraticRise
from sfumato.noise.decay import ERROR
from sfumato.noise.rejection_sampler import Rise
from tests.contracts.effort import examples
from tests.noise.columns import LAWS, Curve, truth

# how finely a width is cut: as ``sampler`` does it, and otherwise
FINENESS = [8, 20, 110, 150, 400]
CURVES = [curve for curve, _ in LAWS]
WIDE = [curve for curve in CURVES if curve.width >= 16]


def energy(curve: Curve, x: int) -> Fraction:
    """-ln f(x), by its formula."""
    return (
        Fraction(abs(x)) / curve.width
        if isinstance(curve, Exponential)
        else Fraction(x * x) / (2 * curve.sigma_squared)
    )


def too_low(curve: Curve, rise: Rise, distance: int, nearest: int) -> Fraction:
    """By how much the rise is too low, in units of 2^-31."""
    return 2**31 * (energy(curve, nearest + distance) - energy(curve, nearest)) - rise(
        distance, nearest
    )


def corners(curve: Curve, fineness: int) -> tuple[Rise, list[tuple[int, int]]]:
    """A rise, and the (distance, nearest) where it is likeliest to fail: first and last ones, and
    powers of two.
    """
    shift = curve.shift(fineness)
    blocks = curve.blocks(shift)
    size = 1 << shift
    distances = sorted(
        {1, size - 1, size, size // 2 + 1, *(min(2**k - 1, size) for k in range(1, 53))}
    )
    blocks_asked = sorted({0, 1, 2, blocks // 3, blocks // 2, blocks - 1})
    return curve.rise(shift, blocks << shift), [
        (d, block << shift) for d in distances for block in blocks_asked
    ]


def is_within_sixteen(curve: Curve, fineness: int) -> bool:
    """Whether the rise is never too high, at most 16 too low, and below 2^31."""
    rise, points = corners(curve, fineness)
    return all(0 <= too_low(curve, rise, *point) <= 16 and rise(*point) < 2**31 for point in points)


@pytest.mark.parametrize("curve", WIDE, ids=str)
def test_a_rise_is_never_too_high_and_at_most_sixteen_too_low(curve: Curve) -> None:
    assert all(is_within_sixteen(curve, fineness) for fineness in FINENESS)


@given(
    st.fractions(min_value=8, max_value=2**52), st.booleans(), st.sampled_from(FINENESS), st.data()
)
@settings(deadline=None, max_examples=examples(2))
def test_any_rise_is_never_too_high_and_at_most_sixteen_too_low(
    width: Fraction, even: bool, fineness: int, data: st.DataObject
) -> None:
    curve = Exponential(width, even) if data.draw(st.booleans()) else Parabola(width * width)
    shift = curve.shift(fineness)
    rise = curve.rise(shift, curve.blocks(shift) << shift)
    distance = data.draw(st.integers(0, 1 << shift))
    nearest = data.draw(st.integers(0, curve.blocks(shift) - 1)) << shift
    assert 0 <= too_low(curve, rise, distance, nearest) <= 16


@pytest.mark.parametrize("curve", WIDE, ids=str)
def test_the_rise_of_many_is_that_of_each(curve: Curve) -> None:
    rise, points = corners(curve, 8)
    many = rise(
        np.array([distance for distance, _ in points]), np.array([nearest for _, nearest in points])
    )
    assert many.dtype == np.int64
    assert many.tolist() == [rise(*point) for point in points]


LINEAR, QUADRATIC = Exponential.rise, Parabola.rise


def linear(curve: Curve, shift: int, farthest: int) -> LinearRise:
    """A broken rise: the factor is one unit of the result too high."""
    honest = LINEAR(curve, shift, farthest)
    return LinearRise(honest.dropped, honest.factor + (1 << 31))


def quadratic(curve: Curve, shift: int, farthest: int) -> QuadraticRise:
    """A broken rise: the product is cut by a bit more than the factor makes up for."""
    honest = QUADRATIC(curve, shift, farthest)
    return QuadraticRise(honest.first, honest.second, honest.third + 1, honest.factor)


BROKEN = [
    (Exponential, linear, CURVES[-3]),
    (Exponential, linear, CURVES[15]),
    (Parabola, quadratic, CURVES[-1]),
]


@pytest.mark.parametrize(("kind", "broken", "curve"), BROKEN)
def test_the_sixteen_notice_a_broken_rise(
    monkeypatch: pytest.MonkeyPatch, kind: type, broken: Callable[..., Rise], curve: Curve
) -> None:
    assert is_within_sixteen(curve, 8)
    monkeypatch.setattr(kind, "rise", broken)
    assert not is_within_sixteen(curve, 8)


def ends_fit(curve: Curve, fineness: int) -> bool:
    """Whether the heights at the ends of the blocks are within the error of the curve, the far ones
    never too high.
    """
    shift = curve.shift(fineness)
    blocks = curve.blocks(shift)
    near, far = curve.ends(shift, blocks)
    first = -blocks if curve.two_sided else 0
    f, last = truth(curve), (1 << shift) - 1
    if not len(near) == len(far) == blocks - first:
        return False
    with ctx.workprec(100):
        for block, high, low in zip(range(first, blocks), near.tolist(), far.tolist(), strict=True):
            lowest, highest = block << shift, (block << shift) + last
            inner, outer = (lowest, highest) if block >= 0 else (highest, lowest)
            corner = inner if block >= 0 or shift == 0 else inner + 1
            fits = abs(high - 2**31 * f(corner)) <= ERROR and high + ERROR >= 2**31 * f(inner)
            if not (fits and low - ERROR <= 2**31 * f(outer)):
                return False
    return True


@pytest.mark.parametrize("curve", CURVES, ids=str)
def test_the_ends_of_the_blocks_are_within_the_error_of_the_curve(curve: Curve) -> None:
    assert ends_fit(curve, 8) and ends_fit(curve, 110)


def test_the_ends_notice_blocks_below_zero_that_mirror_themselves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def mirrored(
        heights: np.ndarray, shift: int, *, two_sided: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        return np.concatenate((heights[:-1][::-1], heights[:-1])), np.concatenate(
            (heights[1:][::-1], heights[1:])
        )

    monkeypatch.setattr(curves, "_ends", mirrored)
    assert not ends_fit(Exponential(Fraction(3), True), 8)
    assert not ends_fit(Parabola(Fraction(9)), 8)


@given(
    st.sampled_from(CURVES),
    st.integers(-5, 5),
    st.integers(0, 200),
    st.fractions(min_value=-20, max_value=20),
)
@settings(deadline=None, max_examples=examples(2))
def test_the_curve_lies_between_its_bounds(
    curve: Curve, off: int, precision: int, widths: Fraction
) -> None:
    x = int(widths * curve.width) + off
    lower, upper = curve.bounds(x, precision)
    with ctx.workprec(400):
        value = arb(2) ** precision * truth(curve)(x)
        assert bool(arb(lower) <= value) and bool(value <= arb(upper)) and upper - lower <= 2


def halves(curve: Curve, stretch: int, x: int) -> bool:
    """Whether the energy grows by ln 2 over a stretch, from x and from much further out.

    Convex, so for all between.
    """
    with ctx.workprec(200):
        least = arb(2).log()
        return all(
            bool(arb(gain.numerator) / gain.denominator >= least)
            for start in (x, x + 1, x + stretch, 100 * x + 7)
            for gain in [energy(curve, start + stretch) - energy(curve, start)]
        )


@pytest.mark.parametrize("curve", CURVES, ids=str)
def test_beyond_the_columns_the_curve_halves_with_each_stretch(curve: Curve) -> None:
    for fineness in (2, 8, 110):
        shift = curve.shift(fineness)
        outside = curve.blocks(shift) << shift
        assert halves(curve, curve.halving(outside), outside)


def test_halvings_notice_a_stretch_of_half_a_width() -> None:
    curve = Exponential(Fraction(1000), True)
    assert halves(curve, 1000, 5000)
    assert not halves(curve, 500, 5000)
    assert not halves(Parabola(Fraction(10**6)), 100, 5000)


@pytest.mark.parametrize("curve", CURVES, ids=str)
def test_energies_are_floors(curve: Curve) -> None:
    step = 1 << curve.shift(8)
    found = curve.energies(step, 60)
    assert found == [min(int(2**42 * energy(curve, j * step)), 64 << 42) for j in range(60)]


def test_equal_curves_are_one_key() -> None:
    assert hash(Parabola(Fraction(4))) == hash(Parabola(Fraction(8, 2)))
    assert Exponential(Fraction(4), True) != Exponential(Fraction(4), False)
