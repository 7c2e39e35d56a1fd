# SPDX-License-Identifier: Apache-2.0
"""Sums of Bernstein polynomials over rows, which determine a mean or a variance.

A row whose value is at the share t of its range adds t and 1-t to the sums of a mean (RULES 15),
and t^2, 2t(1-t) and (1-t)^2 to those of a variance. These amounts are >= 0 and add up to 1, so that
a row moves the sums by 1 in L1. ``moments`` adds noise to the sums. All arithmetic is exact.
Source: Bernstein (1912). Proof: bernstein.proof.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import TypeAlias

from sfumato.noise import Integers

Ends: TypeAlias = tuple[int, int]

# Integers are split at this bit, so that sums of 2^35 products of the parts fit an int64.
_HALF = 27


class Statistic(Enum):
    """The statistic to estimate, mean or variance; the value is the degree of its Bernstein
    polynomials.

    >>> Statistic.VARIANCE.amounts, Statistic.VARIANCE.most
    (3, Fraction(1, 4))
    """

    MEAN = 1
    VARIANCE = 2

    @property
    def amounts(self) -> int:
        """The number of polynomial sums over rows from which the statistic is computed."""
        return int(self.value) + 1

    @property
    def most(self) -> Fraction:
        """The largest possible mean, or variance (divided by n), of numbers in [0, 1]."""
        return Fraction(1) if self is Statistic.MEAN else Fraction(1, 4)


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and an interval that contains it.

    >>> Interval(Fraction(1, 2), Fraction(0), Fraction(1)).scaled(10, Fraction(4)).value
    Fraction(12, 1)
    """

    value: Fraction
    lower: Fraction
    upper: Fraction

    def scaled(self, start: int, scale: Fraction) -> "Interval":
        """Returns the estimate and the interval of start + scale x, for scale >= 0."""
        value = start + scale * self.value
        lower = start + scale * self.lower
        upper = start + scale * self.upper
        return Interval(value, lower, upper)


def sums(parts: Integers, width: int, statistic: Statistic) -> tuple[int, ...]:
    """Returns the exact sums over rows of the statistic's Bernstein polynomials at parts / width,
    times width^degree.

    0 <= parts <= width <= 2^53.

    Guarantees:
        the amounts of a row add up to one

    >>> import numpy as np
    >>> sums(np.array([2, 8]), 10, Statistic.MEAN), sums(np.array([2, 8]), 10, Statistic.VARIANCE)
    ((10, 10), (68, 64, 68))
    """
    count = len(parts)
    first = _total(parts)
    if statistic is Statistic.MEAN:
        return first, count * width - first
    high = parts >> _HALF
    low = parts & ((1 << _HALF) - 1)
    second = _total(high * high) << 2 * _HALF
    second += _total(high * low) << _HALF + 1
    second += _total(low * low)
    mixed = 2 * (width * first - second)
    rest = count * width**2 - 2 * width * first + second
    return second, mixed, rest


def share(noisy: Sequence[int], reach: int, statistic: Statistic) -> Interval:
    """Returns an estimate of the mean or variance of rows scaled to [0, 1], with an interval, from
    noisy ``sums`` of which each is at most ``reach`` off.

    If all sums may be 0, the interval is the whole range; if all are estimated as 0, the estimate
    is its middle.

    Guarantees:
        the interval holds the statistic of all sums within reach

    >>> share((30, 70), 10, Statistic.MEAN)
    Interval(value=Fraction(3, 10), lower=Fraction(1, 5), upper=Fraction(2, 5))
    """
    box = [(max(total - reach, 0), max(total + reach, 0)) for total in noisy]
    at = [max(total, 0) for total in noisy]
    if statistic is Statistic.MEAN:
        (low, high), (rest_low, rest_high) = box
        half = Fraction(1, 2)
        value = _ratio(at[0], sum(at), half)
        lower = _ratio(low, low + rest_high, Fraction(0))
        upper = _ratio(high, high + rest_low, Fraction(1))
        return Interval(value, lower, upper)
    value = _variance(*at) if any(at) else statistic.most / 2
    if not any(low for low, _ in box):
        return Interval(value, Fraction(0), statistic.most)
    return Interval(value, *_variances(*box))


def share_error(whole: int, reach: int, statistic: Statistic) -> Fraction:
    """Returns an upper bound of the error of the estimate of ``share`` if the true sums add up to
    ``whole``.

    Guarantees:
        the error of a share is within its bound

    >>> share_error(100, 10, Statistic.MEAN)
    Fraction(1, 8)
    """
    left = whole - statistic.amounts * reach
    if left <= 0:
        return statistic.most
    return min(Fraction(reach, left), statistic.most)


def _total(values: Integers) -> int:
    """The exact sum of an array of integers in [0, 2^54]."""
    high = int((values >> _HALF).sum())
    low_bits = values & ((1 << _HALF) - 1)
    low = int(low_bits.sum())
    return (high << _HALF) + low


def _ratio(part: int, whole: int, otherwise: Fraction) -> Fraction:
    """part / whole, or ``otherwise`` if ``whole`` is 0."""
    return Fraction(part, whole) if whole else otherwise


def _variance(a: int | Fraction, b: int | Fraction, c: int | Fraction) -> Fraction:
    """The variance from its three sums, not all 0: the mean of t^2 less the squared mean of t.

    At least 0.
    """
    whole = a + b + c
    over = Fraction(4 * a * c - b * b)
    exact = over / (4 * whole**2)
    return max(exact, Fraction(0))


def _variances(first: Ends, middle: Ends, last: Ends) -> tuple[Fraction, Fraction]:
    """The least and the largest variance if each sum lies between its two ends.

    The variance falls with the middle sum, and first rises, then falls with each outer sum.
    """
    least = min(_variance(a, middle[1], c) for a in first for c in last)
    smallest_middle = middle[0]
    peaks = []
    for c in last:
        peak = _peak(c, smallest_middle, first)
        peaks.append(_variance(peak, smallest_middle, c))
    for a in first:
        peak = _peak(a, smallest_middle, last)
        peaks.append(_variance(a, smallest_middle, peak))
    return least, max(peaks)


def _peak(other: int, middle: int, ends: Ends) -> Fraction:
    """The value of an outer sum, between its ends, at which the variance is largest.

    ``other`` and ``middle`` are the other two sums.
    """
    low, high = map(Fraction, ends)
    if not other:
        return high
    unbounded = other + middle + Fraction(middle * middle, 2 * other)
    return min(max(unbounded, low), high)
