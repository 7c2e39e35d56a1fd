# SPDX-License-Identifier: Apache-2.0
"""DuckDB SQL for expressions over a row: codes (BIGINT), strings (VARCHAR) and Booleans.

No expression can fail: ``plan.value_range`` keeps every result within 62 bits, so no operation
overflows, and where DuckDB would raise, skip or round, the wanted result is spelled out. Each
operand is written once, so a statement is about as long as its expression. Proof:
expression.proof.md.
"""

from collections.abc import Callable

from sfumato.engines.value_sql import narrowest, quote, text, unforeseen
from sfumato.metadata.column import Column, Text
from sfumato.plan.scalar import (
    And,
    Arithmetic,
    Case,
    Coalesce,
    Compare,
    Constant,
    DatePart,
    DateTrunc,
    Extreme,
    Field,
    FloorDivide,
    IsNull,
    Like,
    Lookup,
    Member,
    Not,
    Operation,
    Or,
    Part,
    Quotient,
    Scalar,
    children,
)
from sfumato.plan.value import Value
from sfumato.plan.value_range import is_text, span

_TRUTHS = (Compare, Member, Like, IsNull, Not, And, Or)
_LARGEST = 2**63 - 1


def alias(column: Column) -> str:
    """Returns the name of a column inside a statement.

    Names in DuckDB are case-insensitive, so the positions of capitals are appended as a bit mask.

    >>> alias(Column("e.amount", Text())), alias(Column("Age", Text()))
    ('"c_e.amount"', '"c_Age^1"')
    """
    capitals = 0
    for place, letter in enumerate(column.name):
        if letter != letter.lower():
            capitals |= 1 << place
    if capitals or "^" in column.name:
        return quote(f"c_{column.name}^{capitals:x}")
    return quote(f"c_{column.name}")


def value(expression: Scalar) -> str:
    """Returns the SQL of an expression whose value is a code or a string.

    Guarantees:
        no row can make an expression fail
        an expression means what evaluate says

    >>> from sfumato.metadata.column import Integer
    >>> value(Arithmetic(Operation.ADD, Field(Column("age", Integer(0, 120))), Constant(1)))
    '("c_age" + 1::BIGINT)'
    """
    if is_text(expression):
        return _text(expression)
    return _code(expression)


def typed(read: Value) -> str:
    """Returns the SQL of a value: a string if it is declared as one, else a code.

    An expression that is always NULL can be either.
    """
    if isinstance(read.type, Text):
        return _text(read.expression)
    return _code(read.expression)


def narrow(read: Value) -> str:
    """Casts a value to the narrowest type that fits its codes; for grouping, not for arithmetic."""
    kind = narrowest(read.type)
    if kind in ("VARCHAR", "BIGINT"):
        return typed(read)
    return f"TRY_CAST({typed(read)} AS {kind})"


def truth(expression: Scalar) -> str:
    """Returns the SQL of a test: TRUE, FALSE or NULL."""
    match expression:
        case Constant(bool() | None as constant):
            if constant is None:
                return "NULL::BOOLEAN"
            return str(constant).upper()
        case Not(operand):
            return f"(NOT {truth(operand)})"
        case And(operands) | Or(operands) if operands:
            word = " AND " if isinstance(expression, And) else " OR "
            return "(" + word.join(map(truth, operands)) + ")"
        case And() | Or():
            return str(isinstance(expression, And)).upper()
        case IsNull(operand):
            return f"({_any(operand)} IS NULL)"
        case Compare(op, left, right):
            if _is_truth(left) and _is_truth(right):
                return f"({truth(left)} {op.value} {truth(right)})"
            if is_text(left) is not is_text(right):
                return "NULL::BOOLEAN"
            return f"({value(left)} {op.value} {value(right)})"
        case Member(operand, values):
            return _member(operand, values)
        case Like(operand, pattern):
            if not is_text(operand):
                return "NULL::BOOLEAN"
            return f"({_text(operand)} LIKE {text(pattern)})"
        case Case() | Coalesce():
            return _chosen(expression, truth)
        case _:
            raise TypeError(f"{type(expression).__name__} is no test")


def _text(expression: Scalar) -> str:
    match expression:
        case Field(Column(_, Text()) as column):
            return alias(column)
        case Constant(str() | None as constant):
            if constant is None:
                return "NULL::VARCHAR"
            return text(constant)
        case _:
            raise TypeError(f"{type(expression).__name__} is no text")


def _code(expression: Scalar) -> str:
    match expression:
        case Field(column) if not isinstance(column.type, Text):
            return alias(column)
        case Constant(int() | None as constant) if not isinstance(constant, bool):
            if constant is None:
                return "NULL::BIGINT"
            return f"{constant}::BIGINT"
        case Case() | Coalesce():
            return _chosen(expression, _code)
        case Arithmetic(op, left, right) if op is not Operation.DIVIDE:
            return f"({_code(left)} {op.value} {_code(right)})"
        case Extreme():
            return _extreme(expression)
        case FloorDivide(operand, divisor):
            return _floor_divide(operand, divisor)
        case Quotient(left, right):
            return f"({_code(left)} // {_divisor(right)})"
        case Lookup(operand, first, table):
            return _lookup(operand, first, table)
        case DatePart(part, operand):
            # for a day that is always NULL, date_part returns a DOUBLE
            return f"TRY_CAST(date_part('{part.value}', {_day(operand)}) AS BIGINT)"
        case DateTrunc(part, operand):
            if part in (Part.DAY, Part.WEEKDAY):
                return _code(operand)
            start = f"date_trunc('{part.value}', {_day(operand)})"
            return f"date_diff('day', DATE '1970-01-01', {start})"
        case _:
            raise TypeError(f"{type(expression).__name__} has no code over a row")


