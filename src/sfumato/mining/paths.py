# SPDX-License-Identifier: Apache-2.0
"""The recipe ``Paths``: sequences of items in the order of a person's rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from sfumato.errors import WrongUse, shown
from sfumato.metadata.column import Array, Text
from sfumato.mining.found import Found, Table, ratio
from sfumato.mining.keys_task import KeysTask
from sfumato.mining.recipe import (
    Asked,
    Recipe,
    find_column,
    most_values,
    require_count,
    require_values,
)
from sfumato.mining.unit_keys import Reading
from sfumato.plan.rows import BoundedRows

_LENGTH, _KEEP = 8, 10_000
_ARROW = " > "


@dataclass(frozen=True, slots=True)
class Paths(Recipe):
    """A recipe of ``mine`` for sequences: it counts the people who have each sequence of up to
    ``length`` items in consecutive rows.

    A person's rows are in the order of the column ``order``; rows without it are left out. A person
    counts in at most ``keep`` sequences of each length. A sequence is counted only if both of its
    parts were released.

    Raises:
        WrongUse: a setting out of its bounds.

    >>> Paths("station", order="day").length
    3
    """

    item: str
    order: str
    length: int = 3
    keep: int = 20

    name: ClassVar[str] = "Paths"

    def __post_init__(self) -> None:
        require_count("length", self.length, _LENGTH)
        require_count("keep", self.keep, _KEEP)

    def planned(self, plan: BoundedRows, asked: Asked) -> KeysTask:
        """Returns the task that counts the sequences of some bounded rows, at the cost ``asked``.

        Raises:
            UnknownName, WrongUse, MissingDeclaration, InvalidNumber: what cannot be counted.
        """
        item, order = find_column(plan, self.item), find_column(plan, self.order)
        require_values(plan.rows.values[item], "item=", text=True)
        if isinstance(plan.rows.values[order].type, Text | Array):
            raise WrongUse(
                f"order={shown(self.order)} has no order.",
                allowed="a number, a date or a time",
            )
        if item == order:
            raise WrongUse("item= and order= are one column.")
        allowance = asked.allowance(keys=True, why="sequences are not declared")
        reading = Reading(plan, (item,), None, order)
        keep = min(self.keep, most_values(plan, [item]))
        return KeysTask(self, reading, allowance, keep, self.length)

    @classmethod
    def found(cls, facts: Mapping[str, Any], *, recalled: bool) -> "FoundPaths":
        """Returns the table of sequences from the stored JSON of an answer."""
        return FoundPaths(facts, recalled=recalled)


class FoundPaths(Found):
    """The table of released sequences, by falling noisy count: ``path, size, n, low, high``."""

    def __init__(self, facts: Mapping[str, Any], *, recalled: bool = False) -> None:
        self.facts = facts
        rows = []
        for size, level in enumerate(self.levels, start=1):
            for key in level.counts:
                rows.append((_ARROW.join(map(str, key)), size, *level.interval(key)))
        rows.sort(key=lambda row: (-row[2], row[1], row[0]))
        columns = ("path", "size", "n", "low", "high")
        super().__init__(facts, columns, rows, recalled=recalled)

    def transitions(self) -> Table:
        """Returns a table of the pairs of consecutive items: of the people with the first, the
        share who have the second next, with 95% intervals.
        """
        rows = []
        singles = self.levels[0]
        for key in self.levels[1].counts if len(self.levels) > 1 else ():
            ends = self.levels[1].interval(key, 2)
            share = ratio(ends, singles.interval(key[:1], 2))
            rows.append((*key, ends[0], *(min(each, 1.0) for each in share)))
        rows.sort(key=lambda row: (str(row[0]), -row[3], str(row[1])))
        columns = ("item", "next", "n", "share", "share_low", "share_high")
        return Table("transitions", columns, rows, bar="share")
