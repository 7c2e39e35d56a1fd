# SPDX-License-Identifier: Apache-2.0
"""Converts frames and single rows of the analyst into codes, so that a fitted model can predict.

Models, clusters and components call ``codes_of``. Columns are read as declared at the fit; a value
the model does not know counts as missing and is reported by ``ColumnReport``.
"""

import datetime
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.errors import UnknownName, WrongUse
from sfumato.exact.rational import decimal_text
from sfumato.learning.bag import Bag, row_tokens
from sfumato.learning.physical_types import require_word
from sfumato.learning.stored import text, texts, whole, wholes
from sfumato.metadata.coded import Coded
from sfumato.metadata.column import (
    EPOCH,
    LONGEST_ARRAY,
    Array,
    Boolean,
    Category,
    Column,
    Date,
    Text,
)
from sfumato.metadata.tokens import Tokens
from sfumato.noise import Integers
from sfumato.plan.rows import MISSING
from sfumato.plan.value import Value
from sfumato.privacy.event import Json
from sfumato.query.explain import coarse_step

# The least step of a column.
_FINEST = Fraction(1, 10**18)
# What is a number and a date in a text: as every engine reads them (engines/value_codes.py).
_NUMBER = r"[ \t\n\f\r]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t\n\f\r]*"
_DAY = r"([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])-[0-9]{2}-[0-9]{2}"
# The strings of a Boolean, of which a file of an earlier model says no more.
_TRUTHS = ("False", "True")
# The settings by which a text is split.
_TOKENS = ("stop", "dictionary", "longest", "most")


