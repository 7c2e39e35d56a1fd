# SPDX-License-Identifier: Apache-2.0
"""How much of a question's privacy argument is made: Raw -> Tracked -> Bounded, by type.

An engine takes only a ``Bounded`` plan, so that "forgot to bound" is a type error.
"""

from dataclasses import dataclass

from sfumato.plan.aggregate import Aggregate
from sfumato.plan.relation import Relation
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


@dataclass(frozen=True, slots=True)
class Tracked:
    """A raw question whose rows are known to belong to units.

    ``unit`` None: each row is its own unit; else the name of the unit. ``groups``: how many
    there are; None: not public.
    """

    raw: Raw
    unit: str | None
    limits: Limits
    groups: int | None


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
