# SPDX-License-Identifier: Apache-2.0
"""SQL trees for row expressions: codes (BIGINT), strings (VARCHAR) and Booleans.

``relation`` and ``emit`` build their columns and tests with it. No expression can fail:
``plan.value_range`` keeps every result within 62 bits, so no operation overflows, and where DuckDB
would raise, skip or round, the SQL spells the wanted result out. Each operand is written once, so a
statement is about as long as its expression. Proof: expression.proof.md.
"""

from collections.abc import Callable
from string import ascii_lowercase, ascii_uppercase

from sfumato.engines import sql_tree as sql
from sfumato.engines.value_sql import narrowest
from sfumato.metadata.column import Column, Text
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
    Substring,
    Trim,
    children,
)
from sfumato.plan.value import Value
from sfumato.plan.value_range import is_text, span

_TRUTHS = (Compare, Member, Like, IsNull, Not, And, Or)
_LARGEST = 2**63 - 1
_NO_TRUTH = sql.Typed(sql.NULL, sql.SqlType.BOOLEAN)
_NO_CODE = sql.Typed(sql.NULL, sql.SqlType.BIGINT)
_NO_TEXT = sql.Typed(sql.NULL, sql.SqlType.VARCHAR)


def alias(column: Column) -> sql.Column:
    """Returns the reference by which a statement names a declared column.

    DuckDB compares names without case, so the positions of capitals are appended as a bit mask.

    >>> alias(Column("e.amount", Text())).name, alias(Column("Age", Text())).name
    ('c_e.amount', 'c_Age^1')
    """
    capitals = 0
    for place, letter in enumerate(column.name):
        if letter != letter.lower():
            capitals |= 1 << place
    name = f"c_{column.name}"
    if capitals or "^" in column.name:
        name += f"^{capitals:x}"
    return sql.Column(name, quoted=True)


def value(expression: Scalar) -> sql.Expression:
    """Returns the SQL of a plan's expression whose value is a code or a string.

    Guarantees:
        no row can make an expression fail
        an expression means what evaluate says

    >>> from sfumato.engines.duckdb_printer import printed
    >>> from sfumato.metadata.column import Integer
    >>> age = Field(Column("age", Integer(0, 120)))
    >>> printed(value(Arithmetic(Operation.ADD, age, Constant(1))))
    '("c_age" + 1::BIGINT)'
    """
    if is_text(expression):
        return _text(expression)
    return _code(expression)


def typed(read: Value) -> sql.Expression:
    """Returns the SQL of a plan's value: a string if its declared type is text, else a code.

    An expression that is always NULL can have either type.
    """
    if isinstance(read.type, Text):
        return _text(read.expression)
    return _code(read.expression)


def narrow(read: Value) -> sql.Expression:
    """Returns the SQL of a value, cast to the narrowest type that fits its codes; for GROUP BY, not
    for arithmetic.
    """
    kind = narrowest(read.type)
    if kind in (sql.SqlType.VARCHAR, sql.SqlType.BIGINT):
        return typed(read)
    return sql.TryCast(typed(read), kind)


def truth(expression: Scalar) -> sql.Expression:
    """Returns the SQL of a plan's predicate, which is TRUE, FALSE or NULL."""
    match expression:
        case Constant(bool() | None as constant):
            if constant is None:
                return _NO_TRUTH
            return sql.Constant(constant)
        case Not(operand):
            return sql.Paren(sql.Not(truth(operand)))
        case And(operands):
            return _paren_or(sql.conjunction(map(truth, operands)), sql.TRUE)
        case Or(operands):
            return _paren_or(sql.disjunction(map(truth, operands)), sql.FALSE)
        case IsNull(operand):
            return sql.Paren(_truth_or_value(operand).is_null)
        case Compare():
            return _compare(expression)
        case Member(operand, values):
            return _member_test(operand, values)
        case Like(operand, pattern):
            if not is_text(operand):
                return _NO_TRUTH
            return sql.Paren(sql.Like(_text(operand), pattern))
        case Case() | Coalesce():
            return _case_or_coalesce(expression, truth)
        case _:
            raise TypeError(f"{type(expression).__name__} is no test")