@dataclass(frozen=True, slots=True)
class FrameColumn:
    """The description by which a fitted model reads a column of a data frame, and converts its
    values to the codes of the fit.

    ``texts`` are the labels of the codes from ``lower`` on, for a column of strings; otherwise
    numbers are divided by ``step`` and rounded. ``length`` is the number of numbers in a value that
    is a list; 0 for single values. ``shape`` are the dimensions of an array. ``words`` are the
    declared strings with their codes, and ``missing`` the strings that mean a missing value; model
    files of earlier versions have none of these three. A text is split into ``tokens``, which are
    read as a ``bag``. ``is_coarse``: fractions of the step may have been rounded at the fit by more
    than a millionth of the range.

    >>> FrameColumn("sex", 0, ("F", "M")).codes(["M", None, "?"]).tolist() == [1, MISSING, MISSING]
    True
    """

    name: str
    lower: int
    texts: tuple[str, ...] = ()
    step: Fraction = Fraction(1)
    is_date: bool = False
    length: int = 0
    words: tuple[tuple[str, int], ...] = field(default=(), compare=False)
    missing: tuple[str, ...] = field(default=(), compare=False)
    tokens: Tokens | None = None
    bag: Bag | None = None
    is_coarse: bool = field(default=False, compare=False)
    shape: tuple[int, ...] = field(default=(), compare=False)

    @classmethod
    def of(cls, value: Value | Column, bag: Bag | None = None) -> "FrameColumn":
        """Returns the description of a column from its declared type, as it was when the model was
        fitted; ``bag`` says how a text is read.
        """
        kind = value.type
        is_coarse = coarse_step(kind) is not None
        if isinstance(kind, Text):
            return cls(value.name, 0, missing=kind.missing or (), tokens=kind.tokens, bag=bag)
        if isinstance(kind, Array):
            return cls(
                value.name,
                kind.lower_code,
                step=kind.step,
                length=kind.length,
                is_coarse=is_coarse,
                shape=kind.shape,
            )
        assert isinstance(kind, Coded), "features are checked before"
        missing = kind.missing or ()
        if isinstance(kind, Category | Boolean):
            codes = range(kind.lower_code, kind.upper_code + 1)
            decoded = tuple(str(kind.decode(code)) for code in codes)
            words = kind.texts()
            return cls(value.name, kind.lower_code, decoded, words=words, missing=missing)
        is_date = isinstance(kind, Date)
        return cls(
            value.name,
            kind.lower_code,
            (),
            kind.step,
            is_date,
            missing=missing,
            is_coarse=is_coarse,
        )

    @property
    def is_number(self) -> bool:
        """Whether each value is a number, rather than a label, a date, a list or a text."""
        return not (self.texts or self.is_date or self.length or self.tokens)

    def features(self, values: Sequence[object]) -> list[Integers]:
        """Returns an array of codes for each feature that the values of the column make up.

        A column of lists gives a feature for each number of a list; other columns give a single
        feature. A list with a missing number, or of another length, counts as missing. A text gives
        the codes of its bag.
        """
        if self.tokens is not None and self.bag is not None:
            split = row_tokens([self._split(self.tokens, value) for value in values])
            return list(self.bag.codes(split, 0, len(values)).T)
        if not self.length:
            return [self.codes(values)]
        rows = [self.codes(self._list(value)) for value in values]
        codes = np.array(rows, np.int64).reshape(len(rows), self.length)
        codes[(codes == MISSING).any(axis=1)] = MISSING
        return list(codes.T)

    def codes(self, values: Sequence[object]) -> Integers:
        """Returns the code of each value; a missing or unknown value has the code ``MISSING``."""
        read: Callable[[Any], int] = self._number
        if self.texts:
            known = self.known
            read = lambda value: look_up(known, value, MISSING)  # noqa: E731
        elif self.is_date:
            read = _day
        codes = np.array([read(value) for value in values], np.int64)
        if self.missing:
            markers = set(self.missing)
            codes[[text_of(value) in markers for value in values]] = MISSING
        return codes

    @property
    def known(self) -> dict[str, int]:
        """The code of each string that the column may contain: the declared strings of the data,
        and the labels.
        """
        labels = {label: self.lower + place for place, label in enumerate(self.texts)}
        words = self.words
        if not words and self.texts == _TRUTHS:
            words = Boolean().texts()
        # a label stands for itself: frames of predictions have had labels before words
        return {**dict(words), **labels}

    def count_unread(self, values: Sequence[object]) -> "ColumnReport":
        """Counts the values that are missing, and those that the model does not know."""
        unread = self.features(values)[0] == MISSING
        markers = {"", *self.missing}
        missing = [is_missing(value) or text_of(value) in markers for value in values]
        absent = int((unread & np.array(missing, bool)).sum())
        return ColumnReport(self.name, len(values), absent, int(unread.sum()) - absent)

    def _list(self, value: Any) -> list[object]:
        """Returns the numbers of a list; missing values if it is missing or of another length."""
        try:
            found = list(value)
        except TypeError:
            found = []
        return found if len(found) == self.length else [None] * self.length

    def _split(self, tokens: Tokens, value: Any) -> Sequence[str]:
        """Returns the tokens of a text; none of a missing value."""
        if is_missing(value) or str(value) in self.missing:
            return ()
        return tokens.split(str(value))

    def _number(self, value: Any) -> int:
        """Returns the code of a number; ``MISSING`` for anything else."""
        number = _float(value)
        if math.isnan(number):
            return MISSING
        # beyond these every feature is at its end
        farthest = 2.0**53
        return round(min(max(number / float(self.step), -farthest), farthest))

    def to_json(self) -> dict[str, Json]:
        """Returns the column as JSON, for a model file."""
        split: dict[str, Json] = {}
        if self.tokens is not None and self.bag is not None:
            split = {
                "tokens": {name: _listed(getattr(self.tokens, name)) for name in _TOKENS},
                "bag": [self.bag.buckets, self.bag.most],
            }
        if self.is_coarse:
            split["is_coarse"] = True
        if self.shape:
            split["shape"] = list(self.shape)
        return split | {
            "name": self.name,
            "lower": self.lower,
            "texts": list(self.texts),
            "step": str(self.step),
            "is_date": self.is_date,
            "length": self.length,
            "words": [[word, code] for word, code in self.words],
            "missing": list(self.missing),
        }

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> "FrameColumn":
        """Builds a column from the JSON of a model file.

        Raises:
            ValueError: an invalid value.
        """
        step = Fraction(text(form["step"]))
        tokens, bag = None, None
        if "bag" in form:
            tokens, bag = Tokens(**{name: form["tokens"][name] for name in _TOKENS}), read_bag(form)
        if not _FINEST <= step <= 1 / _FINEST:
            raise ValueError("not a step")
        length, shape = (
            whole(form.get("length", 0), 0, LONGEST_ARRAY),
            wholes(form.get("shape", ())),
        )
        if shape and (min(shape) < 1 or math.prod(shape) != length):
            raise ValueError("dimensions of another length")
        return cls(
            text(form["name"]),
            whole(form["lower"]),
            texts(form["texts"]),
            step,
            bool(form["is_date"]),
            length,
            tuple((text(word), whole(code)) for word, code in form.get("words", ())),
            texts(form.get("missing", ())),
            tokens,
            bag,
            bool(form.get("is_coarse")),
            shape,
        )

    @property
    def width(self) -> int:
        """The number of codes for each value: several for a list or a text, else one."""
        return self.bag.most if self.bag is not None else max(self.length, 1)


