# SPDX-License-Identifier: Apache-2.0
"""Expressions: over a row before the noise, over released numbers after it.

The same nodes serve both; only the leaves differ (``Field`` reads the code of a column,
``Key`` and ``Estimate`` read the released table). Before the noise everything is an integer
code, a text of a Text column or a truth; after it, exact fractions. Every node is total:
``evaluate`` says what each means, NULL and zero divisors included, and ``span`` what range
of codes it can have.
"""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any, TypeAlias

from sfumato.errors import unknown
from sfumato.metadata.column import Column
from sfumato.plan.statistic import Statistic

Value: TypeAlias = int | Fraction | str | bool | None


class Comparison(Enum):
    """The six comparisons."""

    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


class Operation(Enum):
    """The four operations; ``/`` is exact division and stands after the noise only."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"


class Part(Enum):
    """A part of a date; the value is its name in SQL."""

    YEAR = "year"
    QUARTER = "quarter"
    MONTH = "month"
    WEEK = "week"
    DAY = "day"
    WEEKDAY = "isodow"


@dataclass(frozen=True, slots=True)
class Field:
    """The code of a column in a row (the text itself for a Text column)."""

    column: Column


@dataclass(frozen=True, slots=True)
class Key:
    """The code of a group key, by its place (the text itself for a Text key)."""

    index: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """A released aggregate, by its place, seen as a ``statistic``; ``place`` picks one of several quantiles."""

    index: int
    statistic: Statistic = Statistic.VALUE
    place: int = 0


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal."""

    value: Value


@dataclass(frozen=True, slots=True)
class Compare:
    """``left op right``; NULL where a side is NULL."""

    op: Comparison
    left: "Scalar"
    right: "Scalar"


@dataclass(frozen=True, slots=True)
class Member:
    """Whether ``operand`` is one of ``values`` (sorted, without NULL); NULL where it is NULL."""

    operand: "Scalar"
    values: tuple[int, ...] | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Like:
    """Whether the text of a Text column has the form of a constant pattern: % any text, _ one character."""

    operand: "Scalar"
    pattern: str


@dataclass(frozen=True, slots=True)
class IsNull:
    """Whether ``operand`` is NULL; never NULL itself."""

    operand: "Scalar"


@dataclass(frozen=True, slots=True)
class Not:
    """Three-valued NOT."""

    operand: "Scalar"


@dataclass(frozen=True, slots=True)
class And:
    """Three-valued AND."""

    operands: tuple["Scalar", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Three-valued OR."""

    operands: tuple["Scalar", ...]


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """``left op right``; NULL where a side is NULL or the divisor is zero."""

    op: Operation
    left: "Scalar"
    right: "Scalar"


@dataclass(frozen=True, slots=True)
class Case:
    """The result of the first branch (test, result) whose test is TRUE, else ``otherwise``."""

    branches: tuple[tuple["Scalar", "Scalar"], ...]
    otherwise: "Scalar"


@dataclass(frozen=True, slots=True)
class Extreme:
    """The greatest or the least of the operands; NULL where one of them is NULL."""

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
    """left / right of codes, truncated toward zero; NULL where right is zero."""

    left: "Scalar"
    right: "Scalar"


@dataclass(frozen=True, slots=True)
class Lookup:
    """The entry of ``table`` at operand - first; NULL beyond it."""

    operand: "Scalar"
    first: int
    table: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class DatePart:
    """A part of a day, as a number: 2019, 4, 12, the ISO week, the day of the month, Monday = 1."""

    part: Part
    operand: "Scalar"


@dataclass(frozen=True, slots=True)
class DateTrunc:
    """The first day of the year, quarter, month or ISO week of a day."""

    part: Part
    operand: "Scalar"


Scalar: TypeAlias = (
    Field
    | Key
    | Estimate
    | Constant
    | Compare
    | Member
    | Like
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
Leaf: TypeAlias = Field | Key | Estimate

_COMPARE: Mapping[Comparison, Callable[[Any, Any], bool]] = {
    Comparison.EQ: operator.eq,
    Comparison.NE: operator.ne,
    Comparison.LT: operator.lt,
    Comparison.LE: operator.le,
    Comparison.GT: operator.gt,
    Comparison.GE: operator.ge,
}


def compares(op: Comparison, left: object, right: object) -> bool:
    """The comparison of two values that are not NULL."""
    return _COMPARE[op](left, right)


def children(expression: Scalar) -> tuple[Scalar, ...]:
    """The expressions directly inside one, in order."""
    match expression:
        case Field() | Key() | Estimate() | Constant():
            return ()
        case And(operands) | Or(operands) | Coalesce(operands) | Extreme(_, operands):
            return operands
        case Case(branches, otherwise):
            return (*(each for branch in branches for each in branch), otherwise)
        case Compare(_, left, right) | Arithmetic(_, left, right) | Quotient(left, right):
            return left, right
        case (
            Member()
            | Like()
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
    """Every leaf of an expression, in order, with repeats."""
    if isinstance(expression, Field | Key | Estimate):
        return [expression]
    return [leaf for each in children(expression) for leaf in leaves(each)]
