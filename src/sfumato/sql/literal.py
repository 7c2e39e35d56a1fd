# SPDX-License-Identifier: Apache-2.0
"""Reads constants of a statement as exact values."""

from fractions import Fraction
from typing import TypeAlias

from sqlglot import exp

from sfumato.errors import InvalidNumber, UnsupportedSql
from sfumato.exact.rational import to_fraction

Literal: TypeAlias = Fraction | str | bool


def answered(node: exp.Expr | None) -> exp.Expr | None:
    """Returns the number or date that replaced a scalar sub-query; None for any other node.

    Such a value may be an operand but is not a literal: group keys, numbers of digits and
    quantile levels must be written in the statement itself.
    """
    if not isinstance(node, exp.Subquery):
        return None
    inner = node.this
    if not isinstance(inner, exp.Expr) or isinstance(inner, exp.Query):
        return None
    return inner


def is_answered(node: exp.Expr | None) -> bool:
    """Whether an expression contains the answer of a scalar sub-query.

    Such an expression must not be refused because of its value: a refusal would depend on the
    answer.
    """
    if node is None:
        return False
    return any(answered(part) is not None for part in node.walk())


def literal(node: exp.Expr | None) -> Literal | None:
    """Returns the number, string or Boolean that a node denotes; None if it is not a constant."""
    match node:
        case exp.Paren():
            return literal(node.this)
        case exp.Boolean():
            return bool(node.this)
        case exp.Literal():
            written = str(node.this)
            if node.is_string:
                return written
            return _number(written)
        case exp.Neg():
            inner = literal(node.this)
            if isinstance(inner, Fraction):
                return -inner
            return None
        case _:
            return None


def whole(
    node: exp.Expr | None,
    name: str,
    low: int,
    high: int,
) -> int:
    """Returns the constant integer, from ``low`` to ``high``, that a node denotes; else an error.

    Raises:
        UnsupportedSql: the node is anything else; ``name`` says in the message where it stands.
    """
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
