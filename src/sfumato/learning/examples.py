# SPDX-License-Identifier: Apache-2.0
"""The sum over units of an integer vector of their rows, as a statistic. Proof: examples.proof.md.

Every number is an integer: coordinates and weights of features, scores, residuals, their sums. So
what a unit adds depends on its own rows alone, bit for bit, and no rounding enters the distance.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import isqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidDeclaration
from sfumato.learning.clip import LONGEST, clipped
from sfumato.learning.features import Features, Floats, Places, Weights
from sfumato.noise import Integers
from sfumato.plan.rows import MISSING, BoundedRows
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.unit import Relation
from sfumato.query.statistic import BoundedStatistic, Opened, Rows

# The number of rows, or of cells of vectors of units, that are added up at once.
_AT_ONCE = 1 << 18
# Scores are in 1 / _SCORES, and are cut at _FARTHEST of these.
SCORES = 1 << 10
_FARTHEST = 16 * SCORES
_LARGEST_WEIGHT = 1024 * SCORES
# Coordinates, and what is added to each: floats that are integers, as bincount takes them.
Added: TypeAlias = tuple[Integers, Floats]
# Coordinates with their weights; an integer is the weight of all.
Share: TypeAlias = tuple[Integers, Integers | int]


@dataclass(frozen=True, slots=True)
class Label:
    """The column that a model predicts: the place of its code in a row, and its declared codes."""

    place: int
    lower: int
    upper: int


@dataclass(frozen=True, slots=True)
class Encoded:
    """The features of some rows as coordinates and weights, with the codes of the label.

    ``known``: whether the label is there; rows without one add nothing.
    """

    features: tuple[tuple[Places, Weights | None], ...]
    label: Integers
    known: NDArray[np.bool]

    def part(
        self,
        first: int,
        last: int,
    ) -> "Encoded":
        """The rows from ``first`` to before ``last``."""
        rows = slice(first, last)
        features = tuple((at[rows], _some(weight, rows)) for at, weight in self.features)
        return Encoded(features, self.label[rows], self.known[rows])

    def shares(self, scale: int) -> Iterator[Share]:
        """The coordinates of each feature with their weights, which add up to ``scale``."""
        for at, weight in self.features:
            places = at.astype(np.int64)
            if weight is None:
                yield places, scale
                continue
            next_one = weight.astype(np.int64)
            yield places, scale - next_one
            # a weight of 0 stays where it is: there may be no next coordinate
            yield places + (next_one > 0), next_one


def _some(weight: Weights | None, rows: slice) -> Weights | None:
    """The weights of some rows."""
    if weight is None:
        return None
    return weight[rows]


def _times(amount: Floats, weight: Integers | int) -> Floats:
    """The amounts times their weights; a weight of 1 costs nothing."""
    if isinstance(weight, int) and weight == 1:
        return amount
    return amount * weight


class Reading(ABC):
    """What a row adds: to each coordinate of a feature its weight times at most ``steps``.

    The amounts by which one row multiplies a weight, over all blocks of coordinates, have an L1
    norm of at most ``steps``.
    """

    __slots__ = ()

    @abstractmethod
    def width(self, features: Features) -> int:
        """The number of integers."""

    @abstractmethod
    def added(
        self,
        rows: Encoded,
        features: Features,
        label: Label,
        steps: int,
    ) -> Iterator[Added]:
        """What the rows add, feature by feature."""


@dataclass(frozen=True, slots=True)
class Classes(Reading):
    """The weights of the coordinates, by the class of the row."""

    count: int

    def width(self, features: Features) -> int:
        """A block of coordinates for each class."""
        return self.count * features.width

    def added(
        self,
        rows: Encoded,
        features: Features,
        label: Label,
        steps: int,
    ) -> Iterator[Added]:
        """``steps`` times the weights, in the block of the class."""
        block = np.where(rows.known, rows.label - label.lower, 0) * features.width
        amount = steps * rows.known.astype(np.float64)
        for places, weight in rows.shares(features.scale):
            yield block + places, _times(amount, weight)


@dataclass(frozen=True, slots=True)
class Targets(Reading):
    """The weights of the coordinates times 1 - t and times t, for a target t from 0 to 1."""

    def width(self, features: Features) -> int:
        """Two blocks of coordinates."""
        return 2 * features.width

    def added(
        self,
        rows: Encoded,
        features: Features,
        label: Label,
        steps: int,
    ) -> Iterator[Added]:
        """The weights times what is missing to the target, then times the target."""
        target = _target(rows, label, steps).astype(np.float64)
        rest = np.where(rows.known, steps - target, 0.0)
        for places, weight in rows.shares(features.scale):
            yield places, _times(rest, weight)
            yield places + features.width, _times(target, weight)


@dataclass(frozen=True, slots=True)
class Residuals(Reading):
    """The weights of the coordinates times prediction minus target: the gradient of the loss.

    ``weights`` are those of the model in 1 / SCORES; ``logistic`` says whether the prediction is
    the logistic function of the score, or the score itself, cut at 0 and 1.
    """

    weights: Integers = field(repr=False)
    logistic: bool

    def width(self, features: Features) -> int:
        """One block of coordinates."""
        return features.width

    def added(
        self,
        rows: Encoded,
        features: Features,
        label: Label,
        steps: int,
    ) -> Iterator[Added]:
        """The weights times the residual."""
        weights = np.clip(self.weights, -_LARGEST_WEIGHT, _LARGEST_WEIGHT)
        score = np.zeros(len(rows.label), np.int64)
        for places, weight in rows.shares(features.scale):
            score += weights[places] * weight
        near = np.clip(score // features.scale, -_FARTHEST, _FARTHEST)
        predicted = predictions(steps, logistic=self.logistic)[near + _FARTHEST]
        residual = predicted - _target(rows, label, steps)
        amount = np.where(rows.known, residual, 0).astype(np.float64)
        for places, weight in rows.shares(features.scale):
            yield places, _times(amount, weight)


def predictions(steps: int, *, logistic: bool) -> Integers:
    """The prediction for every score from -16 to 16, in 1 / ``steps``: integers from 0 to
    ``steps``.
    """
    scores = np.arange(-_FARTHEST, _FARTHEST + 1) / SCORES
    shares = np.clip(scores, 0, 1)
    if logistic:
        shares = 1 / (1 + np.exp(-scores))
    return np.clip(np.rint(steps * shares), 0, steps).astype(np.int64)


def _target(
    rows: Encoded,
    label: Label,
    steps: int,
) -> Integers:
    """The label from 0 to ``steps``; 0 where it is missing."""
    inside = np.clip(rows.label, label.lower, label.upper)
    target = (inside - label.lower) * steps // (label.upper - label.lower)
    return np.where(rows.known, target, 0)


@dataclass(frozen=True, slots=True)
class ExampleSums(BoundedStatistic[Integers]):
    """The sum over units of the vectors of their rows; a unit with several rows is clipped once.

    ``columns`` are the places of the features among the codes of a row.

    Guarantees:
        the examples move by at most their proved distance
        what a unit adds depends on its own rows alone
        a missing label adds nothing

    Raises:
        InvalidDeclaration: vectors of a unit that may be 2^31 long.
    """

    plan: BoundedRows
    features: Features
    columns: tuple[int, ...]
    label: Label
    reading: Reading
    steps: int
    norm: Norm

    def __post_init__(self) -> None:
        if self.norm not in (Norm.L1, Norm.L2) or type(self.steps) is not int or self.steps < 1:
            raise InvalidDeclaration(f"Examples in {self.norm.value}.", allowed="L1, L2")
        if self.plan.most * self.steps * self.features.scale * len(self.columns) >= LONGEST:
            raise InvalidDeclaration("Vectors of a unit beyond 2^31.", allowed="fewer steps")

    @property
    def squared(self) -> int:
        """The square of the most that a unit adds, in L2."""
        return (self.steps * self.features.scale) ** 2 * len(self.columns)

    @property
    def bound(self) -> int:
        """The most that a unit with several rows adds, in its norm."""
        if self.norm is Norm.L1:
            return self.steps * self.features.scale * len(self.columns)
        return isqrt(self.squared)

    @property
    def width(self) -> int:
        """The number of integers."""
        return self.reading.width(self.features)

    def distance(self, norm: Norm) -> Distance:
        """What one unit adds, in the norm in which it is clipped; twice that if it is replaced."""
        if norm is not self.norm:
            raise InvalidDeclaration(f"Examples clipped in {self.norm.value}.")
        moved = self.bound
        times = 1
        if self.plan.neighbours is Relation.REPLACE_ONE:
            times = 2
        if norm is Norm.L2:
            return Distance(norm, Fraction(times**2 * self.squared), self.plan.neighbours)
        return Distance(norm, Fraction(times * moved), self.plan.neighbours)

    def exact(self, opened: Opened) -> Integers:
        """The exact sums."""
        rows = opened.unit_rows(self.plan)
        encoded = opened.derived(self.plan, (self.features, self.columns, self.label), self._encode)
        if self.plan.most == 1:
            return self._single(encoded)
        return self._several(encoded, rows.starts)

    def _encode(self, rows: Rows) -> Encoded:
        """The rows as coordinates."""
        columns = [np.asarray(rows.codes[:, place]) for place in self.columns]
        label = np.asarray(rows.codes[:, self.label.place])
        known = (label >= self.label.lower) & (label <= self.label.upper) & (label != MISSING)
        return Encoded(tuple(self.features.encoded(columns)), label, known)

    def _single(self, encoded: Encoded) -> Integers:
        """The sums where each row is a unit."""
        width = self.width
        total = np.zeros(width, np.int64)
        for first in range(0, len(encoded.label), _AT_ONCE):
            part = encoded.part(first, first + _AT_ONCE)
            for places, amounts in self._added(part):
                total += _counted(places, amounts, width)
        return total

    def _several(
        self,
        encoded: Encoded,
        starts: Integers,
    ) -> Integers:
        """The sums where units have several rows: their vectors are added up and clipped."""
        width = self.width
        total = np.zeros(width, np.int64)
        step = max(_AT_ONCE // width, 1)
        for first in range(0, len(starts) - 1, step):
            units = starts[first : first + step + 1]
            count = len(units) - 1
            row = np.repeat(np.arange(count), np.diff(units))
            vectors = np.zeros(count * width, np.int64)
            for places, amounts in self._added(encoded.part(units[0], units[-1])):
                vectors += _counted(row * width + places, amounts, count * width)
            by_unit = vectors.reshape(count, width)
            total += clipped(by_unit, self.bound, self.norm).sum(axis=0)
        return total

    def _added(self, rows: Encoded) -> Iterator[Added]:
        return self.reading.added(rows, self.features, self.label, self.steps)


def _counted(
    places: Integers,
    amounts: Floats,
    width: int,
) -> Integers:
    """The sum of the amounts at each place; floats that are integers below 2^53 add up exactly."""
    return np.bincount(places, weights=amounts, minlength=width).astype(np.int64)


def steps_for(
    most: int,
    features: Features,
    finest: int,
) -> int:
    """The largest power of two up to ``finest`` with which vectors of a unit fit."""
    steps = finest
    while steps > 1 and most * steps * features.scale * len(features.parts) >= LONGEST:
        steps //= 2
    return steps


def places_of(count: int, label: int) -> Sequence[int]:
    """The places of the features: all but the label."""
    return tuple(place for place in range(count) if place != label)
