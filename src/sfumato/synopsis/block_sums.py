# SPDX-License-Identifier: Apache-2.0
"""A layer over several axes of a bounded cube, as a statistic. Proof: block_sums.proof.md.

``GridTask`` measures these statistics.
"""

from dataclasses import dataclass

import numpy as np

from sfumato.errors import InvalidDeclaration
from sfumato.noise import Integers
from sfumato.plan.cube import BoundedCube
from sfumato.privacy.distance import Distance, Norm
from sfumato.query.statistic import BoundedStatistic, Opened


@dataclass(frozen=True, slots=True)
class BlockSums(BoundedStatistic[Integers]):
    """A statistic: the counts of rows in each combination of blocks of some axes, over all cells of
    the other axes.

    ``blocks`` has for each of these axes the number of neighbouring cells in a block; the last
    block may be shorter. The cell of missing values is the last cell of its axis.

    Guarantees:
        sums of blocks move by at most their proved distance

    Raises:
        InvalidDeclaration: a block of no cells.
    """

    plan: BoundedCube
    blocks: tuple[tuple[str, int], ...]

    def __post_init__(self) -> None:
        if any(width < 1 for _, width in self.blocks):
            raise InvalidDeclaration(f"Blocks {self.blocks}.", allowed="at least 1 cell each")

    def distance(self, norm: Norm) -> Distance:
        """Returns the sensitivity of all the sums together: the L1 norm, or the squared L2 norm.

        Raises:
            InvalidDeclaration: nothing is proved in another norm.
        """
        if norm is Norm.L1:
            return self.plan.l1
        if norm is Norm.L2:
            return self.plan.l2
        raise InvalidDeclaration(f"Sums of blocks in {norm.value}.", allowed="L1, L2")

    def exact(self, opened: Opened) -> Integers:
        """Returns the sums without noise, in row-major order: the block of the last axis varies
        fastest.
        """
        cells = opened.marginal(self.plan, tuple(name for name, _ in self.blocks))
        for axis, (_, width) in enumerate(self.blocks):
            starts = np.arange(0, cells.shape[axis], width)
            cells = np.add.reduceat(cells, starts, axis=axis)
        return cells.ravel()
