# SPDX-License-Identifier: Apache-2.0
"""Arithmetic on numbers of row expressions: + - * /, rounding, buckets, signs.

A number is an integer code times a constant step (its lattice, see ``lattice``); the results are
codes again, so every engine computes them exactly. ``row_expressions`` and ``functions`` use it.
"""

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


def add(left: Number, right: Number) -> Number:
    """Returns the sum of two numbers."""
    first = known(left)
    second = known(right)
    if isinstance(first, Fraction) and isinstance(second, Fraction):
        return number(first + second)
    wrap, (left_code, right_code) = together([left, right])
    if isinstance(right_code, Constant) and isinstance(right_code.value, int):
        total = wrap(plus(left_code, right_code.value))
    else:
        total = wrap(Arithmetic(Operation.ADD, left_code, right_code))
    rounding = left.rounding + moved(left.step, total.step)
    rounding += right.rounding + moved(right.step, total.step)
    total = replace(total, rounding=rounding)
    for ratio, constant in ((left.ratio, right), (right.ratio, left)):
        if ratio is not None and isinstance(known(constant), Fraction):
            above = add(ratio.above, multiply(constant, ratio.below))
            return _of_ratio(total, above, ratio)
    return total


def negate(operand: Number) -> Number:
    """Returns the negative of a number."""
    return _scale_number(operand, Fraction(-1))


def multiply(left: Number, right: Number) -> Number:
    """Returns the product of two numbers, exact up to 62 bits.

    A constant factor only changes the step.
    """
    factor = known(left)
    second = known(right)
    if isinstance(factor, Fraction) and isinstance(second, Fraction):
        return number(factor * second)
    if isinstance(second, Fraction):
        return _scale_number(left, second)
    if isinstance(factor, Fraction):
        return _scale_number(right, factor)
    square = left == right
    lost, other_lost = _excess_bits(largest(left.expression), largest(right.expression))
    left = _drop_bits(left, lost)
    right = _drop_bits(right, lost if square else other_lost)
    product: Scalar = Arithmetic(Operation.MULTIPLY, left.expression, right.expression)
    if square:
        product = Extreme(greatest=True, operands=(product, _ZERO))
    size = largest(left.expression) * left.step
    other_size = largest(right.expression) * right.step
    rounding = left.rounding * other_size + right.rounding * (size + left.rounding)
    step = left.step * right.step
    most = LARGEST - 2
    if largest(product) > most:
        # a comparison with it needs codes just beyond its range
        product = clipped(product, -most, most)
        rounding += 2 * step
    return Number(product, step, rounding, **_marks(left, right))


def divide(left: Number, right: Number, *, skips_zero: bool = False) -> Number:
    """Returns the quotient left / right, truncated toward zero on the finest possible lattice.

    ``skips_zero``: the result is NULL where ``right`` is zero; without it ``right`` must never be
    zero. Division by a quotient that may be zero multiplies by that quotient's divisor instead, so
    a quotient that is only rounded to zero never makes the result NULL.

    Raises:
        UnsupportedSql: ``right`` may be zero, or the result is always NULL.

    >>> from sfumato.metadata.column import Column, Integer
    >>> from sfumato.sql.typed import read
    >>> small = read(Column("small", Integer(0, 9)))
    >>> large = read(Column("large", Integer(0, 10**9)))
    >>> rate = divide(small, large, skips_zero=True)
    >>> divide(number(1), rate, skips_zero=True).ratio.below == small
    True
    """
    divisor = known(right)
    if isinstance(divisor, Fraction) and divisor:
        return multiply(left, number(1 / divisor))
    above = span(left.expression)
    below = span(right.expression)
    if below is not None and below[0] <= 0 <= below[1]:
        if not skips_zero:
            raise may_be_zero()
        if right.ratio is not None:
            dividend = multiply(left, _null_where_zero(right.ratio.below))
            return divide(dividend, right.ratio.above, skips_zero=True)
    if above is None or below is None or below == (0, 0):
        raise _always_null()
    ends = _QuotientRange.of(left, right, above, below)
    return _divide_in_range(left, right, ends, skips_zero=skips_zero)


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
        left: Number,
        right: Number,
        above: tuple[int, int],
        below: tuple[int, int],
    ) -> "_QuotientRange":
        """Returns the range of left / right, whose codes lie in ``above`` and ``below``."""
        low, high = below
        # the divisors at which a quotient can be extreme: the ends, and those next to zero
        divisors = [code for code in (low, high, -1, 1) if code and low <= code <= high]
        ends = []
        for code in above:
            for divisor in divisors:
                ends.append(Fraction(code) * left.step / (divisor * right.step))
        size = max(abs(end) for end in ends)
        least = min(abs(divisor) for divisor in divisors) * right.step
        return cls(min(ends), max(ends), size, least)


