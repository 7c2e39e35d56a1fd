# SPDX-License-Identifier: Apache-2.0
"""The recipe ``Ridge``: linear regression from one release of noisy second moments.

Source: Wang, "Revisiting differentially private linear regression" (UAI 2018), AdaSSP: the penalty
(ridge) grows with the noise until the noisy matrix is well conditioned. Here the least eigenvalue
is read off the noisy matrix itself, at no cost.
"""

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import ClassVar

import numpy as np

from sfumato.errors import WrongUse, shown
from sfumato.exact.rounding import sqrt_up
from sfumato.learning.budget import Budgeted
from sfumato.learning.examples_of import Examples
from sfumato.learning.features import Features, Floats, Line, linear
from sfumato.learning.model import Model
from sfumato.learning.moments import SecondMoments
from sfumato.learning.order import FullBatch
from sfumato.learning.recipe import Asked, OneRelease, Planned, Recipe
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.metadata.dataset import Dataset
from sfumato.noise import Integers, RoundedGaussian
from sfumato.plan.rows import BoundedRows
from sfumato.plan.show import form
from sfumato.privacy.distance import Norm
from sfumato.privacy.event import Event
from sfumato.query.cost import Cost
from sfumato.query.curator import Curator

# A symmetric matrix of independent noise has about this many standard deviations times the root of
# its size as its norm.
_SPECTRUM = 2.0


@dataclass(frozen=True, slots=True)
class Ridge(Recipe[Model]):
    """Ridge regression for a numeric label, in one release.

    Each numeric column has a slope, each declared value a weight, as in ``LogisticRegression``.
    ``alpha`` is the penalty of the weights, in examples; a second penalty that follows the noise is
    added to it.

    >>> Ridge().alpha
    1.0
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.alpha, int | float) or not 0 <= self.alpha < 1e12:
            raise WrongUse(f"alpha={shown(self.alpha)}.", allowed="from 0 to 1e12")

    def task(
        self,
        examples: Examples,
        budget: Budgeted,
        orders: Collection[Fraction],
    ) -> "MomentsTask":
        """Returns the task that releases noisy second moments of features and label; nothing is
        charged.

        Raises:
            WrongUse: a label that is no number.
        """
        if examples.classes:
            raise WrongUse(
                "A label that is no number.", remedy="LogisticRegression, Additive or NaiveBayes"
            )
        label = examples.label
        target = Line("label", label.lower, label.upper)
        parts = (*examples.features(linear).parts, target)
        places = (*examples.places, label.place)
        moments = SecondMoments(examples.plan, Features(parts), places, label.place)
        multiplier = budget.multiplier(FullBatch(), 1, orders)
        sigma = Fraction(ceil(multiplier * sqrt_up(moments.distance(Norm.L2).value)))
        return MomentsTask(moments, sigma, budget)

    def planned(
        self,
        examples: Examples,
        asked: Asked,
        orders: Collection[Fraction],
    ) -> Planned[Model]:
        """Returns the planned fit of ridge regression: one noisy release of second moments."""
        task = self.task(examples, asked.budget, orders)
        features = examples.features(linear)

        def made(body: bytes, cost: Cost, charge: str) -> Model:
            weights = solved(task.matrix(body), task.noise, features.width, self.alpha)
            return Model(
                "ridge",
                features,
                examples.columns,
                weights[np.newaxis, :],
                (),
                examples.bounds,
                cost,
                charge,
            )

        return OneRelease(task, task.moments.width, task.noise, made)


@dataclass(frozen=True, slots=True)
class MomentsTask:
    """The task that measures second moments once."""

    moments: SecondMoments
    sigma: Fraction
    budget: Budgeted

    kind: ClassVar[str] = "training"
    line: ClassVar[str] = "second moments"

    @property
    def form(self) -> str:
        """The canonical form of the plan and the features."""
        return form(self)

    @property
    def mechanism(self) -> AdditiveMechanism:
        """The noise of every product."""
        return AdditiveMechanism(RoundedGaussian(self.sigma))

    @property
    def event(self) -> Event:
        """The event of the one release."""
        step = self.mechanism.event(self.moments.distance(Norm.L2))
        return self.budget.whole(step)

    @property
    def cells(self) -> tuple[int]:
        """The number of products of two coordinates."""
        return (self.moments.width,)

    @property
    def size(self) -> int:
        """The exact number of bytes of the answer."""
        return 8 * self.moments.width

    @property
    def noise(self) -> float:
        """The standard deviation of a product, in examples."""
        return float(self.sigma) / self.moments.features.scale**2

    def ready(self, declarations: Dataset) -> BoundedRows:
        """The bounded rows."""
        return self.moments.plan

    def run(self, curator: Curator) -> bytes:
        """Returns the noisy products, as little-endian int64."""
        noisy: Integers = curator.measure(self.moments, self.mechanism)
        return noisy.astype("<i8").tobytes()

    def matrix(self, body: bytes) -> Floats:
        """Reads an answer as a noisy symmetric matrix, in examples."""
        count = self.moments.features.width
        found = np.zeros((count, count))
        found[np.triu_indices(count)] = np.frombuffer(body, "<i8")
        found += np.triu(found, 1).T
        return found / self.moments.features.scale**2


def solved(matrix: Floats, noise: float, width: int, alpha: float) -> Floats:
    """Solves for the weights of the coordinates, for a target scaled to 0 to 1.

    The first ``width`` coordinates of the matrix are those of the features; the others are those of
    the target (its two ends, and missing). ``noise`` is the standard deviation of an entry.
    """
    square = matrix[:width, :width]
    # the target is its weight on its upper end
    product = matrix[:width, width + 1]
    spectrum = _SPECTRUM * noise * float(np.sqrt(width))
    least = float(np.linalg.eigvalsh(square)[0])
    # enough that noise cannot make a direction of the matrix vanish
    ridge = alpha + max(spectrum - max(least, 0.0), 0.0) + max(-least, 0.0)
    found, *_ = np.linalg.lstsq(square + ridge * np.eye(width), product, rcond=None)
    return found.astype(np.float64)
