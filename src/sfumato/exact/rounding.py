# SPDX-License-Identifier: Apache-2.0
"""exp, log, sqrt and conversion to floats, each rounded in a stated direction.

``exp`` and ``ln`` of the decimal module are correctly rounded (by its documentation and libmpdec's
proofs), so one step outward gives a proved bound. Proof: rounding.proof.md.
"""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, Inexact
from fractions import Fraction

# Significant digits: far more than any bound here needs, and still fast.
_DIGITS = 50
# e^-10000 < 1e-4342; smaller values would need Fractions of millions of digits.
_NEGLIGIBLE = -10_000


def _context(rounding: str) -> Context:
    return Context(prec=_DIGITS, rounding=rounding, Emin=-(10**9), Emax=10**9, traps=[])


def _decimal(number: Fraction, rounding: str) -> Decimal:
    """The number as a decimal of 50 digits, rounded in the given direction."""
    over = Decimal(number.numerator)
    under = Decimal(number.denominator)
    return _context(rounding).divide(over, under)


def _outward(function: str, number: Fraction, rounding: str) -> Fraction:
    """An increasing function of the decimal module, rounded outward.

    The result is correctly rounded; if it is inexact, it is moved by one last digit.
    """
    context = _context(rounding)
    result: Decimal = getattr(context, function)(_decimal(number, rounding))
    if not context.flags[Inexact]:
        return Fraction(result)
    if rounding == ROUND_FLOOR:
        return Fraction(context.next_minus(result))
    return Fraction(context.next_plus(result))


def exp_down(number: Fraction) -> Fraction:
    """A lower bound of e^number, never negative, within a relative 1e-48 or an absolute 1e-4342."""
    if number < _NEGLIGIBLE:
        return Fraction(0)
    return max(_outward("exp", number, ROUND_FLOOR), Fraction(0))


def exp_up(number: Fraction) -> Fraction:
    """An upper bound of e^number, within a relative 1e-48 or an absolute 1e-4342."""
    if number < _NEGLIGIBLE:
        return Fraction(1, 10**4342)
    return _outward("exp", number, ROUND_CEILING)


def log_down(number: Fraction) -> Fraction:
    """A lower bound of ln(number), number > 0."""
    return _outward("ln", number, ROUND_FLOOR)


def log_up(number: Fraction) -> Fraction:
    """An upper bound of ln(number), number > 0."""
    return _outward("ln", number, ROUND_CEILING)


def sqrt_down(number: Fraction) -> Fraction:
    """A lower bound of sqrt(number), exact for squares of rationals."""
    # sqrt(p/q) = sqrt(p q) / q; isqrt is exact, and 80 more bits keep the bound tight
    scaled = number.numerator * number.denominator << 160
    return Fraction(math.isqrt(scaled), number.denominator << 80)


def sqrt_up(number: Fraction) -> Fraction:
    """An upper bound of sqrt(number), exact for squares of rationals."""
    scaled = number.numerator * number.denominator << 160
    root = math.isqrt(scaled)
    return Fraction(root + (root * root != scaled), number.denominator << 80)


def float_down(number: Fraction) -> float:
    """The largest float <= number."""
    value = _nearest(number)
    if value == math.inf or Fraction(value) > number:
        return math.nextafter(value, -math.inf)
    return value


def float_up(number: Fraction) -> float:
    """The smallest float >= number."""
    # adding 0.0 turns -0.0 into 0.0
    return -float_down(-number) + 0.0


def _nearest(number: Fraction) -> float:
    """The nearest float. On overflow it is inf or the least finite float (-inf is no Fraction)."""
    try:
        return float(number)
    except OverflowError:
        if number > 0:
            return math.inf
        return -1.7976931348623157e308
