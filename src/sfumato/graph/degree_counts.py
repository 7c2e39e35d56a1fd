# SPDX-License-Identifier: Apache-2.0
"""The degrees of a graph, by columns and rows, if an edge is the unit.

Source: Hay, Li, Miklau, Jensen (ICDM 2009) release degrees in order; Zhang and others
(SIGMOD 2015), section 7. Proof: degree_counts.proof.md.
"""

from dataclasses import dataclass

import numpy as np

from sfumato.errors import InvalidDeclaration
from sfumato.graph.moved import moved, require_unit
from sfumato.noise import Integers
from sfumato.plan.graph import BoundedGraph
from sfumato.privacy.distance import Distance, Norm
from sfumato.query.statistic import BoundedStatistic, Graph, Opened

# The most columns and rows together: 800 MB of noise and counts.
MOST = 5 * 10**7


@dataclass(frozen=True, slots=True)
class DegreeCounts(BoundedStatistic[Integers]):
    """The number of nodes of degree >= t for t = 1 to ``columns``, then by how much each of the
    ``rows`` highest degrees exceeds ``columns``, in descending order.

    Together they are the Young diagram of the degrees: its first columns, and the rest by rows.

    Guarantees:
        columns and rows move by at most their proved distance

    Raises:
        InvalidDeclaration: there are none of either, or too many; or a node is the unit.
    """

    plan: BoundedGraph
    columns: int
    rows: int

    def __post_init__(self) -> None:
        require_unit(self.plan, node=False)
        if min(self.columns, self.rows) < 1 or self.columns + self.rows > MOST:
            raise InvalidDeclaration(
                f"{self.columns:,} columns and {self.rows:,} rows.",
                allowed=f"one of each or more, at most {MOST:,} together",
            )

    def distance(self, norm: Norm) -> Distance:
        """L1 2, squared L2 4."""
        return moved(self.plan, norm, l1=2, l2=4)

    def exact(self, opened: Opened) -> Integers:
        """The exact columns, then the exact rows."""
        degrees = np.sort(degrees_of(opened.edges(self.plan)))[::-1]
        return np.concatenate([_columns(degrees, self.columns), self._excess(degrees)])

    def _excess(self, degrees: Integers) -> Integers:
        """By how much each of the highest degrees exceeds the columns."""
        excess = np.zeros(self.rows, np.int64)
        highest = degrees[: self.rows]
        excess[: len(highest)] = np.maximum(highest - self.columns, 0)
        return excess


def degrees_of(graph: Graph) -> Integers:
    """The degree of each node."""
    degrees: Integers = np.bincount(graph.pairs.ravel(), minlength=graph.nodes).astype(np.int64)
    return degrees


def _columns(degrees: Integers, columns: int) -> Integers:
    """The number of nodes of degree >= t, for t = 1 to ``columns``."""
    counted = np.bincount(np.minimum(degrees, columns), minlength=columns + 1)
    at_least: Integers = np.cumsum(counted[::-1])[::-1][1:].astype(np.int64)
    return at_least
