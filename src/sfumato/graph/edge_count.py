# SPDX-License-Identifier: Apache-2.0
"""The number of edges, if an edge is the unit. Proof: edge_count.proof.md."""

from sfumato.graph.moved import OfGraph
from sfumato.privacy.distance import Norm
from sfumato.query.statistic import Opened


class EdgeCount(OfGraph[list[int]]):
    """The statistic that counts the edges of a graph, where the privacy unit is an edge.

    Guarantees:
        the number of edges moves by at most its proved distance
    """

    __slots__ = ()

    @property
    def moves(self) -> dict[Norm, int]:
        """The sensitivity to one edge more or less: 1, in L1 and in squared L2."""
        return {Norm.L1: 1, Norm.L2: 1}

    def exact(self, opened: Opened) -> list[int]:
        """Returns the exact number of edges, in a list."""
        return [len(opened.edges(self.plan).pairs)]