@dataclass(frozen=True, slots=True)
class ColumnReport:
    """How many of the ``values`` of a column are missing, and how many are unknown to the model.

    Both count as missing in a prediction.

    >>> ColumnReport("age", 10, missing=1, unknown=2)
    age: 10 values, 1 missing, 2 unknown
    """

    name: str
    values: int
    missing: int
    unknown: int

    def __repr__(self) -> str:
        counted = f"{self.missing:,} missing, {self.unknown:,} unknown"
        return f"{self.name}: {self.values:,} values, {counted}"


def rounding_note(columns: Sequence[FrameColumn]) -> str:
    """Returns a line with the steps to which a fit has rounded fractions, after a line break; empty
    if all steps are fine.

    >>> rounding_note([FrameColumn("age", 0, is_coarse=True), FrameColumn("pay", 0)])
    '\\nfractions are rounded to steps: age of 1'
    """
    steps = [f"{each.name} of {decimal_text(each.step)}" for each in columns if each.is_coarse]
    return f"\nfractions are rounded to steps: {', '.join(steps)}" if steps else ""


def read_columns(
    stored: Sequence[Mapping[str, Any]],
    features: Sequence[str] | int,
) -> tuple[FrameColumn, ...]:
    """Builds the columns of a model file, and checks that they give the expected features.

    ``features`` are the names of the features, or the number of their codes.

    Raises:
        ValueError: others.
    """
    found = tuple(map(FrameColumn.from_json, stored))
    if isinstance(features, int) and sum(column.width for column in found) != features:
        raise ValueError("columns for other features")
    if not isinstance(features, int) and _names(found) != list(features):
        raise ValueError("columns of other names")
    return found


def read_bag(stored: Mapping[str, Any]) -> Bag:
    """Builds the bag of a text from the JSON of a model file."""
    buckets, most = stored["bag"]
    return Bag(buckets, most)


def _listed(setting: Any) -> Json:
    """Returns a setting of tokens as JSON."""
    return list(setting) if isinstance(setting, tuple) else int(setting)


def _names(columns: Sequence[FrameColumn]) -> list[str]:
    """Returns the names of the features of columns: one, or one per number of a list."""
    found: list[str] = []
    for column in columns:
        found += [f"{column.name}[{place}]" for place in range(column.length)] or [column.name]
    return found


def codes_of(frame: Any, columns: Sequence[FrameColumn]) -> list[Integers]:
    """Returns an array of codes for each feature of a model, from a data frame or from one row as a
    mapping of values.

    Raises:
        UnknownName: the frame has no such column.
        WrongUse: columns of unequal length; a type that holds no declared value.
    """
    codes: list[Integers] = []
    for column, values in zip(columns, _values_of(frame, columns), strict=True):
        codes += column.features(values)
    return codes


def unread_values(frame: Any, columns: Sequence[FrameColumn]) -> tuple[ColumnReport, ...]:
    """Reports, per column of a frame, how many values are missing or unknown to a model.

    Raises:
        As ``codes_of``.
    """
    values = _values_of(frame, columns)
    return tuple(column.count_unread(each) for column, each in zip(columns, values, strict=True))


def with_report(
    predicted: Any,
    frame: Any,
    columns: Sequence[FrameColumn],
    *,
    report: bool,
) -> Any:
    """Returns predictions, or a pair of them and a ``ColumnReport`` for each column if ``report``
    is set.
    """
    return (predicted, unread_values(frame, columns)) if report else predicted