def _divide_in_range(
    left: Number,
    right: Number,
    ends: _QuotientRange,
    *,
    skips_zero: bool,
) -> Number:
    """Returns the quotient of two numbers, on the finest step that keeps within 62 bits."""
    exact = Ratio(left, right)
    step = _quotient_step(left, right, ends.size)
    if not _is_computed(left, right, step):
        left, right = _shorten_codes(left), _shorten_codes(right)
        step = _quotient_step(left, right, ends.size)
    ratio = left.step / (right.step * step)
    dividend = times(left.expression, ratio.numerator)
    quotient: Scalar = Quotient(dividend, times(right.expression, ratio.denominator))
    if skips_zero:
        # ``span`` of a divisor of both signs assumes that it may be as close to zero as 1
        quotient = _clip_quotient(quotient, ends.low, ends.high, step)
    rounding = step + (left.rounding + right.rounding * ends.size) / ends.least
    marks = _marks(left, right)
    if step * NEGLIGIBLE > left.step:
        marks["cut"] = True
    return Number(quotient, step, rounding, exact, **marks)


def _null_where_zero(operand: Number) -> Number:
    """Returns the same number, NULL where it is zero."""
    ends = span(operand.expression)
    if ends is None or not ends[0] <= 0 <= ends[1]:
        return operand
    is_zero = Compare(Comparison.EQ, operand.expression, _ZERO)
    expression = Case(((is_zero, Constant(None)),), operand.expression)
    return replace(operand, expression=expression, ratio=None)


def _quotient_step(left: Number, right: Number, size: Fraction) -> Fraction:
    """Returns the finest step for quotients up to ``size`` that needs no more than 62 bits."""
    step = finest_step(size)
    while step < size and not _is_computed(left, right, step):
        step *= 2
    return step


def _is_computed(left: Number, right: Number, step: Fraction) -> bool:
    """Whether a quotient with this step is computed within 62 bits."""
    ratio = left.step / (right.step * step)
    dividend = largest(left.expression) * ratio.numerator
    divisor = largest(right.expression) * ratio.denominator
    return max(dividend, divisor) <= LARGEST


def may_be_zero() -> UnsupportedSql:
    """Returns the refusal of a divisor that may be zero."""
    return UnsupportedSql(
        "A division by an expression that can be zero on some row.",
        remedy="Keep it away from zero, GREATEST(expression, 1), "
        "or write x / NULLIF(expression, 0): NULL there.",
    )


def _always_null() -> UnsupportedSql:
    """Returns the refusal of an expression that is NULL on every row."""
    return UnsupportedSql("An expression that is always NULL.", remedy="Leave it out.")


def remainder(operand: Number, divisor: Number) -> Number:
    """Returns the remainder of a number divided by a constant, with the sign of the number.

    Raises:
        UnsupportedSql: the divisor is not a positive constant.
    """
    size = known(divisor)
    if not isinstance(size, Fraction) or size <= 0:
        raise UnsupportedSql(
            "MOD by something else than a positive constant.", remedy="MOD(column, 7)"
        )
    parts = [(operand.expression, operand.step), (divisor.expression, divisor.step)]
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
    return replace(_step_function(operand, within, step, jump=size), nearest=operand.nearest)


def floor(operand: Number) -> Number:
    """Returns the largest integer that is not greater than a number."""
    return _step_function(operand, floored(operand.expression, operand.step), Fraction(1))


def ceiling(operand: Number) -> Number:
    """Returns the smallest integer that is not less than a number."""
    return negate(floor(negate(operand)))


def rounded(operand: Number, places: int = 0) -> Number:
    """Returns the nearest multiple of 10^-places; halves are rounded away from zero."""
    step = Fraction(10) ** -places
    ratio = operand.step / step
    if ratio.denominator == 1:
        if largest(operand.expression) * ratio.numerator > LARGEST:
            return operand
        scaled = times(operand.expression, ratio.numerator)
        return Number(scaled, step, operand.rounding, cut=operand.cut)
    half = Fraction(1, 2)
    ends = span(operand.expression)
    up = floored(operand.expression, ratio, half)
    if ends is None or ends[0] >= 0:
        return _step_function(operand, up, step)
    down = _negate_code(floored(_negate_code(operand.expression), ratio, half))
    is_positive = Compare(Comparison.GE, operand.expression, _ZERO)
    return _step_function(operand, Case(((is_positive, up),), down), step)


def truncated(operand: Number) -> Number:
    """Returns a SQL number without its fractional part (rounded toward zero)."""
    exact = known(operand)
    if isinstance(exact, Fraction):
        return number(int(exact))
    multiple = times(operand.expression, operand.step.numerator)
    whole = Quotient(multiple, Constant(operand.step.denominator))
    return _step_function(operand, whole, Fraction(1))


def absolute(operand: Number) -> Number:
    """Returns the absolute value of a number."""
    signs = (operand.expression, _negate_code(operand.expression), _ZERO)
    size = Extreme(greatest=True, operands=signs)
    if operand.ratio is None:
        return replace(operand, expression=size)
    ratio = Ratio(absolute(operand.ratio.above), absolute(operand.ratio.below))
    return replace(operand, expression=size, ratio=ratio)


