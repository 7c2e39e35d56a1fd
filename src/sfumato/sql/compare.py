# SPDX-License-Identifier: Apache-2.0
"""Tests of rows, as tests of codes.

Every comparison becomes one of integers (or of text, for a Text column), so that it means
the same on every engine: a constant is taken to the lattice here, exactly.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

from sfumato.errors import UnknownName, UnsupportedSql
from sfumato.plan.scalar import (
    Compare,
    Comparison,
    Constant,
    Field,
    IsNull,
    Member,
    Not,
    Or,
    Scalar,
    compares,
)
from sfumato.plan.value_range import span
from sfumato.sql import quotient
from sfumato.sql.dates import as_day
from sfumato.sql.lattice import LARGEST, common_step, largest, onto
from sfumato.sql.literal import Literal
from sfumato.sql.typed import (
    Day,
    Label,
    Null,
    Number,
    Person,
    Truth,
    Typed,
    Words,
    code_of,
    known,
    recoded,
    text,
)

MIRRORED = {
    Comparison.LT: Comparison.GT,
    Comparison.LE: Comparison.GE,
    Comparison.GT: Comparison.LT,
    Comparison.GE: Comparison.LE,
}
_KINDS = {
    Number: "a number",
    Day: "a date, DATE '2019-12-31'",
    Label: "a text",
    Words: "a text",
    Truth: "TRUE or FALSE",
}


def compare(op: Comparison, left: Typed, right: Typed) -> Scalar:
    """The test ``left op right``."""
    left, right = _readable(left, right), _readable(right, left)
    if isinstance(left, Null) or isinstance(right, Null):
        raise UnsupportedSql(
            "A comparison with NULL is never true.", remedy="Write IS NULL or IS NOT NULL."
        )
    one, other = known(left), known(right)
    if one is not None and other is not None:
        return _constants(op, one, other)
    if one is not None:
        return _against(MIRRORED.get(op, op), right, left)
    if other is not None:
        return _against(op, left, right)
    match left, right:
        case Number(), Number():
            return _numbers(op, left, right)
        case Day(first), Day(second):
            return Compare(op, first, second)
        case Label(), Label():
            _require_equality(op, left)
            labels = tuple(dict.fromkeys((*left.labels, *right.labels)))
            return Compare(op, recoded(left, labels), recoded(right, labels))
        case Truth(), Truth():
            _require_equality(op, left)
            return Compare(op, left.codes, right.codes)
        case (Words(), _) | (_, Words()):
            raise UnsupportedSql(
                "A Text column compared with something else than a constant.",
                remedy="Declare it as sf.Category(...) with its values, or compare it with constants.",
            )
    raise _kind_error(left, right)


def uncertain(left: Typed, right: Typed) -> Fraction:
    """By how much numbers are rounded for their comparison, where one of them is not precise; else 0."""
    if (
        not isinstance(left, Number)
        or not isinstance(right, Number)
        or not left.rounding + right.rounding
    ):
        return Fraction(0)
    if all(each.is_precise for each in _decisive(left, right)):
        return Fraction(0)
    return left.rounding + right.rounding


def _decisive(left: Number, right: Number) -> list[Number]:
    """The numbers whose codes decide a comparison: of a quotient that is compared exactly, its parts."""
    for one, other in ((left, right), (right, left)):
        if one.ratio is not None and (
            known(other) is not None or quotient.between(Comparison.EQ, one, other) is not None
        ):
            return [part for each in (one, other) for part in _parts(each)]
    return [left, right]


def _parts(number: Number) -> tuple[Number, ...]:
    return (number,) if number.ratio is None else (number.ratio.above, number.ratio.below)


def is_null(operand: Typed) -> Scalar:
    """The test ``operand IS NULL``."""
    if isinstance(operand, Null):
        return Constant(value=True)
    if isinstance(operand, Person) and not operand.absent:
        # rows that are nobody's are not read
        return Constant(value=False)
    return IsNull(code_of(_readable(operand, operand)))


def member(operand: Typed, values: Sequence[Typed]) -> Scalar:
    """The test ``operand IN (values)``; constants become one sorted set, however they are ordered."""
    if not values:
        raise UnsupportedSql("IN without values.", remedy="List them: IN ('a', 'b')")
    tests = [compare(Comparison.EQ, operand, each) for each in values]
    sets = [each for each in tests if isinstance(each, Member)]
    if len(sets) < len(tests):
        return tests[0] if len(tests) == 1 else Or(tuple(tests))
    codes = {value for each in sets for value in each.values if isinstance(value, int)}
    texts = {value for each in sets for value in each.values if isinstance(value, str)}
    return Member(
        sets[0].operand, tuple(sorted(codes)) if codes or not texts else tuple(sorted(texts))
    )


def _readable(operand: Typed, other: Typed) -> Typed:
    """The unit as tests see it, and a constant that is compared with it as it is written in the data."""
    if isinstance(operand, Person):
        return operand if operand.reading is None else operand.reading
    if isinstance(other, Person) and isinstance(other.reading, Words):
        value = known(operand)
        return text(_text(value)) if isinstance(value, Fraction) else operand
    return operand


def _constants(op: Comparison, one: Literal, other: Literal) -> Scalar:
    if type(one) is not type(other):
        raise UnsupportedSql("A comparison of constants of two kinds.", remedy="Leave it out.")
    return Constant(compares(op, one, other))


def _against(op: Comparison, operand: Typed, constant: Typed) -> Scalar:
    """A value against a constant."""
    value = known(constant)
    match operand:
        case Number() if isinstance(value, Fraction):
            return _number(op, operand, value)
        case Day(expression):
            day = as_day(constant)
            if (
                day is not None
                and isinstance(day.expression, Constant)
                and isinstance(day.expression.value, int)
            ):
                return _ordered(op, expression, Fraction(day.expression.value))
        case Label():
            return _labelled(op, operand, value)
        case Truth() if isinstance(value, bool):
            _require_equality(op, operand)
            return _equality(op, _member(operand, value=value))
        case Words(expression) if isinstance(value, str):
            _require_equality(op, operand)
            return _equality(op, Member(expression, (value,)))
    raise _kind_error(operand, constant)


def _number(op: Comparison, operand: Number, value: Fraction) -> Scalar:
    if operand.ratio is not None:
        return quotient.against(op, operand.ratio, value)
    exact = value / operand.step
    # what was rounded onto a fine lattice is compared with a constant that was rounded too
    return _ordered(op, operand.expression, Fraction(round(exact)) if operand.nearest else exact)


def _ordered(op: Comparison, expression: Scalar, code: Fraction) -> Scalar:
    """``expression op code`` in integers; a code beyond the range stays just beyond it."""
    low, high = span(expression) or (0, 0)
    code = min(max(code, Fraction(low - 1)), Fraction(high + 1))
    if op in (Comparison.EQ, Comparison.NE):
        return _equality(op, Member(expression, (int(code),) if code.denominator == 1 else ()))
    whole = math.ceil(code) if op in (Comparison.GE, Comparison.LT) else math.floor(code)
    return Compare(op, expression, Constant(whole))


def _numbers(op: Comparison, left: Number, right: Number) -> Scalar:
    if left.ratio is not None or right.ratio is not None:
        products = quotient.between(op, left, right)
        if products is not None:
            return products
    parts = [(left.expression, left.step), (right.expression, right.step)]
    step = common_step([left.step, right.step])
    one, other = (onto(each, its, step) for each, its in parts)
    if any(largest(each) * its > LARGEST * step for each, its in parts):
        raise UnsupportedSql(
            "A comparison of two numbers whose steps are too different for one lattice.",
            remedy="ROUND both, declare a larger step=, or compare with a constant.",
        )
    return Compare(op, one, other)


def _labelled(op: Comparison, operand: Label, value: Literal | None) -> Scalar:
    _require_equality(op, operand)
    if isinstance(value, Fraction) and value.denominator == 1:
        value = str(value.numerator)
    for names in (operand.labels, operand.stored):
        if value in names:
            return _equality(op, Member(operand.expression, (names.index(str(value)),)))
    name = (
        f"{operand.expression.column.name!r}"
        if isinstance(operand.expression, Field)
        else "The expression"
    )
    shown = ", ".join(operand.labels[:40]) + (", ..." if len(operand.labels) > 40 else "")
    raise UnknownName(f"{name} has no declared value {value!r}.", allowed=shown)


def _member(operand: Truth, *, value: bool) -> Scalar:
    if operand.known_codes is not None:
        return Member(operand.known_codes, (int(value),))
    return operand.test if value else Not(operand.test)


def _equality(op: Comparison, test: Scalar) -> Scalar:
    return test if op is Comparison.EQ else Not(test)


def _require_equality(op: Comparison, operand: Typed) -> None:
    if op not in (Comparison.EQ, Comparison.NE):
        leaf = code_of(operand)
        name = repr(leaf.column.name) if isinstance(leaf, Field) else "a value"
        raise UnsupportedSql(
            f"An order comparison ({op.value}) on {name}, whose values have no declared order.",
            remedy="Use = , <> or IN (...).",
        )


def _text(value: Literal | None) -> str:
    """How a constant is written in the data."""
    return (
        str(value.numerator)
        if isinstance(value, Fraction) and value.denominator == 1
        else str(value)
    )


def _kind_error(left: Typed, right: Typed) -> UnsupportedSql:
    name, declared = "An expression", ""
    if isinstance(leaf := code_of(left), Field):
        name, declared = repr(leaf.column.name), f": it is declared as {leaf.column.type!r}"
    value = known(right)
    shown = "another kind of value" if value is None else repr(_text(value))
    return UnsupportedSql(
        f"{name} is compared with {shown}.",
        allowed=f"{_KINDS.get(type(left), 'a value of its kind')}{declared}",
    )
