# SPDX-License-Identifier: Apache-2.0
"""Comparisons of quotients, as comparisons of products: exact, and never beyond 62 bits."""

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
    """The test ``above / below op value``; NULL where a side is NULL or the divisor zero.

    Guarantees:
        a quotient compares with a constant as the exact numbers do

    >>> from sfumato.metadata.column import Column, Integer
    >>> from sfumato.sql.typed import read
    >>> clicks, shown = (read(Column(name, Integer(1, 9))) for name in ("clicks", "shown"))
    >>> against(Comparison.GT, Ratio(clicks, shown), Fraction(1, 2)).right  # clicks > floor(shown / 2)
    FloorDivide(operand=Field(column=Column(name='shown', type=Integer(1, 9))), divisor=2)
    """
    above, below = _positive(ratio)
    most = largest(above) + 1
    # of codes, of which no quotient is larger than the largest dividend
    value = min(max(value * ratio.below.step / ratio.above.step, Fraction(-most)), Fraction(most))
    if value:
        # beyond this divisor the product is larger than every dividend
        enough = math.ceil(most / abs(value))
        if largest(below) > enough:
            below = Extreme(greatest=False, operands=(below, Constant(enough)))
    near = value.limit_denominator(max(largest(below), 1))
    if near == value:
        return _exactly(op, above, below, value)
    if op in (Comparison.EQ, Comparison.NE):
        # no quotient of these numbers is this constant
        never = Member(Arithmetic(Operation.ADD, times(above, 0), times(below, 0)), ())
        return never if op is Comparison.EQ else Not(never)
    # none lies between the constant and the nearest of them
    strict = (near < value) is (op in _UPWARDS)
    return _exactly(_STRICT.get(op, op) if strict else _WEAK.get(op, op), above, below, near)


def between(op: Comparison, left: Number, right: Number) -> Scalar | None:
    """The test ``left op right``, of which one is a quotient, by their products; None: they may not fit 62 bits."""
    one, below = _fraction(left)
    other, under = _fraction(right)
    ratio = _steps(left) / _steps(right)
    factors = [(one, under, ratio.numerator), (other, below, ratio.denominator)]
    if any(
        largest(each) * max(largest(divisor), 1) * factor > LARGEST
        for each, divisor, factor in factors
    ):
        return None
    first, second = (times(_product(each, by), factor) for each, by, factor in factors)
    return Compare(op, first, second)


def _fraction(number: Number) -> tuple[Scalar, Scalar]:
    """A number as a dividend and a divisor above zero."""
    return (number.expression, Constant(1)) if number.ratio is None else _positive(number.ratio)


def _steps(number: Number) -> Fraction:
    return (
        number.step if number.ratio is None else number.ratio.above.step / number.ratio.below.step
    )


def _product(one: Scalar, other: Scalar) -> Scalar:
    if isinstance(other, Constant) and isinstance(other.value, int):
        return times(one, other.value)
    return Arithmetic(Operation.MULTIPLY, one, other)


def _positive(ratio: Ratio) -> tuple[Scalar, Scalar]:
    """The same quotient with a divisor above zero; where it was zero the dividend is NULL."""
    above, below = ratio.above.expression, ratio.below.expression
    low, high = span(below) or (1, 1)
    if low > 0:
        return above, below
    signs = [(Compare(Comparison.GT, below, _ZERO), above)] if high > 0 else []
    signs += [(Compare(Comparison.LT, below, _ZERO), _negated(above))] if low < 0 else []
    sizes = (below, _negated(below), Constant(1)) if low < 0 else (below, Constant(1))
    return Case(tuple(signs), Constant(None)), Extreme(greatest=True, operands=sizes)


def _negated(expression: Scalar) -> Scalar:
    return Arithmetic(Operation.SUBTRACT, _ZERO, expression)


def _exactly(op: Comparison, above: Scalar, below: Scalar, value: Fraction) -> Scalar:
    """``above op value * below`` of whole numbers: against the whole number below or above the product."""
    down = floored(below, value)
    if value.denominator == 1:
        return Compare(op, above, down)
    # of what is no whole number, the next one is above it
    up = _negated(floored(below, -value))
    match op:
        case Comparison.EQ:
            return And((Compare(op, above, down), Compare(op, above, up)))
        case Comparison.NE:
            return Not(_exactly(Comparison.EQ, above, below, value))
        case Comparison.GT | Comparison.LE:
            return Compare(op, above, down)
        case Comparison.GE | Comparison.LT:
            return Compare(op, above, up)
