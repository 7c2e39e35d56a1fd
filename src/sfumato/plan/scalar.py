# SPDX-License-Identifier: Apache-2.0
"""Expressions over the columns of a row, and over released numbers.

Both use the same nodes with different leaves: ``Field`` reads the code of a column, ``Key`` and
``Estimate`` read the released table. Over a row, values are integer codes, strings of a Text
column or booleans; over released numbers they are exact fractions. Every node is defined for all
inputs, NULL and zero divisors included: ``evaluate`` is its semantics, ``span`` its range.
"""

import itertools
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from typing import Any, TypeAlias

from sfumato.errors import unknown
from sfumato.metadata.column import Column
from sfumato.plan.statistic import Statistic

Value: TypeAlias = int | Fraction | str | bool | None


class Comparison(Enum):
    """The comparison operators of SQL."""

    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


class Operation(Enum):
    """The arithmetic operators of SQL; ``/`` is exact division and applies to released numbers
    only.
    """

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"


class Part(Enum):
    """A part of a date, such as its year; the enumeration's value is the name in SQL.

    >>> Part("isodow").name
    'WEEKDAY'
    """

    YEAR = "year"
    QUARTER = "quarter"
    MONTH = "month"
    WEEK = "week"
    DAY = "day"
    WEEKDAY = "isodow"


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a row, read as its integer code (for a Text column, as the string)."""

    column: Column


@dataclass(frozen=True, slots=True)
class Key:
    """The group key at position ``index`` of a released row, as its integer code (for a Text key,
    the string).
    """

    index: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number that is estimated from a released aggregate: a ``statistic`` of the aggregate at
    position ``index``.

    ``place`` is the position of a quantile, if the aggregate has several.
    """

    index: int
    statistic: Statistic = Statistic.VALUE
    place: int = 0


@dataclass(frozen=True, slots=True)
class Grouping:
    """SQL's GROUPING(...): which of a row's group keys it sums over, in a query with grouping sets.

    It is a number with one binary digit for each of the keys at positions ``keys``, the first key's
    first; a digit is 1 if the row adds up all groups of that key.
    """

    keys: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal value."""

    value: Value


@dataclass(frozen=True, slots=True)
class Compare:
    """``left op right``; NULL if a side is NULL."""

    op: Comparison
    left: "Scalar"
    right: "Scalar"


@dataclass(frozen=True, slots=True)
class Member:
    """``operand IN values`` (sorted, without NULL); NULL if the operand is NULL."""

    operand: "Scalar"
    values: tuple[int, ...] | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Like:
    """``operand LIKE pattern`` of a Text column: % is any string, _ one character."""

    operand: "Scalar"
    pattern: str


@dataclass(frozen=True, slots=True)
class ChangeCase:
    """SQL's LOWER or UPPER of a text, for ASCII letters only."""

    operand: "Scalar"
    upper: bool


# The length of a ``Substring`` to the end of a text: no text is longer.
TO_THE_END = 2**30


@dataclass(frozen=True, slots=True)
class Substring:
    """SQL's SUBSTRING: up to ``length`` characters of a text from position ``start``, counted from
    1.
    """

    operand: "Scalar"
    start: int
    length: int = TO_THE_END

    def __post_init__(self) -> None:
        if not 1 <= self.start <= TO_THE_END or not 0 <= self.length <= TO_THE_END:
            raise ValueError(f"{self.length} characters from place {self.start}")


@dataclass(frozen=True, slots=True)
class Trim:
    """SQL's TRIM of a text: without the spaces (U+0020) at its ``start`` and at its ``end``."""

    operand: "Scalar"
    start: bool = True
    end: bool = True


@dataclass(frozen=True, slots=True)
class IsNull:
    """``operand IS NULL``; never NULL itself."""

    operand: "Scalar"


@dataclass(frozen=True, slots=True)
class Not:
    """SQL's NOT: NULL if the operand is NULL."""

    operand: "Scalar"


