# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of rows, exact on lattices: + - * /, rounding, buckets, signs."""

from collections.abc import Callable, Sequence
from dataclasses import replace
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
from sfumato.sql.lattice import (
    LARGEST,
    aligned,
    clipped,
    finest_step,
    fitted,
    floored,
    largest,
    moved,
    plus,
    times,
)
from sfumato.sql.typed import Number, Ratio, known, number

_ZERO = Constant(0)


def add(one: Number, other: Number) -> Number:
    """one + other."""
    first, second = known(one), known(other)
    if isinstance(first, Fraction) and isinstance(second, Fraction):
        return number(first + second)
    step, (left, right) = aligned([(one.expression, one.step), (other.expression, other.step)])
    shifted = plus(left, right.value) if isinstance(right, Constant) and isinstance(right.value, int) else None
    rounding = sum((each.rounding + moved(each.step, step) for each in (one, other)), Fraction(0))
    found = _fitted(shifted or Arithmetic(Operation.ADD, left, right), step, rounding)
    found = replace(found, nearest=one.nearest or other.nearest)
    for ratio, constant in ((one.ratio, other), (other.ratio, one)):
        if ratio is not None and isinstance(known(constant), Fraction):
            return _of_ratio(found, add(ratio.above, multiply(constant, ratio.below)), ratio)
    return found


def negate(one: Number) -> Number:
    """-one."""
    return _scaled(one, Fraction(-1))


def multiply(one: Number, other: Number) -> Number:
    """one * other; a constant factor changes the step alone."""
    factor, second = known(one), known(other)
    if isinstance(factor, Fraction) and isinstance(second, Fraction):
        return number(factor * second)
    if isinstance(second, Fraction):
        return _scaled(one, second)
    if isinstance(factor, Fraction):
        return _scaled(other, factor)
    square = one == other
    while largest(one.expression) * largest(other.expression) > LARGEST:
        # what is finer loses a bit
        if largest(one.expression) >= largest(other.expression):
            one = _halved(one)
        else:
            other = _halved(other)
    other = one if square else other
    product: Scalar = Arithmetic(Operation.MULTIPLY, one.expression, other.expression)
    if square:
        product = Extreme(greatest=True, operands=(product, _ZERO))
    sizes = [largest(each.expression) * each.step for each in (one, other)]
    rounding = one.rounding * sizes[1] + other.rounding * (sizes[0] + one.rounding)
    return replace(_fitted(product, one.step * other.step, rounding), nearest=one.nearest or other.nearest)


def divide(one: Number, other: Number, *, skips_zero: bool = False) -> Number:
    """one / other, truncated toward zero onto as fine a lattice as there is for its range.

    ``skips_zero``: the result is NULL where ``other`` is zero; else ``other`` must never be. To
    divide by a quotient that may be zero is to multiply by its divisor: a quotient that is only
    rounded to zero never makes the result NULL.

    >>> from sfumato.metadata.column import Column, Integer
    >>> from sfumato.sql.typed import read
    >>> small, large = (read(Column(name, Integer(0, size))) for name, size in (("small", 9), ("large", 10**9)))
    >>> divide(number(1), divide(small, large, skips_zero=True), skips_zero=True).ratio.below == small
    True
    """
    divisor = known(other)
    if isinstance(divisor, Fraction) and divisor:
        return multiply(one, number(1 / divisor))
    above, below = span(one.expression), span(other.expression)
    if below is not None and below[0] <= 0 <= below[1] and not skips_zero:
        raise may_be_zero()
    if other.ratio is not None and below is not None and below[0] <= 0 <= below[1]:
        return divide(multiply(one, _missing_where_zero(other.ratio.below)), other.ratio.above, skips_zero=True)
    if above is None or below in (None, (0, 0)):
        raise always_null()
    nearest = [each for each in (*below, -1, 1) if below[0] <= each <= below[1] and each]
    ends = [Fraction(up) * one.step / (down * other.step) for up in above for down in nearest]
    step = _quotient_step(one, other, max(map(abs, ends)))
    ratio = one.step / (other.step * step)
    quotient = Quotient(times(one.expression, ratio.numerator), times(other.expression, ratio.denominator))
    # the span of a divisor of both signs takes a code of 1 for the nearest to zero
    found = _within(quotient, min(ends), max(ends), step) if skips_zero else quotient
    least = min(map(abs, nearest)) * other.step
    rounding = step + (one.rounding + other.rounding * max(map(abs, ends))) / least
    return Number(found, step, rounding, Ratio(one, other), one.nearest or other.nearest)


def _missing_where_zero(one: Number) -> Number:
    """The same number, NULL where it is zero."""
    found = span(one.expression)
    if found is None or not found[0] <= 0 <= found[1]:
        return one
    is_zero = Compare(Comparison.EQ, one.expression, _ZERO)
    return replace(one, expression=Case(((is_zero, Constant(None)),), one.expression), ratio=None)