def _values_of(frame: Any, columns: Sequence[FrameColumn]) -> list[list[object]]:
    """Returns the values of each column of a frame."""
    if isinstance(frame, Mapping) and all(
        _is_single(frame.get(column.name), column) for column in columns
    ):
        # one row
        frame = {name: [value] for name, value in frame.items()}
    values = []
    for column in columns:
        values.append(column_of(frame, column.name))
        if column.texts:
            require_word(column.name, [*column.known], frame[column.name])
        if len(values[-1]) != len(values[0]):
            raise WrongUse(
                f"Columns of unequal length: {columns[0].name!r} has {len(values[0]):,} values, "
                f"and {column.name!r} {len(values[-1]):,}.",
                allowed="one value of each column for each row",
            )
    return values


def _is_single(value: Any, column: FrameColumn) -> bool:
    """Whether a value of a mapping belongs to a single row, rather than being a column of
    values.
    """
    if column.length and isinstance(value, Sequence | np.ndarray):
        return bool(len(value)) and not isinstance(value[0], Sequence | np.ndarray)
    return isinstance(value, str | bytes) or not hasattr(value, "__iter__")


def column_of(frame: Any, name: str) -> list[object]:
    """Returns the values of a column of a mapping of lists, or of an Arrow, pandas or polars frame.

    Raises:
        UnknownName: the frame has no such column.
    """
    try:
        column = frame[name]
    except (KeyError, TypeError, IndexError) as absent:
        raise UnknownName(f"The frame has no column {name!r}.", allowed="all features") from absent
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)


def look_up(values_by_text: Mapping[str, Any], value: Any, absent: Any) -> Any:
    """Returns the entry of ``values_by_text`` for a value's string form, or ``absent``; a boolean
    may also be written as in Python.
    """
    found = values_by_text.get(text_of(value) or "", absent)
    if found is absent and isinstance(value, bool | np.bool_):
        return values_by_text.get(str(bool(value)), absent)
    return found


def text_of(value: Any) -> str | None:
    """Returns a value as the string that engines compare; None if it has no string that can be
    stored.

    >>> text_of(2.0), text_of(True), text_of("x"), text_of(chr(0xD800))
    ('2', 'true', 'x', None)
    """
    try:
        if isinstance(value, bool | np.bool_):
            return "true" if value else "false"
        if isinstance(value, float | np.floating) and math.isfinite(value) and value == int(value):
            value = int(value)
        if isinstance(value, Decimal):
            return re.sub(r"\.0+$", "", format(value, "f"))
        found = str(value)
        found.encode()
    except Exception:  # noqa: BLE001 - an integer of too many digits, an object of somebody's own
        return None
    return found


def is_missing(value: Any) -> bool:
    """Whether a value is missing; also handles ``pandas.NA``, which cannot be compared."""
    try:
        return value is None or bool(value != value)
    except Exception:  # noqa: BLE001 - a signalling NaN of Decimal, an object of somebody's own
        return True


def number_of(value: str) -> float:
    """Parses a number from a string as data sources do; NaN if it is no number.

    >>> number_of(" 1.5e3 "), number_of("1_000"), number_of("inf")
    (1500.0, nan, nan)
    """
    return float(value) if re.fullmatch(_NUMBER, value, re.ASCII) else math.nan


def day_of(value: str) -> datetime.date | None:
    """Parses a date written as YYYY-MM-DD; None if the string is no date."""
    try:
        is_written = re.fullmatch(_DAY, value, re.ASCII)
        return datetime.date.fromisoformat(value) if is_written else None
    except ValueError:
        return None


def _float(value: Any) -> float:
    """Converts a value to a float; NaN for what is no number: another string, a list,
    ``pandas.NA``.
    """
    if isinstance(value, str):
        return number_of(value)
    if isinstance(value, bytes):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except Exception:  # noqa: BLE001 - whatever a value does
        return math.nan


def _day(value: Any) -> int:
    """Returns the code of a date, or of a string that is a date."""
    if isinstance(value, str):
        value = day_of(value)
    # a missing date of pandas is a date, and is not itself
    if isinstance(value, datetime.date) and value == value:
        return value.toordinal() - EPOCH.toordinal()
    return MISSING
