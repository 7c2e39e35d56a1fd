# SPDX-License-Identifier: Apache-2.0
"""Steps of numbers: what brings two of them onto one lattice, exactly where 2^52 codes allow."""

import math
from collections.abc import Sequence
from fractions import Fraction

from sfumato.exact.rational import power_of_two_at_most
from sfumato.metadata.column import MAX_CODE
from sfumato.plan.scalar import Arithmetic, Constant, Extreme, FloorDivide, Operation, Scalar
from sfumato.plan.span import span

# RULES 12: about a million steps.
_STEPS = 2**20


def times(expression: Scalar, factor: int) -> Scalar:
    """A code times a constant."""
    if isinstance(expression, Constant) and isinstance(expression.value, int):
        return Constant(expression.value * factor)
    return expression if factor == 1 else Arithmetic(Operation.MULTIPLY, expression, Constant(factor))


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
    """floor(code * ratio + shift), exactly; ``ratio`` > 0."""
    under = math.lcm(ratio.denominator, shift.denominator)
    scaled = plus(times(expression, int(ratio * under)), int(shift * under))
    if isinstance(scaled, Constant) and isinstance(scaled.value, int):
        return Constant(scaled.value // under)
    return scaled if under == 1 else FloorDivide(scaled, under)


def onto(expression: Scalar, step: Fraction, target: Fraction) -> Scalar:
    """The code on another lattice: exact where its step divides, else rounded, half up."""
    ratio = step / target
    return floored(expression, ratio, Fraction(0) if ratio.denominator == 1 else Fraction(1, 2))


def lattice_step(width: Fraction) -> Fraction:
    """The step of RULES 12 for a range of this width."""
    return power_of_two_at_most(width / _STEPS) if width > 0 else Fraction(1)


def common_step(steps: Sequence[Fraction]) -> Fraction:
    """The greatest step that divides all of them."""
    under = math.lcm(*(step.denominator for step in steps))
    return Fraction(math.gcd(*(int(step * under) for step in steps)), under)


def aligned(parts: Sequence[tuple[Scalar, Fraction]]) -> tuple[Fraction, list[Scalar]]:
    """Codes on one lattice: the common one, or where it is too fine that of RULES 12 for their range."""
    step = common_step([each for _, each in parts])
    ends = [end * each for expression, each in parts for end in span(expression) or ()]
    if max((abs(end) for end in ends), default=Fraction(0)) / step > MAX_CODE:
        step = lattice_step(max(ends) - min(ends))
    return step, [onto(expression, each, step) for expression, each in parts]


def fitted(expression: Scalar, step: Fraction) -> tuple[Scalar, Fraction]:
    """A number whose codes stay within 2^52, rounded onto the lattice of RULES 12 if need be."""
    found = span(expression)
    if found is None or max(abs(found[0]), abs(found[1])) <= MAX_CODE:
        return expression, step
    low, high = found
    # the step of RULES 12 for the range, but never so fine that the ends pass 2^52
    wanted = (high - low) // _STEPS
    needed = -(-max(abs(low), abs(high)) // MAX_CODE)
    divisor = max(1 << max(wanted.bit_length() - 1, 0), 1 << (needed - 1).bit_length())
    return floored(expression, Fraction(1, divisor), Fraction(1, 2)), step * divisor
