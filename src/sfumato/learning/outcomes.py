# SPDX-License-Identifier: Apache-2.0
"""Statistics that count right and wrong predictions of fitted models. Proof: outcomes.proof.md.

``score`` measures ``Outcomes``, ``choose`` compares models by ``RightCounts``.
"""

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato.errors import InvalidDeclaration
from sfumato.learning.bag import codes_with_bags
from sfumato.learning.examples import Label
from sfumato.learning.features import Features, Floats
from sfumato.noise import Integers
from sfumato.plan.rows import MISSING, BoundedRows
from sfumato.plan.show import form
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.unit import Relation
from sfumato.query.statistic import BoundedStatistic, Opened, Rows

# Weights are read in 1 / 2^20, and cut at 2^30 of these: scores of thousands of features fit.
_STEPS = 1 << 20
_LARGEST = 1 << 30
# The number of scores, of all classes, that are computed at once.
_AT_ONCE = 1 << 20


def integer_weights(scores: Floats) -> Integers:
    """Returns the weights of a linear model, rounded to integers, one row for each class.

    A model of two classes has one row of weights, for its second class; the first class then has 0.

    >>> integer_weights(np.array([[0.5, -1.0]])).tolist()
    [[0, 0], [524288, -1048576]]
    """
    finite = np.nan_to_num(scores, nan=0.0, posinf=_LARGEST, neginf=-_LARGEST)
    rounded = np.clip(np.rint(finite * _STEPS), -_LARGEST, _LARGEST).astype(np.int64)
    if len(rounded) > 1:
        return rounded
    return np.concatenate([np.zeros_like(rounded), rounded])


def predicted(
    weights: Integers,
    features: Features,
    codes: list[Integers],
) -> Integers:
    """Returns the index of the predicted class of each row: that with the highest score under
    integer weights, the first of equal scores.
    """
    total = np.zeros((len(codes[0]), len(weights)), np.int64)
    for places, share in features.shares(codes):
        total += (weights[:, places] * share).T
    best: Integers = total.argmax(axis=1)
    return best


def outcome_distance(plan: BoundedRows, norm: Norm) -> Distance:
    """Returns the sensitivity (squared for L2) of the counts of right and wrong predictions, which
    is the same for any model.

    Raises:
        InvalidDeclaration: a norm in which nothing is proved.
    """
    if norm not in (Norm.L1, Norm.L2):
        raise InvalidDeclaration(f"Outcomes in {norm.value}.", allowed="L1, L2")
    most = plan.most
    times = 1
    if plan.neighbours is Relation.REPLACE_ONE:
        times = 2
    moved = most if norm is Norm.L1 else most**2
    return Distance(norm, Fraction(times * moved), plan.neighbours)


@dataclass(frozen=True, slots=True)
class Outcomes(BoundedStatistic[Integers]):
    """A statistic of a model on private rows: the number of rows whose label it predicts, and the
    number of rows with another label.

    A row whose label is missing or undeclared adds nothing. Subclasses say how a model predicts.

    Guarantees:
        outcomes move by at most their proved distance
        a row without a label adds nothing
    """

    plan: BoundedRows
    label: Label

    @property
    @abstractmethod
    def at_once(self) -> int:
        """The largest number of rows that are predicted in one batch."""

    @property
    @abstractmethod
    def read(self) -> str:
        """A canonical string of the plan and of the columns that are read, for the answer's cache
        key.
        """

    @abstractmethod
    def predicted(self, codes: Integers) -> Integers:
        """Returns the index of the predicted class of each row: a function of that row only."""

    def distance(self, norm: Norm) -> Distance:
        """Returns the sensitivity (squared for L2) of the two counts.

        A unit has at most ``most`` rows in either count; replacing a unit can change both counts.
        """
        return outcome_distance(self.plan, norm)

    def exact(self, opened: Opened) -> Integers:
        """Returns the exact counts of right and wrong predictions, without noise."""
        rows = opened.unit_rows(self.plan)
        total, count = np.zeros(2, np.int64), len(rows.codes)
        for first in range(0, count, self.at_once):
            total += self._counted(self.codes(rows, first, min(first + self.at_once, count)))
        return total

    def codes(self, rows: Rows, first: int, last: int) -> Integers:
        """Returns the codes of the rows ``first`` to ``last`` (exclusive), which ``predicted``
        takes.
        """
        return rows.codes[first:last]

    def _counted(self, codes: Integers) -> Integers:
        """Returns the two counts of some rows."""
        label = np.asarray(codes[:, self.label.place])
        known = (label >= self.label.lower) & (label <= self.label.upper) & (label != MISSING)
        right = known & (self.predicted(codes) == label - self.label.lower)
        return np.array([right.sum(), known.sum() - right.sum()], np.int64)


