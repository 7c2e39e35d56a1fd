# SPDX-License-Identifier: Apache-2.0
"""The widths of nested blocks of one column's cells, and the orthogonal spaces they define.

``grid`` combines the chains of several columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.errors import WrongUse
from sfumato.synopsis.workload import Floats, Workload


@dataclass(frozen=True)
class Chain:
    """Nested blocks of neighbouring cells of a column, by their widths, and the spaces that they
    define.

    The widths 1 = w_0, w_1, ..., w_h divide one another; w_h covers all cells. The functions on the
    cells are a sum of orthogonal spaces: V_j for j < h has the functions that are constant on
    blocks of w_j and add up to 0 in blocks of w_(j+1); V_h has the constants (``stack`` has the
    argument).

    Raises:
        WrongUse: widths that do not begin with 1, do not divide one another or do not cover all.

    >>> Chain(5, (1, 2, 6)).blocks(1)
    3
    """

    cells: int
    widths: tuple[int, ...]

    def __post_init__(self) -> None:
        pairs = zip(self.widths, self.widths[1:], strict=False)
        chained = all(wide % narrow == 0 and wide > narrow for narrow, wide in pairs)
        if self.widths[0] != 1 or not chained or self.widths[-1] < self.cells:
            raise WrongUse(
                f"Widths {self.widths} over {self.cells:,} cells.",
                allowed="1, then multiples of the width before, up to all cells",
            )

    @property
    def top(self) -> int:
        """The index h of the last space, that of the constants: one block covers all cells."""
        return len(self.widths) - 1

    @cached_property
    def padded(self) -> int:
        """The number of cells of the blocks of the largest width, including the padding."""
        return self.widths[-1]

    def blocks(self, level: int) -> int:
        """Returns the number of blocks of width w_``level`` that contain cells."""
        return -(-self.cells // self.widths[level])

    def energies(self, workload: Workload) -> Floats:
        """Returns, for each space V_j, the sum over the workload's queries of their squared
        projection on it.

        The sums are divided by the number of padded cells, so that a query of all cells has 1 in
        V_h.
        """
        lengths = np.append(workload.energies(self.widths), 0.0)
        return np.maximum(-np.diff(lengths), 0.0) / self.padded

    def largest(self, workload: Workload) -> Floats:
        """Returns, for each space V_j, an upper bound of the squared projection of any single query
        of the workload.
        """
        wider = (*self.widths[1:], None)
        lengths = list(map(workload.largest, self.widths, wider))
        return np.maximum(lengths, 0.0) / self.padded

    def parts(self, query: Floats) -> list[Floats]:
        """Returns the projection of a query (its coefficients) on each space V_j, as its value on
        each block.

        A query of all cells is extended with 1 to the padding cells, whose counts are 0.
        """
        means = [self._filled(query)]
        for narrow, wide in zip(self.widths, self.widths[1:], strict=False):
            means.append(means[-1].reshape(-1, wide // narrow).mean(axis=1))
        parts = []
        for level in range(self.top):
            times = self.widths[level + 1] // self.widths[level]
            parts.append(means[level] - np.repeat(means[level + 1], times))
        return [*parts, means[-1]]

    def squared(self, parts: Sequence[Floats]) -> Floats:
        """Returns the squared length of a query's projection on each space V_j, scaled as in
        ``energies``.

        ``parts`` is what ``parts`` returns for the query.
        """
        lengths = [float(part @ part) for part in parts]
        squared: Floats = np.array(lengths) * np.array(self.widths) / self.padded
        return squared

    def lift(self, table: Floats, level: int, axis: int) -> Floats:
        """Returns the sums of the next wider blocks from those of the blocks at ``level``, along an
        axis of a table.
        """
        return _grouped(table, self.widths[level + 1] // self.widths[level], axis)

    def _filled(self, query: Floats) -> Floats:
        filled = np.full(self.padded, float(bool((query == 1).all())))
        filled[: self.cells] = query
        return filled


def _grouped(table: Floats, times: int, axis: int) -> Floats:
    """Sums of so many neighbours along an axis; the last group may be shorter."""
    size = table.shape[axis]
    rest = -size % times
    if rest:
        padding = [(0, 0)] * table.ndim
        padding[axis] = (0, rest)
        table = np.pad(table, padding)
    shape = (*table.shape[:axis], -1, times, *table.shape[axis + 1 :])
    grouped: Floats = table.reshape(shape).sum(axis=axis + 1)
    return grouped
