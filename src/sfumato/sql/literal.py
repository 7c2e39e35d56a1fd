# SPDX-License-Identifier: Apache-2.0
"""Constants of a statement, exactly."""

from fractions import Fraction
from typing import TypeAlias

from sqlglot import exp

from sfumato.errors import InvalidNumber, UnsupportedSql
from sfumato.exact.rational import to_fraction
from sfumato.metadata.column import date_code
from sfumato.sql.reject import require_only

Literal: TypeAlias = Fraction | str | bool


def literal(node: exp.Expr) -> Literal | None:
    """The number, text or truth that a node writes; None if it is no constant.

    A date is its ISO text, whether written as DATE '...' or as a plain text.
    """
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
        case exp.Cast() if node.to.is_type("date"):
            require_only(node, "this", "to", "_type")
            return _date(node)
        case _:
            return None


def _number(written: str) -> Fraction:
    try:
        return to_fraction("A number in the statement", written)
    except InvalidNumber as error:
        raise UnsupportedSql(error.problem, allowed=error.allowed) from None


def _date(node: exp.Cast) -> str:
    text = literal(node.this)
    if not isinstance(text, str) or date_code(text) is None:
        raise UnsupportedSql("A DATE that is not written DATE 'YYYY-MM-DD'.", remedy="DATE '2019-12-31'")
    return text
