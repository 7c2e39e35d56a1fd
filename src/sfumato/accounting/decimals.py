# SPDX-License-Identifier: Apache-2.0
"""Directed rounding with decimals of 36 digits, for long computations in which fractions are slow.

Use only the methods of ``UP`` and ``DOWN``: an operator would round by the context of the thread.
Proof: decimals.proof.md.
"""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

UP = Context(prec=36, rounding=ROUND_CEILING, Emin=-(10**9), Emax=10**9, traps=[])
DOWN = Context(prec=36, rounding=ROUND_FLOOR, Emin=-(10**9), Emax=10**9, traps=[])
ONE = Decimal(1)
# e^-10000 < 1e-4342; smaller values would need millions of digits.
_NEGLIGIBLE, _NEARLY_ZERO = -10_000, Decimal("1e-4342")


def above(number: Fraction) -> Decimal:
    """Returns the least decimal (of 36 digits) >= number.

    >>> above(Fraction(1, 3)) > Fraction(1, 3) > below(Fraction(1, 3))
    True
    """
    return UP.divide(Decimal(number.numerator), Decimal(number.denominator))


def below(number: Fraction) -> Decimal:
    """Returns the greatest decimal (of 36 digits) <= number."""
    return DOWN.divide(Decimal(number.numerator), Decimal(number.denominator))


def exp_above(number: Fraction) -> Decimal:
    """An upper bound of e^number, within 1e-34 relative (or 1e-4342 in all).

    Guarantees:
        exponentials and logarithms are on their sides
    """
    if number < _NEGLIGIBLE:
        return _NEARLY_ZERO
    # decimal rounds exp and ln to the nearest, whatever the rounding mode
    return UP.next_plus(UP.exp(above(number)))


def exp_below(number: Fraction) -> Decimal:
    """A lower bound of e^number; never negative."""
    if number < _NEGLIGIBLE:
        return Decimal(0)
    return DOWN.next_minus(DOWN.exp(below(number)))


def log_above(number: Decimal) -> Decimal:
    """Returns an upper bound of ln(number), for number > 0; exact at 1."""
    if number == ONE:
        return Decimal(0)
    return UP.next_plus(UP.ln(number))
