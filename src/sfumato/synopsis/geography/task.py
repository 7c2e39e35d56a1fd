# SPDX-License-Identifier: Apache-2.0
"""The tables of all levels of a census as one task: one charge, one stored answer."""

import hashlib
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato.errors import WrongUse
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.metadata.dataset import Dataset
from sfumato.noise import DiscreteGaussian, Integers
from sfumato.plan.cube import BoundedCube
from sfumato.plan.show import form
from sfumato.privacy.event import Composed, Event
from sfumato.query.allowance import Allowance
from sfumato.query.curator import Curator
from sfumato.synopsis.geography.design import Design
from sfumato.synopsis.geography.layer import CensusLayer
from sfumato.synopsis.geography.population import Population, population
from sfumato.synopsis.geography.spine import Spine
from sfumato.synopsis.geography.tree import Floats

# The largest standard deviation of the noise; with more, a noisy integer might not fit 64 bits.
_WIDEST = 2**56
_LEAST_VARIANCE = 1e-12


@dataclass(frozen=True, eq=False)
class CensusTask:
    """Measures each table of a design that has a share of the cost, once.

    Its answer is the noisy integers of these tables, one after the other, as little-endian int64.

    Raises:
        WrongUse: shares that do not add up to 1, or noise beyond 2^56 steps.
    """

    population: Population
    spine: Spine
    design: Design
    shares: tuple[Fraction, ...]
    allowance: Allowance
    recodes: tuple[tuple[str, str], ...] = ()

    kind: ClassVar[str] = "census"

    def __post_init__(self) -> None:
        if sum(self.shares) != 1 or min(self.shares) < 0:
            raise WrongUse("Shares of the cost that do not add up to 1.")
        if max(self.variances) > _WIDEST**2:
            raise WrongUse(
                "Noise beyond 2^56 steps.",
                remedy="Measure it at a higher cost.",
            )

    @property
    def measured(self) -> tuple[int, ...]:
        """The tables that are measured, by their numbers in the design."""
        return tuple(place for place, share in enumerate(self.shares) if share)

    @property
    def statistics(self) -> tuple[CensusLayer, ...]:
        """The measured tables as statistics of the bounded cube."""
        layers = []
        for place in self.measured:
            level, axes = self.design.tables[place]
            areas = self.population.areas
            inside = areas >= 0
            placed = np.full(len(areas), -1, np.int64)
            placed[inside] = self.spine.tree.ancestors(level)[areas[inside]]
            layers.append(CensusLayer(self.population.cube, placed, self._places, axes))
        return tuple(layers)

    @property
    def mechanisms(self) -> tuple[AdditiveMechanism, ...]:
        """The noise of each measured table, for its share of the cost."""
        distance = self._whole.distance(self.allowance.norm)
        found = []
        for place in self.measured:
            cost = self.shares[place] * self.allowance.amount
            found.append(self.allowance.noise(distance, cost))
        return tuple(found)

    @property
    def _whole(self) -> CensusLayer:
        """The totals of the lowest level; every table has its distance."""
        return CensusLayer(
            self.population.cube,
            self.population.areas,
            self._places,
            (),
        )

    @property
    def _places(self) -> tuple[tuple[int, ...], ...]:
        """The cells of each axis that are counted."""
        return tuple(axis.places for axis in self.population.axes)

    @property
    def line(self) -> str:
        """A line of text: the table, the levels and the axes."""
        levels = " > ".join(self.spine.levels)
        axes = ", ".join(axis.name for axis in self.population.axes)
        line = f"{self.population.table} down {levels} by {axes or 'nothing'}"
        return "".join(sign if sign.isprintable() else "?" for sign in line)[:200]

    @property
    def form(self) -> str:
        """The canonical text of the task, for its cache key: the cube, the spine, and what is
        measured of each level.
        """
        tables = [[level, list(axes)] for level, axes in self.design.tables]
        placed = np.ascontiguousarray(self.population.areas, "<i8").tobytes()
        geography = [
            self.spine.tree.digest,
            hashlib.sha256(placed).hexdigest(),
        ]
        measured = [list(map(list, self._places)), tables, list(self.shares)]
        return form(
            [
                self.population.table,
                self.population.cube,
                geography,
                measured,
            ]
        )

    @property
    def event(self) -> Event:
        """The privacy event of all measured tables."""
        distance = self._whole.distance(self.allowance.norm)
        return Composed(tuple(mechanism.event(distance) for mechanism in self.mechanisms))

    @property
    def cells(self) -> tuple[int, ...]:
        """The number of integers of each measured table."""
        found = []
        for place in self.measured:
            level, axes = self.design.tables[place]
            found.append(self.design.tree.sizes[level] * self.design.cells(axes))
        return tuple(found)

    @property
    def size(self) -> int:
        """The exact number of bytes of the answer."""
        return 8 * sum(self.cells)

    def ready(self, declarations: Dataset) -> BoundedCube:
        """Returns the plan of the table (WrongUse if it was planned for other declarations)."""
        names = [axis.name for axis in self.population.axes]
        table = self.population.table
        again = population(declarations, table, self.spine, names, dict(self.recodes))
        if again.cube != self.population.cube:
            raise WrongUse(
                "A census that was planned for other declarations.",
                remedy="Plan it anew.",
            )
        return self.population.cube

    def run(self, curator: Curator) -> bytes:
        """Returns the noisy integers of each measured table, as bytes."""
        noisy = []
        for statistic, mechanism in zip(self.statistics, self.mechanisms, strict=True):
            noisy.append(curator.measure(statistic, mechanism).astype("<i8").tobytes())
        return b"".join(noisy)

    def noisy(self, body: bytes) -> list[Floats | None]:
        """Decodes a stored answer: the noisy tables, in rows, shaped by area and axes.

        None stands for a table that is not measured. The stored integers are in steps; a row that
        counts fully has ``refinement`` of them.
        """
        integers: Integers = np.frombuffer(body, "<i8")
        tables: list[Floats | None] = [None] * len(self.shares)
        start = 0
        for place, size in zip(self.measured, self.cells, strict=True):
            level, axes = self.design.tables[place]
            shape = [self.design.sizes[axis] for axis in axes]
            table = integers[start : start + size].reshape(self.design.tree.sizes[level], *shape)
            tables[place] = table / self.population.cube.refinement
            start += size
        return tables

    @property
    def variances(self) -> list[float]:
        """The variance of the noise of each measured table, in squared steps; rounded up.

        Of Gaussian noise it is the parameter, which bounds its tails too.
        """
        variances = []
        for mechanism in self.mechanisms:
            variance = float(mechanism.noise.variance.upper)
            if isinstance(mechanism.noise, DiscreteGaussian):
                variance = float(mechanism.noise.sigma_squared)
            variances.append(max(variance, _LEAST_VARIANCE))
        return variances

    @property
    def precisions(self) -> tuple[float, ...]:
        """The precision of each table of the design: 1 / variance, in rows; 0 if it is not
        measured.
        """
        found = [0.0] * len(self.shares)
        for place, variance in zip(self.measured, self.variances, strict=True):
            steps = self.population.cube.refinement
            found[place] = math.nextafter(steps**2 / variance, 0.0)
        return tuple(found)