def _quotient_step(one: Number, other: Number, size: Fraction) -> Fraction:
    """The finest step for quotients up to a size with which no intermediate result leaves 62 bits."""
    step = finest_step(size)
    while True:
        ratio = one.step / (other.step * step)
        sizes = largest(one.expression) * ratio.numerator, largest(other.expression) * ratio.denominator
        if max(sizes) <= LARGEST or step >= size:
            return step
        step *= 2


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
    within = clipped(rest, min(low, 0), max(high, 0))
    return Number(within, step, one.rounding + moved(one.step, step), nearest=one.nearest)


def floor(one: Number) -> Number:
    """The greatest whole number that is not above."""
    return Number(floored(one.expression, one.step), Fraction(1), one.rounding)


def ceiling(one: Number) -> Number:
    """The least whole number that is not below."""
    return negate(floor(negate(one)))


def rounded(one: Number, places: int = 0) -> Number:
    """The nearest multiple of 10^-places, half away from zero."""
    step = Fraction(1, 10**places) if places >= 0 else Fraction(10**-places)
    ratio = one.step / step
    if ratio.denominator == 1:
        return Number(times(one.expression, ratio.numerator), step, one.rounding)
    half = Fraction(1, 2)
    found = span(one.expression)
    up = floored(one.expression, ratio, half)
    if found is None or found[0] >= 0:
        return Number(up, step, one.rounding)
    down = _negated(floored(_negated(one.expression), ratio, half))
    return Number(Case(((Compare(Comparison.GE, one.expression, _ZERO), up),), down), step, one.rounding)


def truncated(one: Number) -> Number:
    """The whole part."""
    exact = known(one)
    if isinstance(exact, Fraction):
        return number(int(exact))
    whole = Quotient(times(one.expression, one.step.numerator), Constant(one.step.denominator))
    return Number(whole, Fraction(1), one.rounding)


def absolute(one: Number) -> Number:
    """|one|."""
    size = Extreme(greatest=True, operands=(one.expression, _negated(one.expression), _ZERO))
    found = Number(size, one.step, one.rounding, nearest=one.nearest)
    if one.ratio is None:
        return found
    return replace(found, ratio=Ratio(absolute(one.ratio.above), absolute(one.ratio.below)))


def sign(one: Number) -> Number:
    """-1, 0 or 1."""
    tests = ((Comparison.GT, 1), (Comparison.LT, -1))
    branches = tuple((Compare(op, one.expression, _ZERO), Constant(value)) for op, value in tests)
    return Number(Case(branches, times(one.expression, 0)), Fraction(1), one.rounding)


def extreme(parts: Sequence[Number], *, greatest: bool) -> Number:
    """The greatest or the least; NULL where one of them is NULL."""
    wrap, codes = together(parts)
    return wrap(Extreme(greatest, tuple(codes)))


def together(parts: Sequence[Number]) -> tuple[Callable[[Scalar], Number], list[Scalar]]:
    """The codes of numbers on one lattice, and what a choice among them is."""
    step, codes = aligned([(each.expression, each.step) for each in parts])
    rounding = max(each.rounding + moved(each.step, step) for each in parts)
    nearest = any(each.nearest for each in parts)
    return lambda code: Number(code, step, rounding, nearest=nearest), codes


def bucket(one: Number, low: Fraction, high: Fraction, count: int) -> Number:
    """WIDTH_BUCKET: 0 below ``low``, 1 to ``count``, ``count`` + 1 from ``high`` on."""
    scale = count / (high - low)
    place = floored(one.expression, one.step * scale, 1 - low * scale)
    return Number(clipped(place, 0, count + 1), Fraction(1), one.rounding)


def _scaled(one: Number, factor: Fraction) -> Number:
    if factor == 0:
        return Number(times(one.expression, 0), Fraction(1))
    expression = one.expression if factor > 0 else _negated(one.expression)
    found = Number(expression, one.step * abs(factor), one.rounding * abs(factor), nearest=one.nearest)
    return found if one.ratio is None else _of_ratio(found, _scaled(one.ratio.above, factor), one.ratio)


def _of_ratio(found: Number, above: Number, ratio: Ratio) -> Number:
    """The same number with what it is the quotient of, as far as that is exact."""
    return found if above.rounding else replace(found, ratio=Ratio(above, ratio.below))


def _halved(one: Number) -> Number:
    """The same number on steps twice as large."""
    rounded = floored(one.expression, Fraction(1, 2), Fraction(1, 2))
    return Number(rounded, one.step * 2, one.rounding + one.step, nearest=one.nearest)


def _negated(expression: Scalar) -> Scalar:
    if isinstance(expression, Constant) and isinstance(expression.value, int):
        return Constant(-expression.value)
    return Arithmetic(Operation.SUBTRACT, _ZERO, expression)


def _within(expression: Scalar, low: Fraction, high: Fraction, step: Fraction) -> Scalar:
    """A quotient with the span that its exact value has (truncation may pass zero-ward)."""
    ends = (low / step, high / step)
    return clipped(expression, min(int(each) for each in ends), max(int(each) for each in ends))


def _fitted(expression: Scalar, step: Fraction, rounding: Fraction) -> Number:
    found, coarse = fitted(expression, step)
    return Number(found, coarse, rounding + moved(step, coarse))
