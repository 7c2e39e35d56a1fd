# SPDX-License-Identifier: Apache-2.0
"""exp, log, sqrt and floats, each rounded in a named direction.

The decimal module's ``exp`` and ``ln`` are correctly rounded (its documentation, and
libmpdec's proofs), so one step outward gives a proven bound. Proof: rounding.proof.md.
"""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, Inexact
from fractions import Fraction

# 50 digits: far beyond what any bound here needs, still microseconds.
_DIGITS = 50
# e^-10000 < 1e-4342: beyond it a Fraction would hold millions of digits for nothing.
_NEGLIGIBLE = -10_000


def _context(rounding: str) -> Context:
    return Context(prec=_DIGITS, rounding=rounding, Emin=-(10**9), Emax=10**9, traps=[])


def _decimal(number: Fraction, rounding: str) -> Decimal:
    return _context(rounding).divide(Decimal(number.numerator), Decimal(number.denominator))


def _outward(function: str, number: Fraction, rounding: str) -> Fraction:
    """An increasing correctly rounded function, one last digit further out when inexact."""
    context = _context(rounding)
    result: Decimal = getattr(context, function)(_decimal(number, rounding))
    if context.flags[Inexact]:
        result = (
            context.next_minus(result) if rounding == ROUND_FLOOR else context.next_plus(result)
        )
    return Fraction(result)


def exp_down(number: Fraction) -> Fraction:
    """A lower bound of e^number, within 1e-48 relative (or 1e-4342 in all); never negative."""
    if number < _NEGLIGIBLE:
        return Fraction(0)
    return max(_outward("exp", number, ROUND_FLOOR), Fraction(0))


def exp_up(number: Fraction) -> Fraction:
    """An upper bound of e^number, within 1e-48 relative (or 1e-4342 in all)."""
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
    """A lower bound of sqrt(number), exact on squares of rationals."""
    # sqrt(p/q) = sqrt(p q) / q, and isqrt is exact; 2^80 steps a unit keep it tight.
    scaled = number.numerator * number.denominator << 160
    return Fraction(math.isqrt(scaled), number.denominator << 80)


def sqrt_up(number: Fraction) -> Fraction:
    """An upper bound of sqrt(number), exact on squares of rationals."""
    scaled = number.numerator * number.denominator << 160
    root = math.isqrt(scaled)
    return Fraction(root + (root * root != scaled), number.denominator << 80)


def float_down(number: Fraction) -> float:
    """The largest float <= number."""
    value = _nearest(number)
    return (
        math.nextafter(value, -math.inf) if value == math.inf or Fraction(value) > number else value
    )


def float_up(number: Fraction) -> float:
    """The smallest float >= number."""
    # plus zero, so that 0 is not -0.0
    return -float_down(-number) + 0.0


def _nearest(number: Fraction) -> float:
    """The nearest float, saturating instead of raising; -inf never (it is not a Fraction)."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -1.7976931348623157e308
