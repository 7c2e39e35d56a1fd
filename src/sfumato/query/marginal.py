# SPDX-License-Identifier: Apache-2.0
"""One marginal of a bounded cube, as a bounded statistic. Proof: marginal.proof.md.

``marginals`` hands it to the curator.
"""

from dataclasses import dataclass, replace

from sfumato.noise import Integers
from sfumato.plan.cube import BoundedCube
from sfumato.privacy.distance import Distance, Norm
from sfumato.query.statistic import BoundedStatistic, Opened


@dataclass(frozen=True, slots=True)
class Marginal(BoundedStatistic[Integers]):
    """The statistic of one marginal of a bounded cube: the total weight of the rows in each cell of
    a clique (a set of axes).

    The cells are in the order of the axes.

    Guarantees:
        a marginal moves by at most its proved distance
    """

    plan: BoundedCube
    clique: tuple[str, ...]

    def distance(self, norm: Norm) -> Distance:
        """Returns the proved sensitivity, the same for every clique. A bound in L1 is also one in
        Linf.
        """
        match norm:
            case Norm.L1:
                return self.plan.l1
            case Norm.L2:
                return self.plan.l2
            case Norm.LINF:
                return replace(self.plan.l1, norm=norm)

    def exact(self, opened: Opened) -> Integers:
        """Returns the exact weights of all cells as a flat array."""
        cells: Integers = opened.marginal(self.plan, self.clique).ravel()
        return cells
