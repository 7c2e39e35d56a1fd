# SPDX-License-Identifier: Apache-2.0
"""The number of nodes by kept degree, if a node is the unit. Proof: kept_degrees.proof.md."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sfumato.graph.kept_edges import degrees_kept
from sfumato.graph.moved import OfGraph
from sfumato.noise import Integers
from sfumato.privacy.distance import Norm
from sfumato.query.statistic import Opened


@dataclass(frozen=True, slots=True)
class KeptDegrees(OfGraph[Integers]):
    """The statistic of cumulative counts of nodes by degree, after edges are dropped so that no
    node has more than ``limit``; the privacy unit is a node.

    The counts are multiplied by ``scale``, the quotient of ``reach`` and ``limit`` + 1 rounded
    down, so that their L1 sensitivity is at most ``reach`` at every limit.

    Guarantees:
        nodes by kept degree move by at most their proved distance

    Raises:
        InvalidDeclaration: a limit below 1, or an edge is the unit.
    """

    limit: int
    reach: int

    of_nodes: ClassVar[bool] = True

    @property
    def scale(self) -> int:
        """The public factor by which each count of nodes is multiplied."""
        return self.reach // (self.limit + 1)

    @property
    def moves(self) -> dict[Norm, int]:
        """The sensitivity to one node more or less: ``reach`` in L1, its square in squared L2."""
        return {Norm.L1: self.reach, Norm.L2: self.reach**2}

    def exact(self, opened: Opened) -> Integers:
        """Returns the exact cumulative counts for degrees 0 to ``limit``, each times ``scale``."""
        kept = degrees_kept(opened, self.plan, self.limit)
        counted = np.bincount(kept, minlength=self.limit + 1)
        return np.cumsum(counted).astype(np.int64) * self.scale
