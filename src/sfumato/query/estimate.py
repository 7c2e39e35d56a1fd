# SPDX-License-Identifier: Apache-2.0
"""Released integers -> numbers with intervals, and expressions of them. Post-processing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from sfumato.errors import unknown
from sfumato.exact.rounding import sqrt_down, sqrt_up
from sfumato.mechanisms import bernstein
from sfumato.mechanisms.selection import union
from sfumato.metadata.column import Date, Text
from sfumato.noise import Noise
from sfumato.plan.aggregate import (
    Aggregate,
    CountDistinct,
    CountRows,
    CountUnits,
    CountValues,
    Mean,
    Quantiles,
    Sum,
    Variance,
    levels,
)
from sfumato.plan.evaluate import evaluate
from sfumato.plan.scalar import (
    Arithmetic,
    Case,
    Coalesce,
    Constant,
    Estimate,
    Extreme,
    FloorDivide,
    Leaf,
    Operation,
    Scalar,
    Value,
    leaves,
)
from sfumato.plan.statistic import Statistic
from sfumato.query.interval import share_interval
from sfumato.query.tail_bounds import reach

Range: TypeAlias = tuple[Fraction, Fraction]

_SAMPLE = (Statistic.VARIANCE_OF_SAMPLE, Statistic.DEVIATION_OF_SAMPLE)
_ROOT = (Statistic.DEVIATION, Statistic.DEVIATION_OF_SAMPLE)
_SPREAD = (Statistic.VARIANCE, Statistic.DEVIATION, *_SAMPLE)


class Kind(Enum):
    """How the integers of a release are read."""

    NUMBER = "number"
    MEAN = "mean"
    VARIANCE = "variance"
    QUANTILES = "quantiles"


@dataclass(frozen=True, slots=True)
class Reading:
    """What the integers of an aggregate are worth.

    Number: n ``unit``. Mean: (a, b) are worth (a + b) ``unit`` rows of mean ``lower`` +
    ``span`` a / (a + b). Variance: (a, b, c) likewise, with the mean share (a + b/2) / (a + b + c).
    Quantiles: leaf j stands for ``lower`` + ``span`` j; ``unit`` is the worth of a weight in rows.
    Means and quantiles are at most ``upper``: the last level of a grid may reach beyond the range.
    ``least``: the lower end of the range of quantiles; ``lower`` is the middle of its first leaf.
    ``rounding``: how far a value may be from the middle of its level.
    """

    kind: Kind
    unit: Fraction
    lower: Fraction = Fraction(0)
    span: Fraction = Fraction(0)
    upper: Fraction = Fraction(0)
    is_date: bool = False
    least: Fraction = Fraction(0)
    rounding: Fraction = Fraction(0)


def reading_of(aggregate: Aggregate, fine: int) -> Reading:
    """The reading of an aggregate's integers, each 1/fine of a step."""
    match aggregate:
        case Sum(value):
            return Reading(Kind.NUMBER, value.step / fine)
        case Mean(value) | Variance(value):
            coarse = aggregate.coarse if isinstance(aggregate, Variance) else 1
            width = levels(aggregate)
            degree = 2 if isinstance(aggregate, Variance) else 1
            middle = value.numeric.lower_code + Fraction(coarse - 1, 2)
            kind = Kind.VARIANCE if degree == 2 else Kind.MEAN
            upper = value.numeric.upper_code * value.step
            span = width * coarse * value.step
            unit, rounding = Fraction(1, fine * width**degree), Fraction(coarse - 1, 2) * value.step
            return Reading(kind, unit, middle * value.step, span, upper, rounding=rounding)
        case Quantiles(value):
            kind_of = value.type
            assert not isinstance(kind_of, Text), "lowering admits no text here"
            middle = kind_of.lower_code + Fraction(aggregate.coarse - 1, 2)
            step, is_date = kind_of.step, isinstance(kind_of, Date)
            least, upper = kind_of.lower_code * step, kind_of.upper_code * step
            span = aggregate.coarse * step
            return Reading(
                Kind.QUANTILES, Fraction(1, fine), middle * step, span, upper, is_date, least
            )
        case CountRows() | CountUnits() | CountValues() | CountDistinct():
            return Reading(Kind.NUMBER, Fraction(1, fine))
        case _:
            raise unknown(aggregate)