def _any(expression: Scalar) -> str:
    if _is_truth(expression):
        return truth(expression)
    return value(expression)


def _is_truth(expression: Scalar) -> bool:
    match expression:
        case Constant(constant):
            return isinstance(constant, bool)
        case Case(branches, otherwise):
            return _is_truth(otherwise) or any(_is_truth(result) for _, result in branches)
        case Coalesce(operands):
            return any(_is_truth(operand) for operand in operands)
        case _:
            return isinstance(expression, _TRUTHS)


def _chosen(expression: Case | Coalesce, inner: Callable[[Scalar], str]) -> str:
    """Returns the SQL of CASE or COALESCE; ``inner`` writes the results, which are of one type."""
    if isinstance(expression, Coalesce):
        return unforeseen(f"coalesce({', '.join(map(inner, expression.operands))})")
    branches = ""
    for test, result in expression.branches:
        branches += f" WHEN {truth(test)} THEN {inner(result)}"
    otherwise = inner(expression.otherwise)
    return unforeseen(f"CASE{branches or ' WHEN FALSE THEN NULL'} ELSE {otherwise} END")


def _member(operand: Scalar, values: tuple[int, ...] | tuple[str, ...]) -> str:
    constants = []
    for constant in values:
        if isinstance(constant, str) is is_text(operand):
            constants.append(_constant(constant))
    if not constants:
        return f"(CASE WHEN {value(operand)} IS NOT NULL THEN FALSE END)"
    return f"({value(operand)} IN ({', '.join(constants)}))"


def _constant(constant: int | str) -> str:
    if isinstance(constant, str):
        return text(constant)
    return f"{constant}::BIGINT"


def _extreme(expression: Extreme) -> str:
    """Returns the SQL of GREATEST or LEAST that is NULL if an operand is.

    DuckDB's functions skip NULL. Where a few columns decide whether an operand is NULL, they are
    tested; otherwise the operands are sorted with NULL first, which is slower but writes each
    operand once.
    """
    operands = [_code(operand) for operand in expression.operands]
    asked = _strict_columns(expression)
    if asked is None:
        order = "DESC" if expression.greatest else "ASC"
        return f"list_sort([{', '.join(operands)}]::BIGINT[], '{order}', 'NULLS FIRST')[1]"
    name = "greatest" if expression.greatest else "least"
    call = f"{name}({', '.join(operands)})"
    tests = " AND ".join(f"{column} IS NOT NULL" for column in asked)
    if tests:
        return f"(CASE WHEN {tests} THEN {call} END)"
    return call


def _strict_columns(expression: Scalar) -> tuple[str, ...] | None:
    """Returns columns such that the expression is NULL exactly if one of them is.

    Returns None if no such columns are known.
    """
    match expression:
        case Field(column):
            return (alias(column),)
        case Constant(constant) if constant is not None:
            return ()
        case Arithmetic() | Extreme() | FloorDivide() | DatePart() | DateTrunc():
            names: list[str] = []
            for child in children(expression):
                inner = _strict_columns(child)
                if inner is None:
                    return None
                names += inner
            return tuple(dict.fromkeys(names))
        case _:
            return None


def _floor_divide(operand: Scalar, divisor: int) -> str:
    """Returns floor(operand / divisor).

    DuckDB's ``//`` truncates, so the operand is first made non-negative by adding a multiple of the
    divisor.
    """
    # any divisor larger than every operand gives 0 or -1, so a larger one is cut
    ends = span(operand)
    step = min(divisor, 2**62 + 1)
    if ends is None:
        return "NULL::BIGINT"
    low, high = ends
    times = max(0, -(low // step))
    if times == 0:
        return f"({_code(operand)} // {step}::BIGINT)"
    wide = "BIGINT" if max(high, 0) + times * step <= _LARGEST else "HUGEINT"
    shifted = f"({_code(operand)}::{wide} + {times * step}::{wide})"
    return f"TRY_CAST({shifted} // {step}::{wide} - {times}::{wide} AS BIGINT)"


def _lookup(
    operand: Scalar,
    first: int,
    table: tuple[int | None, ...],
) -> str:
    """Looks an operand up in the part of the table that its range can reach.

    The table is a list, whose first index is 1; an index outside of it gives NULL.
    """
    ends = span(operand)
    if ends is None:
        return "NULL::BIGINT"
    low, high = ends
    reached = table[max(low - first, 0) : max(high - first + 1, 0)]
    if not reached:
        return "NULL::BIGINT"
    before = max(low, first) - 1
    after = before + len(reached) + 1
    codes = ", ".join("NULL" if code is None else str(code) for code in reached)
    clipped = f"least(greatest({_code(operand)}, {before}::BIGINT), {after}::BIGINT)"
    return f"([{codes}]::BIGINT[])[{clipped} - {before}::BIGINT]"


def _divisor(expression: Scalar) -> str:
    """Returns a divisor with NULL in place of zero, at which DuckDB raises."""
    ends = span(expression)
    written = _code(expression)
    if ends is None or ends[0] > 0 or ends[1] < 0:
        return written
    if isinstance(expression, Field):
        return f"nullif({written}, 0)"
    # nullif would write its operand twice
    return f"list_filter([{written}], lambda x: x <> 0)[1]"


def _day(operand: Scalar) -> str:
    """Converts a code of a day to a DATE."""
    return f"(DATE '1970-01-01' + TRY_CAST({_code(operand)} AS INTEGER))"
