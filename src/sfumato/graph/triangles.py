# SPDX-License-Identifier: Apache-2.0
"""The number of triangles and the most common neighbours of two nodes, if an edge is the unit.

Proof: triangles.proof.md.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from sfumato.graph.degree_counts import degrees_of
from sfumato.graph.moved import OfGraph
from sfumato.noise import Integers
from sfumato.plan.graph import BoundedGraph
from sfumato.privacy.distance import Distance, Norm
from sfumato.query.statistic import Graph, LadderStatistic, Opened

# The most products of two rows of the matrix of edges that are held at once.
_BLOCK = 2**22


class CommonNeighbours(OfGraph[list[int]]):
    """The statistic of the largest number of common neighbours of any two nodes, adjacent or not;
    the privacy unit is an edge.

    Guarantees:
        the most common neighbours move by at most their proved distance
    """

    __slots__ = ()

    @property
    def moves(self) -> dict[Norm, int]:
        """The sensitivity to one edge more or less: 1, in every norm."""
        return {Norm.L1: 1, Norm.L2: 1, Norm.LINF: 1}

    def exact(self, opened: Opened) -> list[int]:
        """Returns the exact largest number of common neighbours, in a list."""
        return [opened.of_graph(self.plan, "common neighbours", most_common_neighbours)]


@dataclass(frozen=True, slots=True)
class TriangleLadder(LadderStatistic):
    """The statistic that counts triangles, for release by the ladder mechanism; the privacy unit is
    an edge.

    Its width, a bound on the local sensitivity, is the largest number of common neighbours of any
    two nodes.

    Guarantees:
        no rung of triangles moves by more than its proved distance
    """

    plan: BoundedGraph

    def rung_distance(self) -> Distance:
        """Returns the sensitivity of each integer's rung: that of the number of common neighbours
        (Linf).
        """
        return CommonNeighbours(self.plan).distance(Norm.LINF)

    def exact(self, opened: Opened) -> tuple[int, int]:
        """Returns the exact number of triangles and the exact width."""
        (width,) = CommonNeighbours(self.plan).exact(opened)
        return opened.of_graph(self.plan, "triangles", count_triangles), width


def count_triangles(graph: Graph) -> int:
    """Returns the exact number of triangles of a graph.

    >>> count_triangles(Graph(np.array([[0, 1], [1, 2], [0, 2], [2, 3]]), 4))
    1
    """
    upwards = _matrix(graph, _rank(graph), both=False)
    triangles = 0
    for first, last in _blocks(upwards):
        rows = upwards[first:last]
        triangles += int((rows @ upwards).multiply(rows).sum())
    return triangles


def most_common_neighbours(graph: Graph) -> int:
    """The most common neighbours of any two nodes; 0 if there are none.

    Two nodes have at most as many as the lesser of their degrees, one fewer if they are
    neighbours. So nodes come by falling degree, until none that is left can have more.

    >>> most_common_neighbours(Graph(np.array([[0, 2], [1, 2], [0, 3], [1, 3]]), 4))
    2
    """
    degrees = np.sort(degrees_of(graph))[::-1]
    matrix = _matrix(graph, len(degrees) - 1 - _rank(graph))
    best = 0
    for first, last in _blocks(matrix):
        if not len(degrees) or degrees[first] <= best:
            break
        # a node that has as many neighbours as the best allows has them among all that could share
        # more: then no pair with it does
        able = int(np.count_nonzero(degrees > best))
        met = np.diff(matrix[first:last, :able].indptr) >= able - 1
        open_rows = first + np.flatnonzero(~(met & (degrees[first:last] <= best + 1)))
        common = (matrix[open_rows] @ matrix).tocoo()
        others = common.data[open_rows[common.row] != common.col]
        best = max(best, int(others.max(initial=0)))
    return best


def _rank(graph: Graph) -> Integers:
    """The place of each node by rising degree."""
    return degrees_of(graph).argsort(kind="stable").argsort()


def _matrix(graph: Graph, rank: Integers, *, both: bool = True) -> Any:
    """The matrix of edges between ranks: from lower to higher, or in both directions."""
    low, high = np.sort(rank[graph.pairs], axis=1).T
    if both:
        low, high = np.concatenate([low, high]), np.concatenate([high, low])
    size = max(graph.nodes, 1)
    ones = np.ones(len(low), np.int64)
    return sparse.csr_matrix((ones, (low, high)), shape=(size, size))


def _blocks(matrix: Any) -> Iterable[tuple[int, int]]:
    """Runs of rows whose products with the matrix have few entries, but for the last row's."""
    products = np.cumsum(matrix @ np.diff(matrix.indptr))
    cuts = np.searchsorted(products, np.arange(_BLOCK, products[-1], _BLOCK))
    return pairwise(np.unique([0, *cuts, matrix.shape[0]]).tolist())
