# SPDX-License-Identifier: Apache-2.0
"""The recipe ``KMeans``: noisy rounds compress the rows into weighted points, which are clustered
at no cost.

Each of three rounds releases, for each of its centers, the number of rows and the sum of their
offsets. The first round has 8 centers per cluster that fill the box, the second 4 per cluster found
from the first, the third 2. Offsets are clipped near the center, so later rounds are more exact.
The final weighted points are merged into clusters at no cost.
"""

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato.errors import WrongUse, shown
from sfumato.learning.cluster_sums import ClusterSums
from sfumato.learning.clusters import Clusters
from sfumato.learning.coreset import grouped, nearest_other, seeds, squares
from sfumato.learning.examples_of import Examples
from sfumato.learning.features import Floats
from sfumato.learning.points import STEPS, Box, bounds
from sfumato.learning.recipe import Asked, OneRelease, Planned, Recipe
from sfumato.learning.releases import Releases, norm_of
from sfumato.metadata.dataset import Dataset
from sfumato.noise import Integers
from sfumato.plan.rows import BoundedRows
from sfumato.plan.show import form
from sfumato.privacy.distance import Norm
from sfumato.privacy.event import Event
from sfumato.query.cost import Cost
from sfumato.query.curator import Curator

_MOST_CLUSTERS = 1000
# Centers a cluster in each round, and the least number of seeds.
_SEEDS, _LATER, _FEWEST = 8, (4, 2), 32
# Offsets are cut at this share of the distance to the nearest other center.
_SEED_REACH, _REACH, _LEAST_REACH = 1.0, 0.5, 1 / 64
# A center with fewer rows than so many standard deviations of the noise is dropped.
_CLEAR = 2.0


@dataclass(frozen=True, slots=True)
class KMeans(Recipe[Clusters]):
    """k-means with ``clusters`` centers and their noisy sizes; there is no label.

    Each column is scaled to -1 to 1 between its declared bounds. The cost is a pure epsilon, a rho,
    or an epsilon with a delta.

    >>> KMeans(8).clusters
    8
    """

    clusters: int

    def __post_init__(self) -> None:
        if type(self.clusters) is not int or not 1 <= self.clusters <= _MOST_CLUSTERS:
            raise WrongUse(
                f"clusters={shown(self.clusters)}.", allowed="a whole number from 1 to 1,000"
            )

    def task(
        self,
        examples: Examples,
        asked: Asked,
        orders: Collection[Fraction],
    ) -> "ClusterRounds":
        """Returns the task that finds private cluster centers in three rounds of noisy sums;
        nothing is charged.

        Raises:
            WrongUse: a label, a column that is no number.
        """
        examples.require_unlabelled("KMeans")
        ends = [bounds(each.name, each.type) for each in examples.coded]
        box = Box(tuple(low for low, _ in ends), tuple(high for _, high in ends))
        first = max(_SEEDS * self.clusters, _FEWEST)
        counts = (first, *(times * self.clusters for times in _LATER))
        read = Reading(examples.plan, examples.places, box, norm_of(asked))
        distance = read.sums(seeds(first, box.width), _SEED_REACH).distance(read.norm)
        return ClusterRounds(read, counts, Releases.of(asked, distance, len(counts), orders))

    def planned(
        self,
        examples: Examples,
        asked: Asked,
        orders: Collection[Fraction],
    ) -> Planned[Clusters]:
        """Returns the planned fit of k-means: one task with three noisy releases."""
        task = self.task(examples, asked, orders)

        def made(body: bytes, cost: Cost, charge: str) -> Clusters:
            centers, sizes = task.merged(body, self.clusters)
            return Clusters(examples.columns, task.read.box, centers, sizes, cost, charge)

        return OneRelease(task, max(task.cells), task.noise, made, len(task.counts))


