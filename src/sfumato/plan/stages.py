# SPDX-License-Identifier: Apache-2.0
"""The stages of a question, as types: ``Raw``, ``Tracked`` (units known), ``Bounded``.

An engine accepts only a ``Bounded`` plan, so that a missing bound is a type error.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sfumato.plan.aggregate import Aggregate, CountUnits
from sfumato.plan.relation import Relation, row_by_row
from sfumato.plan.value import GroupKey
from sfumato.privacy.distance import Distance, Norm


@dataclass(frozen=True, slots=True)
class Raw:
    """Aggregates over the rows of a relation, grouped by keys."""

    relation: Relation
    keys: tuple[GroupKey, ...]
    aggregates: tuple[Aggregate, ...]

    @property
    def is_open(self) -> bool:
        """Whether the groups are not declared: a noisy threshold decides which are released."""
        return any(key.codes is None for key in self.keys)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a unit may contribute: rows per group, groups, rows in total. None: no limit."""

    rows: int | None
    groups: int | None
    total: int | None

    @property
    def in_group(self) -> int | None:
        """The most rows in one group."""
        return _least(self.rows, self.total)

    @property
    def in_all(self) -> int | None:
        """The most rows in all groups together.

        >>> Limits(rows=10, groups=5, total=None).in_all
        50
        """
        rows = self.in_group
        if rows is None or self.groups is None:
            return self.total
        return _least(rows * self.groups, self.total)


def _least(*limits: int | None) -> int | None:
    """The smallest of the limits that are set; None if none is."""
    return min((limit for limit in limits if limit is not None), default=None)


@dataclass(frozen=True, slots=True)
class Tracked:
    """A raw question with the privacy unit of its rows and the limits of a unit's contribution.

    ``unit`` is the name of the unit; None: each row is its own. ``groups`` is the number of
    groups; None: not public. ``kept``: the table is read from a prepared layout, which has at
    most so many rows of each unit, in an order fixed at preparation, and each row counts by itself.

    Raises:
        ValueError: ``kept`` for a plan that does not read the rows of a unit one by one.
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
        """The most rows of a unit that an aggregate counts in a prepared layout."""
        assert self.kept is not None, "only prepared layouts"
        limits = self.limits
        groups = limits.groups if limits.groups is not None else self.groups
        most = _least(self.kept, limits.total)
        if isinstance(aggregate, CountUnits):
            most = _least(most, limits.groups)
        elif limits.rows is not None and groups is not None:
            most = _least(most, limits.rows * groups)
        assert most is not None, "at most ``kept``"
        return most


@dataclass(frozen=True, slots=True)
class Part:
    """One aggregate and the proved sensitivity of its integers (``distance``).

    For quantiles it is that of the weight of any set of leaves of one group (Linf).
    ``groups`` is the number of groups to which one unit may contribute in full; spread over more
    groups, its contributions add up to no more, in L1 and in squared L2.
    """

    aggregate: Aggregate
    distance: Distance
    groups: int


@dataclass(frozen=True, slots=True)
class Bounded:
    """A question in which the contribution of every unit is bounded in ``norm``.

    The integers are in 1/``refinement`` of a lattice step, so that rows may have weights below
    one (RULES 13). Only a mechanism of the same norm may release them.
    """

    tracked: Tracked
    norm: Norm
    refinement: int
    parts: tuple[Part, ...]

    def only(self, places: Sequence[int]) -> "Bounded":
        """The question with only some of its parts, whose integers stay the same."""
        parts = tuple(self.parts[place] for place in places)
        aggregates = tuple(part.aggregate for part in parts)
        raw = replace(self.tracked.raw, aggregates=aggregates)
        return replace(self, tracked=replace(self.tracked, raw=raw), parts=parts)
