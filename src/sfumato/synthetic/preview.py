# SPDX-License-Identifier: Apache-2.0
"""What a fit would measure, from declarations alone."""

import math
from dataclasses import dataclass, replace

from sfumato.metadata.dataset import Dataset
from sfumato.query.cells import Units
from sfumato.query.cost import Cost
from sfumato.query.render import number, text_table
from sfumato.synthetic.opening import Opening
from sfumato.synthetic.relational_task import ChildTask, RelationalTask
from sfumato.synthetic.schedule import ROWS
from sfumato.synthetic.task import FitTask
from sfumato.synthetic.unit_table import UnitTable

# The standard deviations within which 95% of noise lies.
_NORMAL = 1.96
# Counts of a column, and of a pair, are noise if their half-width is such a share of all rows.
_NOISE, _NOISE_OF_PAIRS = 0.5, 0.125


@dataclass(frozen=True)
class Preview:
    """The columns as they will be binned, the rounds, the cost, and the noise; free.

    ``errors`` has, for each column, the 95% half-width of the count of one of its cells, in rows.
    ``left_out`` are the columns that no synthetic row will have, ``size`` the declared number of
    rows, ``opening`` what the charge finds before it counts. Of several tables, this is the first,
    and ``others`` has the others.

    >>> Preview.__name__, "preview returns one"
    ('Preview', 'preview returns one')
    """

    task: FitTask | ChildTask
    cost: Cost
    left_out: tuple[str, ...]
    others: tuple["Preview", ...] = ()
    size: int | None = None
    opening: Opening | None = None

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
        rows = self.size or ROWS
        if self.error >= rows * _NOISE:
            found.append(f"every count is noise if the table has about {rows:,} rows: spend more")
        elif self.pair_error >= rows * _NOISE_OF_PAIRS:
            found.append(f"this buys the one-way marginals only, of about {rows:,} rows")
        if not schedule.rounds:
            found.append("this buys the single columns only: no column will go with another")
        elif schedule.is_forest:
            found.append("only a tree of pairs is measured")
        for one in self.task.schema.axes:
            if not one.is_nullable:
                continue
            found.append(f"{one.name} can be missing")
        found += self._opened
        plan = self.task.schema.plan
        if isinstance(plan, UnitTable):
            found.append(f"rows of a unit beyond {plan.most:,} are dropped")
        elif plan.unit is not None:
            found.append(f"rows of a unit beyond {plan.most:,} weigh less")
        return tuple(found)

    @property
    def _opened(self) -> list[str]:
        """What the charge finds before it counts."""
        opening = self.opening
        if opening is None:
            return []
        found = []
        for name, question in zip(opening.texts, opening.questions, strict=True):
            least = opening.threshold(Units(question, 0)).threshold
            found.append(f"{name}: its values are released from about {least:,} units on")
        for tree in opening.trees:
            found.append(f"{tree.column.name}: about {tree.bins} bins at quantiles, found first")
        return found

    def _rows(
        self,
        variance: float,
    ) -> float:
        return _NORMAL * math.sqrt(variance) / self.task.schema.plan.refinement

    @property
    def table(self) -> str:
        """The columns of this table, and what is measured of them, as text."""
        schedule = self.task.schedule
        rows = [[name, f"{cells:,}"] for name, cells in self.cells.items()]
        lines = [
            text_table(["column", "cells"], rows),
            f"each count of a column: +- {number(self.error)} rows",
        ]
        if schedule.rounds:
            pairs = f"{schedule.rounds} pairs of columns"
            lines.append(f"{pairs}, each count: +- {number(self.pair_error)} rows")
        lines.append(f"honest check: {schedule.checks} pairs and triples of columns")
        return "\n".join([*lines, *self.notes])

    def __repr__(self) -> str:
        lines = []
        for each in (self, *self.others):
            lines += [f"table {each.task.schema.table}"] if self.others else []
            lines.append(each.table)
        return "\n".join([*lines, f"cost: {self.cost}", "nothing was charged"])


def preview_of(
    task: FitTask | RelationalTask,
    cost: Cost,
    dataset: Dataset,
) -> Preview:
    """The preview of a fit of one table or of several."""
    left_out = task.told["left_out"]
    if isinstance(task, FitTask):
        size = dataset.tables[task.schema.table].size
        return Preview(task, cost, tuple(left_out), size=size, opening=task.opening)
    found = []
    for part, opening in zip(task.parts, task.openings, strict=True):
        name = part.schema.table
        size = dataset.tables[name].size
        found.append(Preview(part, cost, tuple(left_out[name]), size=size, opening=opening))
    return replace(found[0], others=tuple(found[1:]))
