# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of rows, exact on lattices: + - * /, rounding, buckets, signs."""

from collections.abc import Callable, Sequence
from dataclasses import replace
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
    nearest: bool
    cut: bool


def add(one: Number, other: Number) -> Number:
    """one + other."""
    first, second = known(one), known(other)
    if isinstance(first, Fraction) and isinstance(second, Fraction):
        return number(first + second)
    wrap, (left, right) = together([one, other])
    shifted = (
        plus(left, right.value)
        if isinstance(right, Constant) and isinstance(right.value, int)
        else None
    )
    found = wrap(shifted or Arithmetic(Operation.ADD, left, right))
    rounding = sum(
        (each.rounding + moved(each.step, found.step) for each in (one, other)), Fraction(0)
    )
    found = replace(found, rounding=rounding)
    for ratio, constant in ((one.ratio, other), (other.ratio, one)):
        if ratio is not None and isinstance(known(constant), Fraction):
            return _of_ratio(found, add(ratio.above, multiply(constant, ratio.below)), ratio)
    return found


def negate(one: Number) -> Number:
    """-one."""
    return _scaled(one, Fraction(-1))


def multiply(one: Number, other: Number) -> Number:
    """one * other, exact where 62 bits hold it; a constant factor changes the step alone."""
    factor, second = known(one), known(other)
    if isinstance(factor, Fraction) and isinstance(second, Fraction):
        return number(factor * second)
    if isinstance(second, Fraction):
        return _scaled(one, second)
    if isinstance(factor, Fraction):
        return _scaled(other, factor)
    square = one == other
    bits = _excess(largest(one.expression), largest(other.expression))
    one, other = _coarser(one, bits[0]), _coarser(other, bits[0] if square else bits[1])
    product: Scalar = Arithmetic(Operation.MULTIPLY, one.expression, other.expression)
    if square:
        product = Extreme(greatest=True, operands=(product, _ZERO))
    sizes = [largest(each.expression) * each.step for each in (one, other)]
    rounding = one.rounding * sizes[1] + other.rounding * (sizes[0] + one.rounding)
    step, most = one.step * other.step, LARGEST - 2
    if largest(product) > most:
        # what is compared with it needs codes beyond its own
        product, rounding = clipped(product, -most, most), rounding + 2 * step
    return Number(product, step, rounding, **_marks(one, other))


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
        return divide(
            multiply(one, _missing_where_zero(other.ratio.below)),
            other.ratio.above,
            skips_zero=True,
        )
    if above is None or below in (None, (0, 0)):
        raise always_null()
    nearest = [each for each in (*below, -1, 1) if below[0] <= each <= below[1] and each]
    ends = [Fraction(up) * one.step / (down * other.step) for up in above for down in nearest]
    exact = Ratio(one, other)
    step = _quotient_step(one, other, max(map(abs, ends)))
    if not _is_computed(one, other, step):
        one, other = _fitted(one), _fitted(other)
        step = _quotient_step(one, other, max(map(abs, ends)))
    ratio = one.step / (other.step * step)
    quotient = Quotient(
        times(one.expression, ratio.numerator), times(other.expression, ratio.denominator)
    )
    # the span of a divisor of both signs takes a code of 1 for the nearest to zero
    found = _within(quotient, min(ends), max(ends), step) if skips_zero else quotient
    least = min(map(abs, nearest)) * other.step
    rounding = step + (one.rounding + other.rounding * max(map(abs, ends))) / least
    marks = _marks(one, other)
    return replace(
        Number(found, step, rounding, exact, **marks),
        cut=marks["cut"] or step * NEGLIGIBLE > one.step,
    )


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
    while step < size and not _is_computed(one, other, step):
        step *= 2
    return step


def _is_computed(one: Number, other: Number, step: Fraction) -> bool:
    """Whether a quotient on these steps keeps within 62 bits."""
    ratio = one.step / (other.step * step)
    sizes = largest(one.expression) * ratio.numerator, largest(other.expression) * ratio.denominator
    return max(sizes) <= LARGEST


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
        raise UnsupportedSql(
            "MOD by something else than a positive constant.", remedy="MOD(column, 7)"
        )
    step, (left, right) = aligned([(one.expression, one.step), (divisor.expression, divisor.step)])
    found = span(left)
    modulus = right.value if isinstance(right, Constant) and isinstance(right.value, int) else 0
    if found is None or modulus * step != size:
        raise UnsupportedSql("MOD on a lattice that is too fine.", remedy="ROUND the value first.")
    rest = Arithmetic(Operation.SUBTRACT, left, times(Quotient(left, Constant(modulus)), modulus))
    low, high = max(found[0], 1 - modulus), min(found[1], modulus - 1)
    within = clipped(rest, min(low, 0), max(high, 0))
    # what is moved past a multiple begins again
    return replace(_stepped(one, within, step, jump=size), nearest=one.nearest)


def floor(one: Number) -> Number:
    """The greatest whole number that is not above."""
    return _stepped(one, floored(one.expression, one.step), Fraction(1))


def ceiling(one: Number) -> Number:
    """The least whole number that is not below."""
    return negate(floor(negate(one)))


def rounded(one: Number, places: int = 0) -> Number:
    """The nearest multiple of 10^-places, half away from zero."""
    step = Fraction(1, 10**places) if places >= 0 else Fraction(10**-places)
    ratio = one.step / step
    if ratio.denominator == 1:
        if largest(one.expression) * ratio.numerator > LARGEST:
            return one
        return Number(times(one.expression, ratio.numerator), step, one.rounding, cut=one.cut)
    half = Fraction(1, 2)
    found = span(one.expression)
    up = floored(one.expression, ratio, half)
    if found is None or found[0] >= 0:
        return _stepped(one, up, step)
    down = _negated(floored(_negated(one.expression), ratio, half))
    return _stepped(one, Case(((Compare(Comparison.GE, one.expression, _ZERO), up),), down), step)


