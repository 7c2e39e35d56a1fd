# SPDX-License-Identifier: Apache-2.0
"""Computes estimates and intervals from the noisy integers of a release. Post-processing.

``add_noise`` makes a ``Released`` for each part; ``table`` and ``output_intervals`` read it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from sfumato.exact.rounding import sqrt_down, sqrt_up
from sfumato.mechanisms import bernstein
from sfumato.mechanisms.selection import union
from sfumato.noise import Noise
from sfumato.plan.reading import Kind, Reading
from sfumato.plan.statistic import Statistic
from sfumato.query.interval import share_interval
from sfumato.query.tail_bounds import reach

Range: TypeAlias = tuple[Fraction, Fraction]


class Total(Enum):
    """The type of ``TOTAL``, which stands for a key's value in a row that sums over all groups of
    the key.
    """

    TOTAL = "total"


TOTAL = Total.TOTAL
Group: TypeAlias = Sequence[int | str | Total | None]

_SAMPLE = (Statistic.VARIANCE_OF_SAMPLE, Statistic.DEVIATION_OF_SAMPLE)
_ROOT = (Statistic.DEVIATION, Statistic.DEVIATION_OF_SAMPLE)
_SPREAD = (Statistic.VARIANCE, Statistic.DEVIATION, *_SAMPLE)
# The integers of a group without rows, where an interval from them says nothing.
_WITHOUT_ROWS = {
    Kind.MEAN: (0, 0),
    Kind.VARIANCE: (0, 0, 0),
}


@dataclass(frozen=True, slots=True)
class Released:
    """The noisy integers of one aggregate in all groups, with the noise law and what else estimates
    need.

    Quantiles have no ``noise``: their leaves, out of ``leaves``, were selected at ``rates``, one
    for each level. If there are ``shifts``, the leaves of the levels are followed by the lower ends
    of their intervals, then by the upper ones; each was selected at a rank shifted by that many
    weights. ``copies`` is the number of releases that were added in each row: 1, except for totals
    of several groups. A group was shown only if its value reached the ``threshold``, if there is
    one.
    """

    title: str
    reading: Reading
    noise: Noise | None
    values: tuple[tuple[int, ...], ...]
    copies: tuple[int, ...]
    rates: tuple[Fraction, ...] = ()
    leaves: int = 0
    shifts: tuple[int, ...] = ()
    threshold: int = 0

    @property
    def count(self) -> int:
        """The number of rows (groups)."""
        return len(self.values)

    def point(
        self,
        row: int,
        statistic: Statistic = Statistic.VALUE,
        place: int = 0,
    ) -> Fraction:
        """Returns the estimate in a row (group), from its noisy integers.

        If the group has too few rows for an estimate, it is the middle of the declared range.
        ``place`` is the index of the quantile level.
        """
        values = self.values[row]
        read = self.reading
        if read.kind is Kind.NUMBER:
            return values[0] * read.unit
        if read.kind is Kind.QUANTILES:
            return min(self._middle(values[place]), read.upper)
        if statistic is Statistic.COUNT:
            return sum(values) * read.unit
        if statistic is Statistic.SUM:
            return _weighed(values, self._sum_coefficients)
        if statistic in _SPREAD:
            return self._spread_point(values, statistic)
        share = Fraction(1, 2)
        if sum(values) > 0:
            share = _mean_share(values)
        share = min(max(share, Fraction(0)), Fraction(1))
        return min(read.lower + read.span * share, read.upper)

    def unknown(self, miss: Fraction, statistic: Statistic) -> Range | None:
        """Returns the interval of a group without rows: the whole declared range.

        None for counts and sums, whose intervals are always bounded by the noise.
        """
        if statistic in (Statistic.COUNT, Statistic.SUM):
            return None
        if self.shifts:
            return self.reading.least, self.reading.upper
        zeros = _WITHOUT_ROWS.get(self.reading.kind)
        if zeros is None:
            return None
        empty = replace(self, values=(zeros,), copies=(1,))
        return empty.interval(0, miss, statistic)

    def is_at_an_end(self, row: int, statistic: Statistic, interval: Range) -> bool:
        """Returns whether a noisy mean was clipped to an end of its range while its interval
        reaches beyond the middle.

        Such an estimate was cut at that end, and says less than the range alone.
        """
        read = self.reading
        if statistic not in (Statistic.VALUE, Statistic.MEAN) or read.kind not in _WITHOUT_ROWS:
            return False
        point = self.point(row, statistic)
        low, high = interval
        middle = (read.lower + read.upper) / 2
        return (point == read.lower and high > middle) or (point == read.upper and low < middle)

    def interval(
        self,
        row: int,
        miss: Fraction,
        statistic: Statistic = Statistic.VALUE,
        place: int = 0,
    ) -> Range | None:
        """Returns an interval that contains the bounded statistic with probability at least 1 -
        ``miss``.

        None if there is none: for a quantile whose interval was not paid for, or at a smaller
        ``miss``.
        """
        values = self.values[row]
        read = self.reading
        if self.noise is None:
            return self._between_ends(row, place, miss)
        if self.threshold:
            return self._shown_interval(row, self.noise, miss)
        if read.kind is Kind.NUMBER or statistic is Statistic.COUNT:
            return self._around(row, linear_weights(read, statistic, len(values)), miss)
        if statistic is Statistic.SUM:
            return self._sum_interval(row, miss)
        if statistic in _SPREAD:
            return self._spread_interval(row, statistic, miss)
        low, high = self._mean_shares(row, miss)
        least = read.lower - read.rounding
        low = max(read.lower + read.span * low - read.rounding, least)
        high = min(read.lower + read.span * high + read.rounding, read.upper)
        return low, high

    def rank_error(self, place: int, miss: Fraction) -> Fraction:
        """Returns the error of a quantile's rank, in rows, which is exceeded with probability at
        most ``miss``.
        """
        events = (self.leaves - 1) * (3 if self.shifts else 1)
        return union(events, 1 - miss) / self.rates[place] * self.reading.unit

    def leaf(self, row: int, place: int) -> Range:
        """Returns the smallest and largest value of the leaf (candidate) selected for the quantile
        at ``place``.
        """
        middle = self._middle(self.values[row][place])
        far = self.reading.rounding
        return middle - far, min(middle + far, self.reading.upper)

    def _middle(self, leaf: int) -> Fraction:
        """The value in the middle of a leaf."""
        return self.reading.lower + self.reading.span * leaf

    def _between_ends(self, row: int, place: int, miss: Fraction) -> Range | None:
        """The interval of a quantile, from the leaf of its lower end to the leaf of its upper end.

        It includes the leaf of the quantile itself, which may have been selected beyond an end.
        """
        if not self.shifts:
            return None
        # each of the three selections may miss by a third
        if union(3 * self.leaves, 1 - miss) > self.rates[place] * self.shifts[place]:
            return None
        levels = len(self.rates)
        selected = [self.leaf(row, place + at * levels) for at in range(3)]
        return min(low for low, _ in selected), max(high for _, high in selected)

    def _sum_interval(self, row: int, miss: Fraction) -> Range:
        """The interval of a sum, widened by the rounding of each row.

        An upper bound of the number of rows follows from the same noise, at half of ``miss``.
        """
        if not self.reading.rounding:
            return self._around(row, self._sum_coefficients, miss)
        low, high = self._around(row, self._sum_coefficients, miss / 2)
        counts = (self.reading.unit,) * len(self.values[row])
        _, rows = self._around(row, counts, miss / 2)
        far = self.reading.rounding * max(rows, Fraction(0))
        return low - far, high + far

    def _around(
        self,
        row: int,
        coefficients: tuple[Fraction, ...],
        miss: Fraction,
    ) -> Range:
        """The interval of a linear combination of the integers of a row."""
        assert self.noise is not None, "called for additive releases only"
        middle = _weighed(self.values[row], coefficients)
        far = reach(self.noise, miss, coefficients, self.copies[row])
        return middle - far, middle + far

    def _shown_interval(self, row: int, noise: Noise, miss: Fraction) -> Range:
        """The interval of a count that was shown since it reached the threshold by its own noise.

        Its noise is large on average, so near the threshold nothing is told of the lower end.
        """
        value = self.values[row][0]
        copies = self.copies[row]
        far = noise.half_width(1 - miss / (2 * copies))
        low = value - copies * far
        if copies > 1:
            # a total of shown counts, each of which may be that near
            low = value - copies * (self.threshold + far)
        elif value <= self.threshold + far:
            low = 0
        return max(low, 0) * self.reading.unit, (value + copies * far) * self.reading.unit

    @property
    def _sum_coefficients(self) -> tuple[Fraction, ...]:
        """The weight of each integer in the sum."""
        places = len(self.values[0]) - 1 if self.values else 1
        return _sum_coefficients(self.reading, places)

    def _error(self, row: int, miss: Fraction) -> int:
        """The largest error of any integer of a row, exceeded with probability at most ``miss``."""
        assert self.noise is not None, "called for additive releases only"
        one = miss / len(self.values[row])
        alone = (Fraction(1),)
        return math.ceil(reach(self.noise, one, alone, self.copies[row]))

    def _mean_shares(self, row: int, miss: Fraction) -> Range:
        """An interval of the mean, as a share of the range (0: lower bound, 1: upper bound)."""
        values = self.values[row]
        noise = self.noise
        if len(values) == 2 and self.copies[row] == 1 and noise is not None:
            low, high = share_interval(values[0], values[1], noise, miss)
            return Fraction(low), Fraction(high)
        error = self._error(row, miss)
        corners: list[tuple[int, ...]] = [()]
        for value in values:
            ends = (max(value - error, 0), max(value + error, 0))
            corners = [(*corner, end) for corner in corners for end in ends]
        if not all(any(corner) for corner in corners):
            return Fraction(0), Fraction(1)
        # the mean share is monotone in each integer if the others are fixed
        shares = [_mean_share(corner) for corner in corners]
        return min(shares), max(shares)

    def _spread_point(self, values: Sequence[int], statistic: Statistic) -> Fraction:
        """The estimate of a variance or a standard deviation."""
        share = Fraction(1, 8)
        if sum(values) > 0:
            share = bernstein.share(values, 0, bernstein.Statistic.VARIANCE).value
        variance = share * self.reading.span**2
        rows = sum(values) * self.reading.unit
        if statistic in _SAMPLE and rows >= 2:
            variance *= rows / (rows - 1)
        if statistic in _ROOT and variance:
            return sqrt_down(variance)
        return variance

    def _spread_interval(
        self,
        row: int,
        statistic: Statistic,
        miss: Fraction,
    ) -> Range:
        """The interval of a variance or a standard deviation."""
        values = self.values[row]
        error = self._error(row, miss)
        share = bernstein.share(values, error, bernstein.Statistic.VARIANCE)
        low = share.lower * self.reading.span**2
        high = share.upper * self.reading.span**2
        rounding = self.reading.rounding
        if statistic in _SAMPLE:
            # n / (n - 1) decreases, and is at most 2 for two rows or more
            counted = sum(values) - len(values) * error
            fewest = max(counted * self.reading.unit, Fraction(2))
            high *= fewest / (fewest - 1)
            # a sample's deviation moves by at most twice as much as its values
            rounding *= 2
        if statistic not in _ROOT and not rounding:
            return low, high
        # moving each value by at most ``rounding`` moves their deviation by at most that
        least = sqrt_down(low) if low else low
        most = sqrt_up(high) if high else high
        least, most = max(least - rounding, Fraction(0)), most + rounding
        if statistic in _ROOT:
            return (least, most)
        return (least**2, most**2)


@dataclass(frozen=True, slots=True)
class ByLevel:
    """The noisy integers of one aggregate, where each grouping set was measured separately (as a
    level).

    It has the methods of ``Released``. For each row of the answer, ``places`` has the index of the
    level that measured it, and its row in that level.
    """

    levels: tuple[Released, ...]
    places: tuple[tuple[int, int], ...]

    @property
    def title(self) -> str:
        """The title of the aggregate."""
        return self.levels[0].title

    @property
    def reading(self) -> Reading:
        """The parameters by which integers are converted into estimates, except the refinement,
        which may differ between levels.
        """
        return self.levels[0].reading

    @property
    def noise(self) -> Noise | None:
        """The noise of the first level."""
        return self.levels[0].noise

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(self.places)

    def point(
        self,
        row: int,
        statistic: Statistic = Statistic.VALUE,
        place: int = 0,
    ) -> Fraction:
        """Returns the estimate of a row."""
        level, inner = self.places[row]
        return self.levels[level].point(inner, statistic, place)

    def unknown(self, miss: Fraction, statistic: Statistic) -> Range | None:
        """Returns the interval of a group without rows: the whole range; None for counts and sums."""
        return self.levels[0].unknown(miss, statistic)

    def is_at_an_end(self, row: int, statistic: Statistic, interval: Range) -> bool:
        """As ``Released.is_at_an_end``."""
        level, inner = self.places[row]
        return self.levels[level].is_at_an_end(inner, statistic, interval)

    def interval(
        self,
        row: int,
        miss: Fraction,
        statistic: Statistic = Statistic.VALUE,
        place: int = 0,
    ) -> Range | None:
        """Returns the interval of a row, which covers with probability at least 1 - ``miss``."""
        level, inner = self.places[row]
        return self.levels[level].interval(inner, miss, statistic, place)

    def leaf(self, row: int, place: int) -> Range:
        """As ``Released.leaf``; grouping sets have no quantiles."""
        level, inner = self.places[row]
        return self.levels[level].leaf(inner, place)

    def rank_error(self, place: int, miss: Fraction) -> Fraction:
        """As ``Released.rank_error``; grouping sets have no quantiles."""
        return self.levels[0].rank_error(place, miss)


AnyReleased: TypeAlias = Released | ByLevel


def linear_weights(reading: Reading, statistic: Statistic, width: int) -> tuple[Fraction, ...]:
    """Returns the weight of each of an aggregate's ``width`` integers in a linear estimate: a
    number, or the count or sum of a mean.

    >>> linear_weights(Reading(Kind.NUMBER, Fraction(1, 2)), Statistic.VALUE, 1)
    (Fraction(1, 2),)
    """
    if statistic is Statistic.SUM:
        return _sum_coefficients(reading, width - 1)
    return (reading.unit,) * width


@lru_cache(maxsize=64)
def _sum_coefficients(reading: Reading, places: int) -> tuple[Fraction, ...]:
    """The weight of each integer in a sum: rows at ``lower`` plus their share of ``span``."""
    coefficients = []
    for place in range(places + 1):
        share = Fraction(places - place, places)
        coefficients.append(reading.unit * (reading.lower + reading.span * share))
    return tuple(coefficients)


def _mean_share(values: Sequence[int]) -> Fraction:
    """The mean position in the range: each integer is a weight for a position from 1 down to 0."""
    places = len(values) - 1
    whole = sum((places - place) * value for place, value in enumerate(values))
    return Fraction(whole, places * sum(values))


def _weighed(values: Sequence[int], coefficients: Sequence[Fraction]) -> Fraction:
    """The sum of the values times their coefficients."""
    products = [value * weight for value, weight in zip(values, coefficients, strict=True)]
    return sum(products[1:], products[0])
