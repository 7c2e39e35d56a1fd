# SPDX-License-Identifier: Apache-2.0
"""The amounts that a row counts for a mean or a variance, and what noisy sums of them tell.

A row at the share t of its range counts t and 1-t for a mean (RULES 15), t^2, 2t(1-t) and
(1-t)^2 for a variance: never negative, and one in all, so that a row moves the sums by one
in L1. They are Bernstein's polynomials (1912). Exact throughout. Proof: bernstein.proof.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import TypeAlias

from sfumato.noise import Integers

Ends: TypeAlias = tuple[int, int]

# Rows are cut at half of a word, so that products fit an int64, and sums of 2^35 of them.
_HALF = 27


class Statistic(Enum):
    """What is estimated; the value is the degree of the amounts that a row counts."""

    MEAN = 1
    VARIANCE = 2

    @property
    def amounts(self) -> int:
        """How many amounts a row counts."""
        return int(self.value) + 1

    @property
    def most(self) -> Fraction:
        """The largest mean or variance (over n) of shares."""
        return Fraction(1) if self is Statistic.MEAN else Fraction(1, 4)


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and the interval around it.

    >>> Interval(Fraction(1, 2), Fraction(0), Fraction(1)).scaled(10, Fraction(4)).value
    Fraction(12, 1)
    """

    value: Fraction
    lower: Fraction
    upper: Fraction

    def scaled(self, start: int, scale: Fraction) -> "Interval":
        """start + scale x, scale >= 0."""
        return Interval(
            start + scale * self.value, start + scale * self.lower, start + scale * self.upper
        )


def sums(parts: Integers, width: int, statistic: Statistic) -> tuple[int, ...]:
    """The summed amounts, times width^degree, of rows at parts/width, 0 <= parts <= width <= 2^53.

    Guarantees:
        the amounts of a row add up to one

    >>> import numpy as np
    >>> sums(np.array([2, 8]), 10, Statistic.MEAN), sums(np.array([2, 8]), 10, Statistic.VARIANCE)
    ((10, 10), (68, 64, 68))
    """
    count, first = len(parts), _total(parts)
    if statistic is Statistic.MEAN:
        return first, count * width - first
    high, low = parts >> _HALF, parts & ((1 << _HALF) - 1)
    second = (
        (_total(high * high) << 2 * _HALF) + (_total(high * low) << _HALF + 1) + _total(low * low)
    )
    return second, 2 * (width * first - second), count * width**2 - 2 * width * first + second


def share(noisy: Sequence[int], reach: int, statistic: Statistic) -> Interval:
    """The mean or variance of the shares, given that each true sum is within ``reach`` of the noisy one.

    The whole range where the sums may all be 0; its middle where they are estimated to be.

    Guarantees:
        the interval holds the statistic of all sums within reach

    >>> share((30, 70), 10, Statistic.MEAN)
    Interval(value=Fraction(3, 10), lower=Fraction(1, 5), upper=Fraction(2, 5))
    """
    box = [(max(each - reach, 0), max(each + reach, 0)) for each in noisy]
    at = [max(each, 0) for each in noisy]
    if statistic is Statistic.MEAN:
        (low, high), (rest_low, rest_high) = box
        return Interval(
            _ratio(at[0], sum(at), Fraction(1, 2)),
            _ratio(low, low + rest_high, Fraction(0)),
            _ratio(high, high + rest_low, Fraction(1)),
        )
    value = _variance(*at) if any(at) else statistic.most / 2
    if not any(low for low, _ in box):
        return Interval(value, Fraction(0), statistic.most)
    return Interval(value, *_variances(*box))


def share_error(whole: int, reach: int, statistic: Statistic) -> Fraction:
    """How far ``share`` is from the truth at most, where the true sums add up to ``whole``.

    Guarantees:
        the error of a share is within its bound

    >>> share_error(100, 10, Statistic.MEAN)
    Fraction(1, 8)
    """
    left = whole - statistic.amounts * reach
    return min(Fraction(reach, left), statistic.most) if left > 0 else statistic.most


def _total(values: Integers) -> int:
    """The sum of integers in [0, 2^54], of any size."""
    return (int((values >> _HALF).sum()) << _HALF) + int((values & ((1 << _HALF) - 1)).sum())


def _ratio(part: int, whole: int, otherwise: Fraction) -> Fraction:
    return Fraction(part, whole) if whole else otherwise


def _variance(a: int | Fraction, b: int | Fraction, c: int | Fraction) -> Fraction:
    """The mean of t^2 less the square of the mean of t, not below 0, of sums that are not all 0."""
    return max(Fraction(4 * a * c - b * b) / (4 * (a + b + c) ** 2), Fraction(0))


def _variances(first: Ends, middle: Ends, last: Ends) -> tuple[Fraction, Fraction]:
    """The extremes in a box: the variance falls with the middle sum, rises then falls with each outer one."""
    least = min(_variance(a, middle[1], c) for a in first for c in last)
    peaks = [_variance(_peak(c, middle[0], first), middle[0], c) for c in last]
    peaks += [_variance(a, middle[0], _peak(a, middle[0], last)) for a in first]
    return least, max(peaks)


def _peak(other: int, middle: int, ends: Ends) -> Fraction:
    """Where between its ends an outer sum makes the variance largest, given the other two."""
    low, high = map(Fraction, ends)
    return (
        min(max(other + middle + Fraction(middle * middle, 2 * other), low), high)
        if other
        else high
    )