def truncated(one: Number) -> Number:
    """The whole part."""
    exact = known(one)
    if isinstance(exact, Fraction):
        return number(int(exact))
    whole = Quotient(times(one.expression, one.step.numerator), Constant(one.step.denominator))
    return _stepped(one, whole, Fraction(1))


def absolute(one: Number) -> Number:
    """|one|."""
    size = Extreme(greatest=True, operands=(one.expression, _negated(one.expression), _ZERO))
    ratio = (
        None if one.ratio is None else Ratio(absolute(one.ratio.above), absolute(one.ratio.below))
    )
    return replace(one, expression=size, ratio=ratio)


def sign(one: Number) -> Number:
    """-1, 0 or 1."""
    tests = ((Comparison.GT, 1), (Comparison.LT, -1))
    branches = tuple((Compare(op, one.expression, _ZERO), Constant(value)) for op, value in tests)
    return _stepped(one, Case(branches, times(one.expression, 0)), Fraction(1), jump=Fraction(2))


def extreme(parts: Sequence[Number], *, greatest: bool) -> Number:
    """The greatest or the least; NULL where one of them is NULL."""
    wrap, codes = together(parts)
    return wrap(Extreme(greatest, tuple(codes)))


def together(parts: Sequence[Number]) -> tuple[Callable[[Scalar], Number], list[Scalar]]:
    """The codes of numbers on one lattice, and what a choice among them is."""
    step, codes = aligned([(each.expression, each.step) for each in parts])
    rounding = max(each.rounding + moved(each.step, step) for each in parts)
    marks = _marks(*parts)
    # codes of the common step fit, or it is a power of two
    if step != common_step([each.step for each in parts]):
        marks["cut"] = True
    return lambda code: Number(code, step, rounding, **marks), codes


def bucket(one: Number, low: Fraction, high: Fraction, count: int) -> Number:
    """WIDTH_BUCKET: 0 below ``low``, 1 to ``count``, ``count`` + 1 from ``high`` on."""
    scale = count / (high - low)
    place = floored(one.expression, one.step * scale, 1 - low * scale)
    scaled = replace(one, rounding=one.rounding * scale) if one.is_precise else one
    return _stepped(scaled, clipped(place, 0, count + 1), Fraction(1), jump=Fraction(count + 1))


def _scaled(one: Number, factor: Fraction) -> Number:
    if factor == 0:
        return Number(times(one.expression, 0), Fraction(1))
    expression = one.expression if factor > 0 else _negated(one.expression)
    step, rounding = one.step * abs(factor), one.rounding * abs(factor)
    found = replace(one, expression=expression, step=step, rounding=rounding, ratio=None)
    return (
        found
        if one.ratio is None
        else _of_ratio(found, _scaled(one.ratio.above, factor), one.ratio)
    )


def _of_ratio(found: Number, above: Number, ratio: Ratio) -> Number:
    """The same number with what it is the quotient of, as far as that is exact."""
    return found if above.rounding else replace(found, ratio=Ratio(above, ratio.below))


def _excess(one: int, other: int) -> tuple[int, int]:
    """How many bits two factors lose, the larger first, until 62 hold their product."""
    lost, other_lost = 0, 0
    while one * other > LARGEST:
        if one >= other:
            one, lost = one // 2 + 1, lost + 1
        else:
            other, other_lost = other // 2 + 1, other_lost + 1
    return lost, other_lost


def _coarser(one: Number, bits: int) -> Number:
    """The same number without its last bits."""
    if not bits:
        return one
    rounded, step = (
        floored(one.expression, Fraction(1, 2**bits), Fraction(1, 2)),
        one.step * 2**bits,
    )
    return Number(rounded, step, one.rounding + step / 2, nearest=one.nearest, cut=True)


def _stepped(
    one: Number, expression: Scalar, step: Fraction, *, jump: Fraction | None = None
) -> Number:
    """A function with steps of a number: what is rounded past an edge is off by a whole ``jump``."""
    moved_past = Fraction(0) if one.is_precise else step if jump is None else jump
    return Number(expression, step, one.rounding + moved_past, cut=one.cut)


def _marks(*parts: Number) -> _Marks:
    """What a number takes over from those that it is made of."""
    return {"nearest": any(each.nearest for each in parts), "cut": any(each.cut for each in parts)}


def _negated(expression: Scalar) -> Scalar:
    if isinstance(expression, Constant) and isinstance(expression.value, int):
        return Constant(-expression.value)
    return Arithmetic(Operation.SUBTRACT, _ZERO, expression)


def _within(expression: Scalar, low: Fraction, high: Fraction, step: Fraction) -> Scalar:
    """A quotient with the span that its exact value has (truncation may pass zero-ward)."""
    ends = (low / step, high / step)
    return clipped(expression, min(int(each) for each in ends), max(int(each) for each in ends))


def _fitted(one: Number) -> Number:
    """The same number in codes of at most 52 bits."""
    found, coarse = fitted(one.expression, one.step)
    rounding = one.rounding + moved(one.step, coarse)
    return replace(
        one,
        expression=found,
        step=coarse,
        rounding=rounding,
        cut=one.cut or coarse != one.step,
        ratio=None,
    )
