# SPDX-License-Identifier: Apache-2.0
"""Recipes for additive models (``Additive``, ``LogisticRegression``), fitted by noisy gradient
descent.

The score of a row is the sum of one curve per column. ``Training`` (``run``) makes the releases;
the fitted ``Model`` is built from the last checkpoint.
"""

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil

import numpy as np

from sfumato.errors import WrongUse, shown
from sfumato.exact.rounding import sqrt_up
from sfumato.learning.bag import BAG, Bag, require_bag
from sfumato.learning.binning import require_binning
from sfumato.learning.budget import Budgeted
from sfumato.learning.descent import State
from sfumato.learning.descent_noise import DescentNoise
from sfumato.learning.examples import ExampleSums, Targets, steps_for
from sfumato.learning.examples_of import Examples
from sfumato.learning.features import BINS, Feature, Features, binned, linear, require_edges
from sfumato.learning.model import Model
from sfumato.learning.order import FullBatch, Order, require_order
from sfumato.learning.recipe import Asked, Planned, Recipe, Run
from sfumato.learning.run import Training, checkpointed
from sfumato.metadata.column import ColumnType
from sfumato.privacy.distance import Norm
from sfumato.query.cost import Cost

# An example in lattice steps, times 2^6 where features are divided.
_FINEST, _DIVIDED_FINEST = 2**12, 2**10
_MOST_STEPS = 10**6


class _Descent(Recipe[Model]):
    """A recipe that is fitted by noisy gradient descent, as a run with checkpoints."""

    __slots__ = ()

    @abstractmethod
    def training(
        self,
        examples: Examples,
        budget: Budgeted,
        orders: Collection[Fraction],
    ) -> Training:
        """Returns the run that fits the model to these examples."""

    def planned(
        self,
        examples: Examples,
        asked: Asked,
        orders: Collection[Fraction],
    ) -> Planned[Model]:
        """Returns the planned run; its model is built from the last checkpoint."""
        training = self.training(examples, asked.budget, orders)
        features = training.counted.features

        def made(body: bytes, cost: Cost, charge: str) -> Model:
            state = State.from_bytes(body)
            model = Model(
                training.recipe,
                features,
                examples.columns,
                state.result[np.newaxis, :],
                examples.classes,
                examples.bounds,
                cost,
                charge,
            )
            if features.scale > 1:
                # the two ends of a line share examples: their noise is not that of bins
                return model
            noise = DescentNoise(training.descent, float(training.order.share))
            middles, deviations = noise.middles(state, features), noise.of_curves(state, features)
            return replace(model, middles=middles, deviations=deviations)

        noise = float(training.sigma) / training.example
        return Run(training, training.sizes, features.width, noise, made)


@dataclass(frozen=True, slots=True)
class Additive(_Descent):
    """An additive model: one step curve per column; logistic if the label has two classes.

    A column with declared values has one weight per value; a numeric column one weight per bin.
    Bins lie between ``edges`` of the column, or are ``bins`` equal ones within its bounds. Missing
    values have a weight of their own. A text has one weight per bucket of its ``bag``. The run
    releases one noisy count of examples, then ``steps`` noisy gradients. ``checkpoints`` is the
    number of pieces of the run: after a crash it resumes at the last finished piece. The defaults
    suit every epsilon.

    >>> Additive(edges={"age": [18, 65]}).steps
    50
    """

    edges: Mapping[str, Sequence[float]] = field(default_factory=dict)
    bins: int = BINS
    steps: int = 50
    order: Order = field(default_factory=FullBatch)
    checkpoints: int = 4
    bag: Bag = BAG

    def __post_init__(self) -> None:
        require_bag(self.bag)
        _require_counts(self.steps, self.checkpoints)
        require_binning(self.bins, self.edges)

    def training(
        self,
        examples: Examples,
        budget: Budgeted,
        orders: Collection[Fraction],
    ) -> Training:
        """Returns the training run (steps, noise and checkpoints) that fits the model to these
        examples within a cost limit; nothing is charged.
        """
        require_edges([each.name for each in examples.coded], self.edges)

        def make(name: str, kind: ColumnType) -> Feature:
            return binned(name, kind, self.edges, self.bins)

        fit = _Fit("additive", self.steps, self.order, self.checkpoints)
        return fit.training(examples, examples.features(make), budget, orders)


@dataclass(frozen=True, slots=True)
class LogisticRegression(_Descent):
    """A linear model: one slope per numeric column, logistic if the label has two classes.

    Columns with declared values, missing values and texts have weights as in ``Additive``. For a
    numeric label this is linear regression.

    >>> LogisticRegression(steps=100).checkpoints
    4
    """

    steps: int = 50
    order: Order = field(default_factory=FullBatch)
    checkpoints: int = 4
    bag: Bag = BAG

    def __post_init__(self) -> None:
        require_bag(self.bag)
        _require_counts(self.steps, self.checkpoints)

    def training(
        self,
        examples: Examples,
        budget: Budgeted,
        orders: Collection[Fraction],
    ) -> Training:
        """Returns the training run (steps, noise and checkpoints) that fits the model to these
        examples within a cost limit; nothing is charged.
        """
        fit = _Fit("logistic regression", self.steps, self.order, self.checkpoints)
        return fit.training(examples, examples.features(linear), budget, orders)


@dataclass(frozen=True, slots=True)
class _Fit:
    """Settings that both recipes share, and how they become a ``Training``."""

    recipe: str
    steps: int
    order: Order
    checkpoints: int

    def training(
        self,
        examples: Examples,
        features: Features,
        budget: Budgeted,
        orders: Collection[Fraction],
    ) -> Training:
        """Returns the run with its statistic, noise and checkpoints; reads declarations only."""
        require_order(self.order, examples.plan.neighbours)
        classes = examples.classes
        if len(classes) not in (0, 2):
            raise WrongUse(
                f"A label of {len(classes)} classes.",
                allowed="two classes, or a number",
                remedy="NaiveBayes takes any number of classes; or a test: job = 'nurse' AS nurse.",
            )
        finest = _FINEST if features.scale == 1 else _DIVIDED_FINEST
        counted = ExampleSums(
            examples.plan,
            features,
            examples.places,
            examples.label,
            Targets(),
            steps_for(examples.plan.most, features, finest),
            Norm.L2,
        )
        releases = self.steps + 1
        multiplier = budget.multiplier(self.order, releases, orders)
        sensitivity = sqrt_up(counted.distance(Norm.L2).value)
        sigma = Fraction(ceil(multiplier * sensitivity))
        sizes = checkpointed(releases, self.checkpoints)
        return Training(
            self.recipe,
            counted,
            bool(classes),
            self.order,
            sizes,
            sigma,
            budget,
        )


def _require_counts(steps: int, checkpoints: int) -> None:
    """Raises WrongUse unless steps and checkpoints are whole numbers in their ranges."""
    if type(steps) is not int or not 1 <= steps <= _MOST_STEPS:
        raise WrongUse(f"steps={shown(steps)}.", allowed="a whole number from 1 to 1,000,000")
    if type(checkpoints) is not int or checkpoints < 1:
        raise WrongUse(f"checkpoints={shown(checkpoints)}.", allowed="a whole number from 1 on")