@dataclass(frozen=True, slots=True)
class And:
    """SQL's AND of any number of operands, with NULL as unknown."""

    operands: tuple["Scalar", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """SQL's OR of any number of operands, with NULL as unknown."""

    operands: tuple["Scalar", ...]


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """``left op right``; NULL if a side is NULL or the divisor is zero."""

    op: Operation
    left: "Scalar"
    right: "Scalar"


@dataclass(frozen=True, slots=True)
class Case:
    """SQL's CASE: the result of the first of ``branches`` (test, result) whose test is TRUE, else
    ``otherwise``.
    """

    branches: tuple[tuple["Scalar", "Scalar"], ...]
    otherwise: "Scalar"


@dataclass(frozen=True, slots=True)
class Extreme:
    """GREATEST or LEAST of the operands; NULL if one of them is NULL."""

    greatest: bool
    operands: tuple["Scalar", ...]


@dataclass(frozen=True, slots=True)
class Coalesce:
    """The first operand that is not NULL."""

    operands: tuple["Scalar", ...]


@dataclass(frozen=True, slots=True)
class FloorDivide:
    """floor(operand / divisor), the divisor a positive integer."""

    operand: "Scalar"
    divisor: int

    def __post_init__(self) -> None:
        if self.divisor < 1:
            raise ValueError(f"a divisor of {self.divisor}")


@dataclass(frozen=True, slots=True)
class Quotient:
    """The quotient of two integer codes, truncated towards zero; NULL if ``right`` is zero."""

    left: "Scalar"
    right: "Scalar"


@dataclass(frozen=True, slots=True)
class Lookup:
    """The entry of a constant ``table`` at position ``operand`` - ``first``; NULL outside the
    table.
    """

    operand: "Scalar"
    first: int
    table: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class DatePart:
    """A part of a date as a number: the year, the ISO week, the weekday (Monday = 1) and so on."""

    part: Part
    operand: "Scalar"


@dataclass(frozen=True, slots=True)
class DateTrunc:
    """The first day of the year, quarter, month or ISO week of a date."""

    part: Part
    operand: "Scalar"


Scalar: TypeAlias = (
    Field
    | Key
    | Estimate
    | Grouping
    | Constant
    | Compare
    | Member
    | Like
    | ChangeCase
    | Substring
    | Trim
    | IsNull
    | Not
    | And
    | Or
    | Arithmetic
    | Case
    | Extreme
    | Coalesce
    | FloorDivide
    | Quotient
    | Lookup
    | DatePart
    | DateTrunc
)
Leaf: TypeAlias = Field | Key | Estimate | Grouping

# What each comparison of two values that are not NULL computes.
COMPARE: Mapping[Comparison, Callable[[Any, Any], Any]] = {
    Comparison.EQ: operator.eq,
    Comparison.NE: operator.ne,
    Comparison.LT: operator.lt,
    Comparison.LE: operator.le,
    Comparison.GT: operator.gt,
    Comparison.GE: operator.ge,
}


def compares(op: Comparison, left: object, right: object) -> bool:
    """Returns whether ``left op right`` is true, for two values that are not NULL."""
    holds: bool = COMPARE[op](left, right)
    return holds


def children(expression: Scalar) -> tuple[Scalar, ...]:
    """Returns the direct operands of an expression, in order."""
    match expression:
        case Field() | Key() | Estimate() | Grouping() | Constant():
            return ()
        case And(operands) | Or(operands) | Coalesce(operands) | Extreme(_, operands):
            return operands
        case Case(branches, otherwise):
            return (*itertools.chain.from_iterable(branches), otherwise)
        case Compare(_, left, right) | Arithmetic(_, left, right) | Quotient(left, right):
            return left, right
        case (
            Member()
            | Like()
            | ChangeCase()
            | Substring()
            | Trim()
            | IsNull()
            | Not()
            | FloorDivide()
            | Lookup()
            | DatePart()
            | DateTrunc()
        ):
            return (expression.operand,)
        case _:
            raise unknown(expression)


def leaves(expression: Scalar) -> list[Leaf]:
    """Returns the leaves of an expression (columns, constants, ...), from left to right, with
    repeats.
    """
    if isinstance(expression, Field | Key | Estimate | Grouping):
        return [expression]
    return [leaf for child in children(expression) for leaf in leaves(child)]


def substituted(expression: Scalar, swap: Callable[[Leaf], Scalar]) -> Scalar:
    """Returns an expression with each leaf replaced by ``swap(leaf)``."""

    def inner(operand: Scalar) -> Scalar:
        return substituted(operand, swap)

    match expression:
        case Field() | Key() | Estimate() | Grouping():
            return swap(expression)
        case Constant():
            return expression
        case And(operands) | Or(operands) | Coalesce(operands) | Extreme(_, operands):
            return replace(expression, operands=tuple(map(inner, operands)))
        case Case(branches, otherwise):
            pairs = tuple((inner(test), inner(result)) for test, result in branches)
            return Case(pairs, inner(otherwise))
        case Compare(_, left, right) | Arithmetic(_, left, right) | Quotient(left, right):
            return replace(expression, left=inner(left), right=inner(right))
        case (
            Member()
            | Like()
            | ChangeCase()
            | Substring()
            | Trim()
            | IsNull()
            | Not()
            | FloorDivide()
            | Lookup()
            | DatePart()
            | DateTrunc()
        ):
            return replace(expression, operand=inner(expression.operand))
        case _:
            raise unknown(expression)
