# SPDX-License-Identifier: Apache-2.0
"""Comparisons of typed values, lowered to comparisons of codes.

``row_expressions`` uses it. Every comparison becomes one of integers (or of strings, for a Text
column), so it means the same on every engine. A constant is converted exactly to the lattice of the
other operand.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

from sfumato.errors import UnknownName, UnsupportedSql
from sfumato.metadata.timestamp import parsed_moment
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
from sfumato.sql.timestamps import aligned, as_instant, midnight
from sfumato.sql.typed import (
    Day,
    Instant,
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
    Instant: "a timestamp, TIMESTAMP '2019-12-31 18:30:00'; or a date with CAST(column AS DATE)",
    Label: "a text",
    Words: "a text",
    Truth: "TRUE or FALSE",
}


def compare(op: Comparison, left: Typed, right: Typed) -> Scalar:
    """Returns the test ``left op right``.

    Raises:
        UnsupportedSql: values of different types, or an order of unordered values.
        UnknownName: a string that a Category does not declare.
    """
    names_persons = isinstance(left, Person) or isinstance(right, Person)
    left, right = _reading_of(left, right), _reading_of(right, left)
    if isinstance(left, Null) or isinstance(right, Null):
        raise UnsupportedSql(
            "A comparison with NULL is never true.", remedy="Write IS NULL or IS NOT NULL."
        )
    one = known(left)
    other = known(right)
    if one is not None and other is not None:
        return _compare_constants(op, one, other)
    if one is not None:
        return _compare_with_constant(MIRRORED.get(op, op), right, left)
    if other is not None:
        return _compare_with_constant(op, left, right)
    if names_persons and isinstance(left, Words) and isinstance(right, Words):
        raise _text_error()
    return _compare_values(op, left, right)


def _text_error() -> UnsupportedSql:
    """Returns the refusal to compare a Text column, or a unit, with other columns."""
    return UnsupportedSql(
        "A Text column compared with something else than a text of its kind or a constant.",
        remedy="Declare both as sf.Text(), or both as sf.Category(...) with their values.",
    )


def _compare_values(op: Comparison, left: Typed, right: Typed) -> Scalar:
    """Returns the comparison of two values of which neither is a constant."""
    match left, right:
        case Number(), Number():
            return _compare_numbers(op, left, right)
        case Day(first), Day(second):
            return Compare(op, first, second)
        case Instant(), Instant():
            _, (first, second) = aligned([left, right])
            return Compare(op, first, second)
        case Label(), Label():
            _require_equality(op, left)
            labels = tuple(dict.fromkeys((*left.labels, *right.labels)))
            return Compare(op, recoded(left, labels), recoded(right, labels))
        case Truth(), Truth():
            _require_equality(op, left)
            return Compare(op, left.codes, right.codes)
        case Words(first), Words(second):
            _require_equality(op, left)
            return Compare(op, first, second)
        case (Words(), _) | (_, Words()):
            raise _text_error()
    raise _kind_error(left, right)


def uncertain(left: Typed, right: Typed) -> Fraction:
    """Returns the rounding error of two compared numbers if one is not precise; else 0."""
    if not isinstance(left, Number) or not isinstance(right, Number):
        return Fraction(0)
    rounding = left.rounding + right.rounding
    if not rounding or all(part.is_precise for part in _deciding_numbers(left, right)):
        return Fraction(0)
    return rounding


def _deciding_numbers(left: Number, right: Number) -> list[Number]:
    """Returns the numbers whose codes decide a comparison.

    For a quotient that is compared exactly these are its dividend and its divisor.
    """
    for one, other in ((left, right), (right, left)):
        if one.ratio is None:
            continue
        if known(other) is not None or quotient.between(Comparison.EQ, one, other) is not None:
            return [*_quotient_parts(one), *_quotient_parts(other)]
    return [left, right]


def _quotient_parts(number: Number) -> tuple[Number, ...]:
    """Returns the dividend and the divisor of a quotient; any other number itself."""
    if number.ratio is None:
        return (number,)
    return number.ratio.above, number.ratio.below


def is_null(operand: Typed) -> Scalar:
    """Returns the test ``operand IS NULL``."""
    if isinstance(operand, Null):
        return Constant(value=True)
    if isinstance(operand, Person) and not operand.absent:
        # rows without a unit are not read
        return Constant(value=False)
    if isinstance(operand, Person) and operand.mark is not None:
        return IsNull(operand.mark)
    return IsNull(code_of(_reading_of(operand, operand)))


def member(operand: Typed, values: Sequence[Typed]) -> Scalar:
    """Returns the test ``operand IN (values)``; constants become one sorted set."""
    if not values:
        raise UnsupportedSql("IN without values.", remedy="List them: IN ('a', 'b')")
    tests = [compare(Comparison.EQ, operand, value) for value in values]
    sets = [test for test in tests if isinstance(test, Member)]
    if len(sets) < len(tests):
        if len(tests) == 1:
            return tests[0]
        return Or(tuple(tests))
    listed = [value for test in sets for value in test.values]
    codes = {value for value in listed if isinstance(value, int)}
    texts = {value for value in listed if isinstance(value, str)}
    if codes or not texts:
        return Member(sets[0].operand, tuple(sorted(codes)))
    return Member(sets[0].operand, tuple(sorted(texts)))


def _reading_of(operand: Typed, other: Typed) -> Typed:
    """Returns the value that a test reads: of a unit column its ``reading``.

    A number that is compared with a unit column of strings becomes a string.
    """
    if isinstance(operand, Person):
        if operand.reading is None:
            return operand
        return operand.reading
    if isinstance(other, Person) and isinstance(other.reading, Words):
        value = known(operand)
        if isinstance(value, Fraction):
            return text(_constant_text(value))
    return operand


def _compare_constants(op: Comparison, left: Literal, right: Literal) -> Scalar:
    """Returns the comparison of two constants, which is a constant."""
    if type(left) is not type(right):
        raise UnsupportedSql("A comparison of constants of two kinds.", remedy="Leave it out.")
    return Constant(compares(op, left, right))


def _compare_with_constant(op: Comparison, operand: Typed, constant: Typed) -> Scalar:
    """Returns the comparison of a value with a constant."""
    value = known(constant)
    match operand:
        case Number() if isinstance(value, Fraction):
            return _compare_number(op, operand, value)
        case Day(expression):
            day = as_day(constant)
            code = day.expression if day is not None else None
            if isinstance(code, Constant) and isinstance(code.value, int):
                return _compare_code(op, expression, Fraction(code.value))
            if isinstance(value, str) and parsed_moment(value) is not None:
                # as SQL has it, a date is its first moment
                return _compare_with_constant(op, midnight(operand), constant)
        case Instant(expression, step, zone):
            moment = as_instant(constant, zone)
            second = moment.expression if moment is not None else None
            if isinstance(second, Constant) and isinstance(second.value, int):
                return _compare_code(op, expression, Fraction(second.value, step))
        case Label():
            return _compare_label(op, operand, value)
        case Truth() if isinstance(value, bool):
            _require_equality(op, operand)
            return _equality_test(op, _member(operand, value=value))
        case Words(expression) if isinstance(value, str):
            _require_equality(op, operand)
            return _equality_test(op, Member(expression, (value,)))
    raise _kind_error(operand, constant)


def _compare_number(op: Comparison, operand: Number, value: Fraction) -> Scalar:
    """Returns the comparison of a number with a constant."""
    if operand.ratio is not None:
        return quotient.against(op, operand.ratio, value)
    code = value / operand.step
    if operand.nearest:
        # values were rounded to this lattice, so the constant is rounded too
        code = Fraction(round(code))
    return _compare_code(op, operand.expression, code)


def _compare_code(op: Comparison, expression: Scalar, code: Fraction) -> Scalar:
    """Returns ``expression op code`` in integers; a code out of range is moved just outside it."""
    low, high = span(expression) or (0, 0)
    code = min(max(code, Fraction(low - 1)), Fraction(high + 1))
    if op in (Comparison.EQ, Comparison.NE):
        codes = (int(code),) if code.denominator == 1 else ()
        return _equality_test(op, Member(expression, codes))
    rounds_up = op in (Comparison.GE, Comparison.LT)
    whole = math.ceil(code) if rounds_up else math.floor(code)
    return Compare(op, expression, Constant(whole))


def _compare_numbers(op: Comparison, left: Number, right: Number) -> Scalar:
    """Returns the comparison of two numbers on their common lattice."""
    if left.ratio is not None or right.ratio is not None:
        products = quotient.between(op, left, right)
        if products is not None:
            return products
    step = common_step([left.step, right.step])
    for number in (left, right):
        if largest(number.expression) * number.step > LARGEST * step:
            raise UnsupportedSql(
                "A comparison of two numbers whose steps are too different for one lattice.",
                remedy="ROUND both, declare a larger step=, or compare with a constant.",
            )
    one = onto(left.expression, left.step, step)
    other = onto(right.expression, right.step, step)
    return Compare(op, one, other)


def _compare_label(op: Comparison, operand: Label, value: Literal | None) -> Scalar:
    """Returns the comparison of a declared string with a constant."""
    _require_equality(op, operand)
    if isinstance(value, Fraction) and value.denominator == 1:
        value = str(value.numerator)
    for names in (operand.labels, operand.stored):
        if value in names:
            code = names.index(str(value))
            return _equality_test(op, Member(operand.expression, (code,)))
    name = "The expression"
    if isinstance(operand.expression, Field):
        name = repr(operand.expression.column.name)
    shown = ", ".join(operand.labels[:40])
    if len(operand.labels) > 40:
        shown += ", ..."
    raise UnknownName(f"{name} has no declared value {value!r}.", allowed=shown)


def _member(operand: Truth, *, value: bool) -> Scalar:
    """Returns the test whether a Boolean has a value."""
    if operand.known_codes is not None:
        return Member(operand.known_codes, (int(value),))
    if value:
        return operand.test
    return Not(operand.test)


def _equality_test(op: Comparison, test: Scalar) -> Scalar:
    """Returns the test of equality, negated where ``op`` is <>."""
    if op is Comparison.EQ:
        return test
    return Not(test)


def _require_equality(op: Comparison, operand: Typed) -> None:
    """Refuses an order comparison of values without a declared order."""
    if op not in (Comparison.EQ, Comparison.NE):
        leaf = code_of(operand)
        name = repr(leaf.column.name) if isinstance(leaf, Field) else "a value"
        raise UnsupportedSql(
            f"An order comparison ({op.value}) on {name}, whose values have no declared order.",
            remedy="Use = , <> or IN (...).",
        )


def _constant_text(value: Literal | None) -> str:
    """Returns a constant as it is written in the data."""
    # str of a Fraction has no denominator where it is 1
    return str(value)


def _kind_error(left: Typed, right: Typed) -> UnsupportedSql:
    """Returns the refusal to compare values of different types."""
    name = "An expression"
    declared = ""
    if isinstance(leaf := code_of(left), Field):
        name = repr(leaf.column.name)
        declared = f": it is declared as {leaf.column.type!r}"
    value = known(right)
    shown = "another kind of value" if value is None else repr(_constant_text(value))
    return UnsupportedSql(
        f"{name} is compared with {shown}.",
        allowed=f"{_KINDS.get(type(left), 'a value of its kind')}{declared}",
    )
