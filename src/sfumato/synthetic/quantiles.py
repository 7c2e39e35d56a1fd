# SPDX-License-Identifier: Apache-2.0
"""Finds bins at quantiles privately, from noisy counts of ever finer cells where rows are.

Each level divides the cells with many rows into sixteen and counts them. So the noise of a quantile
is that of a few counts, however many values are declared.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.metadata.column import Column, Integer, Real
from sfumato.noise import Integers
from sfumato.query.curator import Curator
from sfumato.synthetic.counts import BlockCounts, Plan
from sfumato.synthetic.schema import Axis, Floats, declared

# The finest cells of a column, and into how many parts one is divided.
_LEAVES, _PARTS = 2**16, 16
# A cell is divided if it has so many parts of a bin, and so many standard deviations of noise.
_DIVIDED, _SEEN = 4, 2.0
# Of more edges than this, the outermost ones are not taken for typical.
_SEVERAL = 3


@dataclass(frozen=True, slots=True)
class QuantileTree:
    """A plan to choose about ``bins`` bins of a column at its quantiles, by noisy counts level by
    level.

    >>> from sfumato.metadata.column import Integer
    >>> tree = QuantileTree(Column("pay", Integer(0, 9_999_999)), 32)
    >>> tree.width, tree.leaves, tree.levels
    (153, 65360, 4)
    """

    column: Column
    bins: int

    @property
    def width(self) -> int:
        """The number of codes in each of the finest cells."""
        return -(-declared(self.column).size // _LEAVES)

    @property
    def leaves(self) -> int:
        """The number of finest cells."""
        return -(-declared(self.column).size // self.width)

    @property
    def levels(self) -> int:
        """The number of levels of the tree."""
        levels = 1
        while _PARTS**levels < self.leaves:
            levels += 1
        return levels

    @property
    def fine(self) -> Axis:
        """The column as an axis of its finest cells."""
        kind = declared(self.column)
        return Axis(self.column, tuple(range(kind.lower_code, kind.upper_code + 1, self.width)))

    def found(
        self,
        curator: Curator,
        plan: Plan,
        noise: AdditiveMechanism,
    ) -> tuple[int, ...]:
        """Measures the cells level by level, and returns the first codes of the bins.

        ``plan`` must have the column as its axis of finest cells.
        """
        sigma = float(noise.noise.variance.upper) ** 0.5 / plan.refinement
        cells = Cells(np.zeros(1, np.int64), np.zeros(1))
        divided = np.ones(1, bool)
        for level in range(self.levels):
            width = _PARTS ** (self.levels - 1 - level)
            blocks = self._blocks(cells.starts[divided], width)
            statistic = BlockCounts(plan, ((self.column.name, tuple(blocks.tolist())),))
            counts = curator.measure(statistic, noise) / plan.refinement
            cells = self._divide_cells(cells, divided, counts, width)
            total = max(float(cells.masses.sum()), 1.0)
            least = max(_SEEN * sigma, total / (_DIVIDED * self.bins))
            divided = cells.masses >= least
        least = _SEEN * sigma
        return tuple(
            self._possible_starts(cells.quantiles(self.bins), cells.heavy(self.bins, least))
        )

    def _blocks(
        self,
        starts: Integers,
        width: int,
    ) -> Integers:
        """Returns the block of each finest cell, and of missing: parts of the divided cells, then
        all others.
        """
        blocks = np.full(self.leaves + 1, -1)
        number = 0
        for start in starts.tolist():
            for first in range(start, min(start + _PARTS * width, self.leaves), width):
                blocks[first : min(first + width, self.leaves)] = number
                number += 1
        blocks[blocks < 0] = number
        return blocks

    def _divide_cells(
        self,
        cells: "Cells",
        divided: Integers,
        counts: Floats,
        width: int,
    ) -> "Cells":
        """Replaces the divided cells by their parts, whose counts add up to the count of the
        cell.
        """
        starts: list[int] = []
        masses: list[float] = []
        at = 0
        for start, mass, parts in zip(cells.starts, cells.masses, divided, strict=True):
            if not parts:
                starts.append(int(start))
                masses.append(float(mass))
                continue
            firsts = range(int(start), min(int(start) + _PARTS * width, self.leaves), width)
            found = np.maximum(counts[at : at + len(firsts)], 0.0)
            at += len(firsts)
            # the whole table has no count of its own
            whole = float(mass) if len(cells.starts) > 1 else float(found.sum())
            shares = found / found.sum() if found.sum() > 0 else np.full(len(found), 1 / len(found))
            starts += firsts
            masses += (whole * shares).tolist()
        return Cells(np.array(starts), np.array(masses))

    def _possible_starts(
        self,
        quantiles: Integers,
        heavy: Integers,
    ) -> list[int]:
        """Returns the first codes of at least two bins; the first is the least declared code.

        Beyond the outermost quantiles each bin is twice as wide as the one before: there are few
        rows, and how far out is unknown.
        """
        kind = declared(self.column)
        inner = quantiles if len(quantiles) > 1 else np.union1d(quantiles, heavy)
        edges = [*self._codes(inner), *self._codes(heavy)]
        edges += self._outer_edges(self._codes(inner))
        if isinstance(kind, Integer | Real):
            # many columns have a 0 for what is not there
            edges += [0, 1]
        within = {edge for edge in edges if kind.lower_code < edge <= kind.upper_code}
        if not within:
            within = {kind.lower_code + kind.size // 2}
        return [kind.lower_code, *sorted(within)]

    def _codes(
        self,
        cells: Integers,
    ) -> list[int]:
        """Returns the first codes of finest cells."""
        lower = declared(self.column).lower_code
        return [lower + int(cell) * self.width for cell in cells]

    def _outer_edges(
        self,
        edges: Sequence[int],
    ) -> list[int]:
        """Returns edges on both sides of the others; each step is twice as wide as the one
        before.
        """
        kind = declared(self.column)
        outer_edges: list[int] = []
        if len(edges) < 2:
            return outer_edges
        # the outermost cell may be wide because few rows are in it
        inner = edges[1:-1] if len(edges) > _SEVERAL else edges
        down, up = inner[0] - inner[1], inner[-1] - inner[-2]
        for edge, width in ((inner[0], down), (inner[-1], up)):
            place, step = edge + width, 2 * width
            while kind.lower_code < place <= kind.upper_code:
                outer_edges.append(place)
                place, step = place + step, 2 * step
        return outer_edges


@dataclass(frozen=True, eq=False)
class Cells:
    """Adjacent cells: the index at which each begins, and its estimated number of rows."""

    starts: Integers
    masses: Floats

    def quantiles(
        self,
        bins: int,
    ) -> Integers:
        """Returns the starts of the cells that are nearest to the quantiles."""
        heights = np.cumsum(self.masses)
        wanted = float(heights[-1]) * np.arange(1, bins) / bins
        at = np.minimum(np.searchsorted(heights, wanted), len(heights) - 1)
        is_nearer_start = wanted - (heights - self.masses)[at] < heights[at] - wanted
        return np.unique(np.where(is_nearer_start, self.starts[at], self._ends[at]))

    def heavy(
        self,
        bins: int,
        least: float,
    ) -> Integers:
        """Returns the starts and ends of cells that alone have the rows of a whole bin."""
        is_heavy = self.masses >= max(float(self.masses.sum()) / bins, least)
        return np.union1d(self.starts[is_heavy], self._ends[is_heavy])

    @property
    def _ends(self) -> Integers:
        """Returns the end of each cell; of the last one, its start."""
        return np.append(self.starts[1:], self.starts[-1])
