# SPDX-License-Identifier: Apache-2.0
"""Least squares over several columns: the estimate of any query, and its variance.

``Tables`` answers with it. A query is a product of factors, one for each of some columns. Its
estimate is the sum over the spaces (``grid``) of its projection times the score of the space,
divided by the information on the space. Equivalently, it is the product of the query with a table
of estimated cells of its columns; that table is computed once for each set of columns.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from sfumato.synopsis.chain import Chain
from sfumato.synopsis.grid import Grid, Place
from sfumato.synopsis.workload import Floats

# The factors of a query: for some columns, what each of their cells counts.
Factors: TypeAlias = Mapping[int, Floats]
Axes: TypeAlias = tuple[int, ...]
# A part of a query with less of its squared length than this is the rounding of floats.
_NOTHING = 1e-18
# The most numbers of the tables that are kept.
_KEPT = 2 * 10**7
# The most factors whose lengths are kept.
_FACTORS = 1000


@dataclass(frozen=True, eq=False)
class Solution:
    """The least-squares solution of noisy layers over several columns, from which queries are
    answered.

    Args:
        grid: the layers.
        known: the information on each space (``Grid.information``).
        scores: the weighted sums of the noisy integers (``Grid.scores``).

    >>> grid = Grid((Chain(2, (1, 2)),), (((0, 0),),))
    >>> scores = grid.scores([np.array([5, 7])], [1.0])
    >>> Solution(grid, grid.information([1.0]), scores).estimates([{0: np.array([1.0, 0.0])}])
    [(5.0, 1.0)]
    """

    grid: Grid
    known: Mapping[Place, float]
    scores: Mapping[Place, Floats]
    _tables: dict[Axes, Floats] = field(default_factory=dict, init=False, repr=False)
    _inverses: dict[Axes, Floats] = field(default_factory=dict, init=False, repr=False)
    _lengths: dict[tuple[int, bytes], Floats] = field(default_factory=dict, init=False, repr=False)

    def estimates(self, queries: Sequence[Factors]) -> list[tuple[float, float]]:
        """Returns the least-squares estimate of each query, and the variance of each estimate.

        The variance is infinite where the layers do not determine the query.
        """
        estimates = []
        for query in queries:
            # a factor that is 1 everywhere is 1 on the cells that fill the last block too
            real = {axis: cells for axis, cells in query.items() if (cells != 1).any()}
            axes = tuple(sorted(real))
            energies = [self._lengths_of(axis, real[axis]) for axis in axes]
            variance = self._variance(axes, energies)
            value = math.nan
            if not math.isinf(variance):
                value = self._value(axes, [real[axis] for axis in axes])
            estimates.append((value, variance))
        return estimates

    def _lengths_of(self, axis: int, cells: Floats) -> Floats:
        """Returns the squared lengths of a factor; queries of one workload have many in common."""
        name = axis, cells.tobytes()
        if name not in self._lengths:
            if len(self._lengths) >= _FACTORS:
                self._lengths.clear()
            self._lengths[name] = _lengths(self.grid.chains[axis], cells)
        return self._lengths[name]

    def _variance(self, axes: Axes, energies: Sequence[Floats]) -> float:
        """The sum over the spaces of the squared length of a query there, over what is known."""
        weights = self._inverse(axes)
        energy = np.ones(())
        for each in energies:
            energy = np.multiply.outer(energy, each)
        there = energy > 0
        if not np.isfinite(weights[there]).all():
            return math.inf
        return float((energy[there] * weights[there]).sum())

    def _inverse(self, axes: Axes) -> Floats:
        """One over what is known of each space of some columns, by level; infinite for nothing."""
        if axes not in self._inverses:
            levels = [range(self.grid.chains[axis].top + 1) for axis in axes]
            found = []
            for chosen in product(*levels):
                space = self.grid.place(list(zip(axes, chosen, strict=True)))
                known = self.known.get(space, 0.0)
                found.append(1 / known if known else math.inf)
            self._inverses[axes] = np.reshape(found, [len(each) for each in levels])
        return self._inverses[axes]

    def _value(self, axes: Axes, factors: Sequence[Floats]) -> float:
        """Returns the product of a query with the table of its columns."""
        table = self._table(axes)
        for cells in reversed(factors):
            table = table @ cells
        return float(table)

    def _table(self, axes: Axes) -> Floats:
        """Returns the estimated cells of some columns, as far as the layers determine them."""
        if axes not in self._tables:
            tables = {}
            for space, score in self.scores.items():
                if {axis for axis, _ in space} <= set(axes):
                    tables[space] = score / self.known[space]
            for place, axis in enumerate(axes):
                tables = self._spread(tables, axis, place)
            (found,) = tables.values()
            if found.size + sum(each.size for each in self._tables.values()) > _KEPT:
                self._tables.clear()
            self._tables[axes] = found
        return self._tables[axes]

    def _spread(self, tables: Mapping[Place, Floats], axis: int, place: int) -> dict[Place, Floats]:
        """Tables of the cells of a column from those of the blocks of its levels.

        A table is named by its blocks of the other columns; its dimension ``place`` has the cells.
        """
        chain = self.grid.chains[axis]
        levels: dict[Place, dict[int, Floats]] = {}
        for space, table in tables.items():
            rest = tuple(each for each in space if each[0] != axis)
            level = dict(space).get(axis, chain.top)
            if level == chain.top:
                table = np.expand_dims(table, place)
            levels.setdefault(rest, {})[level] = table
        return {rest: _spread(chain, found, place) for rest, found in levels.items()}


def _spread(chain: Chain, levels: Mapping[int, Floats], place: int) -> Floats:
    """Returns the sum over the levels of the transpose of a query's part there, applied to a table.

    A part is a mean of blocks less that of the wider blocks around them (``Chain.parts``), so its
    transpose spreads a number evenly over its block, less evenly over the wider block.
    """
    # whatever is known of a space is known of the constants too
    spread = levels[chain.top] / chain.padded
    for level in reversed(range(chain.top)):
        if level in levels:
            spread = spread - chain.lift(levels[level], level, place) / chain.widths[level + 1]
        times = chain.widths[level + 1] // chain.widths[level]
        spread = np.repeat(spread, times, place).take(range(chain.blocks(level)), place)
        if level in levels:
            spread = spread + levels[level] / chain.widths[level]
    return spread


def _lengths(chain: Chain, query: Floats) -> Floats:
    """Returns the squared length of the part of a query in each space of a column."""
    squared = chain.squared(chain.parts(query))
    real: npt.NDArray[np.bool_] = squared > _NOTHING * squared.max()
    return np.where(real, squared, 0.0)
