# SPDX-License-Identifier: Apache-2.0
"""Released integers -> numbers with intervals, and expressions of them. Post-processing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from sfumato.noise import Noise
from sfumato.plan.aggregate import Aggregate, Mean, Sum, numeric
from sfumato.plan.scalar import Arithmetic, Constant, Estimate, Leaf, Operation, Scalar, Value, evaluate, leaves
from sfumato.query.interval import share_interval

Range: TypeAlias = tuple[Fraction, Fraction]


@dataclass(frozen=True, slots=True)
class Released:
    """One part as it left the mechanism: noisy integers, and what one of them is worth.

    ``unit``: the value of 1. For a mean, ``lower`` and ``span`` are the declared range.
    """

    title: str
    noise: Noise
    unit: Fraction
    lower: Fraction
    span: Fraction
    values: tuple[tuple[int, ...], ...]

    @property
    def is_mean(self) -> bool:
        return self.span > 0

    def point(self, group: int) -> Fraction:
        """The estimate in a group; the middle of the range where a mean has no support."""
        values = self.values[group]
        if not self.is_mean:
            return values[0] * self.unit
        size = sum(values)
        share = Fraction(values[0], size) if size > 0 else Fraction(1, 2)
        return self.lower + self.span * min(max(share, Fraction(0)), Fraction(1))

    def supported(self, group: int) -> bool:
        """Whether the group has a positive noisy size (always so unless a mean)."""
        return not self.is_mean or sum(self.values[group]) > 0

    def interval(self, group: int, miss: Fraction) -> Range:
        """An interval that holds the bounded statistic with probability >= 1 - miss."""
        values = self.values[group]
        if self.is_mean:
            low, high = share_interval(values[0], values[1], self.noise, miss)
            return self.lower + self.span * Fraction(low), self.lower + self.span * Fraction(high)
        reach = _reach(self.noise, miss)
        return (values[0] - reach) * self.unit, (values[0] + reach) * self.unit


@lru_cache(maxsize=256)
def _reach(noise: Noise, miss: Fraction) -> int:
    """The half-width of a law, the same in every cell."""
    return noise.half_width(1 - miss)


def units_of(aggregate: Aggregate, fine: int) -> tuple[Fraction, Fraction, Fraction]:
    """(unit, lower, span) of an aggregate's integers, each 1/fine of a step."""
    match aggregate:
        case Sum(column):
            return numeric(column).step / fine, Fraction(0), Fraction(0)
        case Mean(column):
            kind = numeric(column)
            return Fraction(1, fine), kind.lower_code * kind.step, (kind.upper_code - kind.lower_code) * kind.step
        case _:
            return Fraction(1, fine), Fraction(0), Fraction(0)


def value_of(expression: Scalar, parts: Sequence[Released], group: int, codes: Sequence[int | None]) -> Value:
    """The value of an output expression in a group."""

    def lookup(leaf: Leaf) -> Value:
        return parts[leaf.index].point(group) if isinstance(leaf, Estimate) else codes[getattr(leaf, "index", 0)]

    return evaluate(expression, lookup)


def range_of(expression: Scalar, parts: Sequence[Released], group: int, miss: Fraction) -> Range | None:
    """An interval of an output expression; None where it is unbounded or not a number.

    The miss is shared among the different releases in the expression (union bound), so the
    interval covers whatever they do together.

    Guarantees:
        an expression of releases covers at least as often as stated
    """
    used = {leaf.index for leaf in leaves(expression) if isinstance(leaf, Estimate)}
    if not used:
        return None
    intervals = {index: parts[index].interval(group, miss / len(used)) for index in used}
    return _range(expression, intervals.__getitem__)


def _range(expression: Scalar, interval: Callable[[int], Range]) -> Range | None:
    match expression:
        case Estimate(index):
            return interval(index)
        case Constant(value) if isinstance(value, int | Fraction):
            return Fraction(value), Fraction(value)
        case Arithmetic(op, left, right):
            first, second = _range(left, interval), _range(right, interval)
            return None if first is None or second is None else _combine(op, first, second)
        case _:
            return None


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
