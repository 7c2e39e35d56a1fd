# SPDX-License-Identifier: Apache-2.0
"""The range of the codes of an expression, by interval arithmetic. Proof: value_range.proof.md.

It bounds sums of expressions, and keeps every intermediate result of an engine within 64 bits.
"""

from collections.abc import Iterable
from typing import TypeAlias

from sfumato.errors import UnsupportedSql
from sfumato.metadata.column import Text
from sfumato.plan.evaluate import FIRST_DAY, LAST_DAY, date_part, date_trunc
from sfumato.plan.scalar import (
    Arithmetic,
    Case,
    ChangeCase,
    Coalesce,
    Constant,
    DatePart,
    DateTrunc,
    Extreme,
    Field,
    FloorDivide,
    Lookup,
    Member,
    Operation,
    Part,
    Quotient,
    Scalar,
    Substring,
    Trim,
    children,
)

# The least and the greatest code; None: the expression is always NULL.
Span: TypeAlias = tuple[int, int] | None

# Engines compute in 64 bits.
_LARGEST = 2**62
_OPERATIONS = (Arithmetic, Extreme, FloorDivide, Quotient, Lookup, DatePart, DateTrunc)
_CYCLES = {
    Part.QUARTER: (1, 4),
    Part.MONTH: (1, 12),
    Part.WEEK: (1, 53),
    Part.DAY: (1, 31),
    Part.WEEKDAY: (1, 7),
}


def span(expression: Scalar) -> Span:
    """Returns the smallest and largest integer code that an expression can have, over all possible
    rows.

    None if the expression has no codes.

    Guarantees:
        no row leads outside the span

    Raises:
        UnsupportedSql: an intermediate result may overflow 64 bits, or a date may leave the years 1
            to 9999.
        TypeError: the expression is a test or a text, which has no code.

    >>> from sfumato.metadata.column import Column, Integer
    >>> age = Field(Column("age", Integer(0, 120)))
    >>> span(Arithmetic(Operation.MULTIPLY, age, Constant(-2)))
    (-240, 0)
    """
    codes = _span(expression)
    if codes is not None:
        _require_small(*codes)
    return codes


def confine(expression: Scalar) -> None:
    """Raises unless every constant and intermediate result of an expression fits into 64 bits.

    A predicate or join key must pass before it is part of a plan, because engines differ in how
    they overflow.

    Guarantees:
        no intermediate result leaves 64 bits
        no constant leaves 64 bits

    Raises:
        UnsupportedSql: a result or constant may overflow, or a date may leave the years 1 to 9999.
    """
    if isinstance(expression, _OPERATIONS):
        span(expression)
        return
    match expression:
        case Constant(int(value)):
            _require_small(value)
        case Member(_, values):
            _require_small(*(code for code in values if isinstance(code, int)))
    for child in children(expression):
        confine(child)


def _require_small(*numbers: int) -> None:
    """Refuses numbers with more bits than an engine can compute with."""
    if any(abs(number) > _LARGEST for number in numbers):
        raise UnsupportedSql(
            "An expression whose result may have more than 62 bits on its lattice.",
            remedy="Declare narrower bounds or a larger step= of the columns, "
            "or cut the values: LEAST(column, 1000).",
        )


def is_text(expression: Scalar) -> bool:
    """Returns whether the values of an expression are strings: of a text column, a string constant,
    or a choice among these.
    """
    match expression:
        case Field(column):
            return isinstance(column.type, Text)
        case Constant(value):
            return value is None or isinstance(value, str)
        case ChangeCase(operand) | Substring(operand) | Trim(operand):
            return is_text(operand)
        case Case(branches, otherwise):
            return _are_texts((*(result for _, result in branches), otherwise))
        case Coalesce(operands):
            return _are_texts(operands)
        case _:
            return False


def _are_texts(choices: Iterable[Scalar]) -> bool:
    """Whether choices are texts, and not all the constant NULL."""
    present = [choice for choice in choices if choice != Constant(None)]
    return bool(present) and all(map(is_text, present))


