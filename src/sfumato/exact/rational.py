# SPDX-License-Identifier: Apache-2.0
"""Conversion of numbers that users write to exact fractions, and back to decimals.

A float means the shortest decimal that prints it, so ``0.1`` is one tenth and not the nearest
double (RULES 3). Strings and Decimals are taken exactly.
"""

import math
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from operator import index
from typing import TypeAlias

from sfumato.errors import InvalidNumber, without_secrets

Number: TypeAlias = int | float | str | Decimal | Fraction

# The largest number of digits: "1e-400000000" would fill the memory as a Fraction.
MAX_EXPONENT = 400
_LARGEST = 10**MAX_EXPONENT
# The most decimal places of a number that is shown as a decimal.
_PLACES = 30
_SCALE = 10**_PLACES


def to_fraction(name: str, value: Number) -> Fraction:
    """Returns ``value`` as an exact fraction; ``name`` is used in the error.

    Guarantees:
        a float is its shortest decimal
        nothing but a finite number gets through

    Raises:
        InvalidNumber: the value is not a number, is not finite, or has an exponent beyond 400.

    >>> to_fraction("epsilon", 0.1) * 10 == 1
    True
    >>> to_fraction("epsilon", "1e-6")
    Fraction(1, 1000000)
    """
    if type(value) is Fraction:
        return _sized(name, value)
    if isinstance(value, Fraction):
        # a subclass could equal one number and calculate as another
        return _sized(name, Fraction(*map(index, Fraction.as_integer_ratio(value))))
    if not isinstance(value, float | str | Decimal):
        return _sized(name, Fraction(_whole(name, value)))
    text = float.__repr__(value) if isinstance(value, float) else str(value).strip()
    if "/" in text:
        return _ratio(name, text)
    return _decimal(name, text, written=text)


def _whole(name: str, value: int) -> int:
    """``value`` as an int, also from numpy; refuses other types, and bool."""
    try:
        if not isinstance(value, bool):
            return index(value)
    except TypeError:
        pass
    raise _not_a_number(name, type(value).__name__)


def _decimal(name: str, text: str, *, written: str) -> Fraction:
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise _not_a_number(name, repr(written)) from None
    if not number.is_finite():
        raise _not_a_number(name, written)
    exponent = abs(number.adjusted())
    digits = len(number.as_tuple().digits)
    if number and (exponent > MAX_EXPONENT or digits > MAX_EXPONENT):
        raise _too_long(name)
    return Fraction(number)


def _ratio(name: str, text: str) -> Fraction:
    """The exact value of a string "p/q" of two decimals."""
    over, _, under = text.partition("/")
    denominator = _decimal(name, under.strip(), written=text)
    if denominator == 0:
        raise _not_a_number(name, text)
    numerator = _decimal(name, over.strip(), written=text)
    return _sized(name, numerator / denominator)


def _sized(name: str, number: Fraction) -> Fraction:
    """Refuses a fraction with more than 400 digits, which would be slow to print or multiply."""
    if max(abs(number.numerator), number.denominator) > _LARGEST:
        raise _too_long(name)
    return number


def _too_long(name: str) -> InvalidNumber:
    return InvalidNumber(
        f"{name} has an exponent or a length beyond {MAX_EXPONENT} digits.",
        allowed="numbers between 1e-400 and 1e400",
    )


def _not_a_number(name: str, written: str) -> InvalidNumber:
    return InvalidNumber(
        f"{name} is not a finite number: {without_secrets(written)[:60]}.",
        allowed="an int, a float, a Decimal, a Fraction, or a string such as '0.1' or '1e-6'",
    )


def positive(name: str, value: Number, *, at_most: Fraction | None = None) -> Fraction:
    """Returns ``value`` as a Fraction that is > 0 (and <= ``at_most``); else raises InvalidNumber."""
    number = to_fraction(name, value)
    upper = ""
    too_large = False
    if at_most is not None:
        upper = f" and at most {decimal_text(at_most)}"
        too_large = number > at_most
    if number <= 0 or too_large:
        hint = ""
        if number == 0 and isinstance(value, float):
            hint = "A float this small is zero: write it as a string, '1e-400'."
        raise InvalidNumber(
            f"{name} = {value} is out of range.", allowed=f"greater than 0{upper}", remedy=hint
        )
    return number


def decimal_text(number: Fraction) -> str:
    """Returns a number as an exact decimal if it has at most 30 places, else as "p/q".

    >>> decimal_text(Fraction(1, 40)), decimal_text(Fraction(1, 3)), decimal_text(Fraction(7))
    ('0.025', '1/3', '7')
    """
    scaled, remainder = divmod(abs(number.numerator) * _SCALE, number.denominator)
    if remainder:
        return f"{number.numerator}/{number.denominator}"
    whole, part = divmod(scaled, _SCALE)
    sign = "-" if number < 0 else ""
    return f"{sign}{whole}.{part:0{_PLACES}d}".rstrip("0").rstrip(".")


def power_of_two_at_most(number: Fraction) -> Fraction:
    """Returns the largest power of two that is at most ``number`` (above 0).

    >>> power_of_two_at_most(Fraction(99, 2**20))
    Fraction(1, 16384)
    """
    exponent = number.numerator.bit_length() - number.denominator.bit_length()
    power = Fraction(2) ** exponent
    if power <= number:
        return power
    return power / 2


def two_digits(number: Fraction) -> str:
    """Returns a positive number as a string, rounded up to two significant digits.

    >>> two_digits(Fraction(1, 3)), two_digits(Fraction(1001))
    ('0.34', '1100')
    """
    place = Fraction(10) ** (math.floor(math.log10(number)) - 1)
    return decimal_text(math.ceil(number / place) * place)
