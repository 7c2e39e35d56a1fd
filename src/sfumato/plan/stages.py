# SPDX-License-Identifier: Apache-2.0
"""How much of a question's privacy argument is made: Raw -> Tracked -> Bounded, by type.

An engine takes only a ``Bounded`` plan, so that "forgot to bound" is a type error.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sfumato.plan.aggregate import Aggregate, CountUnits
from sfumato.plan.relation import Relation, row_by_row
from sfumato.plan.value import GroupKey
from sfumato.privacy.distance import Distance, Norm


@dataclass(frozen=True, slots=True)
class Raw:
    """Aggregates of the rows of a relation, by keys."""

    relation: Relation
    keys: tuple[GroupKey, ...]
    aggregates: tuple[Aggregate, ...]

    @property
    def is_open(self) -> bool:
        """Whether the groups are not public: a threshold decides which are shown."""
        return any(key.codes is None for key in self.keys)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a unit may contribute: rows a group, groups, rows in all. None: no limit."""

    rows: int | None
    groups: int | None
    total: int | None

    @property
    def in_group(self) -> int | None:
        """Rows in one group: the total is a limit of these too."""
        return min((each for each in (self.rows, self.total) if each is not None), default=None)

    @property
    def in_all(self) -> int | None:
        """Rows in all groups together: so many as the limits of rows and groups allow, or the total.

        >>> Limits(rows=10, groups=5, total=None).in_all
        50
        """
        rows = self.in_group
        of_groups = None if rows is None or self.groups is None else rows * self.groups
        return min((each for each in (of_groups, self.total) if each is not None), default=None)


@dataclass(frozen=True, slots=True)
class Tracked:
    """A raw question whose rows are known to belong to units.

    ``unit`` None: each row is its own unit; else the name of the unit. ``groups``: how many
    there are; None: not public. ``kept``: the table is read from a prepared layout, which has
    so many rows of a unit at most, in an order fixed at preparation; each counts by itself.

    Raises:
        ValueError: a layout where the rows of a unit are not read one by one.
    """

    raw: Raw
    unit: str | None
    limits: Limits
    groups: int | None
    kept: int | None = None

    def __post_init__(self) -> None:
        if self.kept is None:
            return
        if self.kept < 1 or self.unit is None or row_by_row(self.raw.relation) is None:
            raise ValueError("a prepared layout has rows of units, to be read one by one")

    def counted(self, aggregate: Aggregate) -> int:
        """How many rows of a unit an aggregate counts in a prepared layout: as many as its limits allow."""
        assert self.kept is not None, "asked of prepared layouts only"
        limits = self.limits
        groups = limits.groups if limits.groups is not None else self.groups
        if isinstance(aggregate, CountUnits):
            most = [limits.groups, limits.total]
        else:
            most = [
                limits.total,
                None if limits.rows is None or groups is None else limits.rows * groups,
            ]
        return min([self.kept, *(each for each in most if each is not None)])


@dataclass(frozen=True, slots=True)
class Part:
    """One aggregate and the proved distance of its integers between neighbours.

    Of quantiles: the distance (Linf) of the weight of any set of leaves of one group.
    ``groups``: in how many groups one unit counts in full; where it is in more, what it moves
    there adds up to no more, in sums and in sums of squares.
    """

    aggregate: Aggregate
    distance: Distance
    groups: int


@dataclass(frozen=True, slots=True)
class Bounded:
    """A question of which every unit's contribution is bounded in ``norm``.

    ``refinement``: each integer is in 1/refinement of a lattice step, so that a weight below
    one is not lost (RULES 13). Only a mechanism of the same norm may release it.
    """

    tracked: Tracked
    norm: Norm
    refinement: int
    parts: tuple[Part, ...]

    def only(self, places: Sequence[int]) -> "Bounded":
        """The question of some of its parts alone: each part's integers are what they were."""
        parts = tuple(self.parts[place] for place in places)
        raw = replace(self.tracked.raw, aggregates=tuple(part.aggregate for part in parts))
        return replace(self, tracked=replace(self.tracked, raw=raw), parts=parts)
