# SPDX-License-Identifier: Apache-2.0
"""The number of nodes by kept degree, if a node is the unit. Proof: kept_degrees.proof.md."""

from dataclasses import dataclass

import numpy as np

from sfumato.graph.kept_edges import degrees_kept, require_limit
from sfumato.graph.moved import moved, require_unit
from sfumato.noise import Integers
from sfumato.plan.graph import BoundedGraph
from sfumato.privacy.distance import Distance, Norm
from sfumato.query.statistic import BoundedStatistic, Opened


@dataclass(frozen=True, slots=True)
class KeptDegrees(BoundedStatistic[Integers]):
    """The number of nodes of kept degree <= i, for i = 0 to ``limit``, each times ``scale``.

    ``scale`` is how often the limit and one go into ``reach``: what is released then moves by at
    most ``reach``, whichever limit was selected.

    Guarantees:
        nodes by kept degree move by at most their proved distance

    Raises:
        InvalidDeclaration: a limit outside 1 to 2^20, or not below ``reach``; an edge is the unit.
    """

    plan: BoundedGraph
    limit: int
    reach: int

    def __post_init__(self) -> None:
        require_unit(self.plan, node=True)
        require_limit(self.limit, self.reach - 1)

    @property
    def scale(self) -> int:
        """By what each number is multiplied."""
        return self.reach // (self.limit + 1)

    def distance(self, norm: Norm) -> Distance:
        """The reach in L1; squared in L2."""
        return moved(self.plan, norm, l1=self.reach, l2=self.reach**2)

    def exact(self, opened: Opened) -> Integers:
        """The exact numbers, times the scale."""
        kept = degrees_kept(opened, self.plan, self.limit)
        at_most: Integers = np.cumsum(np.bincount(kept, minlength=self.limit + 1)).astype(np.int64)
        return at_most * self.scale
