# SPDX-License-Identifier: Apache-2.0
"""Layers over several columns: their exact error for a workload, and least squares.

``layout`` chooses the layers, ``solution`` computes estimates. A layer adds up the rows by blocks
of some columns and over all values of the others. The functions on the cells of several columns are
a sum of products of one space of each column (``chain``). These products are orthogonal, and a
layer multiplies each of them by a number, the product of its numbers for each column. So the
information on each space (the precision with which it is measured) is a number, and least squares,
the variance of a query and the error of a workload are sums over the spaces, as for one column.

Spaces and layers are named by the columns in which they are not constant, so that the marginals of
a hundred columns need no table of all of them. With one width, marginals, this is ResidualPlanner
(Xiao, He, Zhang, Kifer 2023, "An optimal and scalable matrix mechanism for noisy marginals under
convex loss functions"): a space is a residual, and its information is the sum over layers S that
contain it of p_S times the product over S less the residual of 1/n_i.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

import numpy as np

from sfumato.noise import Integers
from sfumato.synopsis.chain import Chain
from sfumato.synopsis.workload import Floats

# The columns in which a layer or a space is not constant, ascending, each with a level.
Place: TypeAlias = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Grid:
    """The measured layers of a strategy over several columns together.

    ``chains`` has the nested blocks of each column; a layer is a choice of block width in each.

    >>> both = Grid((Chain(2, (1, 2)), Chain(3, (1, 3))), (((0, 0), (1, 0)), ((0, 0),)))
    >>> both.shape(both.layers[0]), both.shape(both.layers[1])
    ((2, 3), (2,))
    """

    chains: tuple[Chain, ...]
    layers: tuple[Place, ...]

    def shape(self, layer: Place) -> tuple[int, ...]:
        """Returns the number of blocks of a layer along each of the columns that it divides."""
        return tuple(self.chains[axis].blocks(level) for axis, level in layer)

    def actions(self, layer: Place) -> Iterator[tuple[Place, float]]:
        """Yields the orthogonal spaces of queries that a layer measures, each with the factor by
        which the layer's precision counts there.
        """
        scale = self._scale(layer)
        choices = []
        for axis, level in layer:
            choices.append([(axis, above) for above in range(level, self.chains[axis].top + 1)])
        for chosen in product(*choices):
            yield self.place(chosen), scale

    def information(self, precisions: Sequence[float]) -> dict[Place, float]:
        """Returns the precision with which all layers together measure each orthogonal space, given
        the precision of each layer.
        """
        known: dict[Place, float] = {}
        for layer, precision in zip(self.layers, precisions, strict=True):
            for space, action in self.actions(layer):
                known[space] = known.get(space, 0.0) + action * precision
        return known

    def variance(self, largest: Mapping[int, Floats], known: Mapping[Place, float]) -> float:
        """Returns an upper bound of the variance of a query's estimate; ``known`` is the result of
        ``information``.

        ``largest`` maps columns to upper bounds of the squared projections. Infinite if the layers
        do not determine the query.
        """
        choices = []
        for axis, lengths in sorted(largest.items()):
            real = np.flatnonzero(lengths > 1e-12 * lengths.max())
            choices.append([(axis, int(level), float(lengths[level])) for level in real])
        variance = 0.0
        for chosen in product(*choices):
            space = self.place([(axis, level) for axis, level, _ in chosen])
            if space not in known:
                return math.inf
            variance += math.prod(length for _, _, length in chosen) / known[space]
        return variance

    def scores(
        self, noisy: Sequence[Integers | Floats], precisions: Sequence[float]
    ) -> dict[Place, Floats]:
        """Returns, for each orthogonal space, the sums of the noisy integers by its blocks,
        weighted by their precision.

        Sums of blocks are added up to wider blocks, one column after the other.
        """
        tables: dict[Place, Floats] = {}
        for layer, integers, precision in zip(self.layers, noisy, precisions, strict=True):
            table = np.asarray(integers, dtype=np.float64).reshape(self.shape(layer))
            _add(tables, layer, table * (precision * self._scale(layer)))
        for axis in range(len(self.chains)):
            self._lift(tables, axis)
        return tables

    def place(self, chosen: Sequence[tuple[int, int]]) -> Place:
        """Returns the key of an orthogonal space: the (column, level) pairs of the columns in which
        it is not constant.
        """
        return tuple(each for each in chosen if each[1] < self.chains[each[0]].top)

    def _scale(self, layer: Place) -> float:
        """The product of the share of each column's cells that is in a block of the layer."""
        scale = 1.0
        for axis, level in layer:
            scale *= self.chains[axis].widths[level] / self.chains[axis].padded
        return scale

    def _lift(self, tables: dict[Place, Floats], axis: int) -> None:
        """Adds every table to that of the next level of a column, level by level."""
        chain = self.chains[axis]
        for level in range(chain.top):
            for place in [place for place in tables if (axis, level) in place]:
                where = place.index((axis, level))
                wider = chain.lift(tables[place], level, where)
                above = list(place)
                above[where] = (axis, level + 1)
                if level + 1 == chain.top:
                    # one block of all cells: the column is constant
                    wider = wider.sum(axis=where)
                _add(tables, self.place(above), wider)


def _add(tables: dict[Place, Floats], place: Place, table: Floats) -> None:
    tables[place] = tables[place] + table if place in tables else table
