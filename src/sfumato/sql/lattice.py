# SPDX-License-Identifier: Apache-2.0
"""Converts numbers with different steps to one lattice, exactly if 2^52 codes suffice.

A lattice is the set of multiples of a step; a number on it is stored as an integer code. A number
that does not fit is rounded to the finest lattice on which it does; ``moved`` bounds the rounding
error. ``arithmetic`` and ``compare`` use it.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

from sfumato.exact.rational import power_of_two_at_most
from sfumato.metadata.coded import MAX_CODE
from sfumato.plan.scalar import Arithmetic, Constant, Extreme, FloorDivide, Operation, Scalar
from sfumato.plan.value_range import span

# Intermediate results of an engine are at most this large (plan.value_range).
LARGEST = 2**62
# Rounded codes stay a bit below 2^52; exact codes on one lattice leave room for their sum.
_FINEST = MAX_CODE // 2
_EXACT = LARGEST // 4


def times(expression: Scalar, factor: int) -> Scalar:
    """Returns an integer code expression times a constant, computed at once if it is constant."""
    if isinstance(expression, Constant) and isinstance(expression.value, int):
        return Constant(expression.value * factor)
    if factor == 1:
        return expression
    return Arithmetic(Operation.MULTIPLY, expression, Constant(factor))


def plus(expression: Scalar, amount: int) -> Scalar:
    """Returns an integer code expression plus a constant, computed at once if it is constant."""
    if isinstance(expression, Constant) and isinstance(expression.value, int):
        return Constant(expression.value + amount)
    if amount == 0:
        return expression
    return Arithmetic(Operation.ADD, expression, Constant(amount))


def clipped(expression: Scalar, low: int, high: int) -> Scalar:
    """Returns an integer code expression clipped to [low, high]; NULL stays NULL."""
    above = Extreme(greatest=True, operands=(expression, Constant(low)))
    return Extreme(greatest=False, operands=(above, Constant(high)))


def floored(expression: Scalar, ratio: Fraction, shift: Fraction = Fraction(0)) -> Scalar:
    """Returns floor(code * ratio + shift), exactly and without overflow of 62 bits."""
    under = math.lcm(ratio.denominator, shift.denominator)
    factor = int(ratio * under)
    extra = int(shift * under)
    if largest(expression) * abs(factor) + abs(extra) > LARGEST:
        return _floored_apart(expression, factor, extra, under)
    scaled = plus(times(expression, factor), extra)
    if isinstance(scaled, Constant) and isinstance(scaled.value, int):
        return Constant(scaled.value // under)
    if under == 1:
        return scaled
    return FloorDivide(scaled, under)


def _floored_apart(
    expression: Scalar,
    factor: int,
    extra: int,
    under: int,
) -> Scalar:
    """Returns floor((code * factor + extra) / under), from the code's quotient and remainder."""
    whole, rest = divmod(factor, under)
    quotient = FloorDivide(expression, under)
    difference = Arithmetic(Operation.SUBTRACT, expression, times(quotient, under))
    # the clip changes no value; it tells ``span`` that the remainder is small
    remainder = clipped(difference, 0, under - 1)
    part = FloorDivide(plus(times(remainder, rest), extra), under)
    result = Arithmetic(Operation.ADD, times(quotient, rest), part)
    if whole == 0:
        return result
    return Arithmetic(Operation.ADD, times(expression, whole), result)


def largest(expression: Scalar) -> int:
    """Returns a bound on the absolute value of an integer code expression; 0 if it is always
    NULL.
    """
    ends = span(expression)
    if ends is None:
        return 0
    return max(abs(ends[0]), abs(ends[1]))


def onto(expression: Scalar, step: Fraction, target: Fraction) -> Scalar:
    """Returns the code of the same number in multiples of ``target`` instead of ``step``.

    It is exact if ``target`` divides ``step``, else rounded.

    Halves are rounded up.
    """
    ratio = step / target
    is_exact = ratio.denominator == 1
    return floored(expression, ratio, Fraction(0) if is_exact else Fraction(1, 2))


def moved(step: Fraction, target: Fraction) -> Fraction:
    """Returns the largest absolute rounding error of ``onto``, in the unit of the number."""
    if (step / target).denominator == 1:
        return Fraction(0)
    return target / 2


def finest_step(size: Fraction) -> Fraction:
    """Returns the smallest power of two on which numbers up to ``size`` have codes below 2^52."""
    if size <= 0:
        return Fraction(1)
    return 2 * power_of_two_at_most(size / _FINEST)


def common_step(steps: Sequence[Fraction]) -> Fraction:
    """Returns the greatest number of which all ``steps`` are integer multiples."""
    unders = [step.denominator for step in steps]
    under = math.lcm(*unders)
    aboves = [int(step * under) for step in steps]
    above = math.gcd(*aboves)
    return Fraction(above, under)


def aligned(parts: Sequence[tuple[Scalar, Fraction]]) -> tuple[Fraction, list[Scalar]]:
    """Returns a common step for numbers given as (integer code, step) pairs, and their codes in it.

    It is the greatest common step, or a power of two where that is too fine.
    """
    target = common_step([step for _, step in parts])
    size = max(largest(expression) * step for expression, step in parts)
    if size / target > _EXACT:
        target = finest_step(size)
    return target, [onto(expression, step, target) for expression, step in parts]


def fitted(expression: Scalar, step: Fraction) -> tuple[Scalar, Fraction]:
    """Returns a number's (integer code, step) pair with codes up to 2^52, rounded only if
    needed.
    """
    size = largest(expression)
    if size <= MAX_CODE:
        return expression, step
    divisor = 1 << (-(-size // MAX_CODE) - 1).bit_length()
    shortened = floored(expression, Fraction(1, divisor), Fraction(1, 2))
    return shortened, step * divisor
