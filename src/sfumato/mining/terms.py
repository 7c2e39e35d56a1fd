# SPDX-License-Identifier: Apache-2.0
"""The recipe ``Terms``: the people who use each word, or words in a row, of a text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any, ClassVar

from sfumato.errors import UnknownName, WrongUse, shown
from sfumato.metadata.column import Array, Text
from sfumato.mining.found import Found, Released, Table, ratio
from sfumato.mining.keys_task import KeysTask
from sfumato.mining.prototypes import codes_of
from sfumato.mining.recipe import (
    Asked,
    Recipe,
    declared_terms,
    find_column,
    most_values,
    require_count,
    require_tokens,
    require_values,
)
from sfumato.mining.unit_keys import Keys, NearReading, Reading
from sfumato.plan.rows import BoundedRows

# The most terms in a row, and terms of a person that count.
_GRAMS, _KEEP = 4, 10_000


@dataclass(frozen=True, slots=True)
class Terms(Recipe):
    """A recipe of ``mine`` for the terms of a text: it counts the people who use each term, with at
    most ``keep`` terms of a person in all groups together.

    A term is a token of the column ``text``, as its ``sf.Tokens`` split it. With ``grams``, also up
    to so many tokens in a row; those are counted only if both parts were released. ``by`` is the
    column of the groups that are compared. ``only`` are declared terms, which need no delta.

    ``by`` may be an array with ``prototypes``: public arrays, or the means of ``Means`` that have
    people. The group of a row is the place of the prototype that its array is nearest to.

    Raises:
        WrongUse: a setting out of its bounds; ``only`` with repeats, or beside ``grams``.

    >>> Terms("note", by="ward", keep=20, grams=2).grams
    2
    """

    text: str
    by: str | None = None
    keep: int = 20
    grams: int = 1
    only: Sequence[str] | None = None
    # the reading has them, in codes
    prototypes: Any = field(default=None, repr=False, compare=False)

    name: ClassVar[str] = "Terms"

    def __post_init__(self) -> None:
        require_count("keep", self.keep, _KEEP)
        require_count("grams", self.grams, _GRAMS)
        if self.only is None:
            return
        if self.grams > 1:
            raise WrongUse("only= beside grams=.", allowed="single terms")
        # a list could change after it was checked
        object.__setattr__(self, "only", declared_terms(self.only))

    def planned(self, plan: BoundedRows, asked: Asked) -> KeysTask:
        """Returns the task that counts the terms of some bounded rows, at the cost ``asked``.

        Raises:
            UnknownName, WrongUse, MissingDeclaration, InvalidNumber: what cannot be counted.
        """
        text = find_column(plan, self.text)
        value = plan.rows.values[text]
        if not isinstance(value.type, Text):
            raise WrongUse(
                f"text={shown(self.text)} is no text.",
                allowed="a column declared as sf.Text(tokens=sf.Tokens(...))",
            )
        allowance = asked.allowance(keys=self.only is None, why="terms are not declared")
        reading = self._reading(plan, text)
        only = self._keys(value.type, reading)
        keep = min(self.keep, most_values(plan, [text]), len(only) or self.keep)
        return KeysTask(self, reading, allowance, keep, self.grams, only)

    def _reading(self, plan: BoundedRows, text: int) -> Reading:
        """Returns which values are read."""
        by = None if self.by is None else find_column(plan, self.by)
        kind = None if by is None else plan.rows.values[by].type
        if isinstance(kind, Array):
            if self.prototypes is None:
                raise WrongUse(
                    f"by={shown(self.by)} is an array, and there are no prototypes=.",
                    allowed="prototypes= public arrays, or a result of Means",
                )
            return NearReading(plan, (text,), by, prototypes=codes_of(self.prototypes, kind))
        if self.prototypes is not None:
            raise WrongUse("prototypes= without an array.", allowed="by= an array column")
        if by is not None:
            require_values(plan.rows.values[by], "by=", text=False)
        return Reading(plan, (text,), by)

    def _keys(self, kind: Text, reading: Reading) -> Keys:
        """Returns the declared terms in each group, checked as tokens."""
        require_tokens(kind, self.only or ())
        heads: Sequence[int | None] = (0,)
        if reading.by is not None:
            heads = (*reading.codes(reading.by), None)
        return tuple(product(heads, self.only or ()))

    @classmethod
    def found(cls, facts: Mapping[str, Any], *, recalled: bool) -> "FoundTerms":
        """Returns the table of terms from the stored JSON of an answer."""
        return FoundTerms(facts, recalled=recalled)


class FoundTerms(Found):
    """The table of released terms, by falling noisy count: ``[by], term, n, low, high``.

    With groups also the share of the group's people, with its ends, and the ``lift``: the share
    divided by that in all groups together. ``low`` and ``high`` are 95% intervals of one count.
    """

    def __init__(self, facts: Mapping[str, Any], *, recalled: bool = False) -> None:
        self.facts = facts
        by = facts["by"]
        columns = ["term", "n", "low", "high"]
        if by is not None:
            columns += ["share", "share_low", "share_high", "lift"]
            group = str(by)
            while group in columns:
                group += "_"
            columns = [group, *columns]
        rows = self._rows(grouped=by is not None)
        super().__init__(facts, columns, rows, recalled=recalled)

    def _rows(self, *, grouped: bool) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = []
        for level in self.levels:
            totals: dict[tuple[Any, ...], int] = {}
            for key, n in level.counts.items():
                totals[key[1:]] = totals.get(key[1:], 0) + max(n, 0)
            for key in level.counts:
                ends = level.interval(key)
                if not grouped:
                    rows.append((" ".join(key), *ends))
                    continue
                group, *term = key
                share = self._share(ends, group)
                overall = totals[key[1:]] / max(sum(self._people.counts.values()), 1)
                lift = share[0] / overall if overall > 0 else 0.0
                rows.append((group, " ".join(term), *ends, *share, lift))
        place = 2 if grouped else 1
        rows.sort(key=lambda row: (-row[place], str(row[place - 1]), str(row[0])))
        return rows

    @property
    def terms(self) -> tuple[str, ...]:
        """The released terms without repeats, by falling noisy count."""
        place = self.columns.index("term")
        return tuple(dict.fromkeys(row[place] for row in self.rows))

    @cached_property
    def _people(self) -> Released:
        """The noisy number of people of each group."""
        if self.facts["groups"] is None:
            raise WrongUse("Terms without groups.", remedy='Terms("note", by="ward")')
        return Released.from_json(self.facts["groups"])

    @property
    def groups(self) -> dict[Any, int]:
        """The noisy number of people of each group."""
        return {group: n for (group,), n in self._people.counts.items()}

    def _share(self, ends: tuple[int, int, int], group: Any, among: int = 1) -> tuple[float, ...]:
        """Returns the share of a group's people, with ends that both lie within 0 and 1."""
        found = ratio(ends, self._people.interval((group,), among))
        return tuple(min(max(each, 0.0), 1.0) for each in found)

    def compare(self, one: Any, other: Any) -> Table:
        """Returns a table that compares two groups: for each term, the difference of the shares of
        their people who use it.

        The intervals hold for all terms together at one level of 95%. A term that is shown in one
        group alone counts in the other as 0, up to the threshold.

        Raises:
            UnknownName: there is no such group.
        """
        for group in (one, other):
            if (group,) not in self._people.counts:
                known = ", ".join(map(str, self.groups))
                raise UnknownName(f"No group {shown(group)}.", allowed=known)
        rows = []
        pair = {one, other}
        terms = [
            (level, key[1:]) for level in self.levels for key in level.counts if key[0] in pair
        ]
        # four ends, of the counts and of the two groups, may each miss
        among = 4 * max(len(dict.fromkeys(term for _, term in terms)), 1)
        for level, term in dict.fromkeys((self.levels.index(level), term) for level, term in terms):
            counted = self.levels[level]
            first, second = (
                self._share(counted.interval((group, *term), among), group, among)
                for group in (one, other)
            )
            difference = first[0] - second[0]
            low, high = first[1] - second[2], first[2] - second[1]
            shares = first[0], second[0]
            rows.append((" ".join(term), difference, low, high, *shares, not low <= 0 <= high))
        rows.sort(key=lambda row: (-abs(row[1]), row[0]))
        columns = ("term", "difference", "difference_low", "difference_high")
        names = (f"share in {one}", f"share in {other}", "differs")
        title = f"shares in {one} less those in {other}"
        return Table(title, (*columns, *names), rows, bar="difference")
