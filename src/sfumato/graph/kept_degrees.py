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
    """Cumulative counts of nodes by degree, in a graph whose nodes keep at most ``limit`` edges
    each.

    ``scale`` is how often the limit and one go into ``reach``: what is released then moves by at
    most ``reach``, whichever limit was selected.

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
        """The factor by which each number is multiplied."""
        return self.reach // (self.limit + 1)

    @property
    def moves(self) -> dict[Norm, int]:
        """How far the numbers of neighbouring graphs can be apart: the reach in L1, its square in
        L2.
        """
        return {Norm.L1: self.reach, Norm.L2: self.reach**2}

    def exact(self, opened: Opened) -> Integers:
        """Returns the numbers without noise, times ``scale``."""
        kept = degrees_kept(opened, self.plan, self.limit)
        counted = np.bincount(kept, minlength=self.limit + 1)
        return np.cumsum(counted).astype(np.int64) * self.scale
