# SPDX-License-Identifier: Apache-2.0
"""Rounds rows in memory to a declared lattice, and converts sensitivities into numbers of rows.

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

# A Decimal with a larger exponent counts as infinite, or zero; as a Fraction it would be too long.
_DIGITS = 400
_BEYOND = Fraction(10) ** _DIGITS


def on_lattice(values: Rows, within: Integer | Real, *, imputed: Number | None = None) -> Integers:
    """Returns the integer codes of values, clipped to the bounds, rounded half to even (RULES 12).

    None, NaN and everything that is not a number are missing; they are dropped, or replaced by the
    declared ``imputed`` value. Infinities are clipped. So no value can cause an error, and each row
    gives at most one code, which depends on this row alone.

    Guarantees:
        each row gives one code of its own
        codes are rounded half to even

    Raises:
        InvalidNumber: the imputed value is outside the declared bounds.
        InvalidDeclaration: the array has more than one dimension.

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
    if isinstance(values, np.ndarray):
        if values.dtype.kind in "bui" and within.step == 1:
            return np.clip(_wide(values), within.lower_code, within.upper_code)
        if values.dtype.kind == "f" and _is_binary(values.dtype, within):
            return _of_floats(values.astype(np.float64), within, fill)
    codes = []
    for value in values:
        code = _code(value, within)
        if code is None:
            code = fill
        if code is not None:
            codes.append(code)
    return np.array(codes, np.int64)


def rows_apart(distance: Distance) -> Fraction:
    """Returns the number of rows in which neighbours differ, by their L1 ``distance`` in rows: two
    for one replaced row.

    >>> rows_apart(Distance(Norm.L1, Fraction(1)))
    Fraction(1, 1)
    """
    if distance.norm is not Norm.L1:
        raise InvalidDeclaration(
            f"A number of rows bounded in {distance.norm.value}.",
            allowed="Distance(Norm.L1, k): "
            "at most k rows in the symmetric difference of neighbours",
        )
    return distance.value


def _declared(imputed: Number, within: Integer | Real) -> int:
    """The code of the imputed value; refused if out of bounds, which is safe as it is public."""
    exact = to_fraction("imputed", imputed)
    if not within.lower_code * within.step <= exact <= within.upper_code * within.step:
        raise InvalidNumber(
            f"imputed = {imputed} is outside of {shown(within)}.",
            allowed="a value within the bounds",
        )
    return round(exact / within.step)


def _array(values: list[Any]) -> NDArray[Any] | list[Any]:
    """The values as an array if that is exact; None becomes NaN, which is missing too."""
    kinds = set(map(type, values))
    if kinds <= {float, type(None)}:
        return np.array(values, np.float64)
    if kinds == {int} and min(values) >= -(1 << 63) and max(values) < 1 << 63:
        return np.array(values, np.int64)
    return values


def _wide(values: NDArray[Any]) -> Integers:
    """Integers of any width as int64; larger ones become 2^62, which is beyond every bound."""
    if values.dtype.kind == "u" and values.dtype.itemsize == 8:
        values = np.minimum(values, np.uint64(1 << 62))
    wide: Integers = values.astype(np.int64)
    return wide


def _is_binary(floats: np.dtype[Any], within: Integer | Real) -> bool:
    """Whether scaling these floats by the step is exact.

    True for at most 64 bits, if the step is a power of two that cannot overflow or underflow.
    """
    step = within.step
    is_power = power_of_two_at_most(step) == step
    return floats.itemsize <= 8 and is_power and -900 < _exponent(step) < 900


def _exponent(power: Fraction) -> int:
    """The base-2 logarithm of a power of two."""
    return power.numerator.bit_length() - power.denominator.bit_length()


def _of_floats(values: NDArray[np.float64], within: Integer | Real, fill: int | None) -> Integers:
    """The codes of floats that the step scales exactly; NaN becomes ``fill`` or is dropped."""
    missing = np.isnan(values)
    low = float(within.lower_code * within.step)
    high = float(within.upper_code * within.step)
    with np.errstate(all="ignore"):
        clipped = np.clip(values[~missing], low, high)
        scaled = np.ldexp(clipped, -_exponent(within.step))
        codes = np.rint(scaled).astype(np.int64)
    if fill is None:
        return codes
    filled = np.full(values.shape, fill, np.int64)
    filled[~missing] = codes
    return filled


def _code(value: object, within: Integer | Real) -> int | None:
    """The code of any value, or None if it is missing."""
    exact = _exact(value)
    if exact is None:
        return None
    nearest = round(exact / within.step)
    return min(max(nearest, within.lower_code), within.upper_code)


def _exact(value: object) -> Fraction | None:
    """The exact number of a value, or None if it is not a number.

    An infinite number becomes one beyond every bound.
    """
    if isinstance(value, np.timedelta64):  # numpy counts it among the integers
        return None
    if isinstance(value, int | np.integer | np.bool_):
        return Fraction(int(value))
    if not isinstance(value, float | np.floating | Decimal | Fraction):
        return None
    if isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) > _DIGITS:
        if value.is_zero() or value.adjusted() < 0:
            return Fraction(0)
        return _BEYOND * _sign(value)
    try:
        return Fraction(*value.as_integer_ratio())
    except OverflowError:
        return _BEYOND * _sign(value)
    except ValueError:
        return None


def _sign(value: float | np.floating[Any] | Decimal | Fraction) -> int:
    return 1 if value > 0 else -1
