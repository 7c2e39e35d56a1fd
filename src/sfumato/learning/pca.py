# SPDX-License-Identifier: Apache-2.0
"""The recipe ``PCA``: releases a noisy mean, a radius, and a matrix of products of offsets.

``Whitening`` of networks uses the same task (``Spread``).

Source: Dwork, Talwar, Thakurta, Zhang, "Analyze Gauss" (STOC 2014), here around a released mean and
with offsets clipped at a released radius. Squares are scaled down relative to products of two
columns, which halves the variance of the noise of the products (scatter.proof.md).
"""

import math
from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Generic, TypeVar

import numpy as np

from sfumato.errors import WrongUse, shown
from sfumato.exact.rounding import sqrt_up
from sfumato.learning.budget import Budgeted
from sfumato.learning.cluster_sums import ClusterSums
from sfumato.learning.components import Components
from sfumato.learning.examples_of import Examples
from sfumato.learning.features import Floats
from sfumato.learning.order import FullBatch
from sfumato.learning.points import STEPS, Box, Boxed, bounds
from sfumato.learning.recipe import Asked, OneRelease, Planned, Recipe
from sfumato.learning.scatter import COARSEST, FINEST, PRODUCT, SQUARE, RadiusCounts, Scatter, radii
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.metadata.dataset import Dataset
from sfumato.noise import Integers, RoundedGaussian
from sfumato.plan.rows import BoundedRows
from sfumato.plan.show import form
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import Composed, Event
from sfumato.query.cost import Cost
from sfumato.query.curator import Curator

MOST_NUMBERS = 1024
# The shares of the cost for the mean, the radius and the products.
_SHARES = (Fraction(1, 16), Fraction(1, 32), Fraction(29, 32))
# The share of the rows that lie within the radius; the others are cut.
_WITHIN = 0.7
# The widest noise that is drawn.
_WIDEST = 1 << 28


@dataclass(frozen=True, slots=True)
class PCA(Recipe[Components]):
    """Principal component analysis: the ``components`` directions along which rows vary most.

    Each column is scaled to -1 to 1 between its declared bounds. The cost is a rho, or an epsilon
    with a delta. There is no label. Another number of components of the same rows at the same cost
    costs no budget.

    >>> PCA(10).components
    10
    """

    components: int

    def __post_init__(self) -> None:
        if type(self.components) is not int or not 1 <= self.components <= MOST_NUMBERS:
            raise WrongUse(
                f"components={shown(self.components)}.", allowed="a whole number from 1 to 1,024"
            )

    def task(
        self,
        examples: Examples,
        asked: Asked,
        orders: Collection[Fraction],
    ) -> "Spread[Box]":
        """Returns the task that releases a noisy mean, radius and covariance of the rows; nothing
        is charged.

        Raises:
            WrongUse: a label, a column that is no number, fewer numbers than components.
        """
        examples.require_unlabelled("PCA")
        ends = [bounds(each.name, each.type) for each in examples.coded]
        if not self.components <= len(ends) <= MOST_NUMBERS:
            raise WrongUse(
                f"{self.components} components of {len(ends):,} numbers.",
                allowed="at most as many as numbers, which are at most 1,024",
            )
        box = Box(tuple(low for low, _ in ends), tuple(high for _, high in ends))
        return spread(examples, box, asked.budget, orders)

    def planned(
        self,
        examples: Examples,
        asked: Asked,
        orders: Collection[Fraction],
    ) -> Planned[Components]:
        """Returns the planned fit of PCA: one task with three noisy releases (mean, radius and
        products of offsets).
        """
        task = self.task(examples, asked, orders)

        def made(body: bytes, cost: Cost, charge: str) -> Components:
            mean, matrix = task.covariance(body)
            axes, variances = directions(matrix, self.components)
            total = max(float(np.trace(matrix)), float(variances.sum()))
            return Components(
                examples.columns, task.box, mean, axes, variances / max(total, 1e-300), cost, charge
            )

        return OneRelease(task, task.cells[-1], task.noise, made, len(task.cells))


B = TypeVar("B", bound=Boxed)


