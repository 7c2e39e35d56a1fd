# SPDX-License-Identifier: Apache-2.0
"""The task of ``Means``: the mean array of all rows, then what groups differ from it."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.metadata.column import Array, Text
from sfumato.metadata.dataset import Dataset
from sfumato.mining.found import noise_json
from sfumato.mining.group_sums import GroupSums
from sfumato.mining.recipe import KIND, MiningTask, Recipe, body_of, facts_of, label_of
from sfumato.plan.rows import BoundedRows
from sfumato.plan.show import form
from sfumato.privacy.distance import Norm
from sfumato.privacy.event import Composed, Event
from sfumato.query.allowance import Allowance
from sfumato.query.curator import Curator

# Of the cost, so much is for the mean of all rows.
_OVERALL = Fraction(1, 10)


@dataclass(frozen=True, slots=True)
class MeansTask(MiningTask):
    """The task of ``Means``: it releases the sum of all arrays, then the sums by group of offsets
    from their mean.
    """

    recipe: Recipe
    overall: GroupSums
    by: int | None
    only: tuple[str, ...]
    allowance: Allowance

    kind: ClassVar[str] = KIND
    size: ClassVar[None] = None

    @property
    def line(self) -> str:
        """A line for the log: the recipe and the names of the columns that are averaged."""
        values = self.overall.plan.rows.values
        by = "" if self.by is None else f" by {values[self.by].name}"
        return f"{self.recipe.name} of {values[self.overall.picture].name}{by}"

    @property
    def form(self) -> str:
        """The canonical string of all fields of the task."""
        return form(self)

    @property
    def event(self) -> Event:
        """The privacy event: the sum of all arrays, then the sums by group."""
        steps = []
        for mechanism in self.mechanisms:
            steps.append(mechanism.event(self.overall.distance(Norm.L2)))
        return Composed(tuple(steps))

    @property
    def mechanisms(self) -> tuple[AdditiveMechanism, AdditiveMechanism]:
        """The Gaussian mechanisms of the two steps, for a tenth of the cost and for the rest; their
        sensitivity is the same.
        """
        distance, amount = self.overall.distance(Norm.L2), self.allowance.amount
        first = self.allowance.noise(distance, amount * _OVERALL)
        return first, self.allowance.noise(distance, amount * (1 - _OVERALL))

    @property
    def cells(self) -> tuple[int, int]:
        """The number of integers that each of the two steps releases."""
        by_group = self.by_group(self.overall.origin)
        return self.overall.width, by_group.groups * by_group.width

    def by_group(self, origin: tuple[int, ...]) -> GroupSums:
        """Returns the statistic of the sums by group of offsets from ``origin``, an array in codes
        times ``scale``.
        """
        first = self.overall
        rows, scale, weight, bound = first.plan, first.scale, first.weight, first.bound
        return GroupSums(rows, first.picture, self.by, self.only, scale, origin, weight, bound)

    def ready(self, declarations: Dataset) -> BoundedRows:
        """Returns the plan of the rows that the task reads, with a bounded number of rows of each
        unit.
        """
        return self.overall.plan

    def run(self, curator: Curator) -> bytes:
        """Returns the noisy sums as the bytes of the stored JSON."""
        first, second = self.mechanisms
        origin = self._origin(np.asarray(curator.measure(self.overall, first)))
        statistic = self.by_group(origin)
        sums = np.asarray(curator.measure(statistic, second)).reshape(-1, statistic.width)
        value = self.overall.plan.rows.values[self.overall.picture]
        assert isinstance(value.type, Array), "the statistic refuses others"
        values = self.overall.plan.rows.values
        return body_of(
            facts_of(
                self,
                curator.charge,
                self.recipe.name,
                self.line,
                [],
                by=None if self.by is None else values[self.by].name,
                labels=self._labels(),
                origin=list(origin),
                sums=sums.tolist(),
                noise=noise_json(second.noise),
                weight=self.overall.weight,
                unit=str(value.type.step / self.overall.scale),
                ends=[str(value.type.step * end) for end in self._ends],
                shape=list(value.type.shape),
                notes=self._notes(),
            )
        )

    @property
    def _ends(self) -> tuple[int, int]:
        kind = self.overall.plan.rows.values[self.overall.picture].type
        assert isinstance(kind, Array), "the statistic refuses others"
        return kind.lower_code, kind.upper_code

    def _origin(self, noisy: Any) -> tuple[int, ...]:
        """Returns the mean of all rows, from their noisy sum and weight."""
        first = self.overall
        people = max(float(noisy[-1]) / first.weight, 1.0)
        mean = np.array(first.origin) + np.rint(noisy[:-1] / people).astype(np.int64)
        low, high = (end * first.scale for end in self._ends)
        return tuple(np.clip(mean, low, high).tolist())

    def _labels(self) -> list[int | str | bool | None]:
        if self.by is None:
            return ["all"]
        kind = self.overall.plan.rows.values[self.by].type
        if self.only:
            return list(self.only)
        assert not isinstance(kind, Text), "texts have only="
        codes = range(kind.lower_code, kind.upper_code + 1)
        return [*(label_of(kind, code) for code in codes), None]

    def _notes(self) -> list[str]:
        counted = (
            "Pictures of a person that are longer than the length count for less, so n is below "
            "the number of people; means lean towards the others."
        )
        notes = [counted]
        if self.overall.plan.unit is not None:
            most = self.overall.plan.most
            notes.append(f"At most {most:,} rows of a person are read (max_rows_total).")
        return notes

    def releases(self) -> list[tuple[str, str, str]]:
        """The rows of the preview: one for each of the two steps."""
        shown = []
        for name, mechanism in zip(("overall mean", "means"), self.mechanisms, strict=True):
            people = -(-mechanism.error("0.95") // self.overall.weight)
            shown.append((name, f"{people:,}", "none"))
        return shown