@dataclass(frozen=True, slots=True)
class RightCounts(BoundedStatistic[Integers]):
    """A statistic for the private choice among public models: for each model, the number of private
    rows that it predicts correctly.

    The private choice among models scores them by it. All models must predict the rows of one plan.

    Guarantees:
        right counts move by at most their proved distance
        right counts move in one direction where a unit comes or goes
    """

    models: tuple[Outcomes, ...]

    def __post_init__(self) -> None:
        first, *others = self.models
        if any(other.plan != first.plan for other in others):
            raise InvalidDeclaration("Models over several plans.", allowed="one plan")

    @property
    def plan(self) -> BoundedRows:
        """The plan of the rows that the models predict, the same for all models."""
        return self.models[0].plan

    def distance(self, norm: Norm) -> Distance:
        """Returns the Linf sensitivity: each count changes by at most the largest number of rows of
        a unit, for either neighbour relation.
        """
        if norm is not Norm.LINF:
            raise InvalidDeclaration(f"Right counts in {norm.value}.", allowed="Linf")
        return Distance(norm, Fraction(self.plan.most), self.plan.neighbours)

    def exact(self, opened: Opened) -> Integers:
        """Returns the exact number of right predictions of each model, without noise."""
        return np.array([model.exact(opened)[0] for model in self.models], np.int64)


@dataclass(frozen=True, slots=True)
class AddedRightCounts(RightCounts):
    """``RightCounts`` for add-remove neighbours only: for each public model, the number of private
    rows that it predicts correctly.

    Adding a unit moves all counts up (removing moves all down), so choosing the best model costs
    less than with ``RightCounts``, which also covers replaced units.
    """

    is_monotone: ClassVar[bool] = True

    def __post_init__(self) -> None:
        # by name: a dataclass with slots is a new class, which super() does not know
        RightCounts.__post_init__(self)
        if self.plan.neighbours is not Relation.ADD_REMOVE:
            raise InvalidDeclaration("Right counts of replaced units do not move together.")


@dataclass(frozen=True, slots=True)
class WeightOutcomes(Outcomes):
    """The counts of right and wrong predictions on private rows, for a model whose scores are sums
    of integer weights.

    ``places`` are the indices of the features among the codes of a row; ``weights`` has one row per
    class.
    """

    features: Features
    places: tuple[int, ...]
    weights: Integers

    @property
    def at_once(self) -> int:
        """The number of rows that are predicted in one batch, limited so that their scores fit into
        memory.
        """
        return max(_AT_ONCE // len(self.weights), 1)

    @property
    def read(self) -> str:
        """A canonical string of the plan, the columns and the label, for the answer's cache key."""
        return f"{form(self.plan)} {self.places} {form(self.label)}"

    def codes(self, rows: Rows, first: int, last: int) -> Integers:
        """Returns the codes of the rows ``first`` to ``last`` (exclusive), followed by those of
        their bags of words.
        """
        return codes_with_bags(rows, first, last, self.features.bag)

    def predicted(self, codes: Integers) -> Integers:
        """Returns the index of the class with the highest score."""
        columns = [np.asarray(codes[:, place]) for place in self.places]
        return predicted(self.weights, self.features, columns)
