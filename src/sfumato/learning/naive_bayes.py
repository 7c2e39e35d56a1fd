# SPDX-License-Identifier: Apache-2.0
"""The recipe ``NaiveBayes``: one release of noisy example counts by bin and class."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato.errors import WrongUse
from sfumato.learning.binning import require_binning
from sfumato.learning.examples import Classes, ExampleSums, steps_for
from sfumato.learning.examples_of import Examples
from sfumato.learning.features import BINS, Feature, Floats, binned, require_edges
from sfumato.learning.model import Model
from sfumato.learning.recipe import Asked, OneRelease, Planned, Recipe
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.metadata.column import ColumnType
from sfumato.metadata.dataset import Dataset
from sfumato.noise import Integers
from sfumato.plan.rows import BoundedRows
from sfumato.plan.show import form
from sfumato.privacy.event import AdditiveNoise
from sfumato.query.allowance import Allowance
from sfumato.query.cost import Cost
from sfumato.query.curator import Curator

_LEAST = 1.0
# An example in steps, where units have several rows.
_FINEST = 2**10


@dataclass(frozen=True, slots=True)
class NaiveBayes(Recipe[Model]):
    """Naive Bayes: the probability of each bin in each class, assuming independent columns.

    Bins are those of ``Additive``. The label may have any number of classes; the cost is a pure
    epsilon, a rho, or an epsilon with a delta.

    >>> NaiveBayes(bins=8).bins
    8
    """

    edges: Mapping[str, Sequence[float]] = field(default_factory=dict)
    bins: int = BINS

    def __post_init__(self) -> None:
        require_binning(self.bins, self.edges)

    def task(
        self,
        examples: Examples,
        allowed: Allowance,
    ) -> "ClassCounts":
        """Returns the task that counts private examples by class and feature value, with noise;
        nothing is charged.

        Raises:
            WrongUse: a label that is a number.
        """
        classes = examples.classes
        if len(classes) == 1:
            raise WrongUse("A label with one value.", remedy="There is nothing to predict.")
        if not classes:
            raise WrongUse(
                "A label that is a number.",
                allowed="a Category or a Boolean",
                remedy='Classes that are numbers: sf.Category(["0", "1", "2"]).',
            )
        require_edges([each.name for each in examples.coded], self.edges)

        def make(name: str, kind: ColumnType) -> Feature:
            return binned(name, kind, self.edges, self.bins)

        features = examples.features(make)
        # what several rows add is divided, and rounded down to steps
        finest = 1 if examples.plan.most == 1 else _FINEST
        counted = ExampleSums(
            examples.plan,
            features,
            examples.places,
            examples.label,
            Classes(len(classes)),
            steps_for(examples.plan.most, features, finest),
            allowed.norm,
        )
        return ClassCounts(counted, allowed)

    def planned(
        self,
        examples: Examples,
        asked: Asked,
        orders: Collection[Fraction],
    ) -> Planned[Model]:
        """Returns the planned fit of naive Bayes: one noisy release of example counts."""
        task = self.task(examples, asked.allowance)

        def made(body: bytes, cost: Cost, charge: str) -> Model:
            return Model(
                "naive Bayes",
                task.counted.features,
                examples.columns,
                task.scores(body),
                examples.classes,
                (0.0, 0.0),
                cost,
                charge,
            )

        return OneRelease(task, task.counted.width, task.noise, made)


@dataclass(frozen=True, slots=True)
class ClassCounts:
    """The task that counts the examples once, by class and coordinate."""

    counted: ExampleSums
    allowance: Allowance

    kind: ClassVar[str] = "training"
    line: ClassVar[str] = "naive Bayes"

    @property
    def form(self) -> str:
        """The canonical form of the plan and the features."""
        return form(self)

    @property
    def mechanism(self) -> AdditiveMechanism:
        """The mechanism that adds noise to the counts."""
        distance = self.counted.distance(self.allowance.norm)
        return self.allowance.noise(distance, self.allowance.amount)

    @property
    def event(self) -> AdditiveNoise:
        """The event of the one release."""
        return self.mechanism.event(self.counted.distance(self.allowance.norm))

    @property
    def cells(self) -> tuple[int]:
        """The number of counts."""
        return (self.counted.width,)

    @property
    def size(self) -> int:
        """The exact number of bytes of the answer."""
        return 8 * self.counted.width

    @property
    def noise(self) -> float:
        """The standard deviation of a count, in examples."""
        return math.sqrt(self.mechanism.noise.variance.upper) / self.counted.steps

    def ready(self, declarations: Dataset) -> BoundedRows:
        """The bounded rows."""
        return self.counted.plan

    def run(self, curator: Curator) -> bytes:
        """Returns the noisy counts, as little-endian int64."""
        noisy: Integers = curator.measure(self.counted, self.mechanism)
        return noisy.astype("<i8").tobytes()

    def scores(self, body: bytes) -> Floats:
        """Returns the log probability of each coordinate in each class, plus a share of the log
        prior.
        """
        features = self.counted.features
        noisy = np.frombuffer(body, "<i8").reshape(-1, features.width)
        counts = np.maximum(noisy.astype(np.float64), 0) / self.counted.steps
        damped = max(self.noise, _LEAST)
        sizes = np.zeros(len(counts))
        scores = np.zeros_like(counts)
        for first, part in zip(features.starts, features.parts, strict=True):
            block = counts[:, first : first + part.width]
            of_class = block.sum(axis=1, keepdims=True)
            sizes += of_class[:, 0]
            # towards the bin's share in all classes
            pooled = (block.sum(axis=0) + _LEAST) / (block.sum() + _LEAST * part.width)
            rate = (block + damped * pooled) / (of_class + damped)
            scores[:, first : first + part.width] = np.log(rate)
        prior = (sizes + _LEAST) / (sizes.sum() + _LEAST * len(sizes))
        shares: Floats = scores + np.log(prior)[:, np.newaxis] / len(features.parts)
        return shares
