# SPDX-License-Identifier: Apache-2.0
"""The degrees of a graph, by columns and rows, if an edge is the unit.

Source: Hay, Li, Miklau, Jensen (ICDM 2009) release degrees in order; Zhang and others
(SIGMOD 2015), section 7. Proof: degree_counts.proof.md.
"""

from dataclasses import dataclass

import numpy as np

from sfumato.graph.moved import OfGraph
from sfumato.noise import Integers
from sfumato.privacy.distance import Norm
from sfumato.query.statistic import Graph, Opened


@dataclass(frozen=True, slots=True)
class DegreeCounts(OfGraph[Integers]):
    """The statistic of the degrees of a graph where the privacy unit is an edge: the number of
    nodes of degree >= t for t = 1 to ``columns``, then by how much each of the ``rows`` highest
    degrees exceeds ``columns``, in descending order.

    Together they are the Young diagram of the degrees: its first columns, and the rest by rows.

    Guarantees:
        columns and rows move by at most their proved distance
    """

    columns: int
    rows: int

    @property
    def moves(self) -> dict[Norm, int]:
        """The sensitivity to one edge more or less: 2 in L1, 4 in squared L2."""
        return {Norm.L1: 2, Norm.L2: 4}

    def exact(self, opened: Opened) -> Integers:
        """Returns the exact numbers of nodes (columns), then the exact excess degrees (rows)."""
        degrees = np.sort(degrees_of(opened.edges(self.plan)))[::-1]
        excess = np.zeros(self.rows, np.int64)
        highest = degrees[: self.rows]
        excess[: len(highest)] = np.maximum(highest - self.columns, 0)
        return np.concatenate([_columns(degrees, self.columns), excess])


def degrees_of(graph: Graph) -> Integers:
    """Returns the degree of each node of a graph."""
    return np.bincount(graph.pairs.ravel(), minlength=graph.nodes).astype(np.int64)


def _columns(degrees: Integers, columns: int) -> Integers:
    """The number of nodes of degree >= t, for t = 1 to ``columns``."""
    counted = np.bincount(np.minimum(degrees, columns), minlength=columns + 1)
    return np.cumsum(counted[::-1])[::-1][1:].astype(np.int64)
