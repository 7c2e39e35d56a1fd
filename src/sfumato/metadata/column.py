# SPDX-License-Identifier: Apache-2.0
"""Column types: the declared values of a column, each with its integer code.

What a value outside the declaration means is declared here too, so that no row can ever
cause an error: a number beyond a bound is moved to the bound, infinity with it; a value
that is not among the declared ones, that does not parse, that is NaN, NULL or one of the
``missing`` markers, is missing. With ``missing=`` given, missing is a group of its own in
GROUP BY; without it, rows where the key is missing are in no group.
"""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from sfumato.errors import InvalidDeclaration, shown
from sfumato.exact.rational import Number, decimal_text, power_of_two_at_most, to_fraction
from sfumato.exact.rounding import float_up

EPOCH = datetime.date(1970, 1, 1)
# Codes beyond 2^52 steps would not be exact as doubles inside an engine.
MAX_CODE = 2**52
# RULES 12: a lattice of about a million steps, far below any noise.
LATTICE_STEPS = 2**20

Markers: TypeAlias = tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class _Coded:
    """What every type but ``Text`` has: codes from ``lower_code`` to ``upper_code``."""

    lower_code: int
    upper_code: int
    step: Fraction
    missing: Markers

    @property
    def size(self) -> int:
        """How many values are declared (without missing)."""
        return self.upper_code - self.lower_code + 1


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Integer(_Coded):
    """Whole numbers from ``lower`` to ``upper``, on the lattice of step 1.

    >>> Integer(17, 90, missing="N")
    Integer(17, 90, missing='N')
    """

    def __init__(
        self, lower: Number, upper: Number, *, missing: str | Sequence[str] | None = None
    ) -> None:
        low, high = _bounds(lower, upper)
        if low.denominator != 1 or high.denominator != 1:
            raise InvalidDeclaration(
                f"Integer({lower}, {upper}).", allowed="whole bounds", remedy="Or declare a Real."
            )
        _set_codes(self, int(low), int(high), Fraction(1), missing)

    def __repr__(self) -> str:
        return f"Integer({self.lower_code}, {self.upper_code}{_shown(self.missing)})"

    def decode(self, code: int) -> int:
        """The value of a code."""
        return code


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Real(_Coded):
    """Numbers from ``lower`` to ``upper``, rounded half to even onto a public lattice.

    The step is the power of two at or below a millionth of the range, or ``step``.

    >>> Real(0, 99).step
    Fraction(1, 16384)
    """

    def __init__(
        self,
        lower: Number,
        upper: Number,
        *,
        step: Number | None = None,
        missing: str | Sequence[str] | None = None,
    ) -> None:
        low, high = _bounds(lower, upper)
        unit = (
            power_of_two_at_most((high - low) / LATTICE_STEPS)
            if step is None
            else to_fraction("step", step)
        )
        if not 0 < unit <= high - low:
            raise InvalidDeclaration(
                f"A step of {step}.", allowed="greater than 0 and at most upper - lower"
            )
        if round(low / unit) == round(high / unit) or not 1e-300 < float_up(unit) < 1e300:
            raise InvalidDeclaration(
                "A Real whose bounds fall on one step, or whose step no float can hold.",
                remedy="Declare another step=.",
            )
        _set_codes(self, round(low / unit), round(high / unit), unit, missing)

    def __repr__(self) -> str:
        low, high = (
            decimal_text(self.lower_code * self.step),
            decimal_text(self.upper_code * self.step),
        )
        return f"Real({low}, {high}, step={decimal_text(self.step)}{_shown(self.missing)})"

    def decode(self, code: int) -> float:
        """The value of a code."""
        return float(code * self.step)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Date(_Coded):
    """Days from ``lower`` to ``upper`` (ISO text or ``datetime.date``), coded since 1970-01-01.

    >>> Date("1970-01-01", "1970-01-31").size
    31
    """

    def __init__(
        self,
        lower: str | datetime.date,
        upper: str | datetime.date,
        *,
        missing: str | Sequence[str] | None = None,
    ) -> None:
        low, high = date_code(lower), date_code(upper)
        if low is None or high is None or low >= high:
            raise InvalidDeclaration(
                f"Date({shown(lower)}, {shown(upper)}).",
                allowed="two ISO dates, '1900-01-01', the lower one before the upper one",
            )
        _set_codes(self, low, high, Fraction(1), missing)

    def __repr__(self) -> str:
        return f"Date('{self.decode(self.lower_code)}', '{self.decode(self.upper_code)}'{_shown(self.missing)})"

    def decode(self, code: int) -> datetime.date:
        """The value of a code."""
        return EPOCH + datetime.timedelta(days=code)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Category(_Coded):
    """One of the declared values, compared as text; a mapping gives labels to codes of the data.

    >>> Category({"1": "Male", "2": "Female"}).labels
    ('Male', 'Female')
    """

    values: tuple[str, ...]
    labels: tuple[str, ...]

    def __init__(self, *values: object, missing: str | Sequence[str] | None = None) -> None:
        pairs = _category_pairs(values)
        stored, labels = [str(value) for value, _ in pairs], [str(label) for _, label in pairs]
        for names in (stored, labels):
            if not names or len(set(names)) != len(names) or "" in names:
                raise InvalidDeclaration(
                    "A Category needs its values, each once and none empty.",
                    allowed='sf.Category("Female", "Male")',
                )
        object.__setattr__(self, "values", tuple(stored))
        object.__setattr__(self, "labels", tuple(labels))
        _set_codes(self, 0, len(stored) - 1, Fraction(1), missing)
        if set(stored) & set(self.missing or ()):
            raise InvalidDeclaration(
                "A Category value that is also a marker for missing.", remedy="Choose one of them."
            )

    def __repr__(self) -> str:
        labelled = self.values != self.labels
        pairs = ", ".join(
            f"{value!r}: {label!r}" for value, label in zip(self.values, self.labels, strict=True)
        )
        shown = f"{{{pairs}}}" if labelled else ", ".join(repr(value) for value in self.values)
        return f"Category({shown}{_shown(self.missing)})"

    def decode(self, code: int) -> str:
        """The label of a code."""
        return self.labels[code]

    def texts(self) -> tuple[tuple[str, int], ...]:
        """Each text of the data with its code."""
        return tuple((value, code) for code, value in enumerate(self.values))


