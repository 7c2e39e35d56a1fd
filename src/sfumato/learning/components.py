# SPDX-License-Identifier: Apache-2.0
"""Fitted principal components (the model of ``PCA``): transform, save and load. None of it costs
budget.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from sfumato.learning.array_plot import draw_arrays
from sfumato.learning.clusters import points_of, read_box, units_of
from sfumato.learning.features import Floats
from sfumato.learning.frames import FrameColumn, read_columns, rounding_note, with_report
from sfumato.learning.points import STEPS, Box
from sfumato.learning.stored import numbers, read_cost, text, write
from sfumato.privacy.event import Json
from sfumato.query.cost import Cost
from sfumato.show.svg import Figure


@dataclass(frozen=True, slots=True, repr=False)
class Components:
    """The fitted model of ``PCA``: unit vectors ``axes``, one per row, around the noisy ``mean``.

    Both are in columns scaled to -1 to 1 between the declared bounds. ``shares`` are the noisy
    shares of the variance that each axis explains.
    """

    columns: tuple[FrameColumn, ...]
    box: Box
    mean: Floats
    axes: Floats
    shares: Floats
    cost: Cost
    charge: str

    kind: ClassVar[str] = "components"

    def __repr__(self) -> str:
        names = ", ".join(column.name for column in self.columns)
        told = f"(cost: {self.cost}, charge {self.charge})"
        return f"{len(self.axes)} components of {names} {told}" + rounding_note(self.columns)

    def transform(self, frame: Any, *, report: bool = False) -> Any:
        """Returns the coordinates of each row along the axes; NaN where a number is missing.

        With ``report`` returns a pair: the coordinates, and a ``ColumnReport`` of unread values per
        column.

        Raises:
            UnknownName: the frame lacks a column.
            WrongUse: columns of unequal length.
        """
        points = points_of(frame, self.columns, self.box)
        found: Floats = (points.matrix / STEPS - self.mean) @ self.axes.T
        found[~points.known] = np.nan
        return with_report(found, frame, self.columns, report=report)

    def inverse(self, coordinates: Floats) -> Floats:
        """Converts coordinates along the axes back into numbers in the units of the columns."""
        return units_of(self.mean + coordinates @ self.axes, self.columns, self.box)

    def plot(self) -> Figure:
        """Draws two-dimensional arrays as pictures: the mean, then each axis with its place and its
        share of the variance.

        In the mean, black and white are the declared bounds; an axis is grey where it is 0, and its
        largest number, of either sign, is black or white.

        Raises:
            WrongUse: no column is an array of two dimensions.
        """
        labels = [f"{place}: {share:.0%}" for place, share in enumerate(self.shares)]
        axes = self.axes / np.abs(self.axes).max(axis=1, keepdims=True)
        drawn = [("mean", self.mean), *zip(labels, axes, strict=True)]
        return draw_arrays("components", self.columns, drawn)

    def save(self, path: str | Path) -> None:
        """Writes the components as JSON; ``ln.load`` reads it."""
        stored: dict[str, Json] = {
            "columns": [column.to_json() for column in self.columns],
            "lower": list(self.box.lower),
            "upper": list(self.box.upper),
            "mean": self.mean.tolist(),
            "axes": self.axes.tolist(),
            "shares": self.shares.tolist(),
            "cost": self.cost.to_json(),
            "charge": self.charge,
        }
        write(path, self.kind, stored)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Components":
        """Builds the components from their stored JSON.

        Raises:
            ValueError: parts that do not fit together.
        """
        box = read_box(stored)
        axes = numbers(stored["axes"], None, box.width)
        return cls(
            read_columns(stored["columns"], box.width),
            box,
            numbers(stored["mean"], box.width),
            axes,
            numbers(stored["shares"], len(axes)),
            read_cost(stored["cost"]),
            text(stored["charge"]),
        )