def sign(operand: Number) -> Number:
    """Returns the sign of a number: -1, 0 or 1."""
    branches = (
        (Compare(Comparison.GT, operand.expression, _ZERO), Constant(1)),
        (Compare(Comparison.LT, operand.expression, _ZERO), Constant(-1)),
    )
    # zero times the number is zero, but NULL where the number is
    chosen = Case(branches, times(operand.expression, 0))
    return _step_function(operand, chosen, Fraction(1), jump=Fraction(2))


def extreme(parts: Sequence[Number], *, greatest: bool) -> Number:
    """Returns the greatest or the least number; NULL where one of them is NULL."""
    wrap, codes = together(parts)
    return wrap(Extreme(greatest, tuple(codes)))


def together(parts: Sequence[Number]) -> tuple[Callable[[Scalar], Number], list[Scalar]]:
    """Brings numbers to one lattice; returns their codes, and a function from a code to its number.

    The function is for a code that is chosen among the returned ones, as by CASE.
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
    operand: Number,
    low: Fraction,
    high: Fraction,
    count: int,
) -> Number:
    """Returns WIDTH_BUCKET: 0 below ``low``, 1 to ``count``, ``count`` + 1 from ``high`` on."""
    scale = count / (high - low)
    place = floored(operand.expression, operand.step * scale, 1 - low * scale)
    if operand.is_precise:
        operand = replace(operand, rounding=operand.rounding * scale)
    within = clipped(place, 0, count + 1)
    return _step_function(operand, within, Fraction(1), jump=Fraction(count + 1))


def _scale_number(operand: Number, factor: Fraction) -> Number:
    """Returns a number times a constant, which changes its step and its sign."""
    if factor == 0:
        return Number(times(operand.expression, 0), Fraction(1))
    expression = operand.expression if factor > 0 else _negate_code(operand.expression)
    step = operand.step * abs(factor)
    rounding = operand.rounding * abs(factor)
    scaled = replace(
        operand,
        expression=expression,
        step=step,
        rounding=rounding,
        ratio=None,
    )
    if operand.ratio is None:
        return scaled
    return _of_ratio(scaled, _scale_number(operand.ratio.above, factor), operand.ratio)


def _of_ratio(quotient: Number, above: Number, ratio: Ratio) -> Number:
    """Returns a quotient with its exact dividend ``above``; without, if that was rounded."""
    if above.rounding:
        return quotient
    return replace(quotient, ratio=Ratio(above, ratio.below))


def _excess_bits(left: int, right: int) -> tuple[int, int]:
    """Returns how many low bits each of two factors must drop for a product of at most 62 bits."""
    lost = 0
    other_lost = 0
    while left * right > LARGEST:
        if left >= right:
            left = left // 2 + 1
            lost += 1
        else:
            right = right // 2 + 1
            other_lost += 1
    return lost, other_lost


def _drop_bits(operand: Number, bits: int) -> Number:
    """Returns the same number without its last ``bits`` bits."""
    if not bits:
        return operand
    shortened = floored(operand.expression, Fraction(1, 2**bits), Fraction(1, 2))
    step = operand.step * 2**bits
    rounding = operand.rounding + step / 2
    return Number(shortened, step, rounding, nearest=operand.nearest, cut=True)


def _step_function(
    operand: Number,
    expression: Scalar,
    step: Fraction,
    *,
    jump: Fraction | None = None,
) -> Number:
    """Returns a step function of a number.

    Where the number was rounded past an edge, the result is off by a whole ``jump``, by default
    one step.
    """
    rounding = operand.rounding
    if not operand.is_precise:
        rounding += step if jump is None else jump
    return Number(expression, step, rounding, cut=operand.cut)


def _marks(*parts: Number) -> _Marks:
    """Returns the flags of a number that is computed from others."""
    nearest = any(part.nearest for part in parts)
    cut = any(part.cut for part in parts)
    return {"nearest": nearest, "cut": cut}


def _negate_code(expression: Scalar) -> Scalar:
    """Returns minus a code."""
    if isinstance(expression, Constant) and isinstance(expression.value, int):
        return Constant(-expression.value)
    return Arithmetic(Operation.SUBTRACT, _ZERO, expression)


def _clip_quotient(
    expression: Scalar,
    low: Fraction,
    high: Fraction,
    step: Fraction,
) -> Scalar:
    """Returns a quotient clipped to the range of its exact value, truncated toward zero."""
    return clipped(expression, int(low / step), int(high / step))


def _shorten_codes(operand: Number) -> Number:
    """Returns the same number with codes of at most 52 bits."""
    expression, coarse = fitted(operand.expression, operand.step)
    rounding = operand.rounding + moved(operand.step, coarse)
    return replace(
        operand,
        expression=expression,
        step=coarse,
        rounding=rounding,
        cut=operand.cut or coarse != operand.step,
        ratio=None,
    )
