# SPDX-License-Identifier: Apache-2.0
"""Workloads of one axis: the queries for which a synopsis is chosen, never written out.

A workload is known to a strategy by its energies: the sum over its queries q of the squared length
of q after averaging over blocks. They have closed forms, so a workload of 10^12 ranges is a few
numbers.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from sfumato.errors import WrongUse

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Workload(ABC):
    """Queries over ``cells`` neighbouring cells, each a sum of some of them."""

    cells: int

    def __post_init__(self) -> None:
        if self.cells < 1:
            raise WrongUse(f"A workload over {self.cells} cells.", allowed="at least 1")

    @property
    @abstractmethod
    def queries(self) -> int:
        """The number of queries."""

    @abstractmethod
    def energy(self, width: int) -> float:
        """The sum over all queries of |B q|^2, where B averages over blocks of ``width`` cells.

        Blocks begin at cell 0; the last one is filled with cells that are in no query.
        """

    def energies(self, widths: Sequence[int]) -> Floats:
        """The energy for each width."""
        return np.array([_energy(self, width) for width in widths])


@lru_cache(maxsize=256)
def _energy(workload: Workload, width: int) -> float:
    """The energy of a workload; several candidates need the same widths."""
    return workload.energy(width)


class Cells(Workload):
    """Each cell by itself.

    >>> Cells(4).queries, Cells(4).energy(2)
    (4, 2.0)
    """

    __slots__ = ()

    @property
    def queries(self) -> int:
        return self.cells

    def energy(self, width: int) -> float:
        return self.cells / width


class Prefixes(Workload):
    """The first cell, the first two, and so on: cumulative counts.

    >>> Prefixes(3).queries, Prefixes(3).energy(1)
    (3, 6.0)
    """

    __slots__ = ()

    @property
    def queries(self) -> int:
        return self.cells

    def energy(self, width: int) -> float:
        _, size, right = _blocks(self.cells, width)
        # a prefix covers the block, or ends in it
        covering = (right + 1) * size**2
        return float((covering + _squares(size - 1)).sum() / width)


class Ranges(Workload):
    """Every range of neighbouring cells.

    >>> Ranges(3).queries, Ranges(3).energy(1)
    (6, 10.0)
    """

    __slots__ = ()

    @property
    def queries(self) -> int:
        return self.cells * (self.cells + 1) // 2

    def energy(self, width: int) -> float:
        left, size, right = _blocks(self.cells, width)
        covering = (left + 1) * (right + 1) * size**2
        # begins before the block and ends in it, or the reverse
        crossing = (left + right + 2) * _squares(size - 1)
        return float((covering + crossing + _inner(size)).sum() / width)


def _blocks(cells: int, width: int) -> tuple[Floats, Floats, Floats]:
    """For each block: the cells before it, its own cells, and those behind it."""
    starts = np.arange(0, cells, width, dtype=np.float64)
    sizes = np.minimum(float(width), cells - starts)
    return starts, sizes, cells - starts - sizes


def _squares(last: Floats) -> Floats:
    """1^2 + 2^2 + ... + last^2."""
    return last * (last + 1) * (2 * last + 1) / 6


def _inner(size: Floats) -> Floats:
    """The sum of squared lengths of the ranges that touch neither end of a block.

    There are size - 1 - o of length o: (m - 1) S2 - S3 over o < m - 1.
    """
    last = np.maximum(size - 2, 0.0)
    cubes = (last * (last + 1) / 2) ** 2
    inner: Floats = (size - 1) * _squares(last) - cubes
    return inner
