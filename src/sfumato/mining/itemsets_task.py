# SPDX-License-Identifier: Apache-2.0
"""The task of ``Itemsets``: items, then sets of two, three and more, from released numbers alone."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb, isqrt
from typing import Any, ClassVar

from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.mechanisms.threshold import ThresholdMechanism
from sfumato.metadata.dataset import Dataset
from sfumato.mining.baskets import BasketCounts
from sfumato.mining.found import released_json
from sfumato.mining.recipe import (
    KIND,
    TOTALS,
    MiningTask,
    Recipe,
    body_of,
    facts_of,
    label_of_key,
    people_needed,
    threshold,
)
from sfumato.mining.unit_keys import Key, KeyCounts, Keys, Reading, UnitKeys, differing
from sfumato.plan.rows import BoundedRows
from sfumato.plan.show import form
from sfumato.privacy.distance import Norm
from sfumato.privacy.event import Composed, Event
from sfumato.query.allowance import Allowance
from sfumato.query.curator import Curator

# The most candidates that are counted on one level, and single items that are combined.
_CANDIDATES, _ITEMS = 1 << 17, 2000
# A set of items, as ascending indices of single items, with its noisy count.
Counted = dict[tuple[int, ...], int]


@dataclass(frozen=True, slots=True)
class ItemsetsTask(MiningTask):
    """The task of ``Itemsets``: it counts all people, then single items, then sets of up to
    ``largest`` items. ``is_open`` is set if the items are not public, so that a threshold selects
    them.

    A level costs in proportion to the root of the number of sets in which a person may be.
    """

    recipe: Recipe
    reading: Reading
    allowance: Allowance
    keep: int
    width: int
    largest: int
    support: Fraction
    is_open: bool

    kind: ClassVar[str] = KIND
    size: ClassVar[None] = None

    @property
    def line(self) -> str:
        """A line for the log: the recipe and the names of the columns that are counted."""
        values = self.reading.plan.rows.values
        return f"{self.recipe.name} of {', '.join(value.name for value in values)}"[:500]

    @property
    def form(self) -> str:
        """The canonical string of all fields of the task."""
        return form(self)

    @property
    def event(self) -> Event:
        """The privacy event: a threshold if the items are not public, the count of people, then one
        step for each set size.
        """
        norm, plan = self.allowance.norm, self.reading.plan
        steps: list[Event] = []
        if self.is_open:
            distance = UnitKeys(self.reading, self.keep).distance(Norm.LINF)
            steps.append(self.threshold.event(distance))
        people = self.people.distance(norm)
        steps.append(self._people_noise().event(people))
        for size in range(2 if self.is_open else 1, self.largest + 1):
            steps.append(self.noise(size).event(differing(self._most(size), norm, plan)))
        return Composed(tuple(steps))

    @property
    def cells(self) -> tuple[int | None, ...]:
        """The number of counts of each additive step; None for sets of two items and more, whose
        candidates depend on released counts.
        """
        items = () if self.is_open else (len(self._public()),)
        return (1, *items, *(None for _ in range(self.largest - 1)))

    @property
    def people(self) -> KeyCounts:
        """The statistic that counts all people with a row."""
        return KeyCounts(Reading(self.reading.plan), 1, ((0,),))

    @property
    def threshold(self) -> ThresholdMechanism:
        """The mechanism that selects and counts items that are not public."""
        assert self.allowance.delta is not None, "unknown items need a delta"
        relation = self.reading.plan.neighbours
        return threshold(self.keep, self._share(1), self.allowance.delta, relation)

    def noise(self, size: int) -> AdditiveMechanism:
        """Returns the mechanism that adds noise to the counts of sets of ``size`` items."""
        distance = differing(self._most(size), self.allowance.norm, self.reading.plan)
        return self.allowance.noise(distance, self._share(size))

    def ready(self, declarations: Dataset) -> BoundedRows:
        """Returns the plan of the rows that the task reads, with a bounded number of rows of each
        unit.
        """
        return self.reading.plan

    def run(self, curator: Curator) -> bytes:
        """Returns the noisy counts as the bytes of the stored JSON."""
        items: dict[Key, int] = {}
        if self.is_open:
            items = curator.threshold(UnitKeys(self.reading, self.keep), self.threshold)
        (people,) = curator.measure(self.people, self._people_noise()).tolist()
        if not self.is_open:
            public = self._public()
            counts = KeyCounts(self.reading, min(self.keep, len(public)), public)
            numbers = curator.measure(counts, self.noise(1)).tolist()
            items = dict(zip(public, numbers, strict=True))
        frequent = self._frequent_items(items, people)
        counted: Counted = {(place,): items[key] for place, key in enumerate(frequent)}
        levels = [self._level(items, 1)]
        for size in range(2, self.largest + 1):
            candidates = self._candidates(frequent, counted, size)
            # only items of candidates take room in a person's basket
            needed = sorted({item for each in candidates for item in each})
            index = {item: place for place, item in enumerate(needed)}
            baskets = BasketCounts(
                self.reading,
                self.keep,
                self.width,
                size,
                tuple(frequent[item] for item in needed),
                tuple(tuple(index[item] for item in each) for each in candidates),
            )
            numbers = curator.measure(baskets, self.noise(size)).tolist()
            level = dict(zip(candidates, numbers, strict=True))
            shown = {tuple(frequent[item] for item in each): n for each, n in level.items()}
            levels.append(self._sets(shown, size))
            least = self.support * people
            counted = {each: n for each, n in level.items() if n >= least}
        return body_of(self._facts(curator, levels, people))

    def _facts(self, curator: Curator, levels: list[dict[str, Any]], people: int) -> dict[str, Any]:
        """Returns what is stored."""
        notes = [
            (
                f"A person counts with at most {self.keep} of its items; of more, a public hash "
                "chooses which, so counts are low where people have many."
            )
        ]
        if self.reading.plan.unit is not None:
            most = self.reading.plan.most
            notes.append(f"At most {most:,} rows of a person are read (max_rows_total).")
        if self.is_open:
            least = self.threshold.threshold
            notes.append(f"Items with a noisy count below {least:,} are not shown.")
        notes.append("Of sets that hardly have the support the noise is more often positive.")
        for size in range(2, self.largest + 1):
            if self._most(size) == self.width < comb(self.keep, size):
                notes.append(f"Of sets of {size}, only {self.width:,} candidates were counted.")
        total = released_json([()], [people], self._people_noise().noise)
        return facts_of(
            self,
            curator.charge,
            self.recipe.name,
            self.line,
            levels,
            people=total,
            support=str(self.support),
            notes=notes,
        )

    def _frequent_items(self, items: Mapping[Key, int], people: int) -> list[Key]:
        """Returns the items with the stated support, in the order of their counts."""
        error = self.noise(1).error("0.95") if not self.is_open else 0
        least = self.support * people
        frequent = [key for key, n in items.items() if n >= least and n >= error]
        frequent.sort(key=lambda key: -items[key])
        return frequent[:_ITEMS]

    def _candidates(
        self, frequent: list[Key], counted: Counted, size: int
    ) -> list[tuple[int, ...]]:
        """Returns the sets whose parts were all frequent; those whose rarest part is most frequent
        come first, and only as many as are counted.
        """
        single = self.reading.plan.most == 1
        scored = []
        for items in _joined(sorted(counted)):
            columns = {frequent[item][0] for item in items}
            # a row has one value of a column, unless it is a text
            if single and len(columns) < size and not self.is_open:
                continue
            parts = [counted.get(part, 0) for part in combinations(items, size - 1)]
            if min(parts) > 0 and all(part in counted for part in combinations(items, size - 1)):
                scored.append((-min(parts), items))
        most = _CANDIDATES
        if self._most(size) < comb(self.keep, size):
            most = min(most, self.width)
        return [items for _, items in sorted(scored)[:most]]

    def _level(self, items: Mapping[Key, int], size: int) -> dict[str, Any]:
        """Returns the released items as JSON."""
        if not self.is_open:
            return self._sets({(key,): n for key, n in items.items()}, size)
        mechanism = self.threshold
        names = [[self._name(key)] for key in items]
        return released_json(names, list(items.values()), mechanism.noise, mechanism.threshold)

    def _sets(self, shown: Mapping[Keys, int], size: int) -> dict[str, Any]:
        names = [sorted(map(self._name, each)) for each in shown]
        return released_json(names, list(shown.values()), self.noise(size).noise)

    def _name(self, key: Key) -> str:
        """Returns the name of an item: its value, or its column and its value."""
        (label,) = label_of_key(self.reading, key)
        if len(self.reading.columns) == 1:
            return str(label)
        return f"{self.reading.plan.rows.values[int(key[0] or 0)].name}={label}"

    def releases(self) -> list[tuple[str, str, str]]:
        """The rows of the preview: the count of people, then the sets of each size."""
        shown = [("people", f"{self._people_noise().error('0.95'):,}", "none")]
        for size in range(1, self.largest + 1):
            if size == 1 and self.is_open:
                mechanism = self.threshold
                error, needed = f"{mechanism.error('0.95'):,}", people_needed(mechanism)
            else:
                error, needed = f"{self.noise(size).error('0.95'):,}", "none"
            shown.append((f"sets of {size}", error, needed))
        return shown

    def _public(self) -> Keys:
        """Returns all items, where all columns declare their values."""
        reading = self.reading
        return tuple((head, code) for head in reading.columns for code in reading.codes(head))

    def _most(self, size: int) -> int:
        """Returns the most sets of a size in which a person counts."""
        if size == 1 and not self.is_open:
            return min(self.keep, len(self._public()))
        return self.keep if size == 1 else min(comb(self.keep, size), self.width)

    def _share(self, size: int) -> Fraction:
        """Returns the cost of a level; the people cost a twentieth."""
        weights = [isqrt(100 * self._most(each)) for each in range(1, self.largest + 1)]
        rest = self.allowance.amount * Fraction(TOTALS - 1, TOTALS)
        return rest * weights[size - 1] / sum(weights)

    def _people_noise(self) -> AdditiveMechanism:
        return self.allowance.noise(
            self.people.distance(self.allowance.norm), self.allowance.amount / TOTALS
        )


def _joined(sets: list[tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
    """Yields each set whose two parts without one of its last two items are both there."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for items in sets:
        groups.setdefault(items[:-1], []).append(items[-1])
    for start, ends in groups.items():
        for one, other in combinations(ends, 2):
            yield (*start, one, other)
