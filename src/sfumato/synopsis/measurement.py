# SPDX-License-Identifier: Apache-2.0
"""The layers of a strategy over one axis of a table, as one task."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sfumato.errors import WrongUse
from sfumato.exact.rational import decimal_text
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.metadata.dataset import Dataset
from sfumato.plan.cube import BoundedCube
from sfumato.plan.show import form
from sfumato.privacy.distance import Norm
from sfumato.privacy.event import Composed, Event
from sfumato.query.allowance import Allowance
from sfumato.query.curator import Curator
from sfumato.query.marginals import marginal_cube
from sfumato.synopsis.dense import DenseLayer
from sfumato.synopsis.layer_statistic import AxisLayer
from sfumato.synopsis.layers import Layer
from sfumato.synopsis.strategy import Strategy

# The largest standard deviation of the noise; with more, a noisy integer might not fit 64 bits.
_WIDEST = 2**56
_LEAST_VARIANCE = 1e-12


@dataclass(frozen=True, slots=True)
class LayersTask:
    """The charged task that measures each layer of a column's strategy once, with its share of the
    cost.

    Its answer is the noisy integers of all layers, one after the other, as little-endian int64.

    Raises:
        WrongUse: noise beyond 2^56 steps.
    """

    table: str
    axis: str
    plan: BoundedCube
    strategy: Strategy
    allowance: Allowance

    kind: ClassVar[str] = "synopsis"

    def __post_init__(self) -> None:
        widest = max(mechanism.noise.variance.upper for mechanism in self.mechanisms)
        if widest > _WIDEST**2:
            raise WrongUse("Noise beyond 2^56 steps.", remedy="Measure it at a higher cost.")

    @property
    def statistics(self) -> tuple[AxisLayer, ...]:
        """The measured layers, each as a statistic of the bounded table."""
        layers = self.strategy.stack.layers
        return tuple(AxisLayer(self.plan, self.axis, layer) for layer in layers)

    @property
    def mechanisms(self) -> tuple[AdditiveMechanism, ...]:
        """The noise of each layer, for its share of the cost."""
        norm = self.allowance.norm
        found = []
        for statistic, share in zip(self.statistics, self.strategy.shares, strict=True):
            cost = share * self.allowance.amount
            found.append(self.allowance.noise(statistic.distance(norm), cost))
        return tuple(found)

    @property
    def line(self) -> str:
        """A line of text: the table, the axis and the strategy."""
        return f"{self.table} by {self.axis}: {self.strategy.name}"

    @property
    def form(self) -> str:
        """The canonical text of the plan and of the layers, for the cache key."""
        layers = [_named(layer) for layer in self.strategy.stack.layers]
        shares = list(self.strategy.shares)
        return form([self.table, self.axis, self.plan, layers, shares], every_value(self.plan))

    @property
    def event(self) -> Event:
        """The privacy event of all layers."""
        norm = self.allowance.norm
        events = []
        for statistic, mechanism in zip(self.statistics, self.mechanisms, strict=True):
            events.append(mechanism.event(statistic.distance(norm)))
        return Composed(tuple(events))

    @property
    def cells(self) -> tuple[int, ...]:
        """The number of integers of each layer."""
        stack = self.strategy.stack
        return tuple(layer.size(stack.cells) for layer in stack.layers)

    @property
    def size(self) -> int:
        """The exact number of bytes of the answer."""
        return 8 * sum(self.cells)

    def ready(self, declarations: Dataset) -> BoundedCube:
        """Returns the plan of the table (WrongUse if it was planned for other declarations)."""
        if marginal_cube(declarations, self.table, [[self.axis]]) != self.plan:
            raise WrongUse(
                "A synopsis that was planned for other declarations.", remedy="Plan it anew."
            )
        return self.plan

    def run(self, curator: Curator) -> bytes:
        """Returns the noisy integers of each layer, as bytes."""
        noisy = []
        for statistic, mechanism in zip(self.statistics, self.mechanisms, strict=True):
            noisy.append(curator.measure(statistic, mechanism))
        return b"".join(integers.astype("<i8").tobytes() for integers in noisy)

    def noisy(self, body: bytes) -> list["np.ndarray[tuple[int], np.dtype[np.int64]]"]:
        """Decodes a stored answer: the noisy integers of each layer."""
        ends = np.cumsum(self.cells)
        return list(np.split(np.frombuffer(body, "<i8"), ends[:-1]))

    @property
    def precisions(self) -> list[float]:
        """The precision of each layer's noise: 1 / variance, in squared steps; rounded down."""
        found = []
        for mechanism in self.mechanisms:
            # with next to no noise, the variance may be 0
            variance = max(float(mechanism.noise.variance.upper), _LEAST_VARIANCE)
            found.append(math.nextafter(1 / variance, 0.0))
        return found


def cost_text(allowed: Allowance) -> str:
    """Returns the cost of a plan (epsilon, or rho with delta) as text.

    >>> from sfumato.query.allowance import allowance
    >>> cost_text(allowance(rho="0.02"))
    'at rho 0.02; nothing was charged'
    """
    kind = "epsilon" if allowed.norm is Norm.L1 else "rho"
    return f"at {kind} {decimal_text(allowed.amount)}; nothing was charged"


def every_value(plan: BoundedCube) -> dict[int, str]:
    """Returns a short text for the codes of axes that have every code of their type, by the codes'
    ``id``.

    ``form`` uses it, since listing a large axis would be most of a plan's form.
    """
    return {id(key.codes): '"every value"' for key in plan.cube.axes}


def _named(layer: Layer | DenseLayer) -> list[int | bool | str]:
    """What tells a layer from others."""
    if isinstance(layer, DenseLayer):
        return [layer.digest]
    return [layer.width, layer.halves]
