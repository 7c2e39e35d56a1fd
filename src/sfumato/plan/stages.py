# SPDX-License-Identifier: Apache-2.0
"""The stages of a plan by type: ``Raw``, then ``Tracked``, then ``Bounded``.

``sql`` makes a raw plan, ``query`` the others. An engine takes only a ``Bounded`` plan, so that
running a plan without bounds is a type error.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sfumato.plan.aggregate import Aggregate, CountUnits
from sfumato.plan.relation import Relation, row_by_row
from sfumato.plan.value import GroupKey
from sfumato.privacy.distance import Distance, Norm


@dataclass(frozen=True, slots=True)
class Raw:
    """A plan without any bound on contributions yet: aggregates over the rows of a relation,
    grouped by keys.

    >>> from sfumato.plan.aggregate import CountRows
    >>> from sfumato.plan.relation import Scan
    >>> Raw(Scan("people"), (), (CountRows(),)).is_open
    False
    """

    relation: Relation
    keys: tuple[GroupKey, ...]
    aggregates: tuple[Aggregate, ...]

    @property
    def is_open(self) -> bool:
        """Whether the groups are not declared, so that a threshold on noisy counts selects those
        released.
        """
        return any(key.codes is None for key in self.keys)


@dataclass(frozen=True, slots=True)
class Limits:
    """The contribution limits of a unit: rows per group, groups, and rows in total (None: no
    limit).

    >>> Limits(rows=10, groups=5, total=None).in_all
    50
    """

    rows: int | None
    groups: int | None
    total: int | None

    @property
    def in_group(self) -> int | None:
        """The largest number of rows that a unit can have in one group; None if there is no limit."""
        return _least(self.rows, self.total)

    @property
    def in_groups(self) -> int | None:
        """The most groups in which a unit can have rows; None if there is no limit."""
        return _least(self.groups, self.total)

    @property
    def in_all(self) -> int | None:
        """The largest number of rows that a unit can have in all groups together; None for no
        limit.
        """
        rows = self.in_group
        if rows is None or self.groups is None:
            return self.total
        return _least(rows * self.groups, self.total)


def _least(*limits: int | None) -> int | None:
    """The least of several limits; None if there is none."""
    return min((limit for limit in limits if limit is not None), default=None)


@dataclass(frozen=True, slots=True)
class Tracked:
    """A plan with the privacy unit of its rows and the contribution limits of a unit, before
    sensitivities are proved.

    ``unit`` is the name of the privacy unit; None if each row is its own unit. ``groups`` is the
    number of groups, or None if it is not public. If ``kept`` is set, the table is read from a
    prepared layout with at most that many rows of a unit, in an order fixed when it was prepared.

    Raises:
        ValueError: ``kept`` is set, but the rows of a unit are not read one by one.

    >>> from sfumato.plan.aggregate import CountRows
    >>> from sfumato.plan.relation import Scan
    >>> raw = Raw(Scan("visits"), (), (CountRows(),))
    >>> Tracked(raw, unit="patient", limits=Limits(10, None, None), groups=1).kept is None
    True
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
        """Returns the largest number of rows of a unit that an aggregate counts in a prepared
        layout.
        """
        assert self.kept is not None, "called for prepared layouts only"
        limits = self.limits
        if isinstance(aggregate, CountUnits):
            most = limits.in_groups
        else:
            groups = self.groups if limits.groups is None else limits.groups
            in_groups = None
            if limits.rows is not None and groups is not None:
                in_groups = limits.rows * groups
            most = _least(limits.total, in_groups)
        return self.kept if most is None else min(self.kept, most)


@dataclass(frozen=True, slots=True)
class Part:
    """One aggregate of a bounded plan with its proved sensitivity (``distance``).

    For quantiles it is (in Linf) the largest change of the weight of any set of leaves in one
    group. ``groups`` is the number of groups in which one unit counts fully. If a unit is in more
    groups, its changes there add up to no more, in absolute values and in squares.

    >>> from fractions import Fraction
    >>> from sfumato.plan.aggregate import CountRows
    >>> from sfumato.privacy.unit import AddRemove
    >>> Part(CountRows(), Distance(Norm.L1, Fraction(10), AddRemove), groups=1).distance.value
    Fraction(10, 1)
    """

    aggregate: Aggregate
    distance: Distance
    groups: int


@dataclass(frozen=True, slots=True)
class Bounded:
    """A plan whose aggregates have bounded sensitivity in ``norm``; engines run only such plans.

    Its integers count in 1/``refinement`` of a lattice step, so that weights below 1 are not lost
    (RULES 13). Only a mechanism of the same norm may release it.

    >>> import sfumato as sf, pyarrow as pa
    >>> from sfumato.metadata.dataset import Dataset
    >>> from sfumato.query.pipeline import compile_plan
    >>> from sfumato.sql.lower import understand
    >>> people = sf.Table(pa.table({"age": [30, 40]}), columns={"age": sf.Integer(0, 120)})
    >>> declared = Dataset("tiny", {"people": people})
    >>> raw = understand("SELECT COUNT(*), AVG(age) FROM people", declared).raw
    >>> bounded = compile_plan(raw, declared, Norm.L1)
    >>> len(bounded.parts), len(bounded.only([0]).parts)
    (2, 1)
    """

    tracked: Tracked
    norm: Norm
    refinement: int
    parts: tuple[Part, ...]

    def only(self, places: Sequence[int]) -> "Bounded":
        """Returns the plan with only the aggregates at some positions; their exact integers do not
        change.
        """
        parts = tuple(self.parts[place] for place in places)
        raw = replace(self.tracked.raw, aggregates=tuple(part.aggregate for part in parts))
        return replace(self, tracked=replace(self.tracked, raw=raw), parts=parts)
