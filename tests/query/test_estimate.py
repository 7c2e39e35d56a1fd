# SPDX-License-Identifier: Apache-2.0
"""Numbers and intervals of expressions: range arithmetic, and coverage of ratios."""

from fractions import Fraction
from functools import lru_cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.metadata.column import Column, Integer, Real
from sfumato.noise import DiscreteGaussian, DiscreteLaplace, Noise
from sfumato.plan.aggregate import CountRows, Mean, Sum
from sfumato.plan.scalar import Arithmetic, Constant, Estimate, IsNull, Key, Operation, Scalar
from sfumato.query.estimate import Range, Released, range_of, units_of, value_of
from sfumato.testing import assert_at_most

TRIALS = 10_000
MISS = Fraction(1, 20)
ONE, ZERO = Fraction(1), Fraction(0)


def count(value: int, noise: Noise, unit: Fraction = ONE) -> Released:
    """A released number of one group."""
    return Released("n", noise, unit, ZERO, ZERO, ((value,),))


def mean(u: int, v: int, noise: Noise, lower: object = 0, span: object = 1) -> Released:
    """A released mean of one group."""
    return Released("m", noise, ONE, Fraction(lower), Fraction(span), ((u, v),))


# --- range arithmetic --------------------------------------------------------------------------

fractions = st.fractions(-50, 50, max_denominator=20)
ranges = st.tuples(fractions, fractions).map(lambda pair: (min(pair), max(pair)))


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> Scalar:
    """Arithmetic over three estimates and constants."""
    if depth == 0 or draw(st.booleans()):
        return draw(st.builds(Estimate, st.integers(0, 2)) | st.builds(Constant, fractions))
    return Arithmetic(draw(st.sampled_from(Operation)), draw(expressions(depth - 1)), draw(expressions(depth - 1)))


class Fixed(Released):
    """A release whose interval is given."""

    __slots__ = ()

    def interval(self, group: int, miss: Fraction) -> Range:
        return self.lower, self.lower + self.span


def within(found: Range, place: Fraction) -> Fraction:
    """A point of an interval, at a place between 0 and 1."""
    return found[0] + (found[1] - found[0]) * place


@given(expressions(), st.lists(ranges, min_size=3, max_size=3), st.lists(st.fractions(0, 1), min_size=3, max_size=3))
def test_the_range_holds_the_image_of_every_point(
    expression: Scalar, intervals: list[Range], places: list[Fraction]
) -> None:
    noise = DiscreteLaplace(1)
    parts = [Fixed("x", noise, ONE, low, high - low, ((0,),)) for low, high in intervals]
    found = range_of(expression, parts, 0, MISS)
    points = [
        Released("x", noise, within(interval, place), ZERO, ZERO, ((1,),))
        for interval, place in zip(intervals, places, strict=True)
    ]
    value = value_of(expression, points, 0, ())
    if found is None:
        return
    assert isinstance(value, int | Fraction)
    assert found[0] <= value <= found[1]


@pytest.mark.parametrize("divisor", [(-1, 1), (0, 1), (-1, 0), (0, 0)])
def test_a_divisor_that_may_be_zero_has_no_interval(divisor: tuple[int, int]) -> None:
    low, high = (Fraction(each) for each in divisor)
    parts = [
        Fixed("x", DiscreteLaplace(1), ONE, ONE, ONE, ((0,),)),
        Fixed("y", DiscreteLaplace(1), ONE, low, high - low, ()),
    ]
    assert range_of(Arithmetic(Operation.DIVIDE, Estimate(0), Estimate(1)), parts, 0, MISS) is None


@pytest.mark.parametrize("expression", [Key(0), Constant(3), IsNull(Estimate(0)), Constant("text")])
def test_what_is_no_released_number_has_no_interval(expression: Scalar) -> None:
    assert range_of(expression, [count(1, DiscreteLaplace(1))], 0, MISS) is None


def test_the_miss_is_shared_among_different_releases_and_not_among_uses_of_one() -> None:
    noise = DiscreteLaplace(5)
    parts = [count(100, noise), count(50, noise)]
    alone = noise.half_width(Fraction(95, 100))
    shared = noise.half_width(1 - MISS / 2)
    assert range_of(Estimate(0), parts, 0, MISS) == (100 - alone, 100 + alone)
    twice = Arithmetic(Operation.ADD, Estimate(0), Estimate(0))
    assert range_of(twice, parts, 0, MISS) == (200 - 2 * alone, 200 + 2 * alone)
    both = Arithmetic(Operation.SUBTRACT, Estimate(0), Estimate(1))
    assert range_of(both, parts, 0, MISS) == (50 - 2 * shared, 50 + 2 * shared)


