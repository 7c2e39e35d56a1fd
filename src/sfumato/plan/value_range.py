# SPDX-License-Identifier: Apache-2.0
"""Which codes an expression can have: interval arithmetic, node by node. Proof: value_range.proof.md.

It is what bounds a sum of expressions, and what keeps every intermediate result of an
engine within 64 bits.
"""

from typing import TypeAlias

from sfumato.errors import UnsupportedSql
from sfumato.metadata.column import Text
from sfumato.plan.evaluate import FIRST_DAY, LAST_DAY, date_part, date_trunc
from sfumato.plan.scalar import (
    Arithmetic,
    Case,
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
    """The range of the codes of an expression over every row that can be.

    Guarantees:
        no row leads outside the span

    Raises:
        UnsupportedSql: an intermediate result that may not fit 64 bits, or a day beyond the calendar.
        TypeError: a test or a text, which has no code.

    >>> from sfumato.metadata.column import Column, Integer
    >>> age = Field(Column("age", Integer(0, 120)))
    >>> span(Arithmetic(Operation.MULTIPLY, age, Constant(-2)))
    (-240, 0)
    """
    found = _span(expression)
    if found is not None:
        _require_small(*found)
    return found


def confine(expression: Scalar) -> None:
    """Refuses a test in which the result of an operation, or a constant, may not fit 64 bits.

    Guarantees:
        no intermediate result leaves 64 bits
        no constant leaves 64 bits

    Raises:
        UnsupportedSql: there is one, or a day beyond the calendar.
    """
    if isinstance(expression, _OPERATIONS):
        span(expression)
        return
    match expression:
        case Constant(int(value)):
            _require_small(value)
        case Member(_, values):
            _require_small(*(each for each in values if isinstance(each, int)))
    for each in children(expression):
        confine(each)


def _require_small(*numbers: int) -> None:
    """Refuses numbers of more bits than an engine can compute with."""
    if any(abs(each) > _LARGEST for each in numbers):
        raise UnsupportedSql(
            "An expression whose result may have more than 62 bits on its lattice.",
            remedy="Declare narrower bounds or a larger step= of the columns, or cut the values: LEAST(column, 1000).",
        )


def is_text(expression: Scalar) -> bool:
    """Whether an expression is a text: a column of texts, or a constant; there is no choice among texts."""
    match expression:
        case Field(column):
            return isinstance(column.type, Text)
        case Constant(value):
            return value is None or isinstance(value, str)
        case _:
            return False


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
            return _hull([span(each) for each in operands])
        case Extreme(greatest, operands):
            spans = [each for operand in operands if (each := span(operand)) is not None]
            choose = max if greatest else min
            whole = len(spans) == len(operands)
            return (
                (choose(low for low, _ in spans), choose(high for _, high in spans))
                if whole
                else None
            )
        case Arithmetic(op, left, right):
            return _arithmetic(op, span(left), span(right))
        case _:
            return _of_one(expression)


def _of_one(expression: Scalar) -> Span:
    """Division, tables and dates."""
    match expression:
        case FloorDivide(operand, divisor):
            _require_small(divisor)
            inner = span(operand)
            return None if inner is None else (inner[0] // divisor, inner[1] // divisor)
        case Quotient(left, right):
            return _quotient(span(left), span(right))
        case Lookup(operand, first, table):
            _require_small(first, *(each for each in table if each is not None))
            inner = span(operand)
            reached = (
                []
                if inner is None
                else table[max(inner[0] - first, 0) : max(inner[1] - first + 1, 0)]
            )
            codes = [code for code in reached if code is not None]
            return (min(codes), max(codes)) if codes else None
        case DatePart(part, operand):
            days = _days(operand)
            if days is None or part in _CYCLES:
                return None if days is None else _CYCLES[part]
            return date_part(part, days[0]), date_part(part, days[1])
        case DateTrunc(part, operand):
            days = _days(operand)
            return None if days is None else (date_trunc(part, days[0]), date_trunc(part, days[1]))
        case _:
            raise TypeError(f"{type(expression).__name__} has no code")


def _days(operand: Scalar) -> Span:
    """Days of the calendar (a week begins up to six days earlier)."""
    found = span(operand)
    if found is not None and (found[0] < FIRST_DAY + 6 or found[1] > LAST_DAY):
        raise UnsupportedSql(
            "A date that may lie beyond the years 1 to 9999.", remedy="Declare narrower dates."
        )
    return found


def _hull(spans: list[Span]) -> Span:
    known = [each for each in spans if each is not None]
    return (min(low for low, _ in known), max(high for _, high in known)) if known else None


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
    """The divisors nearest to zero and farthest from it make the extremes."""
    if left is None or right is None:
        return None
    divisors = [
        each for each in (right[0], -1, 1, right[1]) if right[0] <= each <= right[1] and each
    ]
    sizes = [
        (abs(one) // abs(other)) * (1 if (one < 0) == (other < 0) else -1)
        for one in left
        for other in divisors
    ]
    return (min(sizes), max(sizes)) if sizes else None
