# SPDX-License-Identifier: Apache-2.0
"""Fitted clusters (the model of ``KMeans``): predict, save and load. None of it costs budget."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from sfumato.learning.array_plot import draw_arrays
from sfumato.learning.coreset import squares
from sfumato.learning.features import Floats
from sfumato.learning.frames import FrameColumn, codes_of, read_columns, rounding_note, with_report
from sfumato.learning.points import STEPS, Box, Points
from sfumato.learning.stored import numbers, read_cost, text, wholes, write
from sfumato.noise import Integers
from sfumato.privacy.event import Json
from sfumato.query.cost import Cost
from sfumato.show.svg import Figure


@dataclass(frozen=True, slots=True, repr=False)
class Clusters:
    """The fitted model of ``KMeans``: cluster centers, largest cluster first, with their noisy
    sizes.

    ``places`` are the centers with each column scaled to -1 to 1 between its declared bounds;
    ``centers`` are the same in the units of the columns.
    """

    columns: tuple[FrameColumn, ...]
    box: Box
    places: Floats
    sizes: Floats
    cost: Cost
    charge: str

    kind: ClassVar[str] = "clusters"

    def __repr__(self) -> str:
        names = ", ".join(column.name for column in self.columns)
        told = f"(cost: {self.cost}, charge {self.charge})"
        return f"{len(self.sizes)} clusters of {names} {told}" + rounding_note(self.columns)

    @property
    def centers(self) -> Floats:
        """The centers in the units of the columns; a date is its number of days since
        1970-01-01.
        """
        return units_of(self.places, self.columns, self.box)

    def predict(self, frame: Any, *, report: bool = False) -> Any:
        """Returns the index of the nearest center of each row; -1 where a number is missing.

        With ``report`` returns a pair: the indices, and a ``ColumnReport`` of unread values per
        column.

        Raises:
            UnknownName: the frame lacks a column.
            WrongUse: columns of unequal length.
        """
        points = points_of(frame, self.columns, self.box)
        nearest = squares(points.matrix / STEPS, self.places).argmin(axis=1)
        found: Integers = np.where(points.known, nearest, -1)
        return with_report(found, frame, self.columns, report=report)

    def plot(self) -> Figure:
        """Draws the centers of two-dimensional arrays as pictures, each with its place and its
        size; black is the lower declared bound, white the upper one.

        Raises:
            WrongUse: no column is an array of two dimensions.
        """
        labels = [f"{place}: {size:,.0f}" for place, size in enumerate(self.sizes)]
        centers = list(zip(labels, self.places, strict=True))
        return draw_arrays("clusters", self.columns, centers)

    def save(self, path: str | Path) -> None:
        """Writes the clusters as JSON; ``ln.load`` reads it."""
        stored: dict[str, Json] = {
            "columns": [column.to_json() for column in self.columns],
            "lower": list(self.box.lower),
            "upper": list(self.box.upper),
            "places": self.places.tolist(),
            "sizes": self.sizes.tolist(),
            "cost": self.cost.to_json(),
            "charge": self.charge,
        }
        write(path, self.kind, stored)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Clusters":
        """Builds the clusters from their stored JSON.

        Raises:
            ValueError: parts that do not fit together.
        """
        box = read_box(stored)
        places = numbers(stored["places"], None, box.width)
        return cls(
            read_columns(stored["columns"], box.width),
            box,
            places,
            numbers(stored["sizes"], len(places)),
            read_cost(stored["cost"]),
            text(stored["charge"]),
        )


def read_box(stored: Mapping[str, Any]) -> Box:
    """Returns the box of a stored model: the declared bounds of its columns, as codes.

    Raises:
        ValueError: the bounds are invalid.
    """
    lower, upper = wholes(stored["lower"]), wholes(stored["upper"])
    if not lower or any(low >= high for low, high in zip(lower, upper, strict=True)):
        raise ValueError("bounds that are none")
    return Box(lower, upper)


def points_of(
    frame: Any,
    columns: tuple[FrameColumn, ...],
    box: Box,
) -> Points:
    """Returns the rows of a data frame as points: vectors of integers, scaled by the box of
    declared bounds.
    """
    return box.points(codes_of(frame, columns))


def units_of(
    points: Floats,
    columns: tuple[FrameColumn, ...],
    box: Box,
) -> Floats:
    """Converts points with coordinates from -1 to 1 back to values in the units of the columns."""
    lower, upper = np.array(box.lower, float), np.array(box.upper, float)
    codes = (lower + upper) / 2 + points * (upper - lower) / 2
    steps = [float(column.step) for column in columns for _ in range(max(column.length, 1))]
    found: Floats = codes * steps
    return found