@dataclass(frozen=True, slots=True)
class Released:
    """One part as it left the mechanism: noisy integers, and how they are read.

    ``noise`` is None where leaves were selected, of ``leaves``, each level at its rate. ``copies``: how many
    releases were added up in each row (1, but for totals of groups).
    """

    title: str
    reading: Reading
    noise: Noise | None
    values: tuple[tuple[int, ...], ...]
    copies: tuple[int, ...]
    rates: tuple[Fraction, ...] = ()
    leaves: int = 0

    def point(self, row: int, statistic: Statistic = Statistic.VALUE, place: int = 0) -> Fraction:
        """The estimate in a row; the middle of the range where there is no support."""
        values, read = self.values[row], self.reading
        if read.kind is Kind.NUMBER:
            return values[0] * read.unit
        if read.kind is Kind.QUANTILES:
            return min(read.lower + read.span * values[place], read.upper)
        if statistic is Statistic.COUNT:
            return sum(values) * read.unit
        if statistic is Statistic.SUM:
            return _weighed(values, self._sum_coefficients)
        if statistic in _SPREAD:
            return self._spread_point(values, statistic)
        share = _mean_share(values) if sum(values) > 0 else Fraction(1, 2)
        return min(read.lower + read.span * min(max(share, Fraction(0)), Fraction(1)), read.upper)

    def unknown(self, miss: Fraction, statistic: Statistic) -> Range | None:
        """The interval where nothing can be told, that of no rows at all; None where something always can."""
        told = statistic in (Statistic.COUNT, Statistic.SUM)
        if self.reading.kind not in (Kind.MEAN, Kind.VARIANCE) or told:
            return None
        nobody = replace(
            self, values=((0,) * (2 if self.reading.kind is Kind.MEAN else 3),), copies=(1,)
        )
        return nobody.interval(0, miss, statistic)

    def interval(
        self, row: int, miss: Fraction, statistic: Statistic = Statistic.VALUE, place: int = 0
    ) -> Range:
        """An interval that holds the bounded statistic with probability >= 1 - miss.

        Of a quantile: the whole range; what is known of it is its rank (``rank_error``).
        """
        values, read = self.values[row], self.reading
        if self.noise is None:
            return read.least, read.upper
        if read.kind is Kind.NUMBER:
            return self._around(row, (read.unit,), miss)
        if statistic is Statistic.COUNT:
            return self._around(row, (read.unit,) * len(values), miss)
        if statistic is Statistic.SUM:
            return self._sum_interval(row, miss)
        if statistic in _SPREAD:
            return self._spread_interval(row, statistic, miss)
        low, high = self._mean_shares(row, miss)
        least, far = read.lower - read.rounding, read.rounding
        return max(read.lower + read.span * low - far, least), min(
            read.lower + read.span * high + far, read.upper
        )

    def rank_error(self, place: int, miss: Fraction) -> Fraction:
        """Rows within which a quantile's ranks hold its level, with probability >= 1 - miss."""
        return union(self.leaves - 1, 1 - miss) / self.rates[place] * self.reading.unit

    def _sum_interval(self, row: int, miss: Fraction) -> Range:
        """Each row may add up to its rounding; how many there are at most is read off the same noise."""
        if not self.reading.rounding:
            return self._around(row, self._sum_coefficients, miss)
        low, high = self._around(row, self._sum_coefficients, miss / 2)
        _, rows = self._around(row, (self.reading.unit,) * len(self.values[row]), miss / 2)
        far = self.reading.rounding * max(rows, Fraction(0))
        return low - far, high + far

    def _around(self, row: int, coefficients: tuple[Fraction, ...], miss: Fraction) -> Range:
        assert self.noise is not None, "asked of additive releases only"
        middle = _weighed(self.values[row], coefficients)
        far = reach(self.noise, miss, coefficients, self.copies[row])
        return middle - far, middle + far

    @property
    def _sum_coefficients(self) -> tuple[Fraction, ...]:
        """What each integer adds to the sum."""
        return _sum_coefficients(self.reading, len(self.values[0]) - 1 if self.values else 1)

    def _box(self, row: int, miss: Fraction) -> list[tuple[int, int]]:
        """Ends of the true integers, all at once."""
        assert self.noise is not None, "asked of additive releases only"
        values = self.values[row]
        far = -(-reach(self.noise, miss / len(values), (Fraction(1),), self.copies[row]) // 1)
        return [(max(value - far, 0), max(value + far, 0)) for value in values]

    def _mean_shares(self, row: int, miss: Fraction) -> Range:
        values, noise = self.values[row], self.noise
        if len(values) == 2 and self.copies[row] == 1 and noise is not None:
            low, high = share_interval(values[0], values[1], noise, miss)
            return Fraction(low), Fraction(high)
        corners: list[tuple[int, ...]] = [()]
        for ends in self._box(row, miss):
            corners = [(*corner, end) for corner in corners for end in ends]
        if not all(any(corner) for corner in corners):
            return Fraction(0), Fraction(1)
        # the mean share is monotone in each amount, the others held
        shares = [_mean_share(corner) for corner in corners]
        return min(shares), max(shares)

    def _spread_point(self, values: Sequence[int], statistic: Statistic) -> Fraction:
        share = (
            bernstein.share(values, 0, bernstein.Statistic.VARIANCE).value
            if sum(values) > 0
            else Fraction(1, 8)
        )
        rows = sum(values) * self.reading.unit
        factor = rows / (rows - 1) if statistic in _SAMPLE and rows >= 2 else Fraction(1)
        variance = share * self.reading.span**2 * factor
        return sqrt_down(variance) if statistic in _ROOT and variance else variance

    def _spread_interval(self, row: int, statistic: Statistic, miss: Fraction) -> Range:
        assert self.noise is not None, "asked of additive releases only"
        values = self.values[row]
        far = -(-reach(self.noise, miss / len(values), (Fraction(1),), self.copies[row]) // 1)
        found = bernstein.share(values, int(far), bernstein.Statistic.VARIANCE)
        square = self.reading.span**2
        # n / (n - 1) is at most 2 for two rows or more, and falls
        fewest = max((sum(values) - len(values) * far) * self.reading.unit, Fraction(2))
        factor = fewest / (fewest - 1) if statistic in _SAMPLE else Fraction(1)
        low, high = found.lower * square, found.upper * square * factor
        if statistic not in _ROOT and not self.reading.rounding:
            return low, high
        # moving each value by so much moves their deviation by no more, that of a sample by at most twice as much
        moved = self.reading.rounding * (2 if statistic in _SAMPLE else 1)
        least = max((sqrt_down(low) if low else low) - moved, Fraction(0))
        most = (sqrt_up(high) if high else high) + moved
        return (least, most) if statistic in _ROOT else (least**2, most**2)


@lru_cache(maxsize=64)
def _sum_coefficients(reading: Reading, places: int) -> tuple[Fraction, ...]:
    """Rows at ``lower``, and shares of ``span``."""
    shares = [Fraction(places - place, places) for place in range(places + 1)]
    return tuple(reading.unit * (reading.lower + reading.span * share) for share in shares)


def _mean_share(values: Sequence[int]) -> Fraction:
    """The mean share of amounts that add up to one a row (bernstein)."""
    places = len(values) - 1
    return Fraction(
        sum((places - place) * value for place, value in enumerate(values)), places * sum(values)
    )


def _weighed(values: Sequence[int], coefficients: Sequence[Fraction]) -> Fraction:
    first, *rest = (value * each for value, each in zip(values, coefficients, strict=True))
    return sum(rest, first)


def value_of(
    expression: Scalar, parts: Sequence[Released], row: int, codes: Sequence[int | str | None]
) -> Value:
    """The value of an output expression in a row."""

    def lookup(leaf: Leaf) -> Value:
        if isinstance(leaf, Estimate):
            return parts[leaf.index].point(row, leaf.statistic, leaf.place)
        return codes[getattr(leaf, "index", 0)]

    return evaluate(expression, lookup)


@dataclass(frozen=True, slots=True)
class Cell:
    """The interval of a cell, None where it is unbounded or not a number.

    ``untold``: of a mean or a spread in it nothing can be told, so its estimate says nothing.
    """

    interval: Range | None
    untold: bool = False


def ranges_of(
    expression: Scalar, parts: Sequence[Released], rows: Sequence[int], miss: Fraction
) -> list[Cell]:
    """The interval of an output expression in each row.

    The miss is shared among the different releases in the expression (union bound), so the
    interval covers whatever they do together.

    Guarantees:
        an expression of releases covers at least as often as stated
        a cell whose interval is the whole range is untold
    """
    expression = _simplified(expression)
    used = {leaf for leaf in leaves(expression) if isinstance(leaf, Estimate)}
    if not used:
        return [Cell(None)] * len(rows)
    share = miss / len(used)
    unknown = {leaf: parts[leaf.index].unknown(share, leaf.statistic) for leaf in used}

    def cell(row: int) -> Cell:
        found = {
            leaf: parts[leaf.index].interval(row, share, leaf.statistic, leaf.place)
            for leaf in used
        }
        untold = any(
            _covers(found[leaf], whole) for leaf, whole in unknown.items() if whole is not None
        )
        return Cell(_range(expression, found.__getitem__), untold)

    return [cell(row) for row in rows]


def _covers(one: Range, other: Range) -> bool:
    return one[0] <= other[0] and other[1] <= one[1]


def _simplified(expression: Scalar) -> Scalar:
    """SUM / COUNT of one release is its mean, whose joint interval is the narrower one."""
    match expression:
        case Arithmetic(
            Operation.DIVIDE, Estimate(one, Statistic.SUM), Estimate(other, Statistic.COUNT)
        ) if one == other:
            return Estimate(one, Statistic.MEAN)
        case _:
            return expression


def _range(expression: Scalar, interval: Callable[[Estimate], Range]) -> Range | None:
    match expression:
        case Estimate():
            return interval(expression)
        case Constant(value) if isinstance(value, int | Fraction) and not isinstance(value, bool):
            return Fraction(value), Fraction(value)
        case Arithmetic(op, left, right):
            first, second = _range(left, interval), _range(right, interval)
            return None if first is None or second is None else _combine(op, first, second)
        case FloorDivide(operand, divisor):
            inner = _range(operand, interval)
            return (
                None
                if inner is None
                else (Fraction(inner[0] // divisor), Fraction(inner[1] // divisor))
            )
        case Extreme(greatest, operands):
            ranges = [_range(each, interval) for each in operands]
            choose = max if greatest else min
            known = [each for each in ranges if each is not None]
            whole = len(known) == len(ranges)
            return (
                (choose(low for low, _ in known), choose(high for _, high in known))
                if whole
                else None
            )
        case Case(branches, otherwise):
            return _hull(
                [
                    _range(each, interval)
                    for each in (*(result for _, result in branches), otherwise)
                ]
            )
        case Coalesce(operands):
            return _hull([_range(each, interval) for each in operands])
        case _:
            return None


def _hull(ranges: Sequence[Range | None]) -> Range | None:
    """All of the ranges, whichever of them it is."""
    known = [each for each in ranges if each is not None]
    whole = len(known) == len(ranges)
    return (min(low for low, _ in known), max(high for _, high in known)) if whole else None


def _combine(op: Operation, left: Range, right: Range) -> Range | None:
    """Interval arithmetic; None where the divisor may be zero."""
    if op is Operation.ADD:
        return left[0] + right[0], left[1] + right[1]
    if op is Operation.SUBTRACT:
        return left[0] - right[1], left[1] - right[0]
    if op is Operation.DIVIDE:
        if right[0] <= 0 <= right[1]:
            return None
        right = (1 / right[1], 1 / right[0])
    corners = [one * other for one in left for other in right]
    return min(corners), max(corners)