_TRUE, _FALSE = ("true", "True", "TRUE", "1"), ("false", "False", "FALSE", "0")


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Boolean(_Coded):
    """True or false; ``true`` and ``false`` name other texts of the data. AVG of it is a share.

    >>> Boolean(true="1", false="2", missing="N").texts()
    (('2', 0), ('1', 1))
    """

    true: tuple[str, ...]
    false: tuple[str, ...]

    def __init__(
        self,
        *,
        true: str | Sequence[str] = _TRUE,
        false: str | Sequence[str] = _FALSE,
        missing: str | Sequence[str] | None = None,
    ) -> None:
        object.__setattr__(self, "true", _markers(true, "true") or ())
        object.__setattr__(self, "false", _markers(false, "false") or ())
        _set_codes(self, 0, 1, Fraction(1), missing)
        every = [*self.true, *self.false, *(self.missing or ())]
        if not self.true or not self.false or len(set(every)) != len(every):
            raise InvalidDeclaration(
                "A Boolean whose texts for true, false and missing are not all different.",
                remedy="Give each text once.",
            )

    def __repr__(self) -> str:
        texts = (
            ""
            if (self.true, self.false) == (_TRUE, _FALSE)
            else f"true={self.true!r}, false={self.false!r}"
        )
        return f"Boolean({(texts + _shown(self.missing)).removeprefix(', ')})"

    def decode(self, code: int) -> bool:
        """The value of a code."""
        return bool(code)

    def texts(self) -> tuple[tuple[str, int], ...]:
        """Each text of the data with its code."""
        return tuple((text, 0) for text in self.false) + tuple((text, 1) for text in self.true)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Text:
    """Any text. Can be counted and compared; its values are not public, so it is no key.

    >>> Text(missing="N")
    Text(missing='N')
    """

    missing: Markers

    def __init__(self, *, missing: str | Sequence[str] | None = None) -> None:
        object.__setattr__(self, "missing", _markers(missing))

    def __repr__(self) -> str:
        return f"Text({_shown(self.missing).removeprefix(', ')})"


ColumnType: TypeAlias = Integer | Real | Date | Category | Boolean | Text


@dataclass(frozen=True, slots=True)
class Column:
    """A declared column, by the name it has in the data."""

    name: str
    type: ColumnType


def date_code(value: object) -> int | None:
    """Days since 1970-01-01 of an ISO date, or None."""
    if isinstance(value, str):
        try:
            value = datetime.date.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return (value - EPOCH).days
    return None


def _set_codes(
    target: _Coded, lower: int, upper: int, step: Fraction, missing: str | Sequence[str] | None
) -> None:
    if max(abs(lower), abs(upper)) > MAX_CODE:
        raise InvalidDeclaration(
            "Bounds that are more than 2^52 steps from zero.",
            remedy="Declare narrower bounds, or a larger step= for a Real.",
        )
    for name, value in (
        ("lower_code", lower),
        ("upper_code", upper),
        ("step", step),
        ("missing", _markers(missing)),
    ):
        object.__setattr__(target, name, value)


def _bounds(lower: Number, upper: Number) -> tuple[Fraction, Fraction]:
    low, high = to_fraction("lower", lower), to_fraction("upper", upper)
    if low >= high:
        raise InvalidDeclaration(
            f"Bounds from {lower} to {upper}.",
            allowed="lower < upper",
            remedy="Swap them, or widen a single value.",
        )
    return low, high


def _markers(given: str | Sequence[str] | None, name: str = "missing") -> Markers:
    if given is None:
        return None
    markers = (
        (given,)
        if isinstance(given, str)
        else tuple(given)
        if isinstance(given, list | tuple | set)
        else (None,)
    )
    if not all(isinstance(marker, str) for marker in markers):
        raise InvalidDeclaration(
            f"{name}={shown(given)}.", allowed="a text such as 'N', or several"
        )
    # the order of a set is another one in each process, and a plan with another order another plan
    return tuple(sorted(markers)) if isinstance(given, set) else markers


def _shown(missing: Markers) -> str:
    if missing is None:
        return ""
    return f", missing={missing[0]!r}" if len(missing) == 1 else f", missing={missing!r}"


def _category_pairs(values: tuple[object, ...]) -> list[tuple[object, object]]:
    if len(values) == 1 and isinstance(values[0], Mapping):
        values = tuple(each for pair in values[0].items() for each in pair)
        _require_category_values(values)
        return list(zip(values[::2], values[1::2], strict=True))
    if len(values) == 1 and isinstance(values[0], list | tuple):
        values = tuple(values[0])
    _require_category_values(values)
    return [(value, value) for value in values]


def _require_category_values(values: tuple[object, ...]) -> None:
    if not all(isinstance(value, str | int) for value in values):
        raise InvalidDeclaration(
            "A Category value that is neither text nor an integer.", allowed="'Female', 1"
        )
