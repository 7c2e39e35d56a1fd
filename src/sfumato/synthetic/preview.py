# SPDX-License-Identifier: Apache-2.0
"""What a fit would measure, from declarations alone."""

import math
from dataclasses import dataclass

from sfumato.query.cost import Cost
from sfumato.query.render import number, text_table
from sfumato.synthetic.task import FitTask

# The standard deviations within which 95% of noise lies.
_NORMAL = 1.96


@dataclass(frozen=True)
class Preview:
    """The columns as they will be binned, the rounds, the cost, and the noise; free.

    ``errors`` has, for each column, the 95% half-width of the count of one of its cells, in rows.
    ``left_out`` are the columns that no synthetic row will have.

    >>> Preview.__name__, "preview returns one"
    ('Preview', 'preview returns one')
    """

    task: FitTask
    cost: Cost
    left_out: tuple[str, ...]

    @property
    def cells(self) -> dict[str, int]:
        """The number of cells of each column, that of missing values included."""
        schema = self.task.schema
        return dict(zip(schema.names, schema.cells, strict=True))

    @property
    def error(self) -> float:
        """The 95% half-width of the count of one cell of a column, in rows."""
        noise = self.task.schedule.noises(self.task.schema.plan).single.noise
        return self._rows(float(noise.variance.upper))

    @property
    def pair_error(self) -> float:
        """The 95% half-width of one cell of a measured pair of columns, in rows; 0 if none is."""
        if not self.task.schedule.rounds:
            return 0.0
        noise = self.task.schedule.noises(self.task.schema.plan).chosen.noise
        return self._rows(float(noise.variance.upper))

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know before paying."""
        schedule, found = self.task.schedule, []
        if self.left_out:
            found.append(f"left out: {', '.join(self.left_out)}")
        if not schedule.rounds:
            found.append("this buys the single columns only: no column will go with another")
        elif schedule.is_forest:
            found.append("only a tree of pairs is measured")
        for one in self.task.schema.axes:
            if not one.is_nullable:
                continue
            found.append(f"{one.name} can be missing")
        size = self.task.schema.plan.most
        if self.task.schema.plan.unit is not None:
            found.append(f"rows of a unit beyond {size:,} weigh less")
        return tuple(found)

    def _rows(self, variance: float) -> float:
        return _NORMAL * math.sqrt(variance) / self.task.schema.plan.refinement

    def __repr__(self) -> str:
        schedule = self.task.schedule
        rows = [[name, f"{cells:,}"] for name, cells in self.cells.items()]
        lines = [
            text_table(["column", "cells"], rows),
            f"each count of a column: +- {number(self.error)} rows",
        ]
        if schedule.rounds:
            pairs = f"{schedule.rounds} pairs of columns"
            lines.append(f"{pairs}, each count: +- {number(self.pair_error)} rows")
        lines.append(f"honest check: {schedule.checks} pairs")
        lines += [*self.notes, f"cost: {self.cost}", "nothing was charged"]
        return "\n".join(lines)
