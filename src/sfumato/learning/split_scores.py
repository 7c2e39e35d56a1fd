# SPDX-License-Identifier: Apache-2.0
"""The statistics of decision trees: scores of possible tests, and class counts of leaves.

The score of a test is that of the Gini impurity: the sum over both sides of the squared class sizes
divided by the size of the side. Proof: split_scores.proof.md.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidDeclaration
from sfumato.learning.examples import Label
from sfumato.learning.features import Features
from sfumato.learning.splits import Candidates, coordinates_of
from sfumato.noise import Integers
from sfumato.plan.rows import MISSING, BoundedRows
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.unit import Relation
from sfumato.query.statistic import BoundedStatistic, GroupedScores, Opened, Rows

# A unit weighs so much, or so much for each row that it may have, if that is more.
_WEIGHT, _EACH = 1 << 8, 1 << 4
_MOST_ROWS = 1 << 20
# Sizes below it have squares that fit 64 bits.
_SMALL = 1 << 31


@dataclass(frozen=True, slots=True)
class Weighted:
    """Rows as coordinates, with class and weight; a row without a class has weight 0."""

    coordinates: list[Integers]
    classes: Integers
    weights: Integers


@dataclass(frozen=True, slots=True)
class Sorting:
    """The rows, features and label that the statistics of a decision tree read; all rows of a unit
    together have the weight ``weight``.

    All rows of a unit together have the weight ``weight``.

    Guarantees:
        a unit weighs at most the declared weight

    Raises:
        InvalidDeclaration: units of more than 2^20 rows.
    """

    plan: BoundedRows
    features: Features
    places: tuple[int, ...]
    label: Label

    def __post_init__(self) -> None:
        if self.plan.most > _MOST_ROWS:
            raise InvalidDeclaration(
                f"Units of {self.plan.most:,} rows.", allowed="max_rows_total up to 1,048,576"
            )

    @property
    def weight(self) -> int:
        """The largest total weight of the rows of one unit: a power of two."""
        return max(_WEIGHT, _EACH << (self.plan.most - 1).bit_length())

    @property
    def classes(self) -> int:
        """The number of classes."""
        return self.label.upper - self.label.lower + 1

    @property
    def units(self) -> int:
        """The number of units in which neighbouring datasets differ: 2 if one is replaced, else
        1.
        """
        return 2 if self.plan.neighbours is Relation.REPLACE_ONE else 1

    def read(self, opened: Opened) -> Weighted:
        """Returns the private rows as feature coordinates, with class and weight; cached as long as
        the rows are open.
        """
        key = (Weighted, self.features, self.places, self.label)
        return opened.derived(self.plan, key, self._weighted)

    def _weighted(self, rows: Rows) -> Weighted:
        codes = [np.asarray(rows.codes[:, place]) for place in self.places]
        label = np.asarray(rows.codes[:, self.label.place])
        known = (label >= self.label.lower) & (label <= self.label.upper) & (label != MISSING)
        sizes = np.diff(rows.starts)
        weights = np.repeat(self.weight // np.maximum(sizes, 1), sizes) * known
        classes = np.where(known, label - self.label.lower, 0)
        return Weighted(coordinates_of(self.features, codes), classes, weights)

    def reached(
        self,
        rows: Weighted,
        levels: tuple[Integers, ...],
    ) -> Integers:
        """Returns, for each row, the tree node that it reaches and its class, combined as node
        times the number of classes plus class.
        """
        nodes = Candidates(self.features).leaves(rows.coordinates, levels)
        return nodes * self.classes + rows.classes


@dataclass(frozen=True, slots=True)
class SplitScores(GroupedScores):
    """A statistic for growing a private decision tree: the score of every candidate test in each
    node of the next level.

    ``levels`` are the tests of the levels above. Scores are in units of 1 / ``weight``.

    Guarantees:
        scores of tuples move by at most their proved distance
        a row without a class changes no score
    """

    sorting: Sorting
    levels: tuple[Integers, ...]

    def distance(self, norm: Norm) -> Distance:
        """Returns the Linf sensitivity of the scores: a unit's weight plus a rounding error of 1
        per row, twice that if a unit is replaced.
        """
        if norm is not Norm.LINF:
            raise InvalidDeclaration(f"Scores in {norm.value}.", allowed="Linf")
        sorting = self.sorting
        moved = sorting.units * (sorting.weight + sorting.plan.most)
        return Distance(norm, Fraction(moved), sorting.plan.neighbours)

    def exact(self, opened: Opened) -> list[Integers]:
        """Returns the exact scores, without noise."""
        sorting = self.sorting
        rows = sorting.read(opened)
        reached = sorting.reached(rows, self.levels)
        nodes, classes = 1 << len(self.levels), sorting.classes
        node_sizes = _sizes(reached, rows.weights, nodes * classes).reshape(nodes, classes, 1)
        scores = []
        candidates = Candidates(sorting.features)
        for place, listed in enumerate(candidates.listed):
            width = sorting.features.parts[place].width
            own = rows.coordinates[place] - sorting.features.starts[place]
            sizes = _sizes(reached * width + own, rows.weights, nodes * classes * width)
            passed = sizes.reshape(nodes, classes, width)
            if not listed:
                passed = passed[:, :, ::-1].cumsum(axis=2)[:, :, ::-1]
            scores.append(_purity(passed) + _purity(node_sizes - passed))
        return list(np.concatenate(scores, axis=1))


@dataclass(frozen=True, slots=True)
class LeafSizes(BoundedStatistic[Integers]):
    """A statistic of a decision tree: the total weight of the rows of each class in each leaf.

    Guarantees:
        leaf sizes move by at most their proved distance
    """

    sorting: Sorting
    levels: tuple[Integers, ...]

    @property
    def width(self) -> int:
        """The number of integers: one for each class in each leaf."""
        return self.sorting.classes << len(self.levels)

    def distance(self, norm: Norm) -> Distance:
        """Returns the sensitivity (squared for L2): that of one unit's weight, or of two units' if
        one is replaced.
        """
        if norm not in (Norm.L1, Norm.L2):
            raise InvalidDeclaration(f"Leaf sizes in {norm.value}.", allowed="L1, L2")
        sorting = self.sorting
        weight = sorting.weight if norm is Norm.L1 else sorting.weight**2
        return Distance(norm, Fraction(sorting.units * weight), sorting.plan.neighbours)

    def exact(self, opened: Opened) -> Integers:
        """Returns the exact leaf weights, without noise."""
        rows = self.sorting.read(opened)
        return _sizes(self.sorting.reached(rows, self.levels), rows.weights, self.width)


def _sizes(
    places: Integers,
    weights: Integers,
    count: int,
) -> Integers:
    """Returns the sum of the weights at each index; floats that are integers below 2^53 add
    exactly.
    """
    return np.bincount(places, weights=weights.astype(np.float64), minlength=count).astype(np.int64)


def _purity(sizes: NDArray[np.int64]) -> Integers:
    """Returns the sum of the squared class sizes divided by their sum, rounded down."""
    exact = sizes if sizes.sum() < _SMALL else sizes.astype(object)
    squares = (exact * exact).sum(axis=1)
    found: Integers = squares // np.maximum(exact.sum(axis=1), 1)
    return found.astype(np.int64)
