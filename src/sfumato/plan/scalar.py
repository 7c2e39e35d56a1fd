# SPDX-License-Identifier: Apache-2.0
"""Expressions: over a row before the noise, over released numbers after it.

The same nodes serve both; only the leaves differ (``Field`` reads the code of a column,
``Key`` and ``Estimate`` read the released table). Every one is total: NULL in, NULL out,
division by zero is NULL, AND / OR / NOT in the three-valued logic of SQL.
"""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any, TypeAlias

from sfumato.metadata.column import Column

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
    """The four operations; ``/`` is exact division."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"


@dataclass(frozen=True, slots=True)
class Field:
    """The code of a column in a row (the text itself for a Text column)."""

    column: Column


@dataclass(frozen=True, slots=True)
class Key:
    """The code of a group key, by its place."""

    index: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """A released aggregate, by its place."""

    index: int


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


Scalar: TypeAlias = Field | Key | Estimate | Constant | Compare | Member | IsNull | Not | And | Or | Arithmetic
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


def evaluate(expression: Scalar, lookup: Callable[[Leaf], Value]) -> Value:
    """The value of an expression, its leaves looked up.

    Guarantees:
        evaluation is total
        null spreads as in sql

    >>> evaluate(Arithmetic(Operation.DIVIDE, Constant(1), Constant(0)), lambda leaf: None) is None
    True
    """
    match expression:
        case Field() | Key() | Estimate():
            return lookup(expression)
        case Constant(value):
            return value
        case IsNull(operand):
            return evaluate(operand, lookup) is None
        case Not(operand):
            inner = evaluate(operand, lookup)
            return None if inner is None else not inner
        case And(operands):
            return _connect([evaluate(each, lookup) for each in operands], decisive=False)
        case Or(operands):
            return _connect([evaluate(each, lookup) for each in operands], decisive=True)
        case Member(operand, values):
            code = evaluate(operand, lookup)
            return None if code is None else code in values
        case Compare(op, left, right):
            first, second = evaluate(left, lookup), evaluate(right, lookup)
            if first is None or second is None or isinstance(first, str) is not isinstance(second, str):
                return None
            return compares(op, first, second)
        case Arithmetic(op, left, right):
            return _calculate(op, evaluate(left, lookup), evaluate(right, lookup))


def _connect(values: list[Value], *, decisive: bool) -> bool | None:
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


def leaves(expression: Scalar) -> list[Leaf]:
    """Every leaf of an expression, in order, with repeats."""
    match expression:
        case Field() | Key() | Estimate():
            return [expression]
        case Constant():
            return []
        case IsNull(operand) | Not(operand) | Member(operand, _):
            return leaves(operand)
        case And(operands) | Or(operands):
            return [leaf for each in operands for leaf in leaves(each)]
        case Compare(_, left, right) | Arithmetic(_, left, right):
            return leaves(left) + leaves(right)
