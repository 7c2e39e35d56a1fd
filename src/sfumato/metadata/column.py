# SPDX-License-Identifier: Apache-2.0
"""Column types: the declared values of a column, and the integer code of each.

Every stored value has a defined meaning, so that no row can cause an error. A number beyond a bound
is clipped to it, as is infinity. NULL, NaN, a ``missing`` marker, a value that does not parse and
an undeclared category are missing. With ``missing=``, missing values form a group of their own in
GROUP BY; otherwise rows whose key is missing are in no group.
"""

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import index
from typing import SupportsIndex, TypeAlias

from sfumato.errors import InvalidDeclaration, shown
from sfumato.exact.rational import Number, decimal_text, power_of_two_at_most, to_fraction
from sfumato.exact.rounding import float_up
from sfumato.metadata.clip import Clip, DeclaredClip, Ends, clip_codes, clip_ends
from sfumato.metadata.coded import Coded, Markers, markers, set_codes, shown_missing
from sfumato.metadata.date_format import require_format
from sfumato.metadata.timestamp import Timestamp
from sfumato.metadata.tokens import Tokens
from sfumato.privacy.unit import Auto

EPOCH = datetime.date(1970, 1, 1)
# RULES 12: a lattice of about a million steps, far below any noise.
LATTICE_STEPS = 2**20
# A clip that is learnt may be this much narrower than the range before its lattice is coarser.
NARROWEST_CLIP = 2**10


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Integer(Coded):
    """Integers from ``lower`` to ``upper``, on the lattice of step 1.

    ``lower`` and ``upper`` bound the possible values. SUM, AVG and VARIANCE clip them to ``clip``:
    its largest value, or its smallest and its largest one, or ``sf.AUTO`` (learnt privately). Tests
    and groups read the value itself.

    >>> Integer(17, 90, missing="N")
    Integer(17, 90, missing='N')
    >>> Integer(0, 1_341_000, clip=200_000)
    Integer(0, 1341000, clip=(0, 200000))
    """

    clip: Clip

    def __init__(
        self,
        lower: Number,
        upper: Number,
        *,
        clip: DeclaredClip = None,
        missing: str | Sequence[str] | None = None,
    ) -> None:
        low, high = _bounds(lower, upper)
        if low.denominator != 1 or high.denominator != 1:
            raise InvalidDeclaration(
                f"Integer({lower}, {upper}).", allowed="whole bounds", remedy="Or declare a Real."
            )
        set_codes(self, int(low), int(high), Fraction(1), missing)
        ends = clip_ends(clip, low, high)
        if isinstance(ends, tuple) and any(end.denominator != 1 for end in ends):
            raise InvalidDeclaration(f"Integer with clip={shown(clip)}.", allowed="whole numbers")
        object.__setattr__(self, "clip", clip_codes(ends, int))

    def __repr__(self) -> str:
        marks = shown_missing(self.missing)
        return f"Integer({self.lower_code}, {self.upper_code}{_shown_clip(self)}{marks})"

    def decode(self, code: int) -> int:
        """Returns the integer that a code stands for."""
        return code


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Real(Coded):
    """Numbers from ``lower`` to ``upper``, rounded half to even onto a public lattice.

    The step is ``step``, or the largest power of two that is at most a millionth of the range, or
    of the clip if there is one. ``clip`` is as for ``Integer``.

    >>> Real(0, 99).step, Real(0, 9900, clip=99).step
    (Fraction(1, 16384), Fraction(1, 16384))
    """

    clip: Clip

    def __init__(
        self,
        lower: Number,
        upper: Number,
        *,
        step: Number | None = None,
        clip: DeclaredClip = None,
        missing: str | Sequence[str] | None = None,
    ) -> None:
        low, high = _bounds(lower, upper)
        ends = clip_ends(clip, low, high)
        spacing = _derived_step(high - low, ends)
        if step is not None:
            spacing = to_fraction("step", step)
        if not 0 < spacing <= high - low:
            raise InvalidDeclaration(
                f"A step of {step}.", allowed="greater than 0 and at most upper - lower"
            )
        low_code = round(low / spacing)
        high_code = round(high / spacing)
        if low_code == high_code or not 1e-300 < float_up(spacing) < 1e300:
            raise InvalidDeclaration(
                "A Real whose bounds fall on one step, or whose step no float can hold.",
                remedy="Declare another step=.",
            )
        set_codes(self, low_code, high_code, spacing, missing)
        codes = clip_codes(ends, lambda end: round(end / spacing))
        object.__setattr__(self, "clip", codes)

    def __repr__(self) -> str:
        low = decimal_text(self.lower_code * self.step)
        high = decimal_text(self.upper_code * self.step)
        step = decimal_text(self.step)
        return f"Real({low}, {high}, step={step}{_shown_clip(self)}{shown_missing(self.missing)})"

    def decode(self, code: int) -> float:
        """Returns the number that a code stands for."""
        return float(code * self.step)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Date(Coded):
    """Dates from ``lower`` to ``upper`` (an ISO string or ``datetime.date``), coded as days since
    1970-01-01.

    ``format`` is how strings of the data are written: None for YYYY-MM-DD, or %d, %m and %Y, each
    once, with one of "/", ".", "-" between them, or "%Y%m%d".

    >>> Date("1970-01-01", "1970-01-31").size
    31
    >>> Date("2024-01-01", "2024-12-31", format="%d/%m/%Y")
    Date('2024-01-01', '2024-12-31', format='%d/%m/%Y')
    """

    format: str | None

    def __init__(
        self,
        lower: str | datetime.date,
        upper: str | datetime.date,
        *,
        format: str | None = None,
        missing: str | Sequence[str] | None = None,
    ) -> None:
        low = date_code(lower)
        high = date_code(upper)
        if low is None or high is None or low >= high:
            raise InvalidDeclaration(
                f"Date({shown(lower)}, {shown(upper)}).",
                allowed="two ISO dates, '1900-01-01', the lower one before the upper one",
            )
        if format is not None:
            require_format(format)
        object.__setattr__(self, "format", format)
        set_codes(self, low, high, Fraction(1), missing)

    def __repr__(self) -> str:
        low = self.decode(self.lower_code)
        high = self.decode(self.upper_code)
        written = f", format={self.format!r}" if self.format is not None else ""
        return f"Date('{low}', '{high}'{written}{shown_missing(self.missing)})"

    def decode(self, code: int) -> datetime.date:
        """Returns the date that a code stands for."""
        return EPOCH + datetime.timedelta(days=code)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Category(Coded):
    """One of the declared values, compared as strings.

    A mapping declares values of the data with a label for each, which answers show.

    >>> Category({"1": "Male", "2": "Female"}).labels
    ('Male', 'Female')
    """

    values: tuple[str, ...]
    labels: tuple[str, ...]

    def __init__(self, *values: object, missing: str | Sequence[str] | None = None) -> None:
        pairs = _category_pairs(values)
        stored = [str(value) for value, _ in pairs]
        labels = [str(label) for _, label in pairs]
        for names in (stored, labels):
            if not names or len(set(names)) != len(names) or "" in names:
                raise InvalidDeclaration(
                    "A Category needs its values, each once and none empty.",
                    allowed='sf.Category("Female", "Male")',
                )
        object.__setattr__(self, "values", tuple(stored))
        object.__setattr__(self, "labels", tuple(labels))
        set_codes(self, 0, len(stored) - 1, Fraction(1), missing)
        if set(stored) & set(self.missing or ()):
            raise InvalidDeclaration(
                "A Category value that is also a marker for missing.", remedy="Choose one of them."
            )

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self.values))
        if self.values != self.labels:
            shown = repr(dict(zip(self.values, self.labels, strict=True)))
        return f"Category({shown}{shown_missing(self.missing)})"

    def decode(self, code: int) -> str:
        """Returns the label that a code stands for."""
        return self.labels[code]

    def texts(self) -> tuple[tuple[str, int], ...]:
        """Returns the strings that the data may contain, each with its code."""
        return tuple((value, code) for code, value in enumerate(self.values))


