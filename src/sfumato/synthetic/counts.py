# SPDX-License-Identifier: Apache-2.0
"""The statistic of every measurement: a marginal in merged cells. Proof: counts.proof.md."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeAlias

import numpy as np

from sfumato.errors import InvalidDeclaration
from sfumato.noise import Integers
from sfumato.plan.cube import BoundedCube
from sfumato.privacy.distance import Distance, Norm
from sfumato.query.statistic import BoundedStatistic, Opened

# The block of each cell of an axis.
Blocks: TypeAlias = tuple[int, ...]


class Counted(Protocol):
    """The interface of a plan whose marginals can be counted, with proved distances.

    ``BoundedCube`` is one that the engine counts; ``UnitTable`` counts its own.
    """

    @property
    def refinement(self) -> int: ...
    @property
    def l1(self) -> Distance: ...
    @property
    def l2(self) -> Distance: ...
    @property
    def apart(self) -> Distance: ...
    @property
    def unit(self) -> str | None: ...
    @property
    def most(self) -> int: ...

    def marginal(self, opened: Opened, names: Sequence[str]) -> Integers:
        """Returns the exact weight of the rows in each cell of some axes."""
        ...

    def with_axes(self, axes: Sequence[Any]) -> Self:
        """Returns the same rows with other axes of the same columns."""
        ...


# What marginals are counted of.
Plan: TypeAlias = BoundedCube | Counted


@dataclass(frozen=True, slots=True)
class BlockCounts(BoundedStatistic[Integers]):
    """A statistic: the weight of the rows in each combination of blocks of some axes, where a block
    is a set of cells that are counted together.

    ``blocks`` has, for each axis, its name and the block number of each of its cells. Block numbers
    begin at 0, and no block is empty.

    Guarantees:
        counts of blocks move by at most their proved distance

    Raises:
        InvalidDeclaration: blocks that are not numbered so.

    >>> from fractions import Fraction
    >>> from sfumato.metadata.column import Category, Column
    >>> from sfumato.plan import Scan, Value
    >>> from sfumato.plan.cube import Cube, axis
    >>> sex = Column("sex", Category("F", "M"))
    >>> cube = Cube(Scan("people", columns=(sex,)), (axis(Value.of(sex)),))
    >>> distances = [Distance(norm, Fraction(1)) for norm in (Norm.L1, Norm.L2, Norm.LINF)]
    >>> people = BoundedCube(cube, None, 1, 1, *distances)
    >>> BlockCounts(people, (("sex", (0, 0, 1)),)).shape  # F or M, and missing
    (2,)
    """

    plan: Plan
    blocks: tuple[tuple[str, Blocks], ...]

    def __post_init__(self) -> None:
        for name, blocks in self.blocks:
            if set(blocks) != set(range(len(set(blocks)))):
                raise InvalidDeclaration(f"Blocks of {name} that are not 0, 1, 2 and so on.")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the axes."""
        return tuple(name for name, _ in self.blocks)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of blocks of each axis."""
        return tuple(max(blocks) + 1 for _, blocks in self.blocks)

    def distance(self, norm: Norm) -> Distance:
        """Returns the sensitivity of all the counts together: the L1 norm, or the squared L2 norm.

        Raises:
            InvalidDeclaration: nothing is proved in another norm.
        """
        if norm is Norm.L1:
            return self.plan.l1
        if norm is Norm.L2:
            return self.plan.l2
        raise InvalidDeclaration(f"Counts of blocks in {norm.value}.", allowed="L1, L2")

    def exact(self, opened: Opened) -> Integers:
        """Returns the exact counts (without noise) as a flat array; the last axis varies
        fastest.
        """
        if isinstance(self.plan, BoundedCube):
            cells = opened.marginal(self.plan, self.names)
        else:
            cells = self.plan.marginal(opened, self.names)
        for axis, (_, blocks) in enumerate(self.blocks):
            cells = added_up(cells, axis, blocks)
        return cells.ravel()


def added_up(cells: Integers, axis: int, blocks: Blocks) -> Integers:
    """Adds up the cells of a table along an axis, block by block.

    >>> added_up(np.array([[1, 2, 4]]), 1, (1, 0, 1)).tolist()
    [[2, 5]]
    """
    if len(blocks) != cells.shape[axis]:
        raise InvalidDeclaration(f"{len(blocks)} blocks of {cells.shape[axis]} cells.")
    order = np.argsort(blocks, kind="stable")
    starts = np.flatnonzero(np.diff(np.take(blocks, order), prepend=-1))
    sums: Integers = np.add.reduceat(np.take(cells, order, axis=axis), starts, axis=axis)
    return sums
