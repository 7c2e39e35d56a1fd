# SPDX-License-Identifier: Apache-2.0
"""The layers of a layout over several columns of a table, as one task."""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import ClassVar

import numpy as np

from sfumato.errors import WrongUse
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.metadata.dataset import Dataset
from sfumato.noise import Integers
from sfumato.plan.cube import BoundedCube
from sfumato.plan.show import form
from sfumato.privacy.event import Composed, Event, Repeated
from sfumato.query.allowance import Allowance
from sfumato.query.curator import Curator
from sfumato.query.marginals import marginal_cube
from sfumato.synopsis.block_sums import BlockSums
from sfumato.synopsis.layout import Layout
from sfumato.synopsis.measurement import every_value

# The largest standard deviation of the noise; with more, a noisy integer might not fit 64 bits.
_WIDEST = 2**56
_LEAST_VARIANCE = 1e-12
# The most integers of all layers together, and the most layers.
MAX_CELLS, MAX_LAYERS = 5_000_000, 10_000


@dataclass(frozen=True)
class GridTask:
    """The charged task that measures each layer of a layout over several columns once, with its
    share of the cost.

    Its answer is the noisy integers of all layers, one after the other, as little-endian int64.

    Raises:
        WrongUse: more than 5,000,000 integers or 10,000 layers, or noise beyond 2^56 steps.
    """

    table: str
    plan: BoundedCube
    layout: Layout
    allowance: Allowance

    kind: ClassVar[str] = "synopsis_of_columns"

    def __post_init__(self) -> None:
        if not fits(self.layout):
            raise WrongUse(
                f"Layers of {sum(self.cells):,} integers in {len(self.cells):,} tables "
                f"({self.layout.name}).",
                allowed=f"at most {MAX_CELLS:,} in {MAX_LAYERS:,}",
                remedy="Ask for smaller tables, or for another strategy of the plan.",
            )
        widest = max(mechanism.noise.variance.upper for mechanism in self.mechanisms)
        if widest > _WIDEST**2:
            raise WrongUse("Noise beyond 2^56 steps.", remedy="Measure it at a higher cost.")

    @cached_property
    def statistics(self) -> tuple[BlockSums, ...]:
        """The measured layers, each as a statistic of the bounded table."""
        grid, names = self.layout.grid, self.plan.cube.names
        found = []
        for place in grid.layers:
            widths = [(names[axis], grid.chains[axis].widths[level]) for axis, level in place]
            found.append(BlockSums(self.plan, tuple(widths)))
        return tuple(found)

    @cached_property
    def mechanisms(self) -> tuple[AdditiveMechanism, ...]:
        """The noise of each layer, for its share of the cost."""
        distance = BlockSums(self.plan, ()).distance(self.allowance.norm)
        bought = {}
        for share in set(self.layout.shares):
            bought[share] = self.allowance.noise(distance, share * self.allowance.amount)
        return tuple(bought[share] for share in self.layout.shares)

    @property
    def line(self) -> str:
        """A line of text: the table, the number of layers and the strategy."""
        return f"{self.table}: {len(self.cells)} layers, {self.layout.name}"

    @property
    def form(self) -> str:
        """The canonical text of the plan and of the layers, for the cache key."""
        layers = [list(statistic.blocks) for statistic in self.statistics]
        named = [self.table, self.plan, layers, list(self.layout.shares)]
        return form(named, every_value(self.plan))

    @property
    def event(self) -> Event:
        """The privacy event of all layers; equal events that follow one another are repeated."""
        distance = BlockSums(self.plan, ()).distance(self.allowance.norm)
        events: list[Event] = []
        for mechanism, equal in groupby(self.mechanisms):
            times = len(list(equal))
            event = mechanism.event(distance)
            events.append(event if times == 1 else Repeated(event, times))
        return Composed(tuple(events))

    @cached_property
    def cells(self) -> tuple[int, ...]:
        """The number of integers of each layer."""
        return _cells(self.layout)

    @property
    def size(self) -> int:
        """The exact number of bytes of the answer."""
        return 8 * sum(self.cells)

    def ready(self, declarations: Dataset) -> BoundedCube:
        """Returns the plan of the table (WrongUse if it was planned for other declarations)."""
        if marginal_cube(declarations, self.table, [self.plan.cube.names]) != self.plan:
            raise WrongUse(
                "A synopsis that was planned for other declarations.", remedy="Plan it anew."
            )
        return self.plan

    def run(self, curator: Curator) -> bytes:
        """Returns the noisy integers of each layer, as bytes."""
        noisy = []
        for statistic, mechanism in zip(self.statistics, self.mechanisms, strict=True):
            noisy.append(curator.measure(statistic, mechanism).astype("<i8").tobytes())
        return b"".join(noisy)

    def noisy(self, body: bytes) -> list[Integers]:
        """Decodes a stored answer: the noisy integers of each layer."""
        ends = np.cumsum(self.cells)
        return list(np.split(np.frombuffer(body, "<i8"), ends[:-1]))

    @cached_property
    def precisions(self) -> list[float]:
        """The precision of each layer's noise: 1 / variance, in squared steps; rounded down."""
        found = {}
        for mechanism in set(self.mechanisms):
            # with next to no noise, the variance may be 0
            variance = max(float(mechanism.noise.variance.upper), _LEAST_VARIANCE)
            found[mechanism] = math.nextafter(1 / variance, 0.0)
        return [found[mechanism] for mechanism in self.mechanisms]


def fits(layout: Layout) -> bool:
    """Whether a layout is small enough to be measured."""
    cells = _cells(layout)
    return sum(cells) <= MAX_CELLS and len(cells) <= MAX_LAYERS


def _cells(layout: Layout) -> tuple[int, ...]:
    """Returns the number of integers of each layer."""
    return tuple(math.prod(layout.grid.shape(place)) for place in layout.grid.layers)
