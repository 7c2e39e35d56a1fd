# SPDX-License-Identifier: Apache-2.0
"""Compares quotients exactly by comparing products of integers within 62 bits.

``compare`` uses it for numbers that came from a division.
"""

import math
from fractions import Fraction

from sfumato.plan.scalar import (
    And,
    Arithmetic,
    Case,
    Compare,
    Comparison,
    Constant,
    Extreme,
    Member,
    Not,
    Operation,
    Scalar,
)
from sfumato.plan.value_range import span
from sfumato.sql.lattice import LARGEST, floored, largest, times
from sfumato.sql.typed import Number, Ratio

_ZERO = Constant(0)
_STRICT = {Comparison.GE: Comparison.GT, Comparison.LE: Comparison.LT}
_WEAK = {Comparison.GT: Comparison.GE, Comparison.LT: Comparison.LE}
_UPWARDS = (Comparison.GT, Comparison.GE)


def against(op: Comparison, ratio: Ratio, value: Fraction) -> Scalar:
    """Returns the test ``above / below op value``; NULL where an operand is NULL or ``below`` zero.

    Guarantees:
        a quotient compares with a constant as the exact numbers do

    >>> from sfumato.metadata.column import Column, Integer
    >>> from sfumato.sql.typed import read
    >>> clicks, shown = read(Column("clicks", Integer(1, 9))), read(Column("shown", Integer(1, 9)))
    >>> test = against(Comparison.GT, Ratio(clicks, shown), Fraction(1, 2))
    >>> test.right  # clicks > floor(shown / 2)
    FloorDivide(operand=Field(column=Column(name='shown', type=Integer(1, 9))), divisor=2)
    """
    above, below = _positive_divisor(ratio)
    most = largest(above) + 1
    # in codes, where no quotient exceeds the largest dividend
    value = value * ratio.below.step / ratio.above.step
    value = min(max(value, Fraction(-most)), Fraction(most))
    if value:
        # with a larger divisor the product exceeds every dividend
        enough = math.ceil(most / abs(value))
        if largest(below) > enough:
            below = Extreme(greatest=False, operands=(below, Constant(enough)))
    near = value.limit_denominator(max(largest(below), 1))
    if near == value:
        return _compare_exactly(op, above, below, value)
    if op in (Comparison.EQ, Comparison.NE):
        # no quotient of these codes equals the constant; the sum of zeros keeps NULL
        zero = Arithmetic(Operation.ADD, times(above, 0), times(below, 0))
        never = Member(zero, ())
        if op is Comparison.EQ:
            return never
        return Not(never)
    # no quotient lies between the constant and the nearest possible one
    is_strict = (near < value) is (op in _UPWARDS)
    ops = _STRICT if is_strict else _WEAK
    return _compare_exactly(ops.get(op, op), above, below, near)


def between(op: Comparison, left: Number, right: Number) -> Scalar | None:
    """Returns the exact test ``left op right`` of quotients, by cross-multiplication.

    At least one of them is a quotient. A negative divisor is allowed; a divisor of zero makes the
    test NULL. Returns None if the products may exceed 62 bits.
    """
    left_dividend, left_divisor = _fraction(left)
    right_dividend, right_divisor = _fraction(right)
    ratio = _steps(left) / _steps(right)
    if largest(left_dividend) * max(largest(right_divisor), 1) * ratio.numerator > LARGEST:
        return None
    if largest(right_dividend) * max(largest(left_divisor), 1) * ratio.denominator > LARGEST:
        return None
    first = times(_multiply_codes(left_dividend, right_divisor), ratio.numerator)
    second = times(_multiply_codes(right_dividend, left_divisor), ratio.denominator)
    return Compare(op, first, second)


def _fraction(number: Number) -> tuple[Scalar, Scalar]:
    """Returns the codes of a number as a dividend and a positive divisor."""
    if number.ratio is None:
        return number.expression, Constant(1)
    return _positive_divisor(number.ratio)


def _steps(number: Number) -> Fraction:
    """Returns the step of the quotient of the codes that ``_fraction`` returns."""
    if number.ratio is None:
        return number.step
    return number.ratio.above.step / number.ratio.below.step


def _multiply_codes(left: Scalar, right: Scalar) -> Scalar:
    """Returns the product of two codes."""
    if isinstance(right, Constant) and isinstance(right.value, int):
        return times(left, right.value)
    return Arithmetic(Operation.MULTIPLY, left, right)


def _positive_divisor(ratio: Ratio) -> tuple[Scalar, Scalar]:
    """Returns the codes of a quotient with a positive divisor.

    The dividend is NULL where the divisor was zero.
    """
    above = ratio.above.expression
    below = ratio.below.expression
    low, high = span(below) or (1, 1)
    if low > 0:
        return above, below
    branches: list[tuple[Scalar, Scalar]] = []
    sizes: tuple[Scalar, ...] = (below, Constant(1))
    if high > 0:
        branches.append((Compare(Comparison.GT, below, _ZERO), above))
    if low < 0:
        branches.append((Compare(Comparison.LT, below, _ZERO), _negate_code(above)))
        sizes = (below, _negate_code(below), Constant(1))
    return Case(tuple(branches), Constant(None)), Extreme(greatest=True, operands=sizes)


def _negate_code(expression: Scalar) -> Scalar:
    """Returns minus a code."""
    return Arithmetic(Operation.SUBTRACT, _ZERO, expression)


def _compare_exactly(
    op: Comparison,
    above: Scalar,
    below: Scalar,
    value: Fraction,
) -> Scalar:
    """Returns the test ``above op value * below`` of integers.

    A product that is not an integer is rounded down or up, as the comparison needs.
    """
    down = floored(below, value)
    if value.denominator == 1:
        return Compare(op, above, down)
    # for a product that is not an integer, ``up`` is ``down + 1``
    up = _negate_code(floored(below, -value))
    match op:
        case Comparison.EQ:
            return And((Compare(op, above, down), Compare(op, above, up)))
        case Comparison.NE:
            return Not(_compare_exactly(Comparison.EQ, above, below, value))
        case Comparison.GT | Comparison.LE:
            return Compare(op, above, down)
        case Comparison.GE | Comparison.LT:
            return Compare(op, above, up)