def _span(expression: Scalar) -> Span:
    match expression:
        case Field(column):
            if isinstance(column.type, Text):
                raise TypeError(f"{column.name} is a text")
            return column.type.lower_code, column.type.upper_code
        case Constant(value):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
                raise TypeError("a constant that is no code")
            return None if value is None else (value, value)
        case Case(branches, otherwise):
            for test, _ in branches:
                confine(test)
            return _hull([span(otherwise), *(span(result) for _, result in branches)])
        case Coalesce(operands):
            return _hull([span(operand) for operand in operands])
        case Extreme(greatest, operands):
            return _extreme([span(operand) for operand in operands], greatest=greatest)
        case Arithmetic(op, left, right):
            return _arithmetic(op, span(left), span(right))
        case _:
            return _of_one(expression)


def _of_one(expression: Scalar) -> Span:
    """The range of a division, a lookup or a part of a date."""
    match expression:
        case FloorDivide(operand, divisor):
            _require_small(divisor)
            inner = span(operand)
            return None if inner is None else (inner[0] // divisor, inner[1] // divisor)
        case Quotient(left, right):
            return _quotient(span(left), span(right))
        case Lookup(operand, first, table):
            _require_small(first, *(code for code in table if code is not None))
            return _looked_up(span(operand), first, table)
        case DatePart(part, operand):
            days = _days(operand)
            if days is None:
                return None
            return _CYCLES.get(part) or (date_part(part, days[0]), date_part(part, days[1]))
        case DateTrunc(part, operand):
            days = _days(operand)
            if days is None:
                return None
            return date_trunc(part, days[0]), date_trunc(part, days[1])
        case _:
            raise TypeError(f"{type(expression).__name__} has no code")


def _days(operand: Scalar) -> Span:
    """The range of a date, which lies in the calendar, as does the first day of its week."""
    days = span(operand)
    if days is not None and (days[0] < FIRST_DAY + 6 or days[1] > LAST_DAY):
        raise UnsupportedSql(
            "A date that may lie beyond the years 1 to 9999.", remedy="Declare narrower dates."
        )
    return days


def _extreme(spans: list[Span], *, greatest: bool) -> Span:
    """The range of GREATEST or LEAST; NULL if any operand is."""
    known = [codes for codes in spans if codes is not None]
    if len(known) < len(spans):
        return None
    choose = max if greatest else min
    return choose(low for low, _ in known), choose(high for _, high in known)


def _looked_up(inner: Span, first: int, table: tuple[int | None, ...]) -> Span:
    """The range of the table's entries that the operand can reach."""
    if inner is None:
        return None
    reached = table[max(inner[0] - first, 0) : max(inner[1] - first + 1, 0)]
    codes = [code for code in reached if code is not None]
    return (min(codes), max(codes)) if codes else None


def _hull(spans: list[Span]) -> Span:
    """The smallest range that contains all of them."""
    known = [codes for codes in spans if codes is not None]
    if not known:
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def _arithmetic(op: Operation, left: Span, right: Span) -> Span:
    if left is None or right is None:
        return None
    if op is Operation.ADD:
        return left[0] + right[0], left[1] + right[1]
    if op is Operation.SUBTRACT:
        return left[0] - right[1], left[1] - right[0]
    if op is Operation.DIVIDE:
        raise TypeError("exact division stands after the noise only")
    corners = [one * other for one in left for other in right]
    return min(corners), max(corners)


def _quotient(left: Span, right: Span) -> Span:
    """The range of a quotient: its extremes are at the divisors nearest to 0 and farthest from
    it.
    """
    if left is None or right is None:
        return None
    low, high = right
    divisors = [divisor for divisor in (low, -1, 1, high) if low <= divisor <= high and divisor]
    corners = [_truncated(one, other) for one in left for other in divisors]
    return (min(corners), max(corners)) if corners else None


def _truncated(dividend: int, divisor: int) -> int:
    """The quotient, rounded towards zero."""
    size = abs(dividend) // abs(divisor)
    return size if (dividend < 0) == (divisor < 0) else -size
