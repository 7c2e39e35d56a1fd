# SPDX-License-Identifier: Apache-2.0
"""Bounded statistics of the parts of a SQL plan: integers, quantile leaves and unit counts.

``add_noise`` hands them to the curator. Proof: cells.proof.md.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from sfumato.engines.base import Codes
from sfumato.engines.result_rows import Columns, Leaves
from sfumato.errors import InvalidDeclaration
from sfumato.exact.values import copied
from sfumato.plan.aggregate import CountUnits, Quantiles
from sfumato.plan.stages import Bounded, Part
from sfumato.privacy.distance import Distance, Norm
from sfumato.query.statistic import BoundedStatistic, Counts, Opened, UnitsByKey


@dataclass(frozen=True, slots=True)
class Cells(BoundedStatistic[list[int]]):
    """The statistic of one aggregate in given groups: its exact integers, group after group, for
    additive noise.

    The aggregate is the part of ``plan`` at index ``place``.

    Guarantees:
        the cells of a part move by at most its proved distance
        a group without rows is zeros

    Raises:
        InvalidDeclaration: a group is listed twice, so that its integers would move twice; a group
            is not a tuple.
    """

    plan: Bounded
    place: int
    groups: tuple[Codes, ...]

    def __post_init__(self) -> None:
        # in a list a group could be added after this check
        if type(self.groups) is not tuple or not set(map(type, self.groups)) <= {tuple}:
            raise InvalidDeclaration("Groups that may change.", allowed="a tuple of tuples")
        # a code of a subclass of int could equal another one, or none
        if len(set(copied(self.groups))) != len(self.groups):
            raise InvalidDeclaration("A group twice.", allowed="each group once")

    @property
    def part(self) -> Part:
        """The aggregate that the integers belong to, with its proved sensitivity."""
        return self.plan.parts[self.place]

    def distance(self, norm: Norm) -> Distance:
        """Returns the proved sensitivity of the aggregate. A bound in L1 is also one in Linf."""
        proved = self.part.distance
        if norm is Norm.LINF and proved.norm is Norm.L1:
            return replace(proved, norm=norm)
        if norm is not proved.norm:
            raise InvalidDeclaration(
                f"A part bounded in {proved.norm.value}, released in {norm.value}.",
                allowed="a mechanism of the norm that the plan is bounded in",
            )
        return proved

    def exact(self, opened: Opened) -> list[int]:
        """Returns the exact integers of every group; zeros for a group without rows."""
        integers = opened.integers(self.plan)[self.place]
        by_group = integers.of(self.groups) if isinstance(integers, Columns) else integers
        zeros = (0,) * self.part.aggregate.width
        return [value for group in self.groups for value in by_group.get(group, zeros)]


@dataclass(frozen=True, slots=True)
class WeightedLeaves(BoundedStatistic[list[Leaves]]):
    """The statistic from which quantiles are selected: the candidate values (leaves) of each group
    with their weights.

    A leaf is one code, or an interval of codes of a grid; its weight is that of the rows in it.

    Guarantees:
        the leaves of a group move by at most their proved distance

    Raises:
        InvalidDeclaration: the cells are of no quantiles.
    """

    cells: Cells

    def __post_init__(self) -> None:
        if not isinstance(self.cells.part.aggregate, Quantiles):
            raise InvalidDeclaration("Leaves of what has none.", allowed="quantiles")

    @property
    def part(self) -> Part:
        """The quantile aggregate whose leaves these are, with its proved sensitivity."""
        return self.cells.part

    def distance(self, norm: Norm) -> Distance:
        """Returns the proved sensitivity in Linf: the largest change of the weight of any set of
        leaves of a group.
        """
        return self.cells.distance(norm)

    def exact(self, opened: Opened) -> list[Leaves]:
        """Returns the exact leaves and weights of every group; a group without rows has none."""
        cells = self.cells
        integers = opened.integers(cells.plan)[cells.place]
        if isinstance(integers, Columns):
            return integers.leaves(cells.groups)
        flat = [np.array(integers.get(group, ()), np.int64) for group in cells.groups]
        return [(pairs[0::2], pairs[1::2]) for pairs in flat]


@dataclass(frozen=True, slots=True)
class Units(UnitsByKey):
    """The statistic that counts the units of each group in the data, by which a threshold selects
    groups that are not public.

    Guarantees:
        the number of units of a group moves by at most one

    Raises:
        InvalidDeclaration: the part at ``place`` does not count units.
    """

    plan: Bounded
    place: int

    def __post_init__(self) -> None:
        if self.plan.parts[self.place].aggregate != CountUnits():
            raise InvalidDeclaration(
                "A threshold on what counts no units.", allowed="COUNT(DISTINCT unit)"
            )

    @property
    def groups(self) -> int:
        """The largest number of groups in which one unit is counted."""
        return self.plan.parts[self.place].groups

    def distance(self, norm: Norm) -> Distance:
        """Returns 1, in Linf: a unit changes the count of a group by at most one."""
        if norm is not Norm.LINF:
            raise InvalidDeclaration("Units of groups that are not public.", allowed="a threshold")
        return Distance(norm, Fraction(1), self.plan.parts[self.place].distance.relation)

    def exact(self, opened: Opened) -> Counts:
        """Returns the exact number of units of each group."""
        integers = opened.integers(self.plan)[self.place]
        refinement = self.plan.refinement
        if isinstance(integers, Columns):
            return integers.first // refinement, integers.groups
        return {group: values[0] // refinement for group, values in integers.items()}
