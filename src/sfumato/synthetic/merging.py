# SPDX-License-Identifier: Apache-2.0
"""Values that are too rare to be told from noise are counted together, as the rest."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.noise import Integers
from sfumato.synthetic.rows import Dice, systematic
from sfumato.synthetic.schema import Floats


@dataclass(frozen=True)
class Merging:
    """The block of each cell of an axis; a block of several cells is a rest.

    >>> rare = Merging.of(np.array([50.0, 1.0, 40.0, -2.0]), 6.0)
    >>> rare.blocks, rare.size
    ((0, 2, 1, 2), 3)
    """

    blocks: tuple[int, ...]

    @classmethod
    def of(
        cls,
        noisy: Floats,
        least: float,
        classes: Integers | None = None,
    ) -> "Merging":
        """Keeps the cells whose noisy count is at least ``least``, and merges the others.

        Cells of different ``classes`` are never merged: a constraint tells them apart.
        """
        kept = noisy >= least
        groups = np.zeros(len(noisy), np.int64) if classes is None else classes
        blocks = np.cumsum(kept) - 1
        _, rests = np.unique(groups[~kept], return_inverse=True)
        blocks[~kept] = int(kept.sum()) + rests
        return cls(tuple(blocks.tolist()))

    def joined(
        self,
        cell: int,
    ) -> "Merging":
        """One more cell, in the block of another."""
        return Merging((*self.blocks, self.blocks[cell]))

    @property
    def size(self) -> int:
        """The number of blocks."""
        return max(self.blocks) + 1

    @cached_property
    def members(self) -> tuple[Integers, ...]:
        """The cells of each block."""
        blocks = np.array(self.blocks)
        return tuple(np.flatnonzero(blocks == block) for block in range(self.size))

    @cached_property
    def firsts(self) -> Integers:
        """The first cell of each block."""
        return np.array([cells[0] for cells in self.members])

    def merged(
        self,
        counts: Floats,
    ) -> Floats:
        """The counts of the blocks."""
        found: Floats = np.bincount(self.blocks, counts, self.size).astype(np.float64)
        return found

    @cached_property
    def sizes(self) -> Floats:
        """The number of cells of each block."""
        return np.bincount(self.blocks, minlength=self.size).astype(np.float64)

    def expanded(
        self,
        blocks: Integers,
        weights: Floats,
        dice: Dice,
    ) -> Integers:
        """A cell for each row, given its block; within a rest in proportion to the weights."""
        found: Integers = self.firsts[blocks]
        for block, cells in enumerate(self.members):
            if len(cells) > 1:
                rows = np.flatnonzero(blocks == block)
                found[rows] = cells[systematic(weights[cells], len(rows), dice)]
        return found
