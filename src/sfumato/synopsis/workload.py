# SPDX-License-Identifier: Apache-2.0
"""Workloads of one axis: the queries for which a strategy is chosen, in closed form.

A strategy knows a workload by its energies: the sum over its queries q of the squared length of q
after averaging over blocks. They have closed forms, so 10^12 ranges are never enumerated.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
import numpy.typing as npt

from sfumato.errors import WrongUse

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Workload(ABC):
    """A workload of linear queries over ``cells`` neighbouring cells: each query is a weighted sum
    of the cells' counts.
    """

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
        """Returns the sum over all queries q of |B q|^2, where B averages over blocks of ``width``
        cells.

        Blocks begin at cell 0; the last one is padded with cells that are in no query.
        """

    @abstractmethod
    def gram(self) -> Floats:
        """Returns the Gram matrix: the sum over the queries of q q^T."""

    @abstractmethod
    def largest(self, width: int, wider: int | None) -> float:
        """Returns an upper bound, over all queries q, of |B q|^2 - |B' q|^2, where B averages over
        blocks of ``width`` cells.

        B' averages over blocks of ``wider`` cells, a multiple of ``width``. None: |B q|^2 alone,
        where one block has all cells.
        """

    @abstractmethod
    def peak(self, covariance: Floats) -> float:
        """Returns the largest variance of any query's answer, given the covariance of the cells'
        counts.
        """

    def energies(self, widths: Sequence[int]) -> Floats:
        """Returns ``energy`` for each block width."""
        return np.array([_energy(self, width) for width in widths])


@lru_cache(maxsize=256)
def _energy(workload: Workload, width: int) -> float:
    """Returns the energy of a workload; several candidates need the same widths."""
    return workload.energy(width)


class Cells(Workload):
    """The workload of single cells: each query counts one cell.

    >>> Cells(4).queries, Cells(4).energy(2)
    (4, 2.0)
    """

    __slots__ = ()

    @property
    def queries(self) -> int:
        return self.cells

    def energy(self, width: int) -> float:
        return self.cells / width

    def gram(self) -> Floats:
        return np.eye(self.cells)

    def largest(self, width: int, wider: int | None) -> float:
        return 1 / width - (1 / wider if wider else 0.0)

    def peak(self, covariance: Floats) -> float:
        return float(covariance.diagonal().max())


class Prefixes(Workload):
    """The workload of cumulative counts: the first cell, the first two, and so on.

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

    def gram(self) -> Floats:
        places = np.arange(self.cells, dtype=np.float64)
        return self.cells - np.maximum.outer(places, places)

    def largest(self, width: int, wider: int | None) -> float:
        return _partial(self.cells, width, wider)

    def peak(self, covariance: Floats) -> float:
        return float(_cumulative(covariance).diagonal().max())


