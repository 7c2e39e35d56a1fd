# SPDX-License-Identifier: Apache-2.0
"""Reads frames of the analyst as codes, as the columns that a model was fitted to are declared."""

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.errors import UnknownName
from sfumato.learning.stored import text, texts, whole
from sfumato.metadata.coded import Coded
from sfumato.metadata.column import EPOCH, LONGEST_ARRAY, Array, Boolean, Category, Date
from sfumato.noise import Integers
from sfumato.plan.rows import MISSING
from sfumato.plan.value import Value
from sfumato.privacy.event import Json

# The least step of a column.
_FINEST = Fraction(1, 10**18)


@dataclass(frozen=True, slots=True)
class FrameColumn:
    """A column of a frame: the strings of its codes, or the step of its numbers.

    ``length``: its values are lists of so many numbers; 0 if they are single values.

    >>> FrameColumn("sex", 0, ("F", "M")).codes(["M", None, "?"]).tolist() == [1, MISSING, MISSING]
    True
    """

    name: str
    lower: int
    texts: tuple[str, ...] = ()
    step: Fraction = Fraction(1)
    is_date: bool = False
    length: int = 0

    @classmethod
    def of(cls, value: Value) -> "FrameColumn":
        """The column of a frame that holds a value of the fitted rows."""
        kind = value.type
        if isinstance(kind, Category | Boolean):
            codes = range(kind.lower_code, kind.upper_code + 1)
            return cls(value.name, kind.lower_code, tuple(str(kind.decode(code)) for code in codes))
        if isinstance(kind, Array):
            return cls(value.name, kind.lower_code, step=kind.step, length=kind.length)
        assert isinstance(kind, Coded), "features are checked before"
        return cls(
            value.name,
            kind.lower_code,
            (),
            kind.step,
            isinstance(kind, Date),
        )

    def features(self, values: Sequence[object]) -> list[Integers]:
        """The codes of each feature that reads the column: one, or one for each number of a list.

        A list with a missing number, or of another length, is missing.
        """
        if not self.length:
            return [self.codes(values)]
        rows = [self.codes(self._list(value)) for value in values]
        codes = np.array(rows, np.int64).reshape(len(rows), self.length)
        codes[(codes == MISSING).any(axis=1)] = MISSING
        return list(codes.T)

    def codes(self, values: Sequence[object]) -> Integers:
        """The codes of values; what is missing or unknown has the code of a missing value."""
        read: Callable[[Any], int] = self._number
        if self.texts:
            known: dict[str | None, int] = {}
            for place, each in enumerate(self.texts):
                known[each] = self.lower + place
            return np.array([known.get(_text(value), MISSING) for value in values], np.int64)
        if self.is_date:
            read = _day
        return np.array([read(value) for value in values], np.int64)

    def _list(self, value: Any) -> list[object]:
        """The numbers of a list; as many missing ones if it is missing or of another length."""
        try:
            found = list(value)
        except TypeError:
            found = []
        return found if len(found) == self.length else [None] * self.length

    def _number(self, value: Any) -> int:
        """The code of a number; what is none is missing."""
        number = _float(value)
        if math.isnan(number):
            return MISSING
        # beyond these every feature is at its end
        farthest = 2.0**53
        return round(min(max(number / float(self.step), -farthest), farthest))

    def to_json(self) -> dict[str, Json]:
        """The stored form."""
        return {
            "name": self.name,
            "lower": self.lower,
            "texts": list(self.texts),
            "step": str(self.step),
            "is_date": self.is_date,
            "length": self.length,
        }

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> "FrameColumn":
        """Reads a stored form.

        Raises:
            ValueError: a value that is none of a column.
        """
        step = Fraction(text(form["step"]))
        if not _FINEST <= step <= 1 / _FINEST:
            raise ValueError("not a step")
        return cls(
            text(form["name"]),
            whole(form["lower"]),
            texts(form["texts"]),
            step,
            bool(form["is_date"]),
            whole(form.get("length", 0), 0, LONGEST_ARRAY),
        )


def read_columns(
    stored: Sequence[Mapping[str, Any]],
    features: Sequence[str] | int,
) -> tuple[FrameColumn, ...]:
    """The columns of a stored form, which have these features, or so many.

    Raises:
        ValueError: others.
    """
    found = tuple(map(FrameColumn.from_json, stored))
    if sum(max(column.length, 1) for column in found) != _number(features):
        raise ValueError("columns for other features")
    if not isinstance(features, int) and _names(found) != list(features):
        raise ValueError("columns of other names")
    return found


def _number(features: Sequence[str] | int) -> int:
    """How many features there are."""
    return features if isinstance(features, int) else len(features)


def _names(columns: Sequence[FrameColumn]) -> list[str]:
    """The names of the features that columns have: one, or one for each number of a list."""
    found: list[str] = []
    for column in columns:
        found += [f"{column.name}[{place}]" for place in range(column.length)] or [column.name]
    return found


def column_of(frame: Any, name: str) -> list[object]:
    """The values of a column of a mapping of lists, or of a frame of Arrow, pandas or polars.

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


def _text(value: object) -> str | None:
    """The text of a value; None if it has none."""
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - an integer of too many digits, an object of somebody's own
        return None


def _float(value: Any) -> float:
    """A number as a float; NaN for what is no number: a text, a list, ``pandas.NA``."""
    if isinstance(value, str | bytes):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except Exception:  # noqa: BLE001 - whatever a value does
        return math.nan


def _day(value: Any) -> int:
    """The code of a date."""
    # a missing date of pandas is a date, and is not itself
    if isinstance(value, datetime.date) and value == value:
        return value.toordinal() - EPOCH.toordinal()
    return MISSING
