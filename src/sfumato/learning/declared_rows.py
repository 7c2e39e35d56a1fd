# SPDX-License-Identifier: Apache-2.0
"""Converts the arrays and frames of scikit-learn into declared columns, and opens a session on
them.

A value that its column does not declare becomes missing, so no row can make a fit fail. Each value
is converted by itself: one row never affects another.
"""

import datetime
import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from sfumato.errors import LedgerBusy, UnknownName, WrongUse, shown, without_secrets
from sfumato.learning.frames import column_of, day_of, is_missing, look_up, number_of, text_of
from sfumato.learning.physical_types import family_of, require_word
from sfumato.metadata.column import Boolean, Category, ColumnType, Date, Integer, Real
from sfumato.metadata.date_format import date_pattern, places
from sfumato.metadata.physical_words import can_hold_word
from sfumato.metadata.table import Table
from sfumato.privacy.budget import Budget
from sfumato.privacy.unit import AddRemove, Relation, Unit
from sfumato.query.connect import connect
from sfumato.query.session import Session

TABLE = "examples"
_FARTHEST = 2.0**52
# Seconds between two looks at a ledger that another process holds.
_PAUSE = 0.1
# Labels that are integers have at most so many classes.
_MOST_CLASSES = 1000
# A value of Python, or None if it is missing.
Read: TypeAlias = Callable[[Any], Any]


