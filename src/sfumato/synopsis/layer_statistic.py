# SPDX-License-Identifier: Apache-2.0
"""A layer of one axis of a bounded cube, as a statistic. Proof: layer_statistic.proof.md.

``LayersTask`` measures these statistics.
"""

from dataclasses import dataclass, replace

from sfumato.errors import InvalidDeclaration
from sfumato.noise import Integers
from sfumato.plan.cube import BoundedCube
from sfumato.privacy.distance import Distance, Norm
from sfumato.query.statistic import BoundedStatistic, Opened
from sfumato.synopsis.dense import DenseLayer
from sfumato.synopsis.layers import Layer


@dataclass(frozen=True, slots=True)
class AxisLayer(BoundedStatistic[Integers]):
    """The statistic of one layer of a column: an integer for each block of declared values; missing
    values do not count.

    Guarantees:
        a layer moves by at most its proved distance
    """

    plan: BoundedCube
    axis: str
    layer: Layer | DenseLayer

    def distance(self, norm: Norm) -> Distance:
        """Returns the sensitivity of the layer's integers: the L1 norm, or the squared L2 norm.

        Raises:
            InvalidDeclaration: nothing is proved in another norm.
        """
        if isinstance(self.layer, DenseLayer):
            if norm is not Norm.L1:
                raise InvalidDeclaration(f"A dense layer in {norm.value}.", allowed="L1")
            return replace(self.plan.l1, value=self.plan.l1.value * self.layer.norm)
        if norm is Norm.L1:
            return self.plan.l1
        if norm is not Norm.L2:
            raise InvalidDeclaration(f"A layer in {norm.value}.", allowed="L1, L2")
        if not self.layer.halves:
            return self.plan.l2
        return replace(self.plan.l1, norm=norm, value=self.plan.l1.value**2)

    def exact(self, opened: Opened) -> Integers:
        """Returns the integers of the layer without noise."""
        cells = opened.marginal(self.plan, (self.axis,)).ravel()
        # the last cell is that of missing values
        return self.layer.apply(cells[:-1])
