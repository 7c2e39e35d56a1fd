# SPDX-License-Identifier: Apache-2.0
"""The task of ``Terms`` and ``Paths``: keys of one value, of two, and so on, level by level."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.mechanisms.threshold import ThresholdMechanism
from sfumato.metadata.dataset import Dataset
from sfumato.mining.found import released_json
from sfumato.mining.recipe import (
    KIND,
    TOTALS,
    MiningTask,
    Recipe,
    body_of,
    facts_of,
    label_of,
    label_of_key,
    people_needed,
    threshold,
)
from sfumato.mining.unit_keys import KeyCounts, Keys, Reading, UnitKeys
from sfumato.plan.rows import BoundedRows
from sfumato.plan.show import form
from sfumato.privacy.distance import Norm
from sfumato.privacy.event import Composed, Event
from sfumato.query.allowance import Allowance
from sfumato.query.curator import Curator


@dataclass(frozen=True, slots=True)
class KeysTask(MiningTask):
    """The task of ``Terms`` and ``Paths``: it counts the units of each key, on ``levels`` levels
    (keys of one value, of two, and so on), and the units of each group if there are groups.

    With ``only``, these public keys are counted, on one level. Every level costs the same, and the
    groups a twentieth.
    """

    recipe: Recipe
    reading: Reading
    allowance: Allowance
    keep: int
    levels: int
    only: Keys = ()

    kind: ClassVar[str] = KIND
    size: ClassVar[None] = None

    @property
    def line(self) -> str:
        """A line for the log: the recipe and the names of the columns that are counted."""
        values = self.reading.plan.rows.values
        names = ", ".join(values[place].name for place in self.reading.columns)
        by = "" if self.reading.by is None else f" by {values[self.reading.by].name}"
        return f"{self.recipe.name} of {names}{by}"

    @property
    def form(self) -> str:
        """The canonical string of all fields of the task."""
        return form(self)

    @property
    def event(self) -> Event:
        """The privacy event: a threshold for each level (or the count of the public keys), then the
        count of each group.
        """
        steps: list[Event] = []
        if self.only:
            counts = self._only()
            steps.append(self._noise(counts).event(counts.distance(self.allowance.norm)))
        else:
            distance = UnitKeys(self.reading, self.keep).distance(Norm.LINF)
            event = self.threshold.event(distance)
            steps += [event] * self.levels
        if self.groups is not None:
            noise = self._noise(self.groups, of_groups=True)
            steps.append(noise.event(self.groups.distance(self.allowance.norm)))
        return Composed(tuple(steps)) if len(steps) > 1 else steps[0]

    @property
    def cells(self) -> tuple[int, ...]:
        """The number of counts of each additive step: the public keys, if any, and the groups, if
        any.
        """
        counted = [self._only()] if self.only else []
        counted += [] if self.groups is None else [self.groups]
        return tuple(len(each.keys) for each in counted)

    @property
    def groups(self) -> KeyCounts | None:
        """The statistic that counts the units of each group; None if the recipe has no groups."""
        by = self.reading.by
        if by is None:
            return None
        keys: Keys = (*((code,) for code in self.reading.codes(by)), (None,))
        most = min(self.keep, len(keys), self.reading.plan.most)
        return KeyCounts(replace(self.reading, columns=(), order=None), most, keys)

    @property
    def threshold(self) -> ThresholdMechanism:
        """The mechanism that selects and counts the keys of one level."""
        relation = self.reading.plan.neighbours
        assert self.allowance.delta is not None, "unknown keys need a delta"
        share, delta = self._share(), self.allowance.delta / self.levels
        return threshold(self.keep, share, delta, relation)

    def ready(self, declarations: Dataset) -> BoundedRows:
        """Returns the plan of the rows that the task reads, with a bounded number of rows of each
        unit.
        """
        return self.reading.plan

    def run(self, curator: Curator) -> bytes:
        """Returns the noisy counts by key as the bytes of the stored JSON."""
        levels = []
        if self.only:
            counts = self._only()
            noise = self._noise(counts)
            numbers = curator.measure(counts, noise).tolist()
            levels.append(released_json(self._labels(self.only), numbers, noise.noise))
        else:
            parts: list[Keys] = []
            mechanism = self.threshold
            for _ in range(self.levels):
                counted = UnitKeys(self.reading, self.keep, tuple(parts))
                shown = curator.threshold(counted, mechanism)
                parts.append(tuple(shown))
                keys, numbers = self._labels(tuple(shown)), list(shown.values())
                levels.append(released_json(keys, numbers, mechanism.noise, mechanism.threshold))
        return body_of(self._facts(curator, levels))

    def _facts(self, curator: Curator, levels: list[dict[str, Any]]) -> dict[str, Any]:
        """Returns what is stored; counts the groups."""
        groups = None
        if self.groups is not None:
            noise = self._noise(self.groups, of_groups=True)
            numbers = curator.measure(self.groups, noise)
            assert self.reading.by is not None, "groups are by a column"
            kind = self.reading.plan.rows.values[self.reading.by].type
            labels = [[label_of(kind, code)] for (code,) in self.groups.keys]
            groups = released_json(labels, np.asarray(numbers).tolist(), noise.noise)
        values = self.reading.plan.rows.values
        by = None if self.reading.by is None else values[self.reading.by].name
        notes = self._notes()
        return facts_of(
            self,
            curator.charge,
            self.recipe.name,
            self.line,
            levels,
            groups=groups,
            by=by,
            column=values[self.reading.columns[0]].name,
            notes=notes,
        )

    def _notes(self) -> list[str]:
        most = self.reading.plan.most
        counted = (
            f"A person counts in at most {self.keep} of its keys; of more, a public hash chooses "
            "which, so counts are low where people have many."
        )
        notes = [counted]
        if self.reading.plan.unit is not None:
            notes.append(f"At most {most:,} rows of a person are read (max_rows_total).")
        if not self.only:
            least = self.threshold.threshold
            notes.append(f"Keys with a noisy count below {least:,} are not shown.")
            notes.append("Of keys that are hardly shown the noise is more often positive.")
        return notes

    def releases(self) -> list[tuple[str, str, str]]:
        """The rows of the preview: one for each level of keys, and one for the groups."""
        shown = []
        if self.only:
            noise = self._noise(self._only())
            shown.append(("public keys", f"{noise.error('0.95'):,}", "none"))
        else:
            mechanism = self.threshold
            error, needed = f"{mechanism.error('0.95'):,}", people_needed(mechanism)
            for level in range(self.levels):
                shown.append((f"keys of {level + 1}", error, needed))
        if self.groups is not None:
            noise = self._noise(self.groups, of_groups=True)
            shown.append(("groups", f"{noise.error('0.95'):,}", "none"))
        return shown

    def _labels(self, keys: Keys) -> list[tuple[Any, ...]]:
        return [label_of_key(self.reading, key) for key in keys]

    def _only(self) -> KeyCounts:
        return KeyCounts(self.reading, self.keep, self.only)

    def _share(self) -> Fraction:
        """Returns the cost of one level."""
        of_keys = self.allowance.amount
        if self.reading.by is not None:
            of_keys *= Fraction(TOTALS - 1, TOTALS)
        return of_keys / self.levels

    def _noise(self, counts: KeyCounts, *, of_groups: bool = False) -> AdditiveMechanism:
        """Returns the noise of public counts."""
        share = self.allowance.amount / TOTALS if of_groups else self._share()
        return self.allowance.noise(counts.distance(self.allowance.norm), share)
