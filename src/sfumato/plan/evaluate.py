# SPDX-License-Identifier: Apache-2.0
"""The meaning of expressions, in plain Python: the reference against which every engine is tested."""

import datetime
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from string import ascii_lowercase, ascii_uppercase

from sfumato.metadata.column import EPOCH
from sfumato.plan.scalar import (
    And,
    Arithmetic,
    Case,
    ChangeCase,
    Coalesce,
    Compare,
    Constant,
    DatePart,
    DateTrunc,
    Estimate,
    Extreme,
    Field,
    FloorDivide,
    Grouping,
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
    Substring,
    Trim,
    Value,
    compares,
)

# The days that datetime.date knows: 0001-01-01 to 9999-12-31.
FIRST_DAY, LAST_DAY = -719_162, 2_932_896

_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)
_UPPER = str.maketrans(ascii_lowercase, ascii_uppercase)


def evaluate(expression: Scalar, lookup: Callable[[Leaf], Value]) -> Value:
    """Returns the value of a scalar expression in one row; ``lookup`` gives the values of its
    leaves (columns, keys, estimates).

    Guarantees:
        evaluation is total
        null spreads as in sql

    >>> evaluate(Arithmetic(Operation.DIVIDE, Constant(1), Constant(0)), lambda leaf: None) is None
    True
    """

    def inner(operand: Scalar) -> Value:
        return evaluate(operand, lookup)

    match expression:
        case Field() | Key() | Estimate() | Grouping():
            return lookup(expression)
        case Constant(value):
            return value
        case IsNull(operand):
            return inner(operand) is None
        case Not(operand):
            truth = inner(operand)
            return None if truth is None else not truth
        case And(operands):
            return _connect([inner(operand) for operand in operands], decisive=False)
        case Or(operands):
            return _connect([inner(operand) for operand in operands], decisive=True)
        case Case(branches, otherwise):
            chosen = next((result for test, result in branches if inner(test) is True), otherwise)
            return inner(chosen)
        case Coalesce(operands):
            values = map(inner, operands)
            return next((value for value in values if value is not None), None)
        case Compare(op, left, right):
            first, second = inner(left), inner(right)
            if first is None or second is None:
                return None
            if isinstance(first, str) is not isinstance(second, str):
                return None
            return compares(op, first, second)
        case _:
            return _strict(expression, inner)


def _strict(expression: Scalar, inner: Callable[[Scalar], Value]) -> Value:
    """Evaluates a node that is NULL wherever an operand is."""
    match expression:
        case Member(operand, values):
            value = inner(operand)
            return None if value is None else value in values
        case Like(operand, pattern):
            value = inner(operand)
            if not isinstance(value, str):
                return None
            return _pattern(pattern).fullmatch(value) is not None
        case ChangeCase(operand, upper):
            value = inner(operand)
            return value.translate(_UPPER if upper else _LOWER) if isinstance(value, str) else None
        case Substring(operand, start, length):
            value = inner(operand)
            return value[start - 1 : start - 1 + length] if isinstance(value, str) else None
        case Trim(operand, start, end):
            value = inner(operand)
            if not isinstance(value, str):
                return None
            # without characters strip takes nothing away
            return value.lstrip(" " * start).rstrip(" " * end)
        case Arithmetic(op, left, right):
            return _calculate(op, inner(left), inner(right))
        case Extreme(greatest, operands):
            numbers = [value for value in map(inner, operands) if isinstance(value, int | Fraction)]
            if len(numbers) < len(operands):
                return None
            return max(numbers) if greatest else min(numbers)
        case Quotient(left, right):
            first, second = inner(left), inner(right)
            if not isinstance(first, int) or not isinstance(second, int):
                return None
            return _truncated(first, second)
        case _:
            return _of_one(expression, inner)


def _of_one(expression: Scalar, inner: Callable[[Scalar], Value]) -> Value:
    """Evaluates a division by a constant, a lookup, or a part of a date."""
    match expression:
        case FloorDivide(operand, divisor):
            value = inner(operand)
            return value // divisor if isinstance(value, int | Fraction) else None
        case Lookup(operand, first, table):
            code = inner(operand)
            if not isinstance(code, int) or not 0 <= code - first < len(table):
                return None
            return table[code - first]
        case DatePart(part, operand) | DateTrunc(part, operand):
            code = inner(operand)
            if not isinstance(code, int) or not FIRST_DAY <= code <= LAST_DAY:
                return None
            if isinstance(expression, DatePart):
                return date_part(part, code)
            return date_trunc(part, code)
        case _:
            raise TypeError(f"{type(expression).__name__} has no meaning")


def _connect(values: Sequence[Value], *, decisive: bool) -> bool | None:
    """Three-valued AND (``decisive`` False) or OR (``decisive`` True)."""
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
    """Returns the date of a code, which is the number of days since 1970-01-01."""
    return EPOCH + datetime.timedelta(days=code)


def date_part(part: Part, code: int) -> int:
    """Returns a part (such as the year) of a date, which is given as its code.

    >>> date_part(Part.QUARTER, 365)
    1
    """
    date = day(code)
    if part is Part.QUARTER:
        return (date.month + 2) // 3
    if part is Part.WEEK:
        return date.isocalendar().week
    parts = {Part.YEAR: date.year, Part.MONTH: date.month, Part.DAY: date.day}
    return parts.get(part, date.isoweekday())


def date_trunc(part: Part, code: int) -> int:
    """Returns the code of the first day of the year, quarter, month or ISO week of a date.

    >>> date_trunc(Part.MONTH, 40)
    31
    """
    date = day(code)
    if part is Part.WEEK:
        return code - date.weekday()
    if part is Part.YEAR:
        return (date.replace(month=1, day=1) - EPOCH).days
    if part is Part.QUARTER:
        first_month = date.month - (date.month - 1) % 3
        return (date.replace(month=first_month, day=1) - EPOCH).days
    if part is Part.MONTH:
        return (date.replace(day=1) - EPOCH).days
    return code


@lru_cache(maxsize=256)
def _pattern(pattern: str) -> re.Pattern[str]:
    """The pattern of LIKE as a regular expression."""
    wildcards = {"%": ".*", "_": "."}
    pieces = [wildcards.get(character, re.escape(character)) for character in pattern]
    return re.compile("".join(pieces), re.DOTALL)
