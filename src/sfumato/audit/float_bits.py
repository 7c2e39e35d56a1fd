# SPDX-License-Identifier: Apache-2.0
"""Features of the bits of a floating-point output, which can reveal the input.

Noise drawn as a double and added to a double lies on a grid as coarse as the larger of the two, so
the sets of possible outputs differ between neighbours, however the noise is distributed. ``region``
tests these features. Source: Mironov, "On Significance of the Least Significant Bits for
Differential Privacy" (CCS 2012); Jin, McMurtry, Rubinstein, Ohrimenko, "Are We There Yet? Timing
and Floating-Point Attacks on Differential Privacy Systems" (S&P 2022).
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

# Bits of the significand of a double, with the leading one.
_DIGITS = 53
_LOW = 8


def lowest_bit(value: float) -> int | None:
    """The exponent of the lowest set bit; None for 0, infinity and NaN.

    >>> lowest_bit(1.5), lowest_bit(4.0), lowest_bit(0.1)
    (-1, 2, -55)
    """
    if value == 0 or not math.isfinite(value):
        return None
    numerator, denominator = value.as_integer_ratio()
    low = numerator & -numerator
    return low.bit_length() - denominator.bit_length()


def exponent(value: float) -> int | None:
    """The exponent of the highest set bit; None for 0, infinity and NaN.

    >>> exponent(1.5), exponent(-0.1)
    (0, -4)
    """
    if value == 0 or not math.isfinite(value):
        return None
    return math.frexp(value)[1] - 1


def grid(value: float) -> tuple[int, int] | None:
    """The exponents of the highest and the lowest set bit: how fine the grid is at each size."""
    low, high = lowest_bit(value), exponent(value)
    if low is None or high is None:
        return None
    return high, low


def spare_bits(value: float) -> int | None:
    """The number of trailing zeros of the 53-bit significand.

    >>> spare_bits(1.0), spare_bits(0.1)
    (52, 1)
    """
    low, high = lowest_bit(value), exponent(value)
    if low is None or high is None:
        return None
    return low - high + _DIGITS - 1


def last_bits(value: float) -> int | None:
    """The last 8 bits of the 53-bit significand."""
    if not math.isfinite(value):
        return None
    digits = int(math.ldexp(math.frexp(abs(value))[0], _DIGITS))
    return digits % (1 << _LOW)


def fraction(value: float) -> float | None:
    """The fractional part, which integer noise leaves unchanged."""
    if not math.isfinite(value):
        return None
    return value - math.floor(value)


def decimals(value: float) -> int | None:
    """The number of digits after the point in the shortest decimal."""
    if not math.isfinite(value):
        return None
    digits, _, power = repr(value).partition("e")
    _, _, after_point = digits.partition(".")
    if after_point == "0":
        after_point = ""
    return len(after_point) + max(-int(power or 0), 0)


def of_first(feature: Callable[[float], Any]) -> Callable[[Any], Any]:
    """Applies a feature to an output that is a float, or to the first entry of a flat sequence.

    The feature of any other output is None.
    """

    def look(output: Any) -> Any:
        if isinstance(output, np.ndarray):
            output = output.ravel().tolist()
        if isinstance(output, list | tuple) and output:
            output = output[0]
        if not isinstance(output, float | np.floating):
            return None
        return feature(float(output))

    return look


FEATURES: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("the lowest set bit", of_first(lowest_bit)),
    ("the exponent and lowest set bit", of_first(grid)),
    ("the spare bits", of_first(spare_bits)),
    ("the last 8 bits", of_first(last_bits)),
    ("the exponent", of_first(exponent)),
    ("the fraction", of_first(fraction)),
    ("the decimals", of_first(decimals)),
)
