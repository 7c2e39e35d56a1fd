# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of rows, exact on lattices: + - * /, rounding, buckets, signs."""

from collections.abc import Sequence
from fractions import Fraction

from sfumato.errors import UnsupportedSql
from sfumato.plan.scalar import (
    Arithmetic,
    Case,
    Compare,
    Comparison,
    Constant,
    Extreme,
    Operation,
    Quotient,
    Scalar,
)
from sfumato.plan.span import span
from sfumato.sql.lattice import aligned, clipped, fitted, floored, lattice_step, plus, times
from sfumato.sql.typed import Number, known, number

_ZERO = Constant(0)


def add(one: Number, other: Number) -> Number:
    """one + other."""
    first, second = known(one), known(other)
    if isinstance(first, Fraction) and isinstance(second, Fraction):
        return number(first + second)
    step, (left, right) = aligned([(one.expression, one.step), (other.expression, other.step)])
    shifted = plus(left, right.value) if isinstance(right, Constant) and isinstance(right.value, int) else None
    return _fitted(shifted or Arithmetic(Operation.ADD, left, right), step)


def negate(one: Number) -> Number:
    """-one."""
    return Number(_negated(one.expression), one.step)


def multiply(one: Number, other: Number) -> Number:
    """one * other; a constant factor changes the step alone."""
    factor, second = known(one), known(other)
    if isinstance(factor, Fraction) and isinstance(second, Fraction):
        return number(factor * second)
    if isinstance(second, Fraction):
        return _scaled(one, second)
    if isinstance(factor, Fraction):
        return _scaled(other, factor)
    product: Scalar = Arithmetic(Operation.MULTIPLY, one.expression, other.expression)
    if one == other:
        product = Extreme(greatest=True, operands=(product, _ZERO))
    return _fitted(product, one.step * other.step)


def divide(one: Number, other: Number, *, skips_zero: bool = False) -> Number:
    """one / other, truncated toward zero onto the lattice of RULES 12 for its range.

    ``skips_zero``: the result is NULL where ``other`` is zero; else ``other`` must never be.
    """
    divisor = known(other)
    if isinstance(divisor, Fraction) and divisor:
        return multiply(one, number(1 / divisor))
    above, below = span(one.expression), span(other.expression)
    if below is not None and below[0] <= 0 <= below[1] and not skips_zero:
        raise may_be_zero()
    if above is None or below in (None, (0, 0)):
        raise always_null()
    nearest = [each for each in (*below, -1, 1) if below[0] <= each <= below[1] and each]
    ends = [Fraction(up) * one.step / (down * other.step) for up in above for down in nearest]
    step = lattice_step(max(ends) - min(ends))
    ratio = one.step / (other.step * step)
    quotient = Quotient(times(one.expression, ratio.numerator), times(other.expression, ratio.denominator))
    # the span of a divisor of both signs takes a code of 1 for the nearest to zero
    return Number(_within(quotient, min(ends), max(ends), step) if skips_zero else quotient, step)


def may_be_zero() -> UnsupportedSql:
    """The refusal of a divisor."""
    return UnsupportedSql(
        "A division by an expression that can be zero on some row.",
        remedy="Keep it away from zero, GREATEST(expression, 1), or write x / NULLIF(expression, 0): NULL there.",
    )


def always_null() -> UnsupportedSql:
    """The refusal of what has no value on any row."""
    return UnsupportedSql("An expression that is always NULL.", remedy="Leave it out.")


def remainder(one: Number, divisor: Number) -> Number:
    """one % constant, with the sign of ``one``."""
    size = known(divisor)
    if not isinstance(size, Fraction) or size <= 0:
        raise UnsupportedSql("MOD by something else than a positive constant.", remedy="MOD(column, 7)")
    step, (left, right) = aligned([(one.expression, one.step), (divisor.expression, divisor.step)])
    found = span(left)
    modulus = right.value if isinstance(right, Constant) and isinstance(right.value, int) else 0
    if found is None or modulus * step != size:
        raise UnsupportedSql("MOD on a lattice that is too fine.", remedy="ROUND the value first.")
    rest = Arithmetic(Operation.SUBTRACT, left, times(Quotient(left, Constant(modulus)), modulus))
    low, high = max(found[0], 1 - modulus), min(found[1], modulus - 1)
    return Number(clipped(rest, min(low, 0), max(high, 0)), step)


def floor(one: Number) -> Number:
    """The greatest whole number that is not above."""
    return Number(floored(one.expression, one.step), Fraction(1))


def ceiling(one: Number) -> Number:
    """The least whole number that is not below."""
    return negate(floor(negate(one)))


def rounded(one: Number, places: int = 0) -> Number:
    """The nearest multiple of 10^-places, half away from zero."""
    step = Fraction(1, 10**places) if places >= 0 else Fraction(10**-places)
    ratio = one.step / step
    if ratio.denominator == 1:
        return Number(times(one.expression, ratio.numerator), step)
    half = Fraction(1, 2)
    found = span(one.expression)
    up = floored(one.expression, ratio, half)
    if found is None or found[0] >= 0:
        return Number(up, step)
    down = _negated(floored(_negated(one.expression), ratio, half))
    return Number(Case(((Compare(Comparison.GE, one.expression, _ZERO), up),), down), step)


def truncated(one: Number) -> Number:
    """The whole part."""
    exact = known(one)
    if isinstance(exact, Fraction):
        return number(int(exact))
    return Number(Quotient(times(one.expression, one.step.numerator), Constant(one.step.denominator)), Fraction(1))


def absolute(one: Number) -> Number:
    """|one|."""
    return Number(Extreme(greatest=True, operands=(one.expression, _negated(one.expression), _ZERO)), one.step)


def sign(one: Number) -> Number:
    """-1, 0 or 1."""
    tests = ((Comparison.GT, 1), (Comparison.LT, -1))
    branches = tuple((Compare(op, one.expression, _ZERO), Constant(value)) for op, value in tests)
    return Number(Case(branches, times(one.expression, 0)), Fraction(1))


def extreme(parts: Sequence[Number], *, greatest: bool) -> Number:
    """The greatest or the least; NULL where one of them is NULL."""
    step, codes = aligned([(each.expression, each.step) for each in parts])
    return Number(Extreme(greatest, tuple(codes)), step)


def bucket(one: Number, low: Fraction, high: Fraction, count: int) -> Number:
    """WIDTH_BUCKET: 0 below ``low``, 1 to ``count``, ``count`` + 1 from ``high`` on."""
    scale = count / (high - low)
    place = floored(one.expression, one.step * scale, 1 - low * scale)
    return Number(clipped(place, 0, count + 1), Fraction(1))


def _scaled(one: Number, factor: Fraction) -> Number:
    if factor == 0:
        return Number(times(one.expression, 0), Fraction(1))
    return Number(one.expression if factor > 0 else _negated(one.expression), one.step * abs(factor))


def _negated(expression: Scalar) -> Scalar:
    if isinstance(expression, Constant) and isinstance(expression.value, int):
        return Constant(-expression.value)
    return Arithmetic(Operation.SUBTRACT, _ZERO, expression)


def _within(expression: Scalar, low: Fraction, high: Fraction, step: Fraction) -> Scalar:
    """A quotient with the span that its exact value has (truncation may pass zero-ward)."""
    ends = (low / step, high / step)
    return clipped(expression, min(int(each) for each in ends), max(int(each) for each in ends))


def _fitted(expression: Scalar, step: Fraction) -> Number:
    return Number(*fitted(expression, step))
