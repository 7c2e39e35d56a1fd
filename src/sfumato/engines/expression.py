# SPDX-License-Identifier: Apache-2.0
"""Expressions over a row as DuckDB SQL: codes (BIGINT), texts (VARCHAR) and truths (BOOLEAN).

Total: ``plan.value_range`` keeps every result within 62 bits, so that no operation overflows;
what DuckDB would raise at, skip or round is written out. Each operand is written once, so
that a statement is about as long as its expression. Proof: expression.proof.md.
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
    """The name of a column inside a statement; DuckDB's names have no case, so the places of capitals are added.

    >>> alias(Column("e.amount", Text())), alias(Column("Age", Text()))
    ('"c_e.amount"', '"c_Age^1"')
    """
    capitals = sum(
        1 << place for place, letter in enumerate(column.name) if letter != letter.lower()
    )
    return quote(
        f"c_{column.name}^{capitals:x}" if capitals or "^" in column.name else f"c_{column.name}"
    )


def value(expression: Scalar) -> str:
    """A code or a text.

    Guarantees:
        no row can make an expression fail
        an expression means what evaluate says

    >>> from sfumato.metadata.column import Integer
    >>> value(Arithmetic(Operation.ADD, Field(Column("age", Integer(0, 120))), Constant(1)))
    '("c_age" + 1::BIGINT)'
    """
    return _text(expression) if is_text(expression) else _code(expression)


def typed(read: Value) -> str:
    """A value: a text where it is declared as one, else a code. What is always NULL can be either."""
    return _text(read.expression) if isinstance(read.type, Text) else _code(read.expression)


def narrow(read: Value) -> str:
    """The same in the narrowest type that holds its codes: to group rows by it, not to compute with it."""
    kind = narrowest(read.type)
    return typed(read) if kind in ("VARCHAR", "BIGINT") else f"TRY_CAST({typed(read)} AS {kind})"


def truth(expression: Scalar) -> str:
    """A test: TRUE, FALSE or NULL."""
    match expression:
        case Constant(bool() | None as constant):
            return "NULL::BOOLEAN" if constant is None else str(constant).upper()
        case Not(operand):
            return f"(NOT {truth(operand)})"
        case And(operands) | Or(operands) if operands:
            word = " AND " if isinstance(expression, And) else " OR "
            return "(" + word.join(truth(each) for each in operands) + ")"
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
            return (
                f"({_text(operand)} LIKE {text(pattern)})" if is_text(operand) else "NULL::BOOLEAN"
            )
        case Case() | Coalesce():
            return _chosen(expression, truth)
        case _:
            raise TypeError(f"{type(expression).__name__} is no test")


def _text(expression: Scalar) -> str:
    match expression:
        case Field(Column(_, Text()) as column):
            return alias(column)
        case Constant(str() | None as constant):
            return "NULL::VARCHAR" if constant is None else text(constant)
        case _:
            raise TypeError(f"{type(expression).__name__} is no text")


def _code(expression: Scalar) -> str:
    match expression:
        case Field(column) if not isinstance(column.type, Text):
            return alias(column)
        case Constant(int() | None as constant) if not isinstance(constant, bool):
            return "NULL::BIGINT" if constant is None else f"{constant}::BIGINT"
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
            # of a day that is always NULL it is a DOUBLE
            return f"TRY_CAST(date_part('{part.value}', {_day(operand)}) AS BIGINT)"
        case DateTrunc(part, operand):
            if part in (Part.DAY, Part.WEEKDAY):
                return _code(operand)
            return (
                f"date_diff('day', DATE '1970-01-01', date_trunc('{part.value}', {_day(operand)}))"
            )
        case _:
            raise TypeError(f"{type(expression).__name__} has no code over a row")


def _any(expression: Scalar) -> str:
    return truth(expression) if _is_truth(expression) else value(expression)


def _is_truth(expression: Scalar) -> bool:
    match expression:
        case Constant(constant):
            return isinstance(constant, bool)
        case Case(branches, otherwise):
            return _is_truth(otherwise) or any(_is_truth(result) for _, result in branches)
        case Coalesce(operands):
            return any(_is_truth(each) for each in operands)
        case _:
            return isinstance(expression, _TRUTHS)


def _chosen(expression: Case | Coalesce, inner: Callable[[Scalar], str]) -> str:
    """The branches of CASE and COALESCE, all of one kind."""
    if isinstance(expression, Coalesce):
        return unforeseen(f"coalesce({', '.join(inner(each) for each in expression.operands)})")
    branches = "".join(
        f" WHEN {truth(test)} THEN {inner(result)}" for test, result in expression.branches
    )
    return unforeseen(
        f"CASE{branches or ' WHEN FALSE THEN NULL'} ELSE {inner(expression.otherwise)} END"
    )


def _member(operand: Scalar, values: tuple[int, ...] | tuple[str, ...]) -> str:
    listed = [
        text(each) if isinstance(each, str) else f"{each}::BIGINT"
        for each in values
        if isinstance(each, str) is is_text(operand)
    ]
    if not listed:
        return f"(CASE WHEN {value(operand)} IS NOT NULL THEN FALSE END)"
    return f"({value(operand)} IN ({', '.join(listed)}))"


def _extreme(expression: Extreme) -> str:
    """DuckDB's GREATEST and LEAST skip NULL; here it decides.

    Where a few columns tell that an operand is NULL they are asked; else the operands are
    sorted with NULL first, which is slower, but writes none of them twice.
    """
    operands = [_code(each) for each in expression.operands]
    asked = _strict_columns(expression)
    if asked is None:
        order = "DESC" if expression.greatest else "ASC"
        return f"list_sort([{', '.join(operands)}]::BIGINT[], '{order}', 'NULLS FIRST')[1]"
    word = f"{'greatest' if expression.greatest else 'least'}({', '.join(operands)})"
    tests = " AND ".join(f"{name} IS NOT NULL" for name in asked)
    return f"(CASE WHEN {tests} THEN {word} END)" if tests else word


def _strict_columns(expression: Scalar) -> tuple[str, ...] | None:
    """The columns of which one must be NULL where the expression is; None: it is not that simple."""
    match expression:
        case Field(column):
            return (alias(column),)
        case Constant(constant) if constant is not None:
            return ()
        case Arithmetic() | Extreme() | FloorDivide() | DatePart() | DateTrunc():
            inner = [_strict_columns(each) for each in children(expression)]
            known = [each for each in inner if each is not None]
            return (
                tuple(dict.fromkeys(name for each in known for name in each))
                if len(known) == len(inner)
                else None
            )
        case _:
            return None


def _floor_divide(operand: Scalar, divisor: int) -> str:
    """``//`` truncates, so the operand is first moved above zero, by a multiple of the divisor."""
    # a divisor beyond every operand gives 0 or -1, however large
    found, step = span(operand), min(divisor, 2**62 + 1)
    if found is None:
        return "NULL::BIGINT"
    times = max(0, -(found[0] // step))
    if times == 0:
        return f"({_code(operand)} // {step}::BIGINT)"
    wide = "BIGINT" if max(found[1], 0) + times * step <= _LARGEST else "HUGEINT"
    moved = (
        f"({_code(operand)}::{wide} + {times * step}::{wide}) // {step}::{wide} - {times}::{wide}"
    )
    return f"TRY_CAST({moved} AS BIGINT)"


def _lookup(operand: Scalar, first: int, table: tuple[int | None, ...]) -> str:
    """The part of the table that can be reached, as a list: its first place is 1, and elsewhere it has NULL."""
    found = span(operand)
    low, high = (first, first + len(table) - 1) if found is None else found
    reached = table[max(low - first, 0) : max(high - first + 1, 0)]
    if found is None or not reached:
        return "NULL::BIGINT"
    before = max(low, first) - 1
    listed = ", ".join("NULL" if code is None else str(code) for code in reached)
    place = f"least(greatest({_code(operand)}, {before}::BIGINT), {before + len(reached) + 1}::BIGINT) - {before}::BIGINT"
    return f"([{listed}]::BIGINT[])[{place}]"


def _divisor(expression: Scalar) -> str:
    """Zero as NULL: DuckDB raises at zero."""
    found, written = span(expression), _code(expression)
    if found is None or found[0] > 0 or found[1] < 0:
        return written
    if isinstance(expression, Field):
        return f"nullif({written}, 0)"
    # nullif would write its operand twice
    return f"list_filter([{written}], lambda x: x <> 0)[1]"


def _day(operand: Scalar) -> str:
    return f"(DATE '1970-01-01' + TRY_CAST({_code(operand)} AS INTEGER))"
