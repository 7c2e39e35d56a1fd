# SPDX-License-Identifier: Apache-2.0
"""Merges cells of a column that are too rare to exceed the noise, so that they are counted
together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.metadata.column import Boolean, Category
from sfumato.noise import Integers
from sfumato.synthetic.rows import Dice, systematic
from sfumato.synthetic.schema import Declared, Floats


def has_order(kind: Declared) -> bool:
    """Whether the values of a type are ordered, so that adjacent values are similar.

    >>> has_order(Boolean())
    False
    """
    return not isinstance(kind, Category | Boolean)


@dataclass(frozen=True)
class Merging:
    """A partition of an axis's cells into blocks, by the block number of each cell.

    A block of several rare cells is called a rest.

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
        """Merges the cells whose noisy count is below ``least`` into one block; keeps the others
        single.

        Cells of different ``classes`` are never merged, because a constraint treats them
        differently.
        """
        kept = noisy >= least
        groups = np.zeros(len(noisy), np.int64) if classes is None else classes
        blocks = np.cumsum(kept) - 1
        _, rests = np.unique(groups[~kept], return_inverse=True)
        blocks[~kept] = int(kept.sum()) + rests
        return cls(tuple(blocks.tolist()))

    @classmethod
    def of_neighbours(
        cls,
        noisy: Floats,
        least: float,
    ) -> "Merging":
        """Merges adjacent cells into blocks that each have a noisy count of about ``least``.

        A cell that reaches ``least`` alone is a block of its own. Remaining cells between such
        cells join the block before them, if it has several cells.

        >>> Merging.of_neighbours(np.array([9.0, -2.0, 2.0, 5.0, 6.0, 1.0, 8.0, 1.0]), 8.0).blocks
        (0, 1, 1, 1, 1, 1, 2, 3)
        """
        blocks: list[int] = []
        alone = noisy >= least
        starts = np.flatnonzero(alone | np.diff(alone, prepend=True))
        for run in np.split(np.arange(len(noisy)), starts[starts > 0]):
            first = blocks[-1] + 1 if blocks else 0
            blocks += [first + each for each in _divide_into_blocks(noisy[run].tolist(), least)]
        return cls(tuple(blocks))

    def joined(
        self,
        cell: int,
    ) -> "Merging":
        """Returns the blocks with one more cell at the end, in the block of an existing cell."""
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
        """Returns the counts of blocks: the sums of the counts of their cells."""
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
        """Draws a cell for each row within the row's block, in proportion to the weights of cells."""
        found: Integers = self.firsts[blocks]
        for block, cells in enumerate(self.members):
            if len(cells) > 1:
                rows = np.flatnonzero(blocks == block)
                found[rows] = cells[systematic(weights[cells], len(rows), dice)]
        return found


def _divide_into_blocks(
    counts: Sequence[float],
    least: float,
) -> list[int]:
    """Returns the block of each of some adjacent cells; remaining cells join the last block."""
    blocks, block, held = [], 0, 0.0
    for count in counts:
        blocks.append(block)
        held += max(count, 0.0)
        if held >= least:
            block, held = block + 1, 0.0
    last = max(block - 1, 0)
    return [min(each, last) for each in blocks]
