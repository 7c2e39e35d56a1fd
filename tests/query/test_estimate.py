# SPDX-License-Identifier: Apache-2.0
"""Numbers and intervals of expressions: range arithmetic, and coverage of ratios."""

import math
import statistics
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.exact.rounding import sqrt_down
from sfumato.metadata.column import Column, Integer
from sfumato.noise import DiscreteGaussian, DiscreteLaplace, Noise
from sfumato.plan.aggregate import Variance
from sfumato.plan.reading import Kind, Reading
from sfumato.plan.scalar import (
    Arithmetic,
    Case,
    Compare,
    Comparison,
    Constant,
    Estimate,
    IsNull,
    Key,
    Operation,
    Scalar,
)
from sfumato.plan.statistic import Statistic
from sfumato.plan.value import Value
from sfumato.query.estimate import Range, Released
from sfumato.query.output_intervals import ranges_of, value_of
from sfumato.testing import assert_at_most
from tests.contracts.released import means, numbers, variances

TRIALS = 10_000
MISS = Fraction(1, 20)
ONE, ZERO = Fraction(1), Fraction(0)


def count(value: int, noise: Noise, unit: Fraction = ONE) -> Released:
    """A released number of one group."""
    return numbers([value], noise, unit)


def mean(u: int, v: int, noise: Noise, lower: object = 0, span: object = 1) -> Released:
    """A released mean of one group."""
    return means([(u, v)], noise, lower, span)


# --- range arithmetic --------------------------------------------------------------------------

fractions = st.fractions(-50, 50, max_denominator=20)
ranges = st.tuples(fractions, fractions).map(lambda pair: (min(pair), max(pair)))


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> Scalar:
    """Arithmetic over three estimates and constants."""
    if depth == 0 or draw(st.booleans()):
        return draw(st.builds(Estimate, st.integers(0, 2)) | st.builds(Constant, fractions))
    return Arithmetic(
        draw(st.sampled_from(Operation)), draw(expressions(depth - 1)), draw(expressions(depth - 1))
    )


class Fixed(Released):
    """A release whose interval is given."""

    __slots__ = ()

    def interval(
        self, row: int, miss: Fraction, statistic: Statistic = Statistic.VALUE, place: int = 0
    ) -> Range:
        return self.reading.lower, self.reading.lower + self.reading.span


def fixed(low: Fraction, high: Fraction) -> Fixed:
    """A release between two numbers."""
    return Fixed(
        "x", Reading(Kind.MEAN, ONE, low, high - low, high), DiscreteLaplace(1), ((0, 1),), (1,)
    )


def within(found: Range, place: Fraction) -> Fraction:
    """A point of an interval, at a place between 0 and 1."""
    return found[0] + (found[1] - found[0]) * place


