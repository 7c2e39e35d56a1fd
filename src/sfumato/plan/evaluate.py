# SPDX-License-Identifier: Apache-2.0
"""What every expression means, in plain Python: the definition that the engines are held to."""

import datetime
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache

from sfumato.metadata.column import EPOCH
from sfumato.plan.scalar import (
    And,
    Arithmetic,
    Case,
    Coalesce,
    Compare,
    Constant,
    DatePart,
    DateTrunc,
    Estimate,
    Extreme,
    Field,
    FloorDivide,
    IsNull,
    Key,
    Leaf,
    Like,
    Lookup,
    Member,
    Not,
    Operation,
    Or,
    Part,
    Quotient,
    Scalar,
    Value,
    compares,
)

# The days that datetime.date knows: 0001-01-01 to 9999-12-31.
FIRST_DAY, LAST_DAY = -719_162, 2_932_896


def evaluate(expression: Scalar, lookup: Callable[[Leaf], Value]) -> Value:
    """The value of an expression, its leaves looked up.

    Guarantees:
        evaluation is total
        null spreads as in sql

    >>> evaluate(Arithmetic(Operation.DIVIDE, Constant(1), Constant(0)), lambda leaf: None) is None
    True
    """

    def inner(operand: Scalar) -> Value:
        return evaluate(operand, lookup)

    match expression:
        case Field() | Key() | Estimate():
            return lookup(expression)
        case Constant(value):
            return value
        case IsNull(operand):
            return inner(operand) is None
        case Not(operand):
            truth = inner(operand)
            return None if truth is None else not truth
        case And(operands):
            return _connect([inner(each) for each in operands], decisive=False)
        case Or(operands):
            return _connect([inner(each) for each in operands], decisive=True)
        case Case(branches, otherwise):
            chosen = next((result for test, result in branches if inner(test) is True), otherwise)
            return inner(chosen)
        case Coalesce(operands):
            return next((value for each in operands if (value := inner(each)) is not None), None)
        case Compare(op, left, right):
            first, second = inner(left), inner(right)
            if (
                first is None
                or second is None
                or isinstance(first, str) is not isinstance(second, str)
            ):
                return None
            return compares(op, first, second)
        case _:
            return _strict(expression, inner)


def _strict(expression: Scalar, inner: Callable[[Scalar], Value]) -> Value:
    """The nodes that are NULL wherever an operand is."""
    match expression:
        case Member(operand, values):
            value = inner(operand)
            return None if value is None else value in values
        case Like(operand, pattern):
            value = inner(operand)
            return (
                None
                if not isinstance(value, str)
                else _pattern(pattern).fullmatch(value) is not None
            )
        case Arithmetic(op, left, right):
            return _calculate(op, inner(left), inner(right))
        case Extreme(greatest, operands):
            numbers = [
                each for operand in operands if isinstance(each := inner(operand), int | Fraction)
            ]
            choose = max if greatest else min
            return choose(numbers) if len(numbers) == len(operands) else None
        case Quotient(left, right):
            first, second = inner(left), inner(right)
            return (
                _truncated(first, second)
                if isinstance(first, int) and isinstance(second, int)
                else None
            )
        case FloorDivide(operand, divisor):
            value = inner(operand)
            return value // divisor if isinstance(value, int | Fraction) else None
        case Lookup(operand, first, table):
            code = inner(operand)
            return (
                table[code - first]
                if isinstance(code, int) and 0 <= code - first < len(table)
                else None
            )
        case DatePart(part, operand) | DateTrunc(part, operand):
            code = inner(operand)
            read = date_part if isinstance(expression, DatePart) else date_trunc
            return (
                read(part, code)
                if isinstance(code, int) and FIRST_DAY <= code <= LAST_DAY
                else None
            )
        case _:
            raise TypeError(f"{type(expression).__name__} has no meaning")


def _connect(values: Sequence[Value], *, decisive: bool) -> bool | None:
    """AND (decided by False) or OR (decided by True) of three-valued truths."""
    if decisive in values:
        return decisive
    return None if None in values else not decisive


def _calculate(op: Operation, left: Value, right: Value) -> Value:
    if not isinstance(left, int | Fraction) or not isinstance(right, int | Fraction):
        return None
    if op is Operation.DIVIDE:
        return Fraction(left) / right if right else None
    if op is Operation.ADD:
        return left + right
    return left - right if op is Operation.SUBTRACT else left * right


def _truncated(left: int, right: int) -> int | None:
    if right == 0:
        return None
    size = abs(left) // abs(right)
    return size if (left < 0) == (right < 0) else -size


def day(code: int) -> datetime.date:
    """The day of a code."""
    return EPOCH + datetime.timedelta(days=code)


def date_part(part: Part, code: int) -> int:
    """A part of a day, as a number.

    >>> date_part(Part.QUARTER, 365)
    1
    """
    date = day(code)
    if part is Part.QUARTER:
        return (date.month + 2) // 3
    if part is Part.WEEK:
        return date.isocalendar().week
    return {Part.YEAR: date.year, Part.MONTH: date.month, Part.DAY: date.day}.get(
        part, date.isoweekday()
    )


def date_trunc(part: Part, code: int) -> int:
    """The code of the first day of the year, quarter, month or ISO week of a day.

    >>> date_trunc(Part.MONTH, 40)
    31
    """
    date = day(code)
    if part is Part.WEEK:
        return code - date.weekday()
    if part is Part.YEAR:
        return (date.replace(month=1, day=1) - EPOCH).days
    if part is Part.QUARTER:
        return (date.replace(month=date.month - (date.month - 1) % 3, day=1) - EPOCH).days
    return (date.replace(day=1) - EPOCH).days if part is Part.MONTH else code


@lru_cache(maxsize=256)
def _pattern(pattern: str) -> re.Pattern[str]:
    pieces = {"%": ".*", "_": "."}
    return re.compile("".join(pieces.get(each, re.escape(each)) for each in pattern), re.DOTALL)
