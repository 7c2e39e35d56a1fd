# SPDX-License-Identifier: Apache-2.0
"""Values and intervals of output expressions, from released parts. Post-processing.

``table`` computes the cells of an answer with it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from sfumato.plan.evaluate import evaluate
from sfumato.plan.scalar import (
    Arithmetic,
    Case,
    Coalesce,
    Compare,
    Comparison,
    Constant,
    Estimate,
    Extreme,
    FloorDivide,
    Grouping,
    Leaf,
    Operation,
    Scalar,
    Value,
    leaves,
)
from sfumato.plan.statistic import Statistic
from sfumato.query.estimate import TOTAL, AnyReleased, Group, Range, Total


def value_of(
    expression: Scalar,
    parts: Sequence[AnyReleased],
    row: int,
    codes: Group,
) -> Value:
    """Returns the value of an answer's column in a row, from the estimates and the group's keys."""

    def lookup(leaf: Leaf) -> Value:
        if isinstance(leaf, Estimate):
            return parts[leaf.index].point(row, leaf.statistic, leaf.place)
        if isinstance(leaf, Grouping):
            digits = ["1" if codes[key] is TOTAL else "0" for key in leaf.keys]
            return int("".join(digits), base=2)
        code = codes[getattr(leaf, "index", 0)]
        return None if isinstance(code, Total) else code

    return evaluate(expression, lookup)


@dataclass(frozen=True, slots=True)
class Cell:
    """The interval of a cell; None if it is unbounded or the cell is not a number.

    ``untold`` is set if a mean or spread in the cell's expression gives no information: its
    interval is the whole range, or it is a mean at one end of its range whose interval reaches
    beyond the middle.
    """

    interval: Range | None
    untold: bool = False


def ranges_of(
    expression: Scalar,
    parts: Sequence[AnyReleased],
    rows: Sequence[int],
    miss: Fraction,
) -> list[Cell]:
    """Returns the confidence interval of an answer's column in each row.

    The miss probability is shared among the different releases in the expression (union bound), so
    the interval holds whatever their joint distribution is.

    Guarantees:
        an expression of releases covers at least as often as stated
        a cell whose interval is the whole range is untold
        a mean at an end of its range is untold if its interval reaches beyond the middle
    """
    expression = simplified(expression)
    used = {leaf for leaf in leaves(expression) if isinstance(leaf, Estimate)}
    if not used:
        return [Cell(None)] * len(rows)
    share = miss / len(used)
    unknown = {leaf: parts[leaf.index].unknown(share, leaf.statistic) for leaf in used}

    def is_untold(row: int, leaf: Estimate, interval: Range | None) -> bool:
        if interval is None:
            return False
        if _covers(interval, unknown[leaf]):
            return True
        return parts[leaf.index].is_at_an_end(row, leaf.statistic, interval)

    def cell(row: int) -> Cell:
        intervals: dict[Estimate, Range | None] = {}
        untold = False
        for leaf in used:
            interval = parts[leaf.index].interval(row, share, leaf.statistic, leaf.place)
            intervals[leaf] = interval
            untold |= is_untold(row, leaf, interval)
        return Cell(_range(expression, intervals.__getitem__), untold)

    return [cell(row) for row in rows]


def _covers(outer: Range, inner: Range | None) -> bool:
    """Whether an interval contains another one; false if ``inner`` is None."""
    if inner is None:
        return False
    low, high = outer
    return low <= inner[0] and inner[1] <= high


def simplified(expression: Scalar) -> Scalar:
    """Returns an expression with the same value and a narrower interval.

    * SUM / COUNT of one release is its mean, whose joint interval is narrower.
    * A divisor NULLIF(x, 0) is x: a division by zero is NULL anyway.
    """
    match expression:
        case Arithmetic(Operation.DIVIDE, left, right):
            left, right = simplified(left), _without_nullif(simplified(right))
            match left, right:
                case Estimate(one, Statistic.SUM), Estimate(other, Statistic.COUNT) if one == other:
                    return Estimate(one, Statistic.MEAN)
            return Arithmetic(Operation.DIVIDE, left, right)
        case Arithmetic(op, left, right):
            return Arithmetic(op, simplified(left), simplified(right))
        case Case(branches, otherwise):
            pairs = tuple((test, simplified(result)) for test, result in branches)
            return Case(pairs, simplified(otherwise))
        case Coalesce(operands):
            return Coalesce(tuple(map(simplified, operands)))
        case FloorDivide(operand, divisor):
            return FloorDivide(simplified(operand), divisor)
        case _:
            return expression


def _without_nullif(divisor: Scalar) -> Scalar:
    """The x of a divisor NULLIF(x, 0); any other divisor is unchanged."""
    match divisor:
        case Case(((Compare(Comparison.EQ, tested, Constant(0)), Constant(None)),), otherwise):
            if tested == otherwise:
                return otherwise
    return divisor


def _range(expression: Scalar, interval: Callable[[Estimate], Range | None]) -> Range | None:
    """The interval of an expression by interval arithmetic; None if it is unbounded."""
    match expression:
        case Estimate():
            return interval(expression)
        case Constant(value) if isinstance(value, int | Fraction) and not isinstance(value, bool):
            return Fraction(value), Fraction(value)
        case Arithmetic(op, left, right):
            operands = _ranges((left, right), interval)
            if operands is None:
                return None
            return combined(op, *operands)
        case FloorDivide(operand, divisor):
            inner = _range(operand, interval)
            if inner is None:
                return None
            return Fraction(inner[0] // divisor), Fraction(inner[1] // divisor)
        case Extreme(greatest, operands):
            choose = max if greatest else min
            return _ends(_ranges(operands, interval), choose, choose)
        case Case(branches, otherwise):
            results = [result for _, result in branches]
            return _any_of([*results, otherwise], interval)
        case Coalesce(operands):
            return _any_of(operands, interval)
        case _:
            return None


def _any_of(
    expressions: Sequence[Scalar], interval: Callable[[Estimate], Range | None]
) -> Range | None:
    """The smallest interval that contains those of all expressions; a NULL among them is skipped."""
    numbers = [one for one in expressions if one != Constant(None)]
    if not numbers:
        return None
    return _ends(_ranges(numbers, interval), min, max)


def _ranges(
    expressions: Sequence[Scalar], interval: Callable[[Estimate], Range | None]
) -> list[Range] | None:
    """The intervals of several expressions; None if any of them is unbounded."""
    ranges = []
    for expression in expressions:
        one = _range(expression, interval)
        if one is None:
            return None
        ranges.append(one)
    return ranges


def _ends(
    ranges: Sequence[Range] | None,
    lowest: Callable[[list[Fraction]], Fraction],
    highest: Callable[[list[Fraction]], Fraction],
) -> Range | None:
    """The interval from the ``lowest`` of the lower ends to the ``highest`` of the upper ends."""
    if ranges is None:
        return None
    lows = [low for low, _ in ranges]
    highs = [high for _, high in ranges]
    return lowest(lows), highest(highs)


def combined(op: Operation, left: Range, right: Range) -> Range | None:
    """Returns the interval of ``left op right``; None if the divisor may be zero."""
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