@dataclass(frozen=True, slots=True)
class Spread(Generic[B]):
    """The task of a ``PCA`` fit, with three noisy releases: the mean of the rows, a radius, and the
    products of offsets.

    The radius is one within which most rows lie; products are of rows' offsets from the mean.
    """

    plan: BoundedRows
    places: tuple[int, ...]
    box: B
    multiplier: Fraction
    budget: Budgeted
    length: int

    kind: ClassVar[str] = "training"
    line: ClassVar[str] = "principal components"

    @property
    def form(self) -> str:
        """A canonical string of all that the answer depends on (the plan and the box), from which
        its cache key is computed.
        """
        return form(self)

    @property
    def distances(self) -> tuple[Distance, Distance, Distance]:
        """The squared L2 sensitivity of each of the three releases."""
        middle = np.zeros(self.box.width, np.int64)
        first = self.sums.distance(Norm.L2)
        second = self.counts(middle).distance(Norm.L2)
        return first, second, self.scatter(middle, self._largest).distance(Norm.L2)

    @property
    def sigmas(self) -> tuple[Fraction, ...]:
        """The standard deviation of the noise of each of the three releases."""
        found = []
        for share, distance in zip(_SHARES, self.distances, strict=True):
            sigma = self.multiplier * sqrt_up(distance.value / share)
            found.append(Fraction(math.ceil(sigma)))
        return tuple(found)

    @property
    def mechanisms(self) -> tuple[AdditiveMechanism, ...]:
        """The noise mechanism of each of the three releases."""
        return tuple(AdditiveMechanism(RoundedGaussian(sigma)) for sigma in self.sigmas)

    @property
    def event(self) -> Event:
        """The privacy event of the three releases together."""
        steps = zip(self.mechanisms, self.distances, strict=True)
        return self.budget.whole(Composed(tuple(each.event(moved) for each, moved in steps)))

    @property
    def cells(self) -> tuple[int, int, int]:
        """The number of noisy integers in each of the three releases."""
        numbers = self.box.width
        return 1 + numbers, len(radii(numbers)), numbers * (numbers + 1) // 2

    @property
    def size(self) -> int:
        """The exact number of bytes of the answer."""
        return 8 * (2 + self.box.width + self.cells[-1])

    @property
    def noise(self) -> float:
        """The standard deviation of the noise in a released product of offsets, relative to the
        square of the radius.
        """
        products = self.mechanisms[-1].noise.variance.upper
        return math.sqrt(products) / (PRODUCT * self._weight * self.length**2)

    def ready(self, declarations: Dataset) -> BoundedRows:
        """Returns the plan of the private rows that the task reads."""
        return self.plan

    @property
    def sums(self) -> ClusterSums:
        """The statistic of the first release: the number of rows and the sum of each column."""
        center, reach = np.zeros((1, self.box.width), np.int64), np.array([STEPS])
        return ClusterSums(self.plan, self.places, self.box, center, reach, Norm.L2)

    def counts(self, center: Integers) -> RadiusCounts:
        """Returns the statistic of the second release: a histogram of the rows' distances from a
        center.
        """
        return RadiusCounts(self.plan, self.places, self.box, center, Norm.L2)

    def scatter(
        self,
        center: Integers,
        radius: int,
    ) -> Scatter:
        """Returns the statistic of the third release: the sums of products of the rows' offsets
        from a center, clipped at a radius.
        """
        return Scatter(self.plan, self.places, self.box, center, radius, self.length)

    @property
    def _largest(self) -> int:
        return int(radii(self.box.width)[-1])

    @property
    def _weight(self) -> int:
        return self.scatter(np.zeros(self.box.width, np.int64), self._largest).weight

    def run(self, curator: Curator) -> bytes:
        """Runs the three releases through a curator. Returns the number of rows, the radius, the
        mean and the products, as bytes (little-endian floats).
        """
        first, second, third = self.mechanisms
        told = curator.measure(self.sums, first).astype(np.float64) / STEPS
        rows = max(float(told[0]), 1.0)
        mean = np.rint(np.clip(told[1:] / rows, -1, 1) * STEPS).astype(np.int64)
        within = np.cumsum(np.maximum(curator.measure(self.counts(mean), second), 0))
        place = int(np.searchsorted(within, _WITHIN * float(within[-1])))
        radius = int(radii(self.box.width)[place])
        products = curator.measure(self.scatter(mean, radius), third).astype(np.float64)
        return np.concatenate([[rows, radius], mean, products]).astype("<f8").tobytes()

    def covariance(self, body: bytes) -> tuple[Floats, Floats]:
        """Reads an answer: the mean and the noisy covariance, in columns scaled to -1 to 1."""
        numbers = np.frombuffer(body, "<f8").astype(np.float64)
        count = self.box.width
        rows, radius = numbers[:2]
        matrix = np.zeros((count, count))
        matrix[np.triu_indices(count)] = numbers[2 + count :] / PRODUCT
        matrix += np.triu(matrix, 1).T
        np.fill_diagonal(matrix, np.diag(matrix) * (PRODUCT / SQUARE))
        unit = radius / (self.length * STEPS)
        return numbers[2 : 2 + count] / STEPS, matrix * (unit**2 / (rows * self._weight))

    def hidden(self, body: bytes) -> float:
        """Returns half the largest variance that noise alone shows along a direction,
        approximately.

        A symmetric d x d matrix of noise with standard deviation s has eigenvalues up to about 2 s
        sqrt(d) (Wigner).
        """
        rows, radius = np.frombuffer(body, "<f8")[:2]
        deviation = self.noise * float(radius) ** 2 / (STEPS**2 * float(rows))
        return deviation * math.sqrt(self.box.width)


def spread(
    examples: Examples,
    box: B,
    budget: Budgeted,
    orders: Collection[Fraction],
) -> Spread[B]:
    """Returns the task that releases the mean, radius and products of private rows, mapped to
    points by ``box``, within a cost limit.

    Raises:
        WrongUse: its noise would be too wide.
    """
    multiplier = budget.multiplier(FullBatch(), 1, orders)
    length = FINEST
    while length >= COARSEST:
        task = Spread(examples.plan, examples.places, box, multiplier, budget, length)
        if max(task.sigmas) <= _WIDEST:
            return task
        length //= 2
    raise WrongUse(
        "The noise of so small a cost is too wide for products.",
        remedy="A larger epsilon or rho, or a smaller max_rows_total.",
    )


def directions(matrix: Floats, count: int) -> tuple[Floats, Floats]:
    """Returns the directions of most variance of a symmetric matrix, one per row, and their
    variances.

    The entry of largest absolute value of a direction is positive; no variance is below 0.

    >>> axes, variances = directions(np.array([[2.0, 0.0], [0.0, 9.0]]), 1)
    >>> axes.tolist(), variances.tolist()
    ([[0.0, 1.0]], [9.0])
    """
    values, vectors = np.linalg.eigh(matrix)
    axes = vectors[:, ::-1].T[:count]
    largest = np.abs(axes).argmax(axis=1)
    signs = np.sign(axes[np.arange(count), largest])[:, np.newaxis]
    return axes * signs + 0.0, np.maximum(values[::-1][:count], 0.0)
