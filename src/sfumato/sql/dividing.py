# SPDX-License-Identifier: Apache-2.0
"""Lowers the operators /, // and % of row expressions."""

from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.sql import arithmetic
from sfumato.sql.literal import is_answered, literal
from sfumato.sql.reject import written
from sfumato.sql.row_expressions import Rows
from sfumato.sql.typed import Number, Typed, known


def divide(rows: Rows, node: exp.Expr) -> Typed:
    """Returns the value of a SQL division; ``x / NULLIF(y, 0)`` is NULL where y is zero."""
    divisor = node.expression
    while isinstance(divisor, exp.Paren):
        divisor = divisor.this
    skips = isinstance(divisor, exp.Nullif) and literal(divisor.expression) == 0
    below = rows.number(divisor.this if skips else divisor)
    if not skips and known(below) is not None and is_answered(node.expression):
        raise arithmetic.may_be_zero()
    if skips:
        rows.tell_divisor(below, divisor.this)
    return arithmetic.divide(rows.number(node.this), below, skips_zero=skips)


def whole_quotient(rows: Rows, node: exp.Expr) -> Typed:
    """Returns the value of ``a // b`` for two integers, truncated toward zero as in DuckDB."""
    for operand in (node.this, node.expression):
        if rows.number(operand).step.denominator != 1:
            raise UnsupportedSql(
                f"// of {written(operand)}, no whole number.", remedy="FLOOR(a / b)"
            )
    quotient = divide(rows, node)
    assert isinstance(quotient, Number), "a quotient is a number"
    return arithmetic.truncated(quotient)


def modulo(rows: Rows, node: exp.Expr) -> Typed:
    """Returns the value of ``a % b`` or MOD(a, b)."""
    if is_answered(node.expression):
        raise UnsupportedSql(
            "MOD by the answer of a sub-query, which may not be positive.", remedy="MOD(column, 7)"
        )
    dividend = rows.number(node.this)
    divisor = rows.number(node.expression)
    return arithmetic.remainder(dividend, divisor)
