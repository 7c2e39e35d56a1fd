# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of row expressions on lattices: + - * /, rounding, buckets, signs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypedDict

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
from sfumato.plan.value import NEGLIGIBLE
from sfumato.plan.value_range import span
from sfumato.sql.lattice import (
    LARGEST,
    aligned,
    clipped,
    common_step,
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


class _Marks(TypedDict):
    """The flags that a number inherits from its operands."""

    nearest: bool
    cut: bool


def add(one: Number, other: Number) -> Number:
    """Returns the sum of two numbers."""
    first = known(one)
    second = known(other)
    if isinstance(first, Fraction) and isinstance(second, Fraction):
        return number(first + second)
    wrap, (left, right) = together([one, other])
    if isinstance(right, Constant) and isinstance(right.value, int):
        total = wrap(plus(left, right.value))
    else:
        total = wrap(Arithmetic(Operation.ADD, left, right))
    rounding = one.rounding + moved(one.step, total.step)
    rounding += other.rounding + moved(other.step, total.step)
    total = replace(total, rounding=rounding)
    for ratio, constant in ((one.ratio, other), (other.ratio, one)):
        if ratio is not None and isinstance(known(constant), Fraction):
            above = add(ratio.above, multiply(constant, ratio.below))
            return _of_ratio(total, above, ratio)
    return total


def negate(one: Number) -> Number:
    """Returns the negative of a number."""
    return _scaled(one, Fraction(-1))


def multiply(one: Number, other: Number) -> Number:
    """Returns the product of two numbers, exact up to 62 bits.

    A constant factor only changes the step.
    """
    factor = known(one)
    second = known(other)
    if isinstance(factor, Fraction) and isinstance(second, Fraction):
        return number(factor * second)
    if isinstance(second, Fraction):
        return _scaled(one, second)
    if isinstance(factor, Fraction):
        return _scaled(other, factor)
    square = one == other
    lost, other_lost = _excess(largest(one.expression), largest(other.expression))
    one = _coarser(one, lost)
    other = _coarser(other, lost if square else other_lost)
    product: Scalar = Arithmetic(Operation.MULTIPLY, one.expression, other.expression)
    if square:
        product = Extreme(greatest=True, operands=(product, _ZERO))
    size = largest(one.expression) * one.step
    other_size = largest(other.expression) * other.step
    rounding = one.rounding * other_size + other.rounding * (size + one.rounding)
    step = one.step * other.step
    most = LARGEST - 2
    if largest(product) > most:
        # a comparison with it needs codes just beyond its range
        product = clipped(product, -most, most)
        rounding += 2 * step
    return Number(product, step, rounding, **_marks(one, other))


def divide(one: Number, other: Number, *, skips_zero: bool = False) -> Number:
    """Returns the quotient one / other, truncated toward zero on the finest possible lattice.

    ``skips_zero``: the result is NULL where ``other`` is zero; without it ``other`` must never be
    zero. Division by a quotient that may be zero multiplies by that quotient's divisor instead, so
    a quotient that is only rounded to zero never makes the result NULL.

    Raises:
        UnsupportedSql: ``other`` may be zero, or the result is always NULL.

    >>> from sfumato.metadata.column import Column, Integer
    >>> from sfumato.sql.typed import read
    >>> small = read(Column("small", Integer(0, 9)))
    >>> large = read(Column("large", Integer(0, 10**9)))
    >>> rate = divide(small, large, skips_zero=True)
    >>> divide(number(1), rate, skips_zero=True).ratio.below == small
    True
    """
    divisor = known(other)
    if isinstance(divisor, Fraction) and divisor:
        return multiply(one, number(1 / divisor))
    above = span(one.expression)
    below = span(other.expression)
    if below is not None and below[0] <= 0 <= below[1]:
        if not skips_zero:
            raise may_be_zero()
        if other.ratio is not None:
            dividend = multiply(one, _null_where_zero(other.ratio.below))
            return divide(dividend, other.ratio.above, skips_zero=True)
    if above is None or below is None or below == (0, 0):
        raise _always_null()
    ends = _QuotientRange.of(one, other, above, below)
    return _divided(one, other, ends, skips_zero=skips_zero)


@dataclass(frozen=True, slots=True)
class _QuotientRange:
    """The range of a quotient, its largest absolute value, and the least one of its divisor."""

    low: Fraction
    high: Fraction
    size: Fraction
    least: Fraction

    @classmethod
    def of(
        cls,
        one: Number,
        other: Number,
        above: tuple[int, int],
        below: tuple[int, int],
    ) -> "_QuotientRange":
        """Returns the range of one / other, whose codes lie in ``above`` and ``below``."""
        low, high = below
        # the divisors at which a quotient can be extreme: the ends, and those next to zero
        divisors = [code for code in (low, high, -1, 1) if code and low <= code <= high]
        ends = []
        for code in above:
            for divisor in divisors:
                ends.append(Fraction(code) * one.step / (divisor * other.step))
        size = max(abs(end) for end in ends)
        least = min(abs(divisor) for divisor in divisors) * other.step
        return cls(min(ends), max(ends), size, least)


def _divided(
    one: Number,
    other: Number,
    ends: _QuotientRange,
    *,
    skips_zero: bool,
) -> Number:
    """Returns the quotient of two numbers, on the finest step that keeps within 62 bits."""
    exact = Ratio(one, other)
    step = _quotient_step(one, other, ends.size)
    if not _is_computed(one, other, step):
        one, other = _fitted(one), _fitted(other)
        step = _quotient_step(one, other, ends.size)
    ratio = one.step / (other.step * step)
    dividend = times(one.expression, ratio.numerator)
    quotient: Scalar = Quotient(dividend, times(other.expression, ratio.denominator))
    if skips_zero:
        # ``span`` of a divisor of both signs assumes that it may be as close to zero as 1
        quotient = _within(quotient, ends.low, ends.high, step)
    rounding = step + (one.rounding + other.rounding * ends.size) / ends.least
    marks = _marks(one, other)
    if step * NEGLIGIBLE > one.step:
        marks["cut"] = True
    return Number(quotient, step, rounding, exact, **marks)


def _null_where_zero(one: Number) -> Number:
    """Returns the same number, NULL where it is zero."""
    ends = span(one.expression)
    if ends is None or not ends[0] <= 0 <= ends[1]:
        return one
    is_zero = Compare(Comparison.EQ, one.expression, _ZERO)
    expression = Case(((is_zero, Constant(None)),), one.expression)
    return replace(one, expression=expression, ratio=None)


def _quotient_step(one: Number, other: Number, size: Fraction) -> Fraction:
    """Returns the finest step for quotients up to ``size`` that needs no more than 62 bits."""
    step = finest_step(size)
    while step < size and not _is_computed(one, other, step):
        step *= 2
    return step


def _is_computed(one: Number, other: Number, step: Fraction) -> bool:
    """Whether a quotient with this step is computed within 62 bits."""
    ratio = one.step / (other.step * step)
    dividend = largest(one.expression) * ratio.numerator
    divisor = largest(other.expression) * ratio.denominator
    return max(dividend, divisor) <= LARGEST


def may_be_zero() -> UnsupportedSql:
    """Returns the refusal of a divisor that can be zero."""
    return UnsupportedSql(
        "A division by an expression that can be zero on some row.",
        remedy="Keep it away from zero, GREATEST(expression, 1), "
        "or write x / NULLIF(expression, 0): NULL there.",
    )


def _always_null() -> UnsupportedSql:
    """Returns the refusal of an expression that is NULL on every row."""
    return UnsupportedSql("An expression that is always NULL.", remedy="Leave it out.")


def remainder(one: Number, divisor: Number) -> Number:
    """Returns the remainder of a number divided by a constant, with the sign of the number.

    Raises:
        UnsupportedSql: the divisor is not a positive constant.
    """
    size = known(divisor)
    if not isinstance(size, Fraction) or size <= 0:
        raise UnsupportedSql(
            "MOD by something else than a positive constant.", remedy="MOD(column, 7)"
        )
    parts = [(one.expression, one.step), (divisor.expression, divisor.step)]
    step, (left, right) = aligned(parts)
    ends = span(left)
    modulus = 0
    if isinstance(right, Constant) and isinstance(right.value, int):
        modulus = right.value
    if ends is None or modulus * step != size:
        raise UnsupportedSql("MOD on a lattice that is too fine.", remedy="ROUND the value first.")
    multiple = times(Quotient(left, Constant(modulus)), modulus)
    rest = Arithmetic(Operation.SUBTRACT, left, multiple)
    low = max(ends[0], 1 - modulus)
    high = min(ends[1], modulus - 1)
    within = clipped(rest, min(low, 0), max(high, 0))
    # rounding past a multiple changes the remainder by the whole divisor
    return replace(_stepped(one, within, step, jump=size), nearest=one.nearest)


def floor(one: Number) -> Number:
    """Returns the largest integer that is not greater than a number."""
    return _stepped(one, floored(one.expression, one.step), Fraction(1))


def ceiling(one: Number) -> Number:
    """Returns the smallest integer that is not less than a number."""
    return negate(floor(negate(one)))


def rounded(one: Number, places: int = 0) -> Number:
    """Returns the nearest multiple of 10^-places; halves are rounded away from zero."""
    step = Fraction(10) ** -places
    ratio = one.step / step
    if ratio.denominator == 1:
        if largest(one.expression) * ratio.numerator > LARGEST:
            return one
        scaled = times(one.expression, ratio.numerator)
        return Number(scaled, step, one.rounding, cut=one.cut)
    half = Fraction(1, 2)
    ends = span(one.expression)
    up = floored(one.expression, ratio, half)
    if ends is None or ends[0] >= 0:
        return _stepped(one, up, step)
    down = _negated(floored(_negated(one.expression), ratio, half))
    is_positive = Compare(Comparison.GE, one.expression, _ZERO)
    return _stepped(one, Case(((is_positive, up),), down), step)


def truncated(one: Number) -> Number:
    """Returns the number truncated toward zero."""
    exact = known(one)
    if isinstance(exact, Fraction):
        return number(int(exact))
    multiple = times(one.expression, one.step.numerator)
    whole = Quotient(multiple, Constant(one.step.denominator))
    return _stepped(one, whole, Fraction(1))


def absolute(one: Number) -> Number:
    """Returns the absolute value of a number."""
    signs = (one.expression, _negated(one.expression), _ZERO)
    size = Extreme(greatest=True, operands=signs)
    if one.ratio is None:
        return replace(one, expression=size)
    ratio = Ratio(absolute(one.ratio.above), absolute(one.ratio.below))
    return replace(one, expression=size, ratio=ratio)


def sign(one: Number) -> Number:
    """Returns the sign of a number: -1, 0 or 1."""
    branches = (
        (Compare(Comparison.GT, one.expression, _ZERO), Constant(1)),
        (Compare(Comparison.LT, one.expression, _ZERO), Constant(-1)),
    )
    # zero times the number is zero, but NULL where the number is
    chosen = Case(branches, times(one.expression, 0))
    return _stepped(one, chosen, Fraction(1), jump=Fraction(2))


def extreme(parts: Sequence[Number], *, greatest: bool) -> Number:
    """Returns the greatest or the least number; NULL where one of them is NULL."""
    wrap, codes = together(parts)
    return wrap(Extreme(greatest, tuple(codes)))


def together(parts: Sequence[Number]) -> tuple[Callable[[Scalar], Number], list[Scalar]]:
    """Returns the codes of numbers on one lattice, and a function from a code to its number.

    The function is for codes that are chosen among the returned ones.
    """
    step, codes = aligned([(part.expression, part.step) for part in parts])
    roundings = [part.rounding + moved(part.step, step) for part in parts]
    rounding = max(roundings)
    marks = _marks(*parts)
    # ``aligned`` took a coarser step than the common one
    if step != common_step([part.step for part in parts]):
        marks["cut"] = True
    return lambda code: Number(code, step, rounding, **marks), codes


def bucket(
    one: Number,
    low: Fraction,
    high: Fraction,
    count: int,
) -> Number:
    """Returns WIDTH_BUCKET: 0 below ``low``, 1 to ``count``, ``count`` + 1 from ``high`` on."""
    scale = count / (high - low)
    place = floored(one.expression, one.step * scale, 1 - low * scale)
    if one.is_precise:
        one = replace(one, rounding=one.rounding * scale)
    within = clipped(place, 0, count + 1)
    return _stepped(one, within, Fraction(1), jump=Fraction(count + 1))


def _scaled(one: Number, factor: Fraction) -> Number:
    """Returns a number times a constant, which changes its step and its sign."""
    if factor == 0:
        return Number(times(one.expression, 0), Fraction(1))
    expression = one.expression if factor > 0 else _negated(one.expression)
    step = one.step * abs(factor)
    rounding = one.rounding * abs(factor)
    scaled = replace(
        one,
        expression=expression,
        step=step,
        rounding=rounding,
        ratio=None,
    )
    if one.ratio is None:
        return scaled
    return _of_ratio(scaled, _scaled(one.ratio.above, factor), one.ratio)


def _of_ratio(quotient: Number, above: Number, ratio: Ratio) -> Number:
    """Returns a quotient with its exact dividend ``above``; without, if that was rounded."""
    if above.rounding:
        return quotient
    return replace(quotient, ratio=Ratio(above, ratio.below))


def _excess(one: int, other: int) -> tuple[int, int]:
    """Returns how many low bits each of two factors must drop for a product of at most 62 bits."""
    lost = 0
    other_lost = 0
    while one * other > LARGEST:
        if one >= other:
            one = one // 2 + 1
            lost += 1
        else:
            other = other // 2 + 1
            other_lost += 1
    return lost, other_lost


def _coarser(one: Number, bits: int) -> Number:
    """Returns the same number without its last ``bits`` bits."""
    if not bits:
        return one
    shortened = floored(one.expression, Fraction(1, 2**bits), Fraction(1, 2))
    step = one.step * 2**bits
    rounding = one.rounding + step / 2
    return Number(shortened, step, rounding, nearest=one.nearest, cut=True)


def _stepped(
    one: Number,
    expression: Scalar,
    step: Fraction,
    *,
    jump: Fraction | None = None,
) -> Number:
    """Returns a step function of a number.

    Where the number was rounded past an edge, the result is off by a whole ``jump``, by default
    one step.
    """
    rounding = one.rounding
    if not one.is_precise:
        rounding += step if jump is None else jump
    return Number(expression, step, rounding, cut=one.cut)


def _marks(*parts: Number) -> _Marks:
    """Returns the flags of a number that is computed from others."""
    nearest = any(part.nearest for part in parts)
    cut = any(part.cut for part in parts)
    return {"nearest": nearest, "cut": cut}


def _negated(expression: Scalar) -> Scalar:
    """Returns minus a code."""
    if isinstance(expression, Constant) and isinstance(expression.value, int):
        return Constant(-expression.value)
    return Arithmetic(Operation.SUBTRACT, _ZERO, expression)


def _within(
    expression: Scalar,
    low: Fraction,
    high: Fraction,
    step: Fraction,
) -> Scalar:
    """Returns a quotient clipped to the range of its exact value, truncated toward zero."""
    return clipped(expression, int(low / step), int(high / step))


def _fitted(one: Number) -> Number:
    """Returns the same number with codes of at most 52 bits."""
    expression, coarse = fitted(one.expression, one.step)
    rounding = one.rounding + moved(one.step, coarse)
    return replace(
        one,
        expression=expression,
        step=coarse,
        rounding=rounding,
        cut=one.cut or coarse != one.step,
        ratio=None,
    )