class Ranges(Workload):
    """The workload of ranges: each query counts a range of neighbouring cells.

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

    def gram(self) -> Floats:
        places = np.arange(self.cells, dtype=np.float64)
        # a range of both begins at the first or before, and ends at the last or behind
        before = np.minimum.outer(places, places) + 1
        shared: Floats = before * (self.cells - np.maximum.outer(places, places))
        return shared

    def largest(self, width: int, wider: int | None) -> float:
        # a range is a part of at most two of the wider blocks. Within one it has at most a quarter
        # of the block, which two prefixes of a block have too
        ends = 1 if wider is None else 2
        return ends * _partial(self.cells, width, wider)

    def peak(self, covariance: Floats) -> float:
        summed = np.pad(_cumulative(covariance), ((1, 0), (1, 0)))
        alone = summed.diagonal()
        return float((np.add.outer(alone, alone) - summed - summed.T).max())


@dataclass(frozen=True, slots=True)
class Given(Workload):
    """An explicit list of queries, each by its weight of each cell.

    ``rows`` has each query in run-length encoding: pairs of the difference between neighbouring
    weights and the number of repetitions, so ranges, few values or sums of values take few numbers.

    >>> kind = GivenKind.of([np.array([0.0, 1, 1, 1]), np.array([0.0, 1, 2, 3])])
    >>> kind(3).queries, kind(3).energy(2)
    (2, 15.5)
    """

    rows: tuple[tuple[tuple[float, int], ...], ...]

    @property
    def queries(self) -> int:
        return len(self.rows)

    def energy(self, width: int) -> float:
        return sum(_length(row, width) for row in self._vectors())

    def gram(self) -> Floats:
        table = np.array(list(self._vectors()))
        shared: Floats = table.T @ table
        return shared

    def largest(self, width: int, wider: int | None) -> float:
        return max(_length(row, width) - _length(row, wider) for row in self._vectors())

    def peak(self, covariance: Floats) -> float:
        return max(float(row @ covariance @ row) for row in self._vectors())

    def _vectors(self) -> Iterator[Floats]:
        for row in self.rows:
            differences, times = zip(*row, strict=True)
            yield np.cumsum(np.repeat(differences, times))


@dataclass(frozen=True, slots=True)
class GivenKind:
    """A kind of workload with stated queries, for columns whose number of cells is not known yet.

    ``rows`` has the queries as runs of equal weights; the last cell is that of missing values.
    """

    rows: tuple[tuple[tuple[float, int], ...], ...]

    @classmethod
    def of(cls, queries: Sequence[Floats]) -> Self:
        """Makes the kind of a list of queries, each an array of weights."""
        return cls(tuple(_runs(np.diff(query, prepend=0.0)) for query in queries))

    def __call__(self, values: int) -> Workload:
        """Returns the queries over the cells of so many values, and of missing ones."""
        return Given(values + 1, self.rows)


def _runs(numbers: Floats) -> tuple[tuple[float, int], ...]:
    """Each run of equal numbers: the number and its length."""
    starts = np.flatnonzero(np.diff(numbers, prepend=np.nan))
    lengths = np.diff(starts, append=len(numbers))
    return tuple(zip(numbers[starts].tolist(), lengths.tolist(), strict=True))


def _blocks(cells: int, width: int) -> tuple[Floats, Floats, Floats]:
    """For each block: the cells before it, its own cells, and those behind it."""
    starts = np.arange(0, cells, width, dtype=np.float64)
    sizes = np.minimum(float(width), cells - starts)
    return starts, sizes, cells - starts - sizes


def _partial(cells: int, width: int, wider: int | None) -> float:
    """The largest |B q|^2 - |B' q|^2 of the first cells of a wider block; a block's last likewise.

    None: of all cells, which are in one block.
    """
    if wider is None:
        return cells**2 / width
    first = np.arange(min(wider, cells) + 1, dtype=np.float64)
    rest = first % width
    return float((first - rest + rest**2 / width - first**2 / wider).max())


def _cumulative(covariance: Floats) -> Floats:
    """Returns the covariance of the sums of the first cells."""
    summed: Floats = covariance.cumsum(axis=0).cumsum(axis=1)
    return summed


def _length(query: Floats, width: int | None) -> float:
    """Returns the squared length of a query after averaging over blocks of a width; None: 0."""
    if width is None:
        return 0.0
    sums = np.add.reduceat(query, np.arange(0, len(query), width))
    return float(sums @ sums) / width


def _squares(last: Floats) -> Floats:
    """1^2 + 2^2 + ... + last^2."""
    return last * (last + 1) * (2 * last + 1) / 6


def _inner(size: Floats) -> Floats:
    """Returns the sum of squared lengths of the ranges that touch neither end of a block.

    There are size - 1 - o of length o: (m - 1) S2 - S3 over o < m - 1.
    """
    last = np.maximum(size - 2, 0.0)
    cubes = (last * (last + 1) / 2) ** 2
    inner: Floats = (size - 1) * _squares(last) - cubes
    return inner
