# SPDX-License-Identifier: Apache-2.0
"""The examples that a SELECT reads, before any model: bounded rows, features and label."""

from collections.abc import Callable
from dataclasses import dataclass

from sfumato.errors import WrongUse
from sfumato.learning.examples import Label
from sfumato.learning.features import Feature, Features
from sfumato.learning.frames import FrameColumn
from sfumato.metadata.column import Array, Boolean, Category, ColumnType, Integer, Real
from sfumato.metadata.dataset import Dataset
from sfumato.plan.rows import BoundedRows
from sfumato.plan.value import Value
from sfumato.query.pipeline import compile_rows
from sfumato.sql.row_list import place_of, row_list


@dataclass(frozen=True, slots=True)
class Coded:
    """What a feature reads: its name and type, and the place of its code in a row."""

    name: str
    type: ColumnType
    place: int


@dataclass(frozen=True, slots=True)
class Examples:
    """Bounded rows with a label, the value at ``place``; every other column is a feature.

    An array is a feature for each of its numbers.
    """

    plan: BoundedRows
    place: int

    @classmethod
    def of(
        cls,
        dataset: Dataset,
        statement: str,
        label: str,
    ) -> "Examples":
        """The examples of a SELECT of rows, from declarations alone.

        Raises:
            UnknownName: the rows have no such label.
            WrongUse: a label that is no declared class and no number.
            Others as ``row_list``.
        """
        rows = row_list(statement, dataset)
        place = place_of(rows, label)
        kind = rows.values[place].type
        if not isinstance(kind, Category | Boolean | Integer | Real):
            raise WrongUse(
                f"label={label!r}, a {type(kind).__name__}.",
                allowed="a Category, a Boolean, an Integer or a Real",
            )
        return cls(compile_rows(rows, dataset), place)

    @property
    def values(self) -> tuple[Value, ...]:
        """The features' values, in order."""
        rows = self.plan.rows.values
        return rows[: self.place] + rows[self.place + 1 :]

    @property
    def coded(self) -> tuple[Coded, ...]:
        """What each feature reads, in order."""
        rows = self.plan.rows
        found: list[Coded] = []
        for place, (value, start) in enumerate(zip(rows.values, rows.starts, strict=True)):
            if place == self.place:
                continue
            if isinstance(value.type, Array):
                found += _numbers(value.name, value.type, start)
            else:
                found.append(Coded(value.name, value.type, start))
        return tuple(found)

    @property
    def places(self) -> tuple[int, ...]:
        """The places of the features among the codes of a row."""
        return tuple(each.place for each in self.coded)

    @property
    def label(self) -> Label:
        """The label, with the codes that count; a number beyond its clip is at its end."""
        kind = self.plan.rows.values[self.place].type
        assert isinstance(kind, Category | Boolean | Integer | Real), "checked by of"
        return Label(self.plan.rows.starts[self.place], kind.lower_code, kind.upper_code)

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes of the label; empty if it is a number."""
        return FrameColumn.of(self.plan.rows.values[self.place]).texts

    @property
    def bounds(self) -> tuple[float, float]:
        """The values at the ends of a label that is a number."""
        label = self.label
        step = FrameColumn.of(self.plan.rows.values[self.place]).step
        return float(label.lower * step), float(label.upper * step)

    def features(self, make: Callable[[str, ColumnType], Feature]) -> Features:
        """The features, each made from the declared type of its column."""
        return Features(tuple(make(each.name, each.type) for each in self.coded))

    @property
    def columns(self) -> tuple[FrameColumn, ...]:
        """How the features are read from a frame."""
        return tuple(map(FrameColumn.of, self.values))


def _numbers(name: str, kind: Array, start: int) -> list[Coded]:
    """The numbers of an array, whose first code is at ``start``."""
    places = range(kind.length)
    return [Coded(f"{name}[{place}]", kind.element, start + place) for place in places]