# --- points ------------------------------------------------------------------------------------


@given(st.integers(-100, 100), st.integers(-100, 100))
def test_a_mean_is_in_its_declared_range(u: int, v: int) -> None:
    part = mean(u, v, DiscreteLaplace(1), lower=10, span=90)
    assert 10 <= part.point(0) <= 100
    assert part.supported(0) == (u + v > 0)
    if u + v <= 0:
        assert part.point(0) == 55


def test_units_turn_integers_into_values() -> None:
    age, hours = Column("age", Integer(17, 90)), Column("hours", Real(2, 10, step="0.25"))
    assert units_of(CountRows(), 8) == (Fraction(1, 8), 0, 0)
    assert units_of(Sum(hours), 2) == (Fraction(1, 8), 0, 0)
    assert units_of(Mean(age), 4) == (Fraction(1, 4), 17, 73)
    assert units_of(Mean(hours), 1) == (1, 2, 8)


def test_a_division_by_zero_is_null() -> None:
    assert (
        value_of(Arithmetic(Operation.DIVIDE, Constant(1), Estimate(0)), [count(0, DiscreteLaplace(1))], 0, ()) is None
    )


# --- coverage (RULES 23) -----------------------------------------------------------------------


@lru_cache(maxsize=64)
def around_zero(noise: Noise, miss: Fraction) -> Range:
    """The interval of a released zero."""
    return count(0, noise).interval(0, miss)


class Moved(Released):
    """A release whose interval is that of zero, moved: worked out once."""

    __slots__ = ()

    def interval(self, group: int, miss: Fraction) -> Range:
        low, high = around_zero(self.noise, miss)
        return low + self.values[group][0], high + self.values[group][0]


@pytest.mark.parametrize("make", [DiscreteLaplace, DiscreteGaussian])
def test_the_interval_of_a_number_moves_with_it(make: type) -> None:
    for value in (-7, 0, 12345):
        arguments = ("n", make(4), ONE, ZERO, ZERO, ((value,),))
        assert Moved(*arguments).interval(0, MISS) == Released(*arguments).interval(0, MISS)


RATIO = Arithmetic(Operation.DIVIDE, Estimate(0), Estimate(1))


def missed(expression: Scalar, truth: list[int], noises: list[Noise], exact: Fraction, shrink: Fraction = ONE) -> int:
    """How many of 10,000 releases have an interval without the exact value."""
    drawn = [noise.sample(TRIALS) for noise in noises]
    found = 0
    for draws in zip(*drawn, strict=True):
        parts = [
            Moved("n", noise, ONE, ZERO, ZERO, ((t + x,),)) for t, x, noise in zip(truth, draws, noises, strict=True)
        ]
        interval = range_of(expression, parts, 0, MISS)
        if interval is None:
            continue
        middle, half = (interval[0] + interval[1]) / 2, (interval[1] - interval[0]) / 2 * shrink
        found += not middle - half <= exact <= middle + half
    return found


@pytest.mark.parametrize("noise", [DiscreteLaplace(4), DiscreteGaussian(4), DiscreteLaplace("0.5")], ids=str)
@pytest.mark.parametrize("truth", [0, 1000])
def test_a_count_covers_at_least_as_often_as_stated(noise: Noise, truth: int) -> None:
    assert_at_most(missed(Estimate(0), [truth], [noise], Fraction(truth)), TRIALS, 0.05, notices=0.115)


@pytest.mark.parametrize("make", [DiscreteLaplace, DiscreteGaussian])
@pytest.mark.parametrize(("total", "size"), [(2000, 100), (0, 3), (-500, 20), (50, 1)])
def test_an_expression_of_releases_covers_at_least_as_often_as_stated(make: type, total: int, size: int) -> None:
    noises = [make(60), make(2)]
    assert_at_most(missed(RATIO, [total, size], noises, Fraction(total, size)), TRIALS, 0.05, notices=0.115)


@pytest.mark.parametrize("make", [DiscreteLaplace, DiscreteGaussian])
def test_an_interval_half_as_wide_is_caught(make: type) -> None:
    noises, half = [make(60), make(2)], Fraction(1, 2)
    for expression, truth, exact in (
        (Estimate(0), [1000], Fraction(1000)),
        (RATIO, [200, 1000], Fraction(1, 5)),
    ):
        failures = missed(expression, truth, noises[: len(truth)], exact, half)
        with pytest.raises(AssertionError, match=r"failed; 0\.05 was stated"):
            assert_at_most(failures, TRIALS, 0.05, notices=0.115)
