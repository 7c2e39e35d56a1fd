# SPDX-License-Identifier: Apache-2.0
"""The statistic of gradient models: a sum of integer vectors of examples. Proof: examples.proof.md.

``Training`` and ``NaiveBayes`` measure it. A row is encoded as coordinates with weights
(``features``), and a ``Reading`` says what it adds to each coordinate. All numbers are integers, so
what a unit adds depends on its own rows alone, bit for bit, and no rounding enters the sensitivity.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidDeclaration
from sfumato.learning.bag import codes_with_bags
from sfumato.learning.features import (
    Features,
    Floats,
    Group,
    Places,
    Share,
    Weights,
    divided_shares,
)
from sfumato.noise import Integers
from sfumato.plan.rows import MISSING, BoundedRows
from sfumato.privacy.distance import Norm
from sfumato.query.clip import LONGEST
from sfumato.query.statistic import Opened, Rows
from sfumato.query.unit_vectors import Added, UnitVectors, counted

# Scores are in 1 / _SCORES, and are cut at _FARTHEST of these.
SCORES = 1 << 10
# The number of rows that are encoded at once.
_AT_ONCE = 1 << 13
_FARTHEST = 16 * SCORES
_LARGEST_WEIGHT = 1024 * SCORES


@dataclass(frozen=True, slots=True)
class Label:
    """The label column of training examples: its index among the codes of a row, and its range of
    codes.
    """

    place: int
    lower: int
    upper: int


@dataclass(frozen=True, slots=True)
class Encoded:
    """Encoded rows: the coordinates and weights of their features, and the codes of their labels.

    ``known`` says which rows have a label; the others add nothing. If ``groups`` is not empty,
    ``features`` holds one cell number per group in place of one coordinate per feature. ``bags``
    has the coordinates of each text with their weights, as arrays of rows and places.
    """

    features: tuple[tuple[Places, Weights | None], ...]
    label: Integers
    known: NDArray[np.bool]
    groups: tuple[Group, ...] = ()
    bags: tuple[tuple[Places, Weights], ...] = ()

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(self.label)

    def part(
        self,
        first: int,
        last: int,
    ) -> "Encoded":
        """Returns the rows from ``first`` up to, but not including, ``last``."""
        rows = slice(first, last)
        features = tuple((at[rows], _select_weights(weight, rows)) for at, weight in self.features)
        bags = tuple((at[rows], weight[rows]) for at, weight in self.bags)
        return Encoded(features, self.label[rows], self.known[rows], self.groups, bags)

    def shares(self, scale: int) -> Iterator[Share]:
        """Yields the coordinates of each feature with their weights, which add up to ``scale``.

        Those of a text come together: arrays with a line of all rows for each place of the bag.
        """
        if self.groups:
            for group, (cells, _) in zip(self.groups, self.features, strict=True):
                for places in group.places(cells):
                    yield places, scale
            return
        for at, weight in self.features:
            yield from divided_shares(at, weight, scale)
        for coordinates, weights in self.bags:
            yield coordinates.T, weights.T.astype(np.int64)


def _select_weights(weight: Weights | None, rows: slice) -> Weights | None:
    """Selects the weights of some rows."""
    if weight is None:
        return None
    return weight[rows]


def _multiply(amount: Floats, weight: Integers | int) -> Floats:
    """Multiplies amounts by weights; a weight of 1 costs nothing."""
    if isinstance(weight, int) and weight == 1:
        return amount
    return amount * weight


class Reading(ABC):
    """What an encoded row adds to the statistic: a multiple of the weight of each of its
    coordinates.

    The multipliers of one row, over all blocks of coordinates, have an L1 norm of at most
    ``steps``.
    """

    __slots__ = ()

    @abstractmethod
    def width(self, features: Features) -> int:
        """Returns the number of integers of the statistic."""

    @abstractmethod
    def added(
        self,
        rows: Encoded,
        features: Features,
        label: Label,
        steps: int,
    ) -> Iterator[Added]:
        """Yields what the rows add, feature by feature."""


@dataclass(frozen=True, slots=True)
class Classes(Reading):
    """Sums of coordinate weights by class, for naive Bayes: a row adds the weights of its features
    to the block of its class.
    """

    count: int

    def width(self, features: Features) -> int:
        """Returns the number of integers of the sums: a block of all coordinates for each class."""
        return self.count * features.width

    def added(
        self,
        rows: Encoded,
        features: Features,
        label: Label,
        steps: int,
    ) -> Iterator[Added]:
        """Yields the amounts that rows add to the sums: ``steps`` times their coordinate weights,
        in the block of their class.
        """
        block = np.where(rows.known, rows.label - label.lower, 0) * features.width
        amount = steps * rows.known.astype(np.float64)
        for places, weight in rows.shares(features.scale):
            yield block + places, _multiply(amount, weight)


@dataclass(frozen=True, slots=True)
class Targets(Reading):
    """Sums of labels by coordinate, the first release of a gradient descent. The label of a row is
    scaled to a target t from 0 to 1.

    A row adds 1 - t to one block of coordinates and t to another.
    """

    def width(self, features: Features) -> int:
        """Returns the number of integers of the sums: two blocks of all coordinates, for 1 - t and
        for t.
        """
        return 2 * features.width

    def added(
        self,
        rows: Encoded,
        features: Features,
        label: Label,
        steps: int,
    ) -> Iterator[Added]:
        """Yields the amounts that rows add to the sums, in units of 1 / ``steps``: their coordinate
        weights times 1 - t, then times t.
        """
        target = _target(rows, label, steps).astype(np.float64)
        rest = np.where(rows.known, steps - target, 0.0)
        for places, weight in rows.shares(features.scale):
            yield places, _multiply(rest, weight)
            # a narrow type may end before the second block
            yield places.astype(np.int64) + features.width, _multiply(target, weight)


@dataclass(frozen=True, slots=True)
class Residuals(Reading):
    """The gradient of a linear model's loss: each row adds its coordinate weights times (prediction
    - target).

    ``weights`` are those of the model in units of 1 / SCORES. With ``logistic`` the prediction is
    the logistic function of the score, else the score itself; it is clipped to 0 and 1.
    """

    weights: Integers = field(repr=False)
    logistic: bool

    def width(self, features: Features) -> int:
        """Returns the number of integers of the gradient: one for each coordinate of the
        features.
        """
        return features.width

    def added(
        self,
        rows: Encoded,
        features: Features,
        label: Label,
        steps: int,
    ) -> Iterator[Added]:
        """Yields the amounts that rows add to the gradient: their coordinate weights times
        (prediction - target), in units of 1 / ``steps``.
        """
        weights = np.clip(self.weights, -_LARGEST_WEIGHT, _LARGEST_WEIGHT)
        score, read = (np.zeros(rows.count, np.int64) for _ in range(2))
        for places, weight in rows.shares(features.scale):
            if places.ndim > 1:
                score += (weights[places] * weight).sum(axis=0)
                continue
            # into one array: a new one for each feature costs more than what is read
            np.take(weights, places, out=read, mode="clip")
            if not isinstance(weight, int) or weight != 1:
                read *= weight
            score += read
        amount = self._residual(rows, score // features.scale, label, steps)
        for places, weight in rows.shares(features.scale):
            yield places, _multiply(amount, weight)

    def summed(
        self,
        rows: Encoded,
        label: Label,
        steps: int,
    ) -> Integers:
        """Returns the gradient of some rows, computed faster than ``added`` because their features
        are encoded in groups.
        """
        weights = np.clip(self.weights, -_LARGEST_WEIGHT, _LARGEST_WEIGHT)
        score, read = (np.zeros(rows.count, np.int64) for _ in range(2))
        for group, (cells, _) in zip(rows.groups, rows.features, strict=True):
            np.take(group.table(weights), cells, out=read, mode="clip")
            score += read
        amount = self._residual(rows, score, label, steps)
        found = []
        for group, (cells, _) in zip(rows.groups, rows.features, strict=True):
            found.append(group.folded(counted(cells, amount, group.size)))
        return np.concatenate(found)

    def _residual(
        self,
        rows: Encoded,
        score: Integers,
        label: Label,
        steps: int,
    ) -> Floats:
        """Returns prediction minus target of each row; 0 where the label is missing."""
        near = np.clip(score, -_FARTHEST, _FARTHEST)
        predicted = predictions(steps, logistic=self.logistic)[near + _FARTHEST]
        residual = predicted - _target(rows, label, steps)
        return np.where(rows.known, residual, 0).astype(np.float64)


def predictions(steps: int, *, logistic: bool) -> Integers:
    """Returns the prediction for every score from -16 to 16, as integers from 0 to ``steps``."""
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
    """Returns the label scaled to integers from 0 to ``steps``; 0 where it is missing."""
    inside = np.clip(rows.label, label.lower, label.upper)
    target = (inside - label.lower) * steps // (label.upper - label.lower)
    return np.where(rows.known, target, 0)


@dataclass(frozen=True, slots=True)
class ExampleSums(UnitVectors[Encoded]):
    """A statistic of training examples: the sum over units of the vectors that their rows add, as
    ``reading`` defines them.

    ``columns`` are the indices of the features among the codes of a row.

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
        if type(self.steps) is not int or self.steps < 1:
            raise InvalidDeclaration(f"steps = {self.steps}.", allowed="from 1 on")
        self.require_bounded()

    @property
    def length(self) -> int:
        """The largest L1 norm of the vector that a row adds to the sums."""
        return self.steps * self.features.farthest

    @property
    def squared(self) -> int:
        """The largest squared L2 norm of the vector that a row adds to the sums."""
        return (self.steps * self.features.scale) ** 2 * len(self.features.parts)

    @property
    def width(self) -> int:
        """The number of integers of the statistic."""
        return self.reading.width(self.features)

    def read(self, opened: Opened) -> Encoded:
        """Reads the private rows and encodes them as coordinates of the features."""
        key = (Encoded, self.features, self.columns, self.label)
        return opened.derived(self.plan, key, self._encode)

    def added(self, rows: Encoded) -> Iterator[Added]:
        """Yields the vectors that rows add to the sum, as arrays of coordinates and amounts."""
        return self.reading.added(rows, self.features, self.label, self.steps)

    def summed(self, rows: Encoded) -> Integers:
        """Returns the sum of the vectors that these rows add, without noise."""
        if rows.groups and isinstance(self.reading, Residuals):
            return self.reading.summed(rows, self.label, self.steps)
        return UnitVectors.summed(self, rows)

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups of features that are encoded together as one number, for speed; empty if that
        is not possible.

        Grouping applies only if each row is a unit and all weights are whole numbers.
        """
        if self.plan.most == 1 and self.features.scale == 1:
            return self.features.groups
        return ()

    def _blank(self, count: int) -> list[tuple[Places, Weights | None]]:
        """Allocates the arrays for the features of ``count`` rows."""
        if not self.groups:
            return self.features.blank(count)
        return [(np.empty(count, group.narrow), None) for group in self.groups]

    def _read(self, codes: Sequence[Integers]) -> list[tuple[Places, Weights | None]]:
        """Encodes the features of some rows."""
        if not self.groups:
            return self.features.encoded(codes)
        return [(cells, None) for cells in self.features.grouped(codes)]

    def _encode(self, rows: Rows) -> Encoded:
        """The rows as coordinates."""
        count = len(rows.codes)
        blank, bags = self._blank(count), []
        label = np.empty(count, np.int64)
        for first in range(0, count, _AT_ONCE):
            # rows are stored one after the other: some of them at a time fit the cache
            last = min(first + _AT_ONCE, count)
            some = np.array(codes_with_bags(rows, first, last, self.features.bag).T, order="C")
            place = slice(first, first + some.shape[1])
            label[place] = some[self.label.place]
            codes = [some[each] for each in self.columns]
            read = self._read(codes)
            for (places, weights), (at, weight) in zip(blank, read, strict=True):
                places[place] = at
                if weights is not None:
                    assert weight is not None, "a feature divides all weights, or none"
                    weights[place] = weight
            bags.append(self.features.bagged(codes))
        known = (label >= self.label.lower) & (label <= self.label.upper) & (label != MISSING)
        joined = [
            (np.concatenate([at for at, _ in parts]), np.concatenate([each for _, each in parts]))
            for parts in zip(*bags, strict=True)
        ]
        return Encoded(tuple(blank), label, known, self.groups, tuple(joined))


def steps_for(
    most: int,
    features: Features,
    finest: int,
) -> int:
    """Returns the resolution of the sums of examples: the largest power of two up to ``finest`` for
    which the vectors of a unit fit into 31 bits.
    """
    steps = finest
    while steps > 1 and most * steps * features.farthest >= LONGEST:
        steps //= 2
    return steps


def places_of(count: int, label: int) -> Sequence[int]:
    """Returns the indices of the features: all columns except the label."""
    return tuple(place for place in range(count) if place != label)
