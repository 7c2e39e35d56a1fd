# SPDX-License-Identifier: Apache-2.0
"""Rows in memory: put on a declared lattice, and how many of them neighbours differ in.

Proof: rows.proof.md.
"""

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidDeclaration, InvalidNumber, shown
from sfumato.exact.rational import Number, power_of_two_at_most, to_fraction
from sfumato.metadata.column import Integer, Real
from sfumato.noise import Integers
from sfumato.privacy.distance import Distance, Norm

Rows: TypeAlias = Iterable[object] | NDArray[Any]

# A Decimal of more digits is as good as endless, or zero, and far too long as a Fraction.
_DIGITS = 400
_BEYOND = Fraction(10) ** _DIGITS


def on_lattice(values: Rows, within: Integer | Real, *, imputed: Number | None = None) -> Integers:
    """The integer codes of values: clipped to the declared bounds, rounded half to even (RULES 12).

    None, NaN and whatever is not a number are missing: dropped, or the declared ``imputed``
    value. Infinities are clipped. So no value can cause an error, and each row gives one code
    (or none) that depends on nothing but itself.

    Guarantees:
        each row gives one code of its own
        codes are rounded half to even

    Raises:
        InvalidNumber: an imputed value outside the declared bounds.
        InvalidDeclaration: an array of more than one dimension.

    >>> on_lattice([0.5, 1.5, None, float("inf"), -3], Integer(0, 10))
    array([ 0,  2, 10,  0])
    >>> on_lattice([0.25, float("nan")], Real(0, 1, step="0.5"), imputed=1)
    array([0, 2])
    """
    fill = None if imputed is None else _declared(imputed, within)
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise InvalidDeclaration(
            f"Rows of shape {values.shape}.", allowed="one number a row: an array of one dimension"
        )
    if type(values) is not np.ndarray:
        values = _array(list(values))
    if isinstance(values, np.ndarray) and values.dtype.kind in "bui" and within.step == 1:
        return np.clip(_wide(values), within.lower_code, within.upper_code)
    if (
        isinstance(values, np.ndarray)
        and values.dtype.kind == "f"
        and _is_binary(values.dtype, within)
    ):
        return _of_floats(values.astype(np.float64), within, fill)
    found = (_code(value, within) for value in values)
    kept = [fill if code is None else code for code in found]
    return np.array([code for code in kept if code is not None], np.int64)


def rows_apart(distance: Distance) -> Fraction:
    """The number of rows in the symmetric difference of neighbours (replace-one row: two).

    >>> rows_apart(Distance(Norm.L1, Fraction(1)))
    Fraction(1, 1)
    """
    if distance.norm is not Norm.L1:
        raise InvalidDeclaration(
            f"A number of rows bounded in {distance.norm.value}.",
            allowed="Distance(Norm.L1, k): at most k rows in the symmetric difference of neighbours",
        )
    return distance.value


def _declared(imputed: Number, within: Integer | Real) -> int:
    """The code of a declared value, which is public: out of bounds it is refused."""
    exact = to_fraction("imputed", imputed)
    if not within.lower_code * within.step <= exact <= within.upper_code * within.step:
        raise InvalidNumber(
            f"imputed = {imputed} is outside of {shown(within)}.",
            allowed="a value within the bounds",
        )
    return round(exact / within.step)


def _array(values: list[Any]) -> NDArray[Any] | list[Any]:
    """As an array where that changes nothing, and is a hundred times as fast; None and NaN are missing alike."""
    kinds = set(map(type, values))
    if kinds <= {float, type(None)}:
        return np.array(values, np.float64)
    if kinds == {int} and min(values) >= -(1 << 63) and max(values) < 1 << 63:
        return np.array(values, np.int64)
    return values


def _wide(values: NDArray[Any]) -> Integers:
    """Integers of any width as int64; what does not fit saturates, beyond every bound."""
    fits = values.dtype.kind != "u" or values.dtype.itemsize < 8
    wide: Integers = (values if fits else np.minimum(values, np.uint64(1 << 62))).astype(np.int64)
    return wide


def _is_binary(floats: np.dtype[Any], within: Integer | Real) -> bool:
    """Whether these are doubles at most, and scaling by the step, a power of two far from their range's ends, is exact."""
    step = within.step
    return (
        floats.itemsize <= 8 and power_of_two_at_most(step) == step and -900 < _exponent(step) < 900
    )


def _exponent(power: Fraction) -> int:
    return power.numerator.bit_length() - power.denominator.bit_length()


def _of_floats(values: NDArray[np.float64], within: Integer | Real, fill: int | None) -> Integers:
    missing = np.isnan(values)
    low, high = (float(code * within.step) for code in (within.lower_code, within.upper_code))
    with np.errstate(all="ignore"):
        codes = np.rint(
            np.ldexp(np.clip(values[~missing], low, high), -_exponent(within.step))
        ).astype(np.int64)
    if fill is None:
        return codes
    filled = np.full(values.shape, fill, np.int64)
    filled[~missing] = codes
    return filled


def _code(value: object, within: Integer | Real) -> int | None:
    exact = _exact(value)
    if exact is None:
        return None
    return min(max(round(exact / within.step), within.lower_code), within.upper_code)


def _exact(value: object) -> Fraction | None:
    """The exact number, None for what is none; what is endless, or as good as, is beyond every bound."""
    if isinstance(value, np.timedelta64):  # numpy counts it among the integers
        return None
    if isinstance(value, int | np.integer | np.bool_):
        return Fraction(int(value))
    if not isinstance(value, float | np.floating | Decimal | Fraction):
        return None
    if isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) > _DIGITS:
        return Fraction(0) if value.is_zero() or value.adjusted() < 0 else _BEYOND * _sign(value)
    try:
        return Fraction(*value.as_integer_ratio())
    except OverflowError:
        return _BEYOND * _sign(value)
    except ValueError:
        return None


def _sign(value: float | np.floating[Any] | Decimal | Fraction) -> int:
    return 1 if value > 0 else -1