@dataclass(frozen=True, slots=True)
class Reading:
    """The rows, box and norm that all rounds share."""

    plan: BoundedRows
    places: tuple[int, ...]
    box: Box
    norm: Norm

    def sums(
        self,
        centers: Floats,
        share: float,
    ) -> ClusterSums:
        """Returns the statistic for some centers.

        Offsets are clipped at ``share`` times the distance of a center from the nearest other one.
        """
        reach = np.clip(share * nearest_other(centers), _LEAST_REACH, 1)
        steps = np.rint(np.clip(centers, -1, 1) * STEPS).astype(np.int64)
        units = np.rint(reach * STEPS).astype(np.int64)
        return ClusterSums(self.plan, self.places, self.box, steps, units, self.norm)


@dataclass(frozen=True, slots=True)
class ClusterRounds:
    """The task of the three rounds; ``counts`` are their numbers of centers.

    The number of centers of a round does not depend on what was released: if too few are found they
    are repeated, and rows are assigned to the first of equal centers.
    """

    read: Reading
    counts: tuple[int, ...]
    releases: Releases

    kind: ClassVar[str] = "training"
    line: ClassVar[str] = "k-means"

    @property
    def form(self) -> str:
        """The canonical form of the plan, the box and the rounds."""
        return form(self)

    @property
    def event(self) -> Event:
        """The event of all rounds."""
        return self.releases.event

    @property
    def cells(self) -> tuple[int, ...]:
        """The number of integers of each round."""
        return tuple(count * (1 + self.read.box.width) for count in self.counts)

    @property
    def size(self) -> int:
        """The exact number of bytes of the answer: the last weighted points."""
        return 8 * self.counts[-1] * (1 + self.read.box.width)

    @property
    def noise(self) -> float:
        """The standard deviation of the number of rows of a center."""
        return self.releases.deviation / STEPS

    def ready(self, declarations: Dataset) -> BoundedRows:
        """The bounded rows."""
        return self.read.plan

    def run(self, curator: Curator) -> bytes:
        """Returns the weighted points of the last round, as little-endian floats."""
        centers, share = seeds(self.counts[0], self.read.box.width), _SEED_REACH
        later = (*self.counts[1:], 0)
        for following in later:
            sums = self.read.sums(centers, share)
            released = curator.measure(sums, self.releases.mechanism)
            weights, points = self._points(sums, released)
            if following:
                centers, share = self._centers(weights, points, following), _REACH
        return np.column_stack([weights, points]).astype("<f8").tobytes()

    def merged(
        self,
        body: bytes,
        clusters: int,
    ) -> tuple[Floats, Floats]:
        """Clusters the weighted points of an answer; returns centers and sizes, largest first."""
        numbers = np.frombuffer(body, "<f8").reshape(self.counts[-1], -1)
        weights, points = numbers[:, 0], numbers[:, 1:]
        centers = self._centers(weights, points, clusters)
        nearest = squares(points, centers).argmin(axis=1)
        sizes = np.bincount(nearest, weights=weights, minlength=clusters).astype(np.float64)
        order = np.argsort(-sizes, kind="stable")
        return centers[order], sizes[order]

    def _points(
        self,
        sums: ClusterSums,
        released: Integers,
    ) -> tuple[Floats, Floats]:
        """Returns the noisy number of rows of each center, and their noisy mean."""
        numbers = released.astype(np.float64).reshape(len(sums.reach), -1) / STEPS
        weights = np.maximum(numbers[:, 0], 0)
        # towards the center where there are no more rows than noise
        damped = np.maximum(weights, _CLEAR * self.noise + 1)[:, np.newaxis]
        offsets = np.clip(numbers[:, 1:] / damped, -1, 1) * sums.reach[:, np.newaxis]
        return weights, np.clip((sums.centers + offsets) / STEPS, -1, 1)

    def _centers(
        self,
        weights: Floats,
        points: Floats,
        count: int,
    ) -> Floats:
        """Returns ``count`` centers for the next round, from the points whose weight exceeds the
        noise.
        """
        ranked = np.argsort(-weights, kind="stable")
        clear = max(int((weights > _CLEAR * self.noise).sum()), min(count, len(points)))
        kept = ranked[:clear]
        found = grouped(points[kept], np.maximum(weights[kept], 1), count)
        return np.resize(found, (count, points.shape[1]))
