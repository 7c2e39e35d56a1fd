# SPDX-License-Identifier: Apache-2.0
"""The result of ``preview``: what a fit would measure, from declarations only."""

import math
from dataclasses import dataclass, field, replace

from sfumato.metadata.dataset import Dataset
from sfumato.query.cells import Units
from sfumato.query.cost import Cost
from sfumato.query.left_after import Balances, left_now
from sfumato.show.render import number, text_table
from sfumato.synthetic.opening import Opening
from sfumato.synthetic.relational_task import ChildTask, RelationalTask
from sfumato.synthetic.schedule import ROWS
from sfumato.synthetic.task import FitTask
from sfumato.synthetic.unit_table import UnitTable

# The standard deviations within which 95% of noise lies.
_NORMAL = 1.96
# Counts of a column, and of a pair, are noise if their half-width is such a share of all rows.
_NOISE, _NOISE_OF_PAIRS = 0.5, 0.125
# CPU seconds: of a start; of a round; of a round for each cell of the model, unless it is a tree;
# and for each pair of columns. Adult and ACS take half of it to all of it.
_START, _ROUND, _OF_CELL, _OF_PAIR = 1.0, 0.08, 0.4e-6, 2e-5
# Bytes of memory: of a start, and for each cell of the model.
_LEAST_MEMORY, _MEMORY_OF_CELL = 300e6, 500


@dataclass(frozen=True)
class Preview:
    """The plan of a fit: the bins of its columns, its rounds, its cost and its noise; costs no
    budget.

    ``synthetic.preview`` returns one.

    ``error`` is the 95% half-width of the count of one cell of a column, in rows; ``off_by`` the
    expected error of each column's shares; ``seconds`` and ``memory`` what a fit needs.
    ``left_out`` are the columns that synthetic rows will not have, ``size`` the declared number of
    rows, ``opening`` the private steps before counting. Of several tables, this is the first, and
    ``others`` are the others.
    """

    task: FitTask | ChildTask
    cost: Cost
    left_out: tuple[str, ...]
    others: tuple["Preview", ...] = ()
    size: int | None = None
    opening: Opening | None = None
    balances: Balances | None = field(default=None, repr=False, compare=False)

    @property
    def cells(self) -> dict[str, int]:
        """The number of cells of each column, including that of missing values."""
        schema = self.task.schema
        return dict(zip(schema.names, schema.cells, strict=True))

    @property
    def error(self) -> float:
        """The 95% half-width of the count of one cell of a column, in rows."""
        noise = self.task.schedule.noises(self.task.schema.plan).single.noise
        return self._rows(float(noise.variance.upper))

    @property
    def pair_error(self) -> float:
        """The 95% half-width of one cell of a measured pair of columns, in rows; 0 if no pair is
        measured.
        """
        if not self.task.schedule.rounds:
            return 0.0
        noise = self.task.schedule.noises(self.task.schema.plan).chosen.noise
        return self._rows(float(noise.variance.upper))

    @property
    def off_by(self) -> dict[str, float]:
        """For each column, the expected total variation distance that noise alone causes.

        It is half the sum of the expected errors of its cells, at most 1, for the declared number
        of rows or 30,000. Rare cells are merged, so the actual error is smaller.
        """
        each = self.error / _NORMAL * math.sqrt(2 / math.pi)
        rows = self.size or ROWS
        return {name: min(cells * each / rows / 2, 1.0) for name, cells in self.cells.items()}

    @property
    def seconds(self) -> float:
        """An upper estimate of the CPU seconds of a fit of all tables, without reading them."""
        total = _START
        for each in (self, *self.others):
            schedule = each.task.schedule
            cells = 0 if schedule.is_forest else schedule.limit
            pairs = schedule.columns**2 / 2
            total += schedule.rounds * (_ROUND + cells * _OF_CELL + pairs * _OF_PAIR)
        return total

    @property
    def memory(self) -> float:
        """An upper estimate of the bytes of memory of a fit."""
        largest = max(each.task.schedule.limit for each in (self, *self.others))
        return _LEAST_MEMORY + largest * _MEMORY_OF_CELL

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks to read before paying."""
        schedule, notes = self.task.schedule, []
        if self.left_out:
            notes.append(f"left out: {', '.join(self.left_out)}")
        rows = self.size or ROWS
        if self.error >= rows * _NOISE:
            notes.append(f"every count is noise if the table has about {rows:,} rows: spend more")
        elif self.pair_error >= rows * _NOISE_OF_PAIRS:
            notes.append(f"this buys the one-way marginals only, of about {rows:,} rows")
        if not schedule.rounds:
            notes.append("this buys the single columns only: no column will go with another")
        elif schedule.is_forest:
            notes.append("only a tree of pairs is measured")
        for axis in self.task.schema.axes:
            if not axis.is_nullable:
                continue
            notes.append(f"{axis.name} can be missing")
        notes += self._opening_notes
        notes += self._losses
        plan = self.task.schema.plan
        if isinstance(plan, UnitTable):
            notes.append(f"rows of a unit beyond {plan.most:,} are dropped")
        elif plan.unit is not None:
            notes.append(f"rows of a unit beyond {plan.most:,} weigh less")
        return tuple(notes)

    @property
    def _losses(self) -> list[str]:
        """Returns what the rows will not preserve, by the declarations alone."""
        lost = []
        opened = {tree.column.name for tree in self.opening.trees} if self.opening else set()
        for axis in self.task.schema.axes:
            if axis.bins < axis.kind.size and axis.name not in opened:
                lost.append(f"{axis.name}: a frequent value inside one of its bins is not kept")
        rules = self.task.rules if isinstance(self.task, FitTask) else ()
        ruled = {place for rule in rules for place in rule.columns}
        for place in sorted(ruled):
            axis = self.task.schema.axes[place]
            if not axis.is_nullable:
                lost.append(
                    f"{axis.name}: a constraint tests it, and no missing= is declared: "
                    "rows that lack it get a value"
                )
        return lost

    @property
    def _opening_notes(self) -> list[str]:
        """Returns remarks on the private steps before counting."""
        opening = self.opening
        if opening is None:
            return []
        notes = []
        for name, question in zip(opening.texts, opening.questions, strict=True):
            least = opening.threshold(Units(question, 0)).threshold
            notes.append(f"{name}: its values are released from about {least:,} units on")
        for tree in opening.trees:
            notes.append(f"{tree.column.name}: about {tree.bins} bins at quantiles, found first")
        return notes

    def _rows(
        self,
        variance: float,
    ) -> float:
        return _NORMAL * math.sqrt(variance) / self.task.schema.plan.refinement

    @property
    def table(self) -> str:
        """Returns a text table of the columns and of what is measured of them."""
        schedule = self.task.schedule
        off_by = self.off_by
        rows = [[name, f"{cells:,}", f"{off_by[name]:.1%}"] for name, cells in self.cells.items()]
        lines = [
            text_table(["column", "cells", "off by"], rows),
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
        lines += [
            f"about {max(self.seconds, 1):,.0f} CPU seconds and {self.memory / 1e9:.1f} GB at most",
            f"cost: {self.cost}",
            *left_now(self.balances, self.cost.charge),
            "nothing was charged",
        ]
        return "\n".join(lines)


def preview_of(
    task: FitTask | RelationalTask,
    cost: Cost,
    dataset: Dataset,
) -> Preview:
    """Returns the preview of a fit of one table or of several."""
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