_TRUE = ("true", "True", "TRUE", "1")
_FALSE = ("false", "False", "FALSE", "0")


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Boolean(Coded):
    """True or false; ``true`` and ``false`` list the strings of the data that mean it.

    AVG of such a column is the share of true values.

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
        object.__setattr__(self, "true", markers(true, "true") or ())
        object.__setattr__(self, "false", markers(false, "false") or ())
        set_codes(self, 0, 1, Fraction(1), missing)
        every = [*self.true, *self.false, *(self.missing or ())]
        if not self.true or not self.false or len(set(every)) != len(every):
            raise InvalidDeclaration(
                "A Boolean whose texts for true, false and missing are not all different.",
                remedy="Give each text once.",
            )

    @property
    def has_spellings(self) -> bool:
        """Whether the type declares its own strings for true or false, in place of the default
        ones.
        """
        return (self.true, self.false) != (_TRUE, _FALSE)

    def __repr__(self) -> str:
        texts = ""
        if self.has_spellings:
            texts = f"true={self.true!r}, false={self.false!r}"
        return f"Boolean({(texts + shown_missing(self.missing)).removeprefix(', ')})"

    def decode(self, code: int) -> bool:
        """Returns the truth value that a code stands for."""
        return bool(code)

    def texts(self) -> tuple[tuple[str, int], ...]:
        """Returns the strings that mean false or true in the data, each with its code."""
        return tuple((text, 0) for text in self.false) + tuple((text, 1) for text in self.true)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Text:
    """Any string.

    A text column can be counted and compared, but is no group key, since its values are not public.
    ``tokens`` says how mining and models split a text into words; without it a text is one string.

    >>> Text(missing="N")
    Text(missing='N')
    >>> Text(tokens=Tokens(stop=["the"]))
    Text(tokens=Tokens(stop=['the']))
    """

    missing: Markers
    tokens: Tokens | None

    def __init__(
        self, *, missing: str | Sequence[str] | None = None, tokens: Tokens | None = None
    ) -> None:
        if tokens is not None and type(tokens) is not Tokens:
            raise InvalidDeclaration("tokens= is no sf.Tokens.", allowed="sf.Tokens(...), or None")
        object.__setattr__(self, "missing", markers(missing))
        object.__setattr__(self, "tokens", tokens)

    def __repr__(self) -> str:
        split = "" if self.tokens is None else f", tokens={self.tokens}"
        return f"Text({(shown_missing(self.missing) + split).removeprefix(', ')})"


# Rows of longer arrays would not fit beside each other in memory.
LONGEST_ARRAY = 2**20


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Array:
    """Lists of numbers of one length: pictures, embeddings.

    ``shape`` is the length, or the lengths along several axes; the data has flat lists of their
    product, row by row. Each number is read like an ``Integer`` from ``lower`` to ``upper``; with
    ``step``, like a ``Real``. A list of another length, or with NULL or NaN, is missing as a whole.

    SQL computes nothing from an array. The rows of a task, and models, read it.

    Raises:
        InvalidDeclaration: a shape without numbers or with more than 2^20, or invalid bounds.

    >>> Array((28, 28), 0, 255).length
    784
    """

    shape: tuple[int, ...]
    element: Integer | Real

    def __init__(
        self,
        shape: int | Sequence[int],
        lower: Number,
        upper: Number,
        *,
        step: Number | None = None,
    ) -> None:
        object.__setattr__(self, "shape", _array_shape(shape))
        element = Integer(lower, upper) if step is None else Real(lower, upper, step=step)
        object.__setattr__(self, "element", element)

    @property
    def length(self) -> int:
        """How many numbers a value has: the product of ``shape``."""
        return math.prod(self.shape)

    @property
    def missing(self) -> Markers:
        """None: arrays have no strings that mark missing values."""
        return None

    @property
    def lower_code(self) -> int:
        """The smallest code of a number of the array."""
        return self.element.lower_code

    @property
    def upper_code(self) -> int:
        """The largest code of a number of the array."""
        return self.element.upper_code

    @property
    def step(self) -> Fraction:
        """The difference between the values of two adjacent codes of a number of the array."""
        return self.element.step

    @property
    def size(self) -> int:
        """The number of different values that one number of the array can have."""
        return self.element.size

    def decode(self, code: int) -> int | float:
        """Returns the number that a code of an element stands for."""
        return self.element.decode(code)

    def __repr__(self) -> str:
        shape = self.shape[0] if len(self.shape) == 1 else self.shape
        low, high = (
            decimal_text(self.lower_code * self.step),
            decimal_text(self.upper_code * self.step),
        )
        step = f", step={decimal_text(self.step)}" if isinstance(self.element, Real) else ""
        return f"Array({shape}, {low}, {high}{step})"


ColumnType: TypeAlias = Integer | Real | Date | Timestamp | Category | Boolean | Text | Array


@dataclass(frozen=True, slots=True)
class Column:
    """A declared column: its name in the data, and its type.

    >>> Column("age", Integer(0, 120)).name
    'age'
    """

    name: str
    type: ColumnType


def date_code(value: object) -> int | None:
    """Returns the code of an ISO date (days since 1970-01-01); None if it is no date."""
    if isinstance(value, str):
        try:
            value = datetime.date.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return (value - EPOCH).days
    return None


def _array_shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    """The lengths along each axis of an array."""
    given = tuple(shape) if isinstance(shape, list | tuple) else (shape,)
    axes = tuple(map(_axis, given))
    if not axes or min(axes) < 1:
        # a list is quoted by its type: it may be a row of the data
        raise InvalidDeclaration(
            f"An Array whose shape is {shown(shape)}.",
            allowed="a length above 0, or several: 512, (28, 28)",
        )
    if math.prod(axes) > LONGEST_ARRAY:
        raise InvalidDeclaration(
            f"An Array of {math.prod(axes):,} numbers.",
            allowed=f"at most {LONGEST_ARRAY:,}",
            remedy="Store smaller pictures, or an embedding of them.",
        )
    return axes


def _axis(length: object) -> int:
    """A length as an int, also from numpy; 0 if it is no length."""
    if isinstance(length, SupportsIndex) and not isinstance(length, bool):
        return index(length)
    return 0


def _bounds(lower: Number, upper: Number) -> tuple[Fraction, Fraction]:
    low = to_fraction("lower", lower)
    high = to_fraction("upper", upper)
    if low >= high:
        raise InvalidDeclaration(
            f"Bounds from {lower} to {upper}.",
            allowed="lower < upper",
            remedy="Swap them, or widen a single value.",
        )
    return low, high


def _derived_step(range_: Fraction, ends: Ends | Auto | None) -> Fraction:
    """Returns the step of a Real without ``step``: a power of two, at most a millionth of its
    range.

    With a clip, it is a millionth of the clip.
    """
    width = range_
    if isinstance(ends, tuple):
        width = ends[1] - ends[0]
    elif ends is not None:
        width = range_ / NARROWEST_CLIP
    return power_of_two_at_most(width / LATTICE_STEPS)


def _shown_clip(kind: Integer | Real) -> str:
    """The clip of a type as an argument, for ``repr``."""
    if kind.clip is None:
        return ""
    if not isinstance(kind.clip, tuple):
        return ", clip=sf.AUTO"
    low, high = (decimal_text(end * kind.step) for end in kind.clip)
    return f", clip=({low}, {high})"


def _category_pairs(values: tuple[object, ...]) -> list[tuple[object, object]]:
    if len(values) == 1 and isinstance(values[0], Mapping):
        pairs = list(values[0].items())
        _require_category_values([part for pair in pairs for part in pair])
        return pairs
    if len(values) == 1 and isinstance(values[0], list | tuple):
        values = tuple(values[0])
    _require_category_values(values)
    return [(value, value) for value in values]


def _require_category_values(values: Sequence[object]) -> None:
    if not all(isinstance(value, str | int) for value in values):
        raise InvalidDeclaration(
            "A Category value that is neither text nor an integer.", allowed="'Female', 1"
        )
