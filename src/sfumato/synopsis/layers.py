# SPDX-License-Identifier: Apache-2.0
"""Integer layers over the cells of one axis: sums of blocks, or differences of their halves.

A strategy (``stack``) is a set of layers with noise.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from sfumato.errors import WrongUse
from sfumato.noise import Integers

Numbers = TypeVar("Numbers", Integers, npt.NDArray[np.float64])


@dataclass(frozen=True, slots=True)
class Layer:
    """A measured layer of a column: one integer for each block of ``width`` neighbouring cells; the
    last block may be shorter.

    The integer is the sum of the block; with ``halves`` it is the sum of its first half minus that
    of its second (a Haar wavelet, times a power of two). Each cell has the coefficient 1 or -1 in
    one integer, and 0 in all others.

    Guarantees:
        each cell is in one block, with the coefficient 1 or -1

    Raises:
        WrongUse: a width below 1, or halves of an odd width.

    >>> cells = np.array([3, 4, 5])
    >>> Layer(2).apply(cells).tolist(), Layer(2, halves=True).apply(cells).tolist()
    ([7, 5], [-1, 5])
    """

    width: int
    halves: bool = False

    def __post_init__(self) -> None:
        if self.width < 1 or (self.halves and self.width % 2):
            raise WrongUse(f"A layer of blocks of {self.width} cells.", allowed="1, 2, 3, ...")

    def size(self, cells: int) -> int:
        """Returns the number of blocks, and so of integers, over an array of so many cells."""
        return -(-cells // self.width)

    def apply(self, cells: Numbers) -> Numbers:
        """Returns the sum (or half difference) of each block of a flat array of cell counts.

        The result has ``size(len(cells))`` entries, and the dtype of ``cells``.
        """
        blocks = self.size(len(cells))
        padded = np.zeros(blocks * self.width, dtype=cells.dtype)
        padded[: len(cells)] = cells
        table = padded.reshape(blocks, self.width)
        if not self.halves:
            sums: Numbers = table.sum(axis=1)
            return sums
        middle = self.width // 2
        differences: Numbers = table[:, :middle].sum(axis=1) - table[:, middle:].sum(axis=1)
        return differences
