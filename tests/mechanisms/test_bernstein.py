# SPDX-License-Identifier: Apache-2.0
"""Amounts that add up to one a row, and the exact region of mean and variance within noisy sums."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sfumato.mechanisms import bernstein as module
from sfumato.mechanisms.bernstein import Interval, Statistic, share, share_error, sums
from tests.contracts.effort import examples

BOTH = pytest.mark.parametrize("statistic", list(Statistic))
STATISTICS = st.sampled_from(Statistic)


def amounts(part, width, statistic):
    """What one row counts, by its definition."""
    t = Fraction(part, width)
    return [t, 1 - t] if statistic is Statistic.MEAN else [t * t, 2 * t * (1 - t), (1 - t) ** 2]


def truth(parts, width, statistic):
    """The mean, or the variance over n, of the shares."""
    shares = [Fraction(part, width) for part in parts]
    mean = sum(shares) / len(shares)
    return (
        mean if statistic is Statistic.MEAN else sum((t - mean) ** 2 for t in shares) / len(shares)
    )


@st.composite
def rows(draw, *, widest=2**53, least=0):
    """A width and parts of it, the ends among them."""
    width = draw(st.one_of(st.integers(1, 12), st.integers(1, widest)))
    part = st.one_of(st.integers(0, width), st.sampled_from([0, width]))
    return draw(st.lists(part, min_size=least, max_size=8)), width


@given(rows(), STATISTICS)
@example(([2**53] * 7, 2**53), Statistic.VARIANCE)
def test_the_amounts_of_a_row_add_up_to_one(data, statistic):
    parts, width = data
    found = sums(np.array(parts, np.int64), width, statistic)
    scale = width**statistic.value
    expected = [
        sum((amounts(part, width, statistic)[i] for part in parts), Fraction(0))
        for i in range(len(found))
    ]
    assert [Fraction(each, scale) for each in found] == expected
    assert sum(found) == len(parts) * scale
    assert len(found) == statistic.amounts and min(found) >= 0


def test_sums_do_not_overflow_in_long_arrays():
    parts = np.full(3_000_000, 2**53 - 1, np.int64)
    total = 3_000_000 * (2**53 - 1)
    assert sums(parts, 2**53, Statistic.MEAN) == (total, 3_000_000)
    assert sums(parts, 2**53, Statistic.VARIANCE)[0] == total * (2**53 - 1)


def test_a_plain_int64_sum_of_squares_is_noticed():
    parts = np.full(10, 2**40, np.int64)
    with np.errstate(over="ignore"):
        assert int((parts * parts).sum()) != sums(parts, 2**40, Statistic.VARIANCE)[0]


@given(rows(least=1), STATISTICS, st.integers(0, 10**6), st.data())
@settings(deadline=None)
def test_the_interval_holds_the_statistic_of_all_sums_within_reach(data, statistic, reach, draw):
    parts, width = data
    exact = sums(np.array(parts, np.int64), width, statistic)
    noisy = [each + draw.draw(st.integers(-reach, reach)) for each in exact]
    found = share(noisy, reach, statistic)
    assert found.lower <= truth(parts, width, statistic) <= found.upper
    assert 0 <= found.lower <= found.value <= found.upper <= statistic.most


@given(rows(least=1), STATISTICS)
def test_without_noise_the_interval_is_the_statistic(data, statistic):
    parts, width = data
    exact = truth(parts, width, statistic)
    assert share(sums(np.array(parts, np.int64), width, statistic), 0, statistic) == Interval(
        exact, exact, exact
    )


BOXES = st.tuples(*[st.tuples(st.integers(0, 9), st.integers(0, 9)).map(sorted)] * 3).filter(
    lambda box: any(low for low, _ in box)
)


def variance(a, b, c):
    """The variance that sums tell, by its definition: E t^2 - (E t)^2."""
    whole = a + b + c
    return max(Fraction(a) / whole - ((a + Fraction(b) / 2) / whole) ** 2, Fraction(0))


def inside(box, steps=6):
    """A grid of points of a box, its corners among them."""
    sides = [
        [low + Fraction(high - low) * i / steps for i in range(steps + 1)] for low, high in box
    ]
    return [variance(*point) for point in product(*sides)]


@given(BOXES)
@settings(deadline=None)
def test_the_extremes_of_a_box_are_those_of_its_points(box):
    lower, upper = module._variances(*map(tuple, box))
    grid = inside(box)
    assert lower <= min(grid) and max(grid) <= upper
    assert lower == min(inside(box, steps=1))
    # attained: one of the corners or of the peaks on the edges that meet the smallest middle
    a, b, c = box
    edges = [(x, b[0], z) for x, z in product(a, c)]
    edges += [(module._peak(z, b[0], tuple(a)), b[0], z) for z in c]
    edges += [(x, b[0], module._peak(x, b[0], tuple(c))) for x in a]
    assert all(low <= x <= high for edge in edges for x, (low, high) in zip(edge, box, strict=True))
    assert upper == max(variance(*edge) for edge in edges)


def test_corners_alone_are_noticed(monkeypatch):
    box = ((0, 9), (1, 1), (3, 3))
    assert module._variances(*box)[1] >= max(inside(box))
    monkeypatch.setattr(module, "_peak", lambda other, middle, ends: ends[1])
    assert module._variances(*box)[1] < max(inside(box))


@BOTH
def test_sums_that_may_all_be_zero_tell_nothing(statistic):
    noisy = [3, -4, 2][: statistic.amounts]
    found = share(noisy, 5, statistic)
    assert (found.lower, found.upper) == (0, statistic.most)
    empty = share([0, -3, -9][: statistic.amounts], 2, statistic)
    assert empty == Interval(statistic.most / 2, Fraction(0), statistic.most)


def is_within(parts, width, noise, statistic, bound):
    """Whether the estimate from sums with this noise is as close as bounded."""
    exact = sums(np.array(parts, np.int64), width, statistic)
    found = share([a + b for a, b in zip(exact, noise, strict=False)], 0, statistic).value
    return abs(found - truth(parts, width, statistic)) <= bound


@given(rows(widest=50, least=1), STATISTICS, st.integers(0, 60), st.data())
@settings(deadline=None, max_examples=examples(4))
def test_the_error_of_a_share_is_within_its_bound(data, statistic, reach, draw):
    parts, width = data
    noise = [draw.draw(st.sampled_from([-reach, reach, 0])) for _ in range(statistic.amounts)]
    bound = share_error(len(parts) * width**statistic.value, reach, statistic)
    assert is_within(parts, width, noise, statistic, bound)


def test_a_tenth_of_the_error_is_noticed():
    for statistic, noise in ((Statistic.MEAN, (3, -3)), (Statistic.VARIANCE, (3, -3, 3))):
        bound = share_error(40 * 10**statistic.value, 3, statistic)
        parts = [3] * 20 + [7] * 20
        assert is_within(parts, 10, noise, statistic, bound)
        assert not is_within(parts, 10, noise, statistic, bound / 10)


@BOTH
def test_the_error_is_never_more_than_the_range(statistic):
    assert share_error(0, 1, statistic) == share_error(5, 5, statistic) == statistic.most
    assert share_error(10**6, 1, statistic) < Fraction(1, 10**5)


def test_an_interval_is_scaled_as_a_whole():
    assert Interval(Fraction(1, 2), Fraction(0), Fraction(1)).scaled(-3, Fraction(4)) == Interval(
        Fraction(-1), Fraction(-3), Fraction(1)
    )
