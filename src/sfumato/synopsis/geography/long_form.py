# SPDX-License-Identifier: Apache-2.0
"""The tables of a census as Arrow tables in long form: one row for each cell."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sfumato.errors import WrongUse, shown
from sfumato.exact.rational import Number
from sfumato.synopsis.geography.design import Axes
from sfumato.synopsis.geography.estimates import Estimates
from sfumato.synopsis.geography.plan import CensusPlan


@dataclass(frozen=True, eq=False)
class LongForm:
    """Converts the estimates of a census to Arrow tables."""

    estimates: Estimates

    @property
    def plan(self) -> CensusPlan:
        """The plan of the census."""
        return self.estimates.plan

    def one(
        self,
        level: str,
        names: Sequence[str],
        confidence: Number = "0.95",
    ) -> pa.Table:
        """Returns a table of one level as Arrow: area, a column for each axis, estimate and error."""
        place, axes = self._found(level, names)
        columns = {level: self._areas(place, axes)}
        for axis in axes:
            columns[self.plan.population.axes[axis].name] = self._labels(place, axes, axis)
        return pa.table(
            {
                **columns,
                **self._numbers(place, axes, confidence),
            }
        )

    def every(self, confidence: Number = "0.95") -> pa.Table:
        """Returns all tables of all levels as one Arrow table: level, area, axes, estimate and
        error.
        """
        found = []
        for place, axes in self.plan.design.tables:
            found.append(self._part(place, axes, confidence))
        return pa.concat_tables(found)

    def _part(self, place: int, axes: Axes, confidence: Number) -> pa.Table:
        """Returns a table of a level with all axes as columns."""
        design = self.plan.design
        size = design.tree.sizes[place] * design.cells(axes)
        level = pa.repeat(pa.scalar(self.plan.spine.levels[place]), size)
        title = pa.repeat(pa.scalar(self.plan.title(axes)), size)
        columns = {
            "level": level,
            "geography": self._areas(place, axes),
            "table": title,
        }
        for number, axis in enumerate(self.plan.population.axes):
            cells = pa.nulls(size, pa.string())
            if number in axes:
                cells = self._labels(place, axes, number)
            columns[axis.name] = cells
        return pa.table(
            {
                **columns,
                **self._numbers(place, axes, confidence),
            }
        )

    def _found(self, level: str, names: Sequence[str]) -> tuple[int, Axes]:
        """Returns the level and the axes that a table is asked by."""
        design = self.plan.design
        place = self.plan.spine.place(level)
        known = [axis.name for axis in self.plan.population.axes]
        axes = tuple(sorted(known.index(name) for name in names if name in known))
        inside = place < design.tree.levels and design.deepest.get(axes, -1) >= place
        if len(axes) < len(names) or not inside:
            listed = []
            for at, wanted in design.tables:
                listed.append(f"{self.plan.spine.levels[at]}: {self.plan.title(wanted)}")
            raise WrongUse(
                f"No table of {level!r} by {shown(', '.join(map(str, names)))}.",
                allowed=f"parts of a measured table of the level or below ({'; '.join(listed)})",
            )
        return place, axes

    def _areas(self, place: int, axes: Axes) -> pa.Array:
        """Returns the code of the area of each cell."""
        size = self.plan.design.tree.sizes[place]
        places = np.repeat(np.arange(size), self.plan.design.cells(axes))
        return pa.array(self.plan.spine.codes[place]).take(pa.array(places))

    def _labels(self, place: int, axes: Axes, axis: int) -> pa.Array:
        """Returns the label of each cell on an axis, as a string; null for missing values."""
        design = self.plan.design
        shape = [
            design.tree.sizes[place],
            *(design.sizes[each] for each in axes),
        ]
        within = [1] * len(shape)
        within[axes.index(axis) + 1] = design.sizes[axis]
        places = np.broadcast_to(
            np.arange(design.sizes[axis]).reshape(within),
            shape,
        )
        texts = []
        for label in self.plan.population.axes[axis].labels:
            texts.append(None if label is None else str(label))
        return pa.array(texts, pa.string()).take(pa.array(places.ravel()))

    def _numbers(self, place: int, axes: Axes, confidence: Number) -> dict[str, pa.Array]:
        """Returns the estimate of each cell, its standard error, its margin and its interval."""
        found = self.estimates
        low, high = found.interval(place, axes, confidence)
        columns = {
            "estimate": found.published(place, axes),
            "standard_error": found.errors(place, axes),
            "margin": found.margins(place, axes, confidence),
            "low": low,
            "high": high,
        }
        return {name: pa.array(values.ravel()) for name, values in columns.items()}
