# SPDX-License-Identifier: Apache-2.0
"""Constants of a statement, exactly."""

from fractions import Fraction
from typing import TypeAlias

from sqlglot import exp

from sfumato.errors import InvalidNumber, UnsupportedSql
from sfumato.exact.rational import to_fraction

Literal: TypeAlias = Fraction | str | bool


def answered(node: exp.Expr | None) -> exp.Expr | None:
    """The number or date that has taken the place of a sub-query; None for every other node.

    It is a value of an expression and no literal: which groups there are, how many digits are
    shown or which quantile is meant is written, never answered.
    """
    inner = node.this if isinstance(node, exp.Subquery) else None
    return inner if isinstance(inner, exp.Expr) and not isinstance(inner, exp.Query) else None


def is_answered(node: exp.Expr | None) -> bool:
    """Whether the answer of a sub-query stands in an expression: then nothing may be refused for its size."""
    return node is not None and any(answered(each) is not None for each in node.walk())


def literal(node: exp.Expr | None) -> Literal | None:
    """The number, text or truth that a node writes; None if it is no constant."""
    match node:
        case exp.Paren():
            return literal(node.this)
        case exp.Boolean():
            return bool(node.this)
        case exp.Literal():
            return str(node.this) if node.is_string else _number(str(node.this))
        case exp.Neg():
            inner = literal(node.this)
            return -inner if isinstance(inner, Fraction) else None
        case _:
            return None


def whole(node: exp.Expr | None, name: str, low: int, high: int) -> int:
    """The whole number that a node writes, or a refusal that says where one is needed."""
    value = literal(node)
    if not isinstance(value, Fraction) or value.denominator != 1 or not low <= value <= high:
        raise UnsupportedSql(
            f"{name} that is not a whole number from {low} to {high:,}.",
            remedy=f"Write a constant, such as {min(high, 2)}.",
        )
    return int(value)


def _number(written: str) -> Fraction:
    try:
        return to_fraction("A number in the statement", written)
    except InvalidNumber as error:
        raise UnsupportedSql(error.problem, allowed=error.allowed) from None
