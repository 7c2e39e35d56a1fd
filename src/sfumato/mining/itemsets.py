# SPDX-License-Identifier: Apache-2.0
"""The recipe ``Itemsets``: what people have together."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from sfumato.errors import WrongUse
from sfumato.exact.rational import Number, positive
from sfumato.metadata.column import Text
from sfumato.mining.found import Found, Released, Table, ratio
from sfumato.mining.itemsets_task import ItemsetsTask
from sfumato.mining.recipe import Asked, Recipe, most_values, require_count, require_values
from sfumato.mining.unit_keys import Reading
from sfumato.plan.rows import BoundedRows

_SIZE, _KEEP, _WIDTH = 8, 1_000, 100_000


@dataclass(frozen=True, slots=True)
class Itemsets(Recipe):
    """A recipe of ``mine`` for frequent itemsets: it counts the people who have all items of a set,
    for sets of up to ``size`` items.

    The items of a person are the values of all columns of its rows: ``column=value``, of a single
    column the values, of a text its tokens. At most ``keep`` items of a person count. Sets are
    counted if all of their parts were released with a share of people of ``support`` or more; of
    larger sets, where a person could be in more than ``width``, only the ``width`` candidates whose
    rarest part is most frequent.

    Raises:
        WrongUse, InvalidNumber: a setting out of its bounds.

    >>> Itemsets(size=3).support
    '0.02'
    """

    size: int = 4
    support: Number = "0.02"
    keep: int = 20
    width: int = 2000

    name: ClassVar[str] = "Itemsets"

    def __post_init__(self) -> None:
        require_count("size", self.size, _SIZE)
        require_count("keep", self.keep, _KEEP)
        require_count("width", self.width, _WIDTH)
        if self.size > self.keep:
            raise WrongUse(f"Sets of {self.size} items, of {self.keep}.", allowed="size <= keep")
        share_of("support", self.support)

    def planned(self, plan: BoundedRows, asked: Asked) -> ItemsetsTask:
        """Returns the task that counts the itemsets of some bounded rows, at the cost ``asked``.

        Raises:
            WrongUse, MissingDeclaration, InvalidNumber: what cannot be counted.
        """
        values = plan.rows.values
        for value in values:
            require_values(value, "The column", text=True)
        is_open = any(isinstance(value.type, Text) for value in values)
        allowance = asked.allowance(keys=is_open, why="the values of a text are not declared")
        reading = Reading(plan, tuple(range(len(values))))
        support = share_of("support", self.support)
        keep = min(self.keep, most_values(plan, range(len(values))))
        size = min(self.size, keep)
        return ItemsetsTask(self, reading, allowance, keep, self.width, size, support, is_open)

    @classmethod
    def found(cls, facts: Mapping[str, Any], *, recalled: bool) -> "FoundItemsets":
        """Returns the table of frequent itemsets from the stored JSON of an answer."""
        return FoundItemsets(facts, recalled=recalled)


class FoundItemsets(Found):
    """The table of frequent itemsets, by falling noisy count: ``items, size, n, low, high,
    support``.

    The intervals of one size hold together for all sets of that size that were counted, at 95%.
    """

    def __init__(self, facts: Mapping[str, Any], *, recalled: bool = False) -> None:
        self.facts = facts
        people = max(self.people[0], 1)
        rows = []
        for items, (n, low, high) in self._frequent.items():
            rows.append((", ".join(items), len(items), n, low, high, min(n / people, 1.0)))
        rows.sort(key=lambda row: (-row[2], row[1], row[0]))
        columns = ("items", "size", "n", "low", "high", "support")
        super().__init__(facts, columns, rows, recalled=recalled)

    @cached_property
    def people(self) -> tuple[int, int, int]:
        """The noisy number of all people with a row, and the ends of its 95% interval."""
        return Released.from_json(self.facts["people"]).interval(())

    @cached_property
    def _frequent(self) -> dict[tuple[str, ...], tuple[int, int, int]]:
        """The sets with the stated support, with the ends of their counts."""
        least = Fraction(str(self.facts["support"])) * self.people[0]
        frequent = {}
        for level in self.levels:
            among = max(len(level.counts), 1)
            for items, n in level.counts.items():
                if n >= least and n > 0:
                    frequent[items] = level.interval(items, among)
        return frequent

    def rules(self, confidence: Number = "0.5") -> Table:
        """Returns a table of association rules ("who has the antecedent also has the consequent"),
        with 95% intervals.

        ``confidence`` is the least share of the people with the antecedent who have the consequent.
        The lift is that share divided by the share of all people; ``noise`` marks a rule whose
        interval of the lift holds 1. Intervals come from those of the counts of both sets, which
        hold for all sets of a size together.

        Raises:
            InvalidNumber: the confidence is not within 0 and 1.
        """
        least = share_of("confidence", confidence)
        rows: list[tuple[Any, ...]] = []
        for items, ends in self._frequent.items():
            for place, item in enumerate(items if len(items) > 1 else ()):
                others = (*items[:place], *items[place + 1 :])
                if others not in self._frequent or (item,) not in self._frequent:
                    continue
                sure = ratio(ends, self._frequent[others])
                if sure[0] < least:
                    continue
                usual = ratio(self._frequent[(item,)], self.people)
                lift = ratio(sure, usual)
                cut = (min(each, 1.0) for each in sure)
                is_noise = lift[1] <= 1 <= lift[2]
                rows.append((", ".join(others), item, ends[0], *cut, *lift, is_noise))
        rows.sort(key=lambda row: (-row[6], row[0], row[1]))
        names = ("confidence", "confidence_low", "confidence_high", "lift", "lift_low", "lift_high")
        columns = ("antecedent", "consequent", "n", *names, "noise")
        return Table("rules", columns, rows, bar="lift")


def share_of(name: str, value: Number) -> Fraction:
    """Returns a share, a number above 0 up to 1.

    Raises:
        InvalidNumber: it is none.
    """
    return positive(name, value, at_most=Fraction(1))