@given(
    expressions(),
    st.lists(ranges, min_size=3, max_size=3),
    st.lists(st.fractions(0, 1), min_size=3, max_size=3),
)
def test_the_range_holds_the_image_of_every_point(
    expression: Scalar, intervals: list[Range], places: list[Fraction]
) -> None:
    parts = [fixed(low, high) for low, high in intervals]
    found = ranges_of(expression, parts, [0], MISS)[0].interval
    points = [
        count(1, DiscreteLaplace(1), within(interval, place))
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
    parts = [fixed(ONE, Fraction(2)), fixed(low, high)]
    assert (
        ranges_of(Arithmetic(Operation.DIVIDE, Estimate(0), Estimate(1)), parts, [0], MISS)[
            0
        ].interval
        is None
    )


@pytest.mark.parametrize("expression", [Key(0), Constant(3), IsNull(Estimate(0)), Constant("text")])
def test_what_is_no_released_number_has_no_interval(expression: Scalar) -> None:
    assert ranges_of(expression, [count(1, DiscreteLaplace(1))], [0], MISS)[0].interval is None


def test_the_miss_is_shared_among_different_releases_and_not_among_uses_of_one() -> None:
    noise = DiscreteLaplace(5)
    parts = [count(100, noise), count(50, noise)]
    alone = noise.half_width(Fraction(95, 100))
    shared = noise.half_width(1 - MISS / 2)
    assert ranges_of(Estimate(0), parts, [0], MISS)[0].interval == (100 - alone, 100 + alone)
    twice = Arithmetic(Operation.ADD, Estimate(0), Estimate(0))
    assert ranges_of(twice, parts, [0], MISS)[0].interval == (200 - 2 * alone, 200 + 2 * alone)
    both = Arithmetic(Operation.SUBTRACT, Estimate(0), Estimate(1))
    assert ranges_of(both, parts, [0], MISS)[0].interval == (50 - 2 * shared, 50 + 2 * shared)


# --- points ------------------------------------------------------------------------------------


@given(st.integers(-100, 100), st.integers(-100, 100))
def test_a_mean_is_in_its_declared_range(u: int, v: int) -> None:
    part = mean(u, v, DiscreteLaplace(1), lower=10, span=90)
    assert 10 <= part.point(0) <= 100
    if u + v <= 0:
        assert part.point(0) == 55


SPREADS = (
    Statistic.MEAN,
    Statistic.SUM,
    Statistic.VARIANCE,
    Statistic.DEVIATION,
    Statistic.VARIANCE_OF_SAMPLE,
)


@given(st.lists(st.integers(0, 4095), min_size=2, max_size=6), st.sampled_from(SPREADS))
def test_an_interval_holds_what_the_levels_of_a_variance_move(
    codes: list[int], statistic: Statistic
) -> None:
    assert held(codes, statistic)


def held(codes: list[int], statistic: Statistic) -> bool:
    """Whether the interval of coarse levels, without noise, holds the statistic of the codes."""
    income = Value.of(Column("income", Integer(0, 4095)))
    levels, top = [code // 4 for code in codes], 1024
    triple = (
        sum(u * u for u in levels),
        sum(2 * u * (top - u) for u in levels),
        sum((top - u) ** 2 for u in levels),
    )
    part = Released(
        "", Variance(income, 2**10).reading(1), DiscreteLaplace("0.01"), (triple,), (1,)
    )
    exact = {
        Statistic.MEAN: Fraction(sum(codes), len(codes)),
        Statistic.SUM: Fraction(sum(codes)),
        Statistic.VARIANCE: statistics.pvariance(map(Fraction, codes)),
        Statistic.DEVIATION: sqrt_down(statistics.pvariance(map(Fraction, codes)))
        if len(set(codes)) > 1
        else Fraction(0),
        Statistic.VARIANCE_OF_SAMPLE: statistics.variance(map(Fraction, codes)),
    }
    low, high = part.interval(0, Fraction(1, 20), statistic)
    return low <= exact[statistic] <= high


@pytest.mark.parametrize("statistic", SPREADS)
def test_an_interval_that_forgets_the_levels_is_noticed(
    monkeypatch: pytest.MonkeyPatch, statistic: Statistic
) -> None:
    codes = [[0, 0, 7, 4095, 8], [1, 3, 2], [0, 3]]
    assert all(held(each, statistic) for each in codes)
    honest = Variance.reading
    monkeypatch.setattr(
        Variance,
        "reading",
        lambda aggregate, fine: replace(honest(aggregate, fine), rounding=Fraction(0)),
    )
    assert not all(held(each, statistic) for each in codes)


ROWS = [3, 9, 4, 7, 7, 0]


def exact(values: list[int]) -> tuple[Released, Released]:
    """The pair and the triple of some rows in [0, 10], without noise."""
    noise = DiscreteLaplace("0.01")
    pair = (sum(values), sum(10 - each for each in values))
    triple = (
        sum(v * v for v in values),
        sum(2 * v * (10 - v) for v in values),
        sum((10 - v) ** 2 for v in values),
    )
    return means([pair], noise, 0, 10, Fraction(1, 10)), variances(
        [triple], noise, 0, 10, Fraction(1, 100)
    )


def test_the_statistics_of_one_release_are_those_of_its_rows() -> None:
    mean_of, variance_of = exact(ROWS)
    for part in (mean_of, variance_of):
        assert part.point(0, Statistic.COUNT) == len(ROWS)
        assert part.point(0, Statistic.SUM) == sum(ROWS)
        assert part.point(0, Statistic.MEAN) == Fraction(sum(ROWS), len(ROWS))
    assert variance_of.point(0, Statistic.VARIANCE) == statistics.pvariance(map(Fraction, ROWS))
    assert variance_of.point(0, Statistic.VARIANCE_OF_SAMPLE) == statistics.variance(
        map(Fraction, ROWS)
    )
    assert float(variance_of.point(0, Statistic.DEVIATION)) == pytest.approx(
        statistics.pstdev(ROWS)
    )
    assert float(variance_of.point(0, Statistic.DEVIATION_OF_SAMPLE)) == pytest.approx(
        statistics.stdev(ROWS)
    )


@pytest.mark.parametrize("statistic", [each for each in Statistic if each is not Statistic.VALUE])
@pytest.mark.parametrize("make", [DiscreteLaplace, DiscreteGaussian])
def test_every_statistic_covers_its_rows(statistic: Statistic, make: type) -> None:
    rows = ROWS * 20
    _, whole = exact(rows)
    truth, noise = whole.point(0, statistic), make(30)
    draws = [noise.sample(2_000) for _ in range(3)]
    missed_rows = 0
    for noises in zip(*draws, strict=True):
        values = tuple(
            value + int(extra) for value, extra in zip(whole.values[0], noises, strict=True)
        )
        low, high = replace(whole, noise=noise, values=(values,)).interval(0, MISS, statistic)
        missed_rows += not low <= truth <= high
    assert_at_most(missed_rows, 2_000, 0.05, notices=0.2)


@given(st.lists(st.integers(0, 10), min_size=2, max_size=6), st.integers(1, 30))
def test_totals_of_groups_have_wider_intervals(values: list[int], copies: int) -> None:
    for part in exact(values):
        noisy = replace(part, noise=DiscreteLaplace(3))
        total = replace(noisy, copies=(copies,))
        for statistic in (Statistic.COUNT, Statistic.SUM, Statistic.MEAN):
            (low, high), (lowest, highest) = (
                noisy.interval(0, MISS, statistic),
                total.interval(0, MISS, statistic),
            )
            if copies > 1 or statistic is not Statistic.MEAN:
                assert highest - lowest >= (high - low) * Fraction(99, 100) or copies == 1


def test_a_quantile_has_a_rank_error_and_no_interval() -> None:
    reading = Reading(
        Kind.QUANTILES,
        Fraction(1, 8),
        Fraction(10),
        Fraction(1, 2),
        Fraction(13),
        least=Fraction(39, 4),
    )
    part = Released("QUANTILE", reading, None, ((4, 7),), (1,), (Fraction(1, 2), Fraction(1, 4)), 9)
    # the second lies in the last leaf, whose middle is beyond the range
    assert [part.point(0, place=place) for place in (0, 1)] == [12, 13]
    assert part.interval(0, MISS) is None
    # (leaves - 1) exp(-rate x) = miss, x in weights of 1/8 of a row
    for place, per_weight in enumerate((2, 4)):
        assert float(part.rank_error(place, MISS)) == pytest.approx(
            math.log(8 / 0.05) * per_weight / 8
        )


def test_a_quantile_with_ends_has_an_interval_up_to_their_confidence() -> None:
    reading = Reading(
        Kind.QUANTILES,
        Fraction(1, 8),
        Fraction(12),
        Fraction(5),
        Fraction(98),
        rounding=Fraction(2),
    )
    # 20 leaves at rate 1/2: an end misses with a third of 1% at 2 ln(6000) = 17.4 weights
    part = Released("Q", reading, None, ((1, 0, 3),), (1,), (Fraction(1, 2),), 20, (18,))
    assert part.interval(0, MISS) == part.interval(0, Fraction(1, 100)) == (10, 29)
    assert part.interval(0, Fraction(1, 1000)) is None
    # the three share the miss
    assert float(part.rank_error(0, MISS)) == pytest.approx(math.log(19 * 3 / 0.05) * 2 / 8)
    # the value itself may have been selected beyond an end
    assert replace(part, values=((5, 0, 3),)).interval(0, MISS) == (10, 39)
    # an expression of two quantiles shares it too
    both = Arithmetic(Operation.SUBTRACT, Estimate(0), Estimate(1))
    assert ranges_of(both, [part, part], [0], MISS)[0].interval == (-19, 19)
    assert ranges_of(both, [part, part], [0], Fraction(1, 70))[0].interval is None
    whole = replace(part, values=((1, 0, 17),))
    assert ranges_of(Estimate(0), [whole], [0], MISS)[0].untold is False
    least = replace(whole, reading=replace(reading, least=Fraction(10), upper=Fraction(97)))
    assert ranges_of(Estimate(0), [least], [0], MISS)[0].untold is True


def test_sum_over_count_of_one_release_is_its_mean() -> None:
    (part, _) = exact(ROWS)
    ratio = Arithmetic(Operation.DIVIDE, Estimate(0, Statistic.SUM), Estimate(0, Statistic.COUNT))
    noisy = replace(part, noise=DiscreteLaplace(2))
    assert ranges_of(ratio, [noisy], [0], MISS)[0].interval == noisy.interval(
        0, MISS, Statistic.MEAN
    )


def test_a_division_by_zero_is_null() -> None:
    assert (
        value_of(
            Arithmetic(Operation.DIVIDE, Constant(1), Estimate(0)),
            [count(0, DiscreteLaplace(1))],
            0,
            (),
        )
        is None
    )


# --- coverage (RULES 23) -----------------------------------------------------------------------


@lru_cache(maxsize=64)
def around_zero(noise: Noise, miss: Fraction) -> Range:
    """The interval of a released zero."""
    return count(0, noise).interval(0, miss)


class Moved(Released):
    """A release whose interval is that of zero, moved: worked out once."""

    __slots__ = ()

    def interval(
        self, row: int, miss: Fraction, statistic: Statistic = Statistic.VALUE, place: int = 0
    ) -> Range:
        assert self.noise is not None
        low, high = around_zero(self.noise, miss)
        return low + self.values[row][0], high + self.values[row][0]


@pytest.mark.parametrize("make", [DiscreteLaplace, DiscreteGaussian])
def test_the_interval_of_a_number_moves_with_it(make: type) -> None:
    for value in (-7, 0, 12345):
        arguments = ("n", Reading(Kind.NUMBER, ONE), make(4), ((value,),), (1,))
        assert Moved(*arguments).interval(0, MISS) == Released(*arguments).interval(0, MISS)


RATIO = Arithmetic(Operation.DIVIDE, Estimate(0), Estimate(1))


def missed(
    expression: Scalar,
    truth: list[int],
    noises: list[Noise],
    exact: Fraction,
    shrink: Fraction = ONE,
) -> int:
    """How many of 10,000 releases have an interval without the exact value."""
    drawn = [noise.sample(TRIALS) for noise in noises]
    found = 0
    for draws in zip(*drawn, strict=True):
        parts = [
            Moved("n", Reading(Kind.NUMBER, ONE), noise, ((t + x,),), (1,))
            for t, x, noise in zip(truth, draws, noises, strict=True)
        ]
        interval = ranges_of(expression, parts, [0], MISS)[0].interval
        if interval is None:
            continue
        middle, half = (interval[0] + interval[1]) / 2, (interval[1] - interval[0]) / 2 * shrink
        found += not middle - half <= exact <= middle + half
    return found


@pytest.mark.parametrize(
    "noise", [DiscreteLaplace(4), DiscreteGaussian(4), DiscreteLaplace("0.5")], ids=str
)
@pytest.mark.parametrize("truth", [0, 1000])
def test_a_count_covers_at_least_as_often_as_stated(noise: Noise, truth: int) -> None:
    assert_at_most(
        missed(Estimate(0), [truth], [noise], Fraction(truth)), TRIALS, 0.05, notices=0.115
    )


@pytest.mark.parametrize("make", [DiscreteLaplace, DiscreteGaussian])
@pytest.mark.parametrize(("total", "size"), [(2000, 100), (0, 3), (-500, 20), (50, 1)])
def test_an_expression_of_releases_covers_at_least_as_often_as_stated(
    make: type, total: int, size: int
) -> None:
    noises = [make(60), make(2)]
    assert_at_most(
        missed(RATIO, [total, size], noises, Fraction(total, size)), TRIALS, 0.05, notices=0.115
    )


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


@given(
    st.integers(-20, 300), st.integers(-20, 300), st.sampled_from([Statistic.MEAN, Statistic.VALUE])
)
def test_a_cell_whose_interval_is_the_whole_range_is_untold(
    u: int, v: int, statistic: Statistic
) -> None:
    part = mean(u, v, DiscreteLaplace(8), lower=10, span=90)
    (cell,) = ranges_of(Estimate(0, statistic), [part], [0], MISS)
    low, high = cell.interval
    # the estimate is cut where an integer is not positive, and the middle of the range is 55
    at_an_end = (u <= 0 < u + v and high > 55) or (v <= 0 < u + v and low < 55)
    assert cell.untold is (cell.interval == (10, 100) or at_an_end)
    (doubled,) = ranges_of(
        Arithmetic(Operation.MULTIPLY, Estimate(0), Constant(2)), [part], [0], MISS
    )
    assert doubled.untold is cell.untold
    (counted,) = ranges_of(Estimate(0, Statistic.COUNT), [part], [0], MISS)
    assert not counted.untold


@given(st.lists(st.integers(-20, 300), min_size=3, max_size=3))
def test_a_spread_of_which_nothing_can_be_told_is_untold(values: list[int]) -> None:
    part = variances([tuple(values)], DiscreteLaplace(8), 0, 10, Fraction(1, 100))
    for statistic, top in ((Statistic.VARIANCE, 25), (Statistic.DEVIATION, 5)):
        (cell,) = ranges_of(Estimate(0, statistic), [part], [0], MISS)
        assert cell.interval is not None
        assert cell.untold is (cell.interval[0] <= 0 and cell.interval[1] >= top)


# --- means at an end of their range -----------------------------------------------------------------


def test_a_mean_at_an_end_of_its_range_is_untold_if_its_interval_reaches_beyond_the_middle() -> (
    None
):
    noise = DiscreteLaplace(8)
    for u, v, untold in ((-3, 500, False), (-3, 30, True), (30, -3, True), (500, 0, False)):
        (cell,) = ranges_of(Estimate(0), [mean(u, v, noise)], [0], MISS)
        assert cell.interval != (0, 1)
        assert cell.untold is untold, (u, v, cell)


def test_a_mean_at_an_end_that_is_told_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Released, "is_at_an_end", lambda *_: False)
    (cell,) = ranges_of(Estimate(0), [mean(30, -3, DiscreteLaplace(8))], [0], MISS)
    assert not cell.untold


# --- NULL in an expression --------------------------------------------------------------------------

_NULLIF = Case(
    ((Compare(Comparison.EQ, Estimate(1), Constant(Fraction(0))), Constant(None)),), Estimate(1)
)


def test_a_ratio_with_nullif_has_the_interval_of_the_ratio() -> None:
    parts = [count(200, DiscreteLaplace(3)), count(1000, DiscreteLaplace(3))]
    ratio = Arithmetic(Operation.DIVIDE, Estimate(0), Estimate(1))
    guarded = Arithmetic(Operation.DIVIDE, Estimate(0), _NULLIF)
    less = Arithmetic(Operation.SUBTRACT, guarded, Constant(Fraction(1)))
    (plain,), (same,), (shifted,) = (
        ranges_of(one, parts, [0], MISS) for one in (ratio, guarded, less)
    )
    assert same == plain
    assert plain.interval is not None
    assert shifted.interval == tuple(end - 1 for end in plain.interval)
    # the divisor may be zero: nothing is bounded
    near_zero = [parts[0], count(2, DiscreteLaplace(3))]
    assert ranges_of(guarded, near_zero, [0], MISS)[0].interval is None


def test_a_null_branch_leaves_the_interval_of_the_others() -> None:
    parts = [count(50, DiscreteLaplace(3))]
    test = Compare(Comparison.GT, Estimate(0), Constant(Fraction(5)))
    (plain,) = ranges_of(Estimate(0), parts, [0], MISS)
    hidden = Case(((test, Estimate(0)),), Constant(None))
    assert ranges_of(hidden, parts, [0], MISS)[0].interval == plain.interval
    nothing = Case(((test, Constant(None)),), Constant(None))
    assert ranges_of(nothing, parts, [0], MISS)[0].interval is None