def _paren_or(test: sql.Expression | None, otherwise: sql.Expression) -> sql.Expression:
    if test is None:
        return otherwise
    return sql.Paren(test)


def _compare(test: Compare) -> sql.Expression:
    sign = test.op.value
    if _is_truth(test.left) and _is_truth(test.right):
        return sql.Paren(sql.Binary(sign, truth(test.left), truth(test.right)))
    if is_text(test.left) is not is_text(test.right):
        return _NO_TRUTH
    return sql.Paren(sql.Binary(sign, value(test.left), value(test.right)))


def _text(expression: Scalar) -> sql.Expression:
    match expression:
        case Field(Column(_, Text()) as column):
            return alias(column)
        case Constant(str() | None as constant):
            if constant is None:
                return _NO_TEXT
            return sql.Constant(constant)
        case ChangeCase(operand, upper):
            letters = (ascii_lowercase, ascii_uppercase)
            old, new = letters if upper else letters[::-1]
            return sql.call("translate", _text(operand), sql.Constant(old), sql.Constant(new))
        case Substring(operand, start, length):
            return sql.call("substr", _text(operand), start, length)
        case Trim(operand, start, end) if start or end:
            name = f"{'' if end else 'l'}{'' if start else 'r'}trim"
            return sql.call(name, _text(operand), sql.Constant(" "))
        case Case() | Coalesce():
            return _case_or_coalesce(expression, _text)
        case _:
            raise TypeError(f"{type(expression).__name__} is no text")


