# SPDX-License-Identifier: Apache-2.0
"""The number of edges, if an edge is the unit. Proof: edge_count.proof.md."""

from dataclasses import dataclass

from sfumato.graph.moved import moved, require_unit
from sfumato.plan.graph import BoundedGraph
from sfumato.privacy.distance import Distance, Norm
from sfumato.query.statistic import BoundedStatistic, Opened


@dataclass(frozen=True, slots=True)
class EdgeCount(BoundedStatistic[list[int]]):
    """The number of edges.

    Guarantees:
        the number of edges moves by at most its proved distance
    """

    plan: BoundedGraph

    def __post_init__(self) -> None:
        require_unit(self.plan, node=False)

    def distance(self, norm: Norm) -> Distance:
        """One, in L1 and L2."""
        return moved(self.plan, norm, l1=1, l2=1)

    def exact(self, opened: Opened) -> list[int]:
        """The exact number."""
        return [len(opened.edges(self.plan).pairs)]
