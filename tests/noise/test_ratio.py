# SPDX-License-Identifier: Apache-2.0
"""Laws by their ratios: walks against exact fractions."""

from fractions import Fraction
from math import comb, factorial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.noise import ratio
from sfumato.noise.decay import ERROR
from sfumato.noise.ratio import BinomialRatio, PoissonRatio, RatioCurve, stated

BIASES = st.fractions(Fraction(1, 50), Fraction(49, 50), max_denominator=100)
MEANS = st.fractions(Fraction(1, 100), 60, max_denominator=100)
RATIOS = st.builds(BinomialRatio, st.integers(1, 200), BIASES) | st.builds(PoissonRatio, MEANS)


def weight(law: ratio.Ratio, x: int) -> Fraction:
    """P(x) up to a constant, from its definition."""
    if isinstance(law, BinomialRatio):
        odds = law.probability / (1 - law.probability)
        return comb(law.trials, x) * odds**x if 0 <= x <= law.trials else Fraction(0)
    assert isinstance(law, PoissonRatio)
    return law.mean**x / factorial(x) if x >= 0 else Fraction(0)


def curve_at(law: ratio.Ratio, x: int) -> Fraction:
    return weight(law, law.mode + x) / weight(law, law.mode)


@given(RATIOS)
def test_the_mode_is_where_the_law_is_largest(law: ratio.Ratio) -> None:
    assert all(curve_at(law, x) <= 1 for x in range(-5, 6))


@given(RATIOS, st.integers(-80, 80), st.integers(0, 200))
@settings(deadline=None)
def test_bounds_hold_the_curve(law: ratio.Ratio, x: int, precision: int) -> None:
    lower, upper = RatioCurve(law).bounds(x, precision)
    assert lower <= curve_at(law, x) * 2**precision <= upper
    assert upper - lower <= 2


@given(RATIOS)
@settings(deadline=None)
def test_heights_are_those_of_the_curve(law: ratio.Ratio) -> None:
    curve = RatioCurve(law)
    blocks = curve.blocks(0)
    near, far = curve.ends(0, blocks)
    assert len(near) == 2 * blocks and (near == far).all()
    for place, x in enumerate(range(-blocks, blocks)):
        assert abs(near[place] - curve_at(law, x) * 2**31) <= ERROR


@given(RATIOS, st.integers(1, 40))
@settings(deadline=None)
def test_the_curve_halves_as_promised(law: ratio.Ratio, x: int) -> None:
    stretch = RatioCurve(law).halving(x)
    for k in range(1, 4):
        for z, further in ((x, x + k * stretch), (-x, -x - k * stretch)):
            assert curve_at(law, further) <= curve_at(law, z) / 2**k


@given(RATIOS, st.integers(-50, 50))
@settings(deadline=None)
def test_the_stated_law_holds_the_exact_one(law: ratio.Ratio, x: int) -> None:
    table, place = stated(law), law.mode + x
    support = range(law.trials + 1) if isinstance(law, BinomialRatio) else range(600)
    total = sum(weight(law, y) for y in support)
    # what a Poisson has beyond 600 is far below the last place
    loose = 1 - Fraction(1, 10**60)
    here = weight(law, place) / total
    above = sum((weight(law, y) for y in support if y >= place), Fraction(0)) / total
    assert (
        Fraction(table.probability(place).lower) * loose
        <= here
        <= Fraction(table.probability(place).upper)
    )
    assert (
        Fraction(table.at_least(place).lower) * loose
        <= above
        <= Fraction(table.at_least(place).upper)
    )


def test_the_walk_notices_a_ratio_upside_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        PoissonRatio,
        "up",
        lambda law, x: (law.mean.denominator * (x + 2), law.mean.denominator * (x + 3)),
    )
    law = PoissonRatio(Fraction(3))
    lower, upper = RatioCurve(law).bounds(2, 40)
    assert not lower <= curve_at(law, 2) * 2**40 <= upper


def test_pieces_add_up() -> None:
    assert ratio.pieces_for(Fraction(1)) == 1
    assert ratio.pieces_for(Fraction(2**22)) == 1
    assert ratio.pieces_for(Fraction(2**22) + 1) == 2