def _code(expression: Scalar) -> sql.Expression:
    match expression:
        case Field(column) if not isinstance(column.type, Text):
            return alias(column)
        case Constant(int() | None as constant) if not isinstance(constant, bool):
            if constant is None:
                return _NO_CODE
            return sql.number(constant)
        case Case() | Coalesce():
            return _case_or_coalesce(expression, _code)
        case Arithmetic(op, left, right) if op is not Operation.DIVIDE:
            return sql.Paren(sql.Binary(op.value, _code(left), _code(right)))
        case Extreme():
            return _extreme(expression)
        case FloorDivide(operand, divisor):
            return _floor_divide(operand, divisor)
        case Quotient(left, right):
            return sql.Paren(_code(left) // _nonzero_divisor(right))
        case Lookup(operand, first, table):
            return _lookup(operand, first, table)
        case DatePart():
            return _date_part(expression)
        case DateTrunc():
            return _date_trunc(expression)
        case _:
            raise TypeError(f"{type(expression).__name__} has no code over a row")


def _date_part(expression: DatePart) -> sql.Expression:
    number = sql.call(
        "date_part", sql.Constant(expression.part.value), _date_of_code(expression.operand)
    )
    # for a day that is always NULL, date_part returns a DOUBLE
    return sql.TryCast(number, sql.SqlType.BIGINT)


def _date_trunc(expression: DateTrunc) -> sql.Expression:
    part = expression.part
    if part in (Part.DAY, Part.WEEKDAY):
        return _code(expression.operand)
    start = sql.call("date_trunc", sql.Constant(part.value), _date_of_code(expression.operand))
    return sql.call("date_diff", sql.Constant("day"), sql.Day("1970-01-01"), start)


def _truth_or_value(expression: Scalar) -> sql.Expression:
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


def _case_or_coalesce(
    expression: Case | Coalesce, inner: Callable[[Scalar], sql.Expression]
) -> sql.Expression:
    """Returns the SQL of CASE or COALESCE; ``inner`` writes the results, which are of one type."""
    if isinstance(expression, Coalesce):
        return sql.Opaque(sql.Call("coalesce", tuple(map(inner, expression.operands))))
    branches = [(truth(test), inner(result)) for test, result in expression.branches]
    if not branches:
        branches = [(sql.FALSE, sql.NULL)]
    return sql.Opaque(sql.Case(tuple(branches), inner(expression.otherwise)))


def _member_test(operand: Scalar, values: tuple[int, ...] | tuple[str, ...]) -> sql.Expression:
    constants = []
    for constant in values:
        if isinstance(constant, str) is is_text(operand):
            constants.append(_constant(constant))
    if constants:
        return sql.Paren(sql.In(value(operand), tuple(constants)))
    is_present = value(operand).is_present
    return sql.Paren(sql.Case(((is_present, sql.FALSE),)))


def _constant(constant: int | str) -> sql.Expression:
    if isinstance(constant, str):
        return sql.Constant(constant)
    return sql.number(constant)


def _extreme(expression: Extreme) -> sql.Expression:
    """Returns the SQL of GREATEST or LEAST that is NULL if an operand is.

    DuckDB's functions skip NULL. Where a few columns decide whether an operand is NULL, they are
    tested; otherwise the operands are sorted with NULL first, which is slower but writes each
    operand once.
    """
    operands = tuple(map(_code, expression.operands))
    deciding_columns = _strict_columns(expression)
    if deciding_columns is None:
        return sql.FirstOf(operands, expression.greatest)
    call = sql.Call("greatest" if expression.greatest else "least", operands)
    test = sql.conjunction(column.is_present for column in deciding_columns)
    if test is None:
        return call
    return sql.Paren(sql.Case(((test, call),)))


def _strict_columns(expression: Scalar) -> tuple[sql.Column, ...] | None:
    """Returns columns such that the expression is NULL exactly if one of them is.

    Returns None if no such columns are known.
    """
    match expression:
        case Field(column):
            return (alias(column),)
        case Constant(constant) if constant is not None:
            return ()
        case Arithmetic() | Extreme() | FloorDivide() | DatePart() | DateTrunc():
            names: list[sql.Column] = []
            for child in children(expression):
                inner = _strict_columns(child)
                if inner is None:
                    return None
                names += inner
            return tuple(dict.fromkeys(names))
        case _:
            return None


def _floor_divide(operand: Scalar, divisor: int) -> sql.Expression:
    """Returns floor(operand / divisor).

    DuckDB's ``//`` truncates, so the operand is first made non-negative by adding a multiple of the
    divisor.
    """
    # any divisor larger than every operand gives 0 or -1, so a larger one is cut
    ends = span(operand)
    step = min(divisor, 2**62 + 1)
    if ends is None:
        return _NO_CODE
    low, high = ends
    times = max(0, -(low // step))
    code = _code(operand)
    if times == 0:
        return sql.Paren(code // sql.number(step))
    is_short = max(high, 0) + times * step <= _LARGEST
    wide = sql.SqlType.BIGINT if is_short else sql.SqlType.HUGEINT
    added = sql.Typed(sql.Constant(times * step), wide)
    shifted = sql.Paren(sql.Typed(code, wide) + added)
    quotient = shifted // sql.Typed(sql.Constant(step), wide)
    above = sql.Typed(sql.Constant(times), wide)
    return sql.TryCast(quotient - above, sql.SqlType.BIGINT)


def _lookup(
    operand: Scalar,
    first: int,
    table: tuple[int | None, ...],
) -> sql.Expression:
    """Looks an operand up in the part of the table that its range can reach.

    The table is a list, whose first index is 1; an index outside of it gives NULL.
    """
    ends = span(operand)
    if ends is None:
        return _NO_CODE
    low, high = ends
    reached = table[max(low - first, 0) : max(high - first + 1, 0)]
    if not reached:
        return _NO_CODE
    before = max(low, first) - 1
    after = before + len(reached) + 1
    codes = sql.ListOf(tuple(map(sql.Constant, reached)), sql.SqlType.BIGINT)
    above = sql.call("greatest", _code(operand), sql.number(before))
    clipped = sql.call("least", above, sql.number(after))
    return sql.Element(codes, clipped - sql.number(before))


def _nonzero_divisor(expression: Scalar) -> sql.Expression:
    """Returns a divisor with NULL in place of zero, at which DuckDB raises."""
    ends = span(expression)
    written = _code(expression)
    if ends is None or ends[0] > 0 or ends[1] < 0:
        return written
    if isinstance(expression, Field):
        return sql.call("nullif", written, 0)
    # nullif would write its operand twice
    return sql.NonZero(written)


def _date_of_code(operand: Scalar) -> sql.Expression:
    """Converts a code of a day to a DATE."""
    return sql.DateOfCode(_code(operand))
