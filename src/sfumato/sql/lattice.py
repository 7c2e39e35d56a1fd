# SPDX-License-Identifier: Apache-2.0
"""Steps of numbers: what brings two of them onto one lattice, exactly where 2^52 codes allow.

What does not fit is rounded onto the finest lattice that does, and ``moved`` says by how much.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

from sfumato.exact.rational import power_of_two_at_most
from sfumato.metadata.column import MAX_CODE
from sfumato.plan.scalar import Arithmetic, Constant, Extreme, FloorDivide, Operation, Scalar
from sfumato.plan.value_range import span

# What an engine computes with has fewer bits (plan.span).
LARGEST = 2**62
# Codes of what is rounded stay below 2^52 by a bit; exact ones that meet leave room for their sum.
_FINEST = MAX_CODE // 2
_EXACT = LARGEST // 4


def times(expression: Scalar, factor: int) -> Scalar:
    """A code times a constant."""
    if isinstance(expression, Constant) and isinstance(expression.value, int):
        return Constant(expression.value * factor)
    return (
        expression if factor == 1 else Arithmetic(Operation.MULTIPLY, expression, Constant(factor))
    )


def plus(expression: Scalar, amount: int) -> Scalar:
    """A code plus a constant."""
    if isinstance(expression, Constant) and isinstance(expression.value, int):
        return Constant(expression.value + amount)
    return expression if amount == 0 else Arithmetic(Operation.ADD, expression, Constant(amount))


def clipped(expression: Scalar, low: int, high: int) -> Scalar:
    """A code cut to a range; NULL stays NULL."""
    above = Extreme(greatest=True, operands=(expression, Constant(low)))
    return Extreme(greatest=False, operands=(above, Constant(high)))


def floored(expression: Scalar, ratio: Fraction, shift: Fraction = Fraction(0)) -> Scalar:
    """floor(code * ratio + shift), exactly, without an intermediate result that is much larger."""
    under = math.lcm(ratio.denominator, shift.denominator)
    factor, extra = int(ratio * under), int(shift * under)
    if largest(expression) * abs(factor) + abs(extra) > LARGEST:
        return _floored_apart(expression, factor, extra, under)
    scaled = plus(times(expression, factor), extra)
    if isinstance(scaled, Constant) and isinstance(scaled.value, int):
        return Constant(scaled.value // under)
    return scaled if under == 1 else FloorDivide(scaled, under)


def _floored_apart(expression: Scalar, factor: int, extra: int, under: int) -> Scalar:
    """floor((code * factor + extra) / under) by the quotient and the remainder of the code."""
    whole, rest = divmod(factor, under)
    quotient = FloorDivide(expression, under)
    # without the clip its span would be that of a difference of anything
    remainder = clipped(
        Arithmetic(Operation.SUBTRACT, expression, times(quotient, under)), 0, under - 1
    )
    part = FloorDivide(plus(times(remainder, rest), extra), under)
    found = Arithmetic(Operation.ADD, times(quotient, rest), part)
    return found if whole == 0 else Arithmetic(Operation.ADD, times(expression, whole), found)


def largest(expression: Scalar) -> int:
    """The size of the largest code."""
    return max((abs(end) for end in span(expression) or ()), default=0)


def onto(expression: Scalar, step: Fraction, target: Fraction) -> Scalar:
    """The code on another lattice: exact where its step divides, else rounded, half up."""
    ratio = step / target
    return floored(expression, ratio, Fraction(0) if ratio.denominator == 1 else Fraction(1, 2))


def moved(step: Fraction, target: Fraction) -> Fraction:
    """By how much ``onto`` moves a number at most."""
    return Fraction(0) if (step / target).denominator == 1 else target / 2


def finest_step(size: Fraction) -> Fraction:
    """The smallest power of two on which numbers up to this size keep within the codes."""
    return 2 * power_of_two_at_most(size / _FINEST) if size > 0 else Fraction(1)


def common_step(steps: Sequence[Fraction]) -> Fraction:
    """The greatest step that divides all of them."""
    under = math.lcm(*(step.denominator for step in steps))
    return Fraction(math.gcd(*(int(step * under) for step in steps)), under)


def aligned(parts: Sequence[tuple[Scalar, Fraction]]) -> tuple[Fraction, list[Scalar]]:
    """Codes on one lattice: the common one, or where it is too fine a power of two."""
    step = common_step([each for _, each in parts])
    size = max(largest(expression) * each for expression, each in parts)
    if size / step > _EXACT:
        step = finest_step(size)
    return step, [onto(expression, each, step) for expression, each in parts]


def fitted(expression: Scalar, step: Fraction) -> tuple[Scalar, Fraction]:
    """A number whose codes stay within 2^52, rounded as little as that needs."""
    size = largest(expression)
    if size <= MAX_CODE:
        return expression, step
    divisor = 1 << (-(-size // MAX_CODE) - 1).bit_length()
    return floored(expression, Fraction(1, divisor), Fraction(1, 2)), step * divisor