@dataclass(frozen=True, slots=True, repr=False)
class Declared:
    """Declarations for estimators of scikit-learn: which ledger pays, and what each column holds.

    Every fit is charged to ``dataset`` in ``ledger``, within ``budget``. ``columns`` declares each
    feature, in the order of the columns of an array; ``label`` declares ``y``. ``unit`` names the
    columns of a frame that identify the person of a row; without it each row is a unit. A ledger
    file belongs to one process at a time: other processes (``n_jobs=2``) wait for it, at most
    ``wait`` seconds. Its ``repr`` shows no password of the ledger.

    >>> from sfumato.metadata.column import Integer
    >>> Declared("l.db", "clinic", {"age": Integer(0, 99)}, Boolean(), Budget(1)).names
    ('age',)
    """

    ledger: str | Path
    dataset: str
    columns: Mapping[str, ColumnType]
    label: ColumnType | None = None
    budget: Budget | None = None
    unit: Unit | None = None
    relation: Relation = field(default=AddRemove, kw_only=True)
    wait: float = field(default=600, kw_only=True)
    # whether the classes are those of an Integer: truth values are 0 and 1
    is_integer: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.ledger, str | Path) or not str(self.ledger):
            raise WrongUse(
                f"ledger={shown(self.ledger)}.",
                allowed="the path of a file, or a postgresql:// address",
                remedy="No estimator fits without a ledger, which counts what all of them cost.",
            )
        if type(self.wait) not in (int, float) or not 0 <= self.wait < math.inf:
            raise WrongUse(f"wait={shown(self.wait)}.", allowed="seconds, 0 or more")
        for name, kind in [*self.columns.items(), ("label", self.label)]:
            if kind is not None:
                _require_readable(name, kind)
        for name in self._ids:
            if name in self.columns:
                raise WrongUse(f"{shown(name)} is both a feature and the unit.")

    def __repr__(self) -> str:
        ledger = without_secrets(str(self.ledger))
        told = [
            f"{each.name}={getattr(self, each.name)!r}" for each in fields(self)[1:] if each.repr
        ]
        return f"Declared({', '.join([repr(ledger), *told])})"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the feature columns, in order."""
        return tuple(self.columns)

    @property
    def target(self) -> str:
        """The name of the label column in the table, chosen so that no feature has it."""
        name = "label"
        while name in self.columns or name in self._ids:
            name += "_"
        return name

    @property
    def statement(self) -> str:
        """The SELECT that reads the features and the label."""
        names = [*self.names]
        if self.label is not None:
            names.append(self.target)
        return f"SELECT {', '.join(map(_quoted, names))} FROM {TABLE}"

    @property
    def classes(self) -> list[Any]:
        """The declared values of the label, as predictions return them.

        Raises:
            WrongUse: the label has no classes.
        """
        if isinstance(self.label, Integer) and self.label.size <= _MOST_CLASSES:
            return list(range(self.label.lower_code, self.label.upper_code + 1))
        if not isinstance(self.label, Category | Boolean):
            raise WrongUse(
                f"label={shown(self.label)} of a classifier.",
                allowed="sf.Category, sf.Boolean, or an sf.Integer of few values",
            )
        codes = range(self.label.lower_code, self.label.upper_code + 1)
        return [self.label.decode(code) for code in codes]

    @property
    def of_classes(self) -> "Declared":
        """A copy whose label has classes: an integer label becomes a category of its values."""
        if not isinstance(self.label, Integer):
            return self
        classes = replace(self, label=Category(*self.classes))
        object.__setattr__(classes, "is_integer", True)
        return classes

    def reads_places(self, labels: Any) -> bool:
        """Whether ``labels`` are read as indices of the sorted classes rather than as class values;
        decided by their types, never by their values.

        Ensembles of scikit-learn pass such indices. Whole numbers count as indices if no class is
        written as a whole number.
        """
        return family_of(labels) == "whole" and not can_hold_word(
            _values_by_text(self.label), "whole"
        )

    @property
    def _ids(self) -> tuple[str, ...]:
        return () if self.unit is None else self.unit.columns

    def frame(self, rows: Any) -> dict[str, list[Any]]:
        """Returns the features of rows as columns, as a fitted model reads them."""
        read = self._columns(rows)
        return {name: _model_values(self.columns[name], values) for name, values in read.items()}

    def owners(self, rows: Any) -> dict[str, list[str | None]]:
        """Returns the id columns that identify the privacy units of rows, as strings by column
        name; empty if each row is a unit.
        """
        return {name: _texts(column_of(rows, name)) for name in self._ids}

    def session(
        self,
        rows: Any,
        labels: Any,
        version: str,
        *,
        as_places: bool = False,
    ) -> Session:
        """Opens a session whose private table has these rows and labels; with ``as_places`` the
        labels are indices of classes.

        Raises:
            WrongUse: a type that can hold none of the declared values.
        """
        arrays = {}
        declared = dict(self.columns)
        for name, values in self._columns(rows).items():
            arrays[name] = _arrow(self.columns[name], values)
        for name, texts in self.owners(rows).items():
            arrays[name] = pa.array(texts, pa.string())
        if self.label is not None:
            declared[self.target] = self.label
            arrays[self.target] = _arrow(self.label, self._labels(labels, as_places=as_places))
        if len({len(array) for array in arrays.values()}) != 1:
            raise WrongUse("X and y of different numbers of rows.")
        return self._connected(Table(pa.table(arrays), self.unit, declared), version)

    def _connected(self, rows: Table, version: str) -> Session:
        """Opens a session over a table, once no other process holds the ledger."""
        latest = time.monotonic() + self.wait
        while True:
            try:
                return connect(
                    {TABLE: rows},
                    dataset=self.dataset,
                    ledger=self.ledger,
                    budget=self.budget,
                    relation=self.relation,
                    version=version,
                )
            except LedgerBusy:
                if time.monotonic() >= latest:
                    raise
            time.sleep(_PAUSE)

    def _columns(self, rows: Any) -> dict[str, list[Any]]:
        """Returns the values of each feature: by name from a frame, by position from an array."""
        columns = {}
        is_frame = hasattr(rows, "columns") or hasattr(rows, "column_names")
        if isinstance(rows, Mapping) or is_frame:
            values_by_name = {name: column_of(rows, name) for name in self.names}
            columns = {name: rows[name] for name in self.names}
        else:
            values_by_name = columns = self._of_array(rows)
        for name, kind in self.columns.items():
            if isinstance(kind, Category | Boolean):
                require_word(name, _values_by_text(kind), columns[name])
        return {
            name: read_column(self.columns[name], values) for name, values in values_by_name.items()
        }

    def _labels(self, labels: Any, *, as_places: bool) -> list[Any]:
        """Returns the labels as declared values; None for an undeclared one."""
        kind = self.label
        assert kind is not None, "asked for a label alone"
        values = _one_column(labels)
        if not isinstance(kind, Category | Boolean):
            return read_column(kind, values)
        are_places = as_places or not can_hold_word(_values_by_text(kind), "whole")
        if not (as_places or self.is_integer or self.reads_places(labels)):
            require_word("y", _values_by_text(kind), labels)
        classes = sorted(self.classes)
        read = _reader(kind)

        def read_label(value: Any) -> Any:
            is_truth = isinstance(value, bool | np.bool_)
            if are_places and isinstance(value, int | np.integer) and not is_truth:
                return classes[value] if 0 <= value < len(classes) else None
            if as_places:
                return None
            return read(int(value) if is_truth and self.is_integer else value)

        return [read_label(value) for value in values]

    def _of_array(self, rows: Any) -> dict[str, Any]:
        """The columns of an array."""
        if self.unit is not None:
            raise UnknownName(
                "An array has no column of the unit.", remedy="X is a frame with that column."
            )
        if hasattr(rows, "toarray"):
            raise WrongUse("A sparse X.", remedy="X.toarray()")
        # a list with one string would become an array of strings
        array = rows if hasattr(rows, "ndim") else np.array(rows, dtype=object)
        if array.ndim != 2 or array.shape[1] != len(self.names):
            raise WrongUse(
                f"X of shape {'x'.join(['rows', *map(str, array.shape[1:])])}.",
                allowed=f"a column for each declared feature: {', '.join(self.names)}",
            )
        return {name: array[:, place] for place, name in enumerate(self.names)}


def read_column(kind: ColumnType, values: Any) -> list[Any]:
    """Converts values to those of a column type; an undeclared value becomes None.

    >>> read_column(Integer(0, 99), [3.0, "x", float("nan"), True])
    [3, None, None, 1]
    >>> read_column(Boolean(), [1.0, "false", 7]), read_column(Category(1, 2), [2.0, "1", 3])
    ([True, False, None], ['2', '1', None])
    """
    read = _reader(kind)
    return [read(value) for value in values]


def _reader(kind: ColumnType) -> Read:
    """Returns the function that converts a value to a column type."""
    if isinstance(kind, Category | Boolean):
        known = _values_by_text(kind)
        return lambda value: look_up(known, value, None)
    if isinstance(kind, Date):
        return lambda value: _day(value, kind.format)
    if isinstance(kind, Integer):
        return _whole
    return _number


def _values_by_text(kind: ColumnType | None) -> dict[str, Any]:
    """Maps each string of the data, and each declared label, to its declared value."""
    assert isinstance(kind, Category | Boolean), "a kind of declared words"
    words = {word: kind.decode(code) for word, code in kind.texts()}
    if isinstance(kind, Category):
        return {**{label: label for label in kind.labels}, **words}
    return words


def _number(value: Any) -> float | None:
    """Converts a value or a string to a float; None if it is no number or beyond 2^52."""
    if isinstance(value, str):
        value = number_of(value)
    if not isinstance(value, int | float | np.integer | np.floating | np.bool_):
        return None
    # numpy would make a float of 16 bits of the limits, with a warning
    number = value.item() if isinstance(value, np.generic) else value
    if number != number:
        return None
    return float(min(max(number, -_FARTHEST), _FARTHEST))


def _whole(value: Any) -> int | None:
    """Rounds a number to the nearest whole number."""
    found = _number(value)
    return None if found is None else round(found)


def _day(value: Any, form: str | None) -> datetime.date | None:
    """Returns the day of a date, a timestamp, or a string in the declared format."""
    if isinstance(value, str):
        return _written_day(value, form)
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[D]").item()
    if isinstance(value, datetime.datetime):
        value = None if value != value else value.date()
    return value if isinstance(value, datetime.date) else None


def _written_day(value: str, form: str | None) -> datetime.date | None:
    """Parses a day from a string in the declared format, by default YYYY-MM-DD."""
    if form is None:
        return day_of(value)
    match = re.fullmatch(date_pattern(form), value, re.ASCII)
    if match is None:
        return None
    year, month, day = (match[place].zfill(2) for place in places(form))
    return day_of(f"{year}-{month}-{day}")


def _texts(values: Sequence[Any]) -> list[str | None]:
    """Converts the ids of units to strings; an id that has no string form becomes None."""
    return [None if is_missing(value) else text_of(value) for value in values]


def _arrow(kind: ColumnType, values: list[Any]) -> pa.Array:
    """Returns the Arrow array of a column."""
    if isinstance(kind, Category):
        stored = dict(zip(kind.labels, kind.values, strict=True))
        return pa.array([stored.get(value) for value in values], pa.string())
    if isinstance(kind, Boolean):
        texts = {False: kind.false[0], True: kind.true[0], None: None}
        return pa.array([texts[value] for value in values], pa.string())
    if isinstance(kind, Date):
        return pa.array(values, pa.date32())
    return pa.array(values, pa.int64() if isinstance(kind, Integer) else pa.float64())


def _model_values(kind: ColumnType, values: list[Any]) -> list[Any]:
    """Returns values as a model compares them: categories and booleans as strings."""
    if isinstance(kind, Category | Boolean):
        return [None if value is None else str(value) for value in values]
    return values


def _one_column(labels: Any) -> Any:
    """Returns labels as one sequence; a frame or an array with a single column is unpacked."""
    array = np.asarray(labels, dtype=object)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise WrongUse("y that is no list of labels.", allowed="one label for each row of X")
    return array


def _quoted(name: str) -> str:
    """Quotes a name as an SQL identifier."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _require_readable(name: str, kind: ColumnType) -> None:
    """Raises WrongUse for a column type that no estimator reads."""
    if not isinstance(kind, Category | Boolean | Integer | Real | Date):
        raise WrongUse(
            f"{shown(name)} is declared as {type(kind).__name__}.",
            allowed="Category, Boolean, Integer, Real, Date; a column of its own for each number",
        )
