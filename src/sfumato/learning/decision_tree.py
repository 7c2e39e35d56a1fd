# SPDX-License-Identifier: Apache-2.0
"""The recipe ``DecisionTree``: selects the tests of each level privately, then counts the leaves.

Source: Friedman and Schuster, "Data mining with differential privacy" (KDD 2010): the exponential
mechanism selects a test by its Gini impurity. Here one selection covers all nodes of a level: a row
is in one node only, so the level costs as much as a single node.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato.errors import WrongUse, shown
from sfumato.learning.binning import require_binning
from sfumato.learning.examples_of import Examples
from sfumato.learning.features import Feature, Floats, binned, require_edges
from sfumato.learning.recipe import Asked, OneRelease, Planned, Recipe
from sfumato.learning.split_scores import LeafSizes, Sorting, SplitScores
from sfumato.learning.tree import Tree
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.mechanisms.selection import SelectionMechanism, exponential
from sfumato.metadata.column import ColumnType
from sfumato.metadata.dataset import Dataset
from sfumato.noise import Integers
from sfumato.plan.rows import BoundedRows
from sfumato.plan.show import form
from sfumato.privacy.distance import Norm
from sfumato.privacy.event import Composed, Event, Repeated
from sfumato.query.allowance import Allowance
from sfumato.query.cost import Cost
from sfumato.query.curator import Curator

_DEEPEST = 12
# The most scores, and sizes of classes, of a level.
_MOST_CELLS = 1 << 24
# The share of the cost for the tests, in quarters.
_TESTS, _LEAVES = 3, 1
_PARTS = 10**12
# A node is drawn towards the one above it by so many standard deviations of its noise.
_DAMPED = 3.0


@dataclass(frozen=True, slots=True)
class DecisionTree(Recipe[Tree]):
    """A decision tree of ``depth`` levels, for any number of classes.

    A numeric column is compared with the ends of its bins: ``edges`` of the column, or ``bins``
    equal ones within its bounds. A column with declared values is tested for equality with one
    value. The cost is a pure epsilon, a rho, or an epsilon with a delta.

    >>> DecisionTree(depth=4).bins
    64
    """

    edges: Mapping[str, Sequence[float]] = field(default_factory=dict)
    bins: int = 64
    depth: int = 6

    def __post_init__(self) -> None:
        if type(self.depth) is not int or not 1 <= self.depth <= _DEEPEST:
            raise WrongUse(f"depth={shown(self.depth)}.", allowed="a whole number from 1 to 12")
        require_binning(self.bins, self.edges)

    def task(
        self,
        examples: Examples,
        allowed: Allowance,
    ) -> "Growth":
        """Returns the task that grows a private decision tree on these examples within the allowed
        cost; nothing is charged.

        Raises:
            WrongUse: a label that is a number, too many tests for the depth.
        """
        classes = examples.classes
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
        if features.width * len(classes) << self.depth > _MOST_CELLS:
            raise WrongUse(
                f"{features.width:,} tests of {len(classes)} classes at depth {self.depth}.",
                allowed="16,777,216 scores of classes a level",
                remedy="Fewer bins, fewer features, or a smaller depth.",
            )
        sorting = Sorting(examples.plan, features, examples.places, examples.label)
        return Growth(sorting, self.depth, allowed)

    def planned(
        self,
        examples: Examples,
        asked: Asked,
        orders: Collection[Fraction],
    ) -> Planned[Tree]:
        """Plans a fit: a private selection of tests for each level, then one release of leaf
        counts.
        """
        task = self.task(examples, asked.allowance)

        def made(body: bytes, cost: Cost, charge: str) -> Tree:
            levels, shares = task.grown(body)
            return Tree(
                task.sorting.features,
                examples.columns,
                levels,
                shares,
                examples.classes,
                cost,
                charge,
            )

        return OneRelease(task, task.leaves(()).width << self.depth, task.noise, made)


@dataclass(frozen=True, slots=True)
class Growth:
    """The task that fits a private decision tree: it selects the tests of each level, then counts
    the classes in the leaves with noise.
    """

    sorting: Sorting
    depth: int
    allowance: Allowance

    kind: ClassVar[str] = "training"

    @property
    def line(self) -> str:
        """The line about the task in the ledger, which states the depth of the tree."""
        return f"decision tree of depth {self.depth}"

    @property
    def form(self) -> str:
        """A canonical string of all that the tree depends on (plan, features, depth), from which
        the answer's cache key is computed.
        """
        return form(self)

    @property
    def selection(self) -> SelectionMechanism:
        """The selection mechanism (exponential) that chooses the tests of one level of the tree."""
        share, _ = self.allowance.shares(_TESTS, _LEAVES)
        each = share / self.depth
        if self.allowance.norm is Norm.L2:
            # an exponential mechanism of epsilon costs epsilon^2 / 8
            each = Fraction(math.isqrt(math.floor(8 * each * _PARTS**2)), _PARTS)
        return exponential(self.scores(()).distance(Norm.LINF), each)

    @property
    def counting(self) -> AdditiveMechanism:
        """The mechanism that adds noise to the class counts of the leaves."""
        _, share = self.allowance.shares(_TESTS, _LEAVES)
        return self.allowance.noise(self.leaves(()).distance(self.allowance.norm), share)

    @property
    def event(self) -> Event:
        """The privacy event of the whole task: one selection for each level, then the release of
        the leaf counts.
        """
        level = self.selection.event(self.scores(()).distance(Norm.LINF))
        leaves = self.counting.event(self.leaves(()).distance(self.allowance.norm))
        return Composed((Repeated(level, self.depth), leaves))

    @property
    def cells(self) -> tuple[int]:
        """The number of noisy integers in the release of leaf counts: classes times leaves."""
        return (self.sorting.classes << self.depth,)

    @property
    def size(self) -> int:
        """The exact size of the stored answer, in bytes."""
        return 8 * ((1 << self.depth) - 1 + self.cells[0])

    @property
    def noise(self) -> float:
        """The standard deviation of the count of a class in a leaf, in examples."""
        return math.sqrt(self.counting.noise.variance.upper) / self.sorting.weight

    def ready(self, declarations: Dataset) -> BoundedRows:
        """Returns the plan of the private rows that the task reads."""
        return self.sorting.plan

    def scores(self, levels: tuple[Integers, ...]) -> SplitScores:
        """Returns the statistic that scores every candidate test in each node of the tree's next
        level.

        ``levels`` are the tests selected so far, level by level.
        """
        return SplitScores(self.sorting, levels)

    def leaves(self, levels: tuple[Integers, ...]) -> LeafSizes:
        """Returns the statistic that counts the classes in each leaf of the tree; ``levels`` are
        the tests of its levels.
        """
        return LeafSizes(self.sorting, levels)

    def run(self, curator: Curator) -> bytes:
        """Selects the tests and counts the leaves through a curator. Returns the tests of each
        level, then the noisy counts, as bytes (little-endian int64).
        """
        levels: tuple[Integers, ...] = ()
        for _ in range(self.depth):
            chosen = curator.select_each(self.scores(levels), self.selection)
            levels = (*levels, np.array(chosen, np.int64))
        sizes = curator.measure(self.leaves(levels), self.counting)
        return np.concatenate([*levels, sizes]).astype("<i8").tobytes()

    def grown(self, body: bytes) -> tuple[tuple[Integers, ...], Floats]:
        """Decodes a stored answer: the tests of each level, and the class shares of each leaf."""
        numbers = np.frombuffer(body, "<i8").astype(np.int64)
        inner = (1 << self.depth) - 1
        ends = [(1 << level) - 1 for level in range(1, self.depth)]
        levels = tuple(np.split(numbers[:inner], ends))
        sizes = numbers[inner:].reshape(-1, self.sorting.classes) / self.sorting.weight
        return levels, shares_of(sizes, self.noise)


def shares_of(sizes: Floats, noise: float) -> Floats:
    """Returns the class shares of each leaf, smoothed: each node is drawn towards its parent.

    ``sizes`` has one row of noisy class counts per leaf; ``noise`` is the standard deviation of
    each.

    >>> shares_of(np.array([[9.0, 1.0], [0.0, 90.0]]), 0.0).round(2).tolist()
    [[0.83, 0.17], [0.0, 1.0]]
    """
    levels = [sizes]
    while len(levels[0]) > 1:
        levels.insert(0, levels[0].reshape(-1, 2, sizes.shape[1]).sum(axis=1))
    shares = np.full((1, sizes.shape[1]), 1 / sizes.shape[1])
    for place, level in enumerate(levels):
        deviation = noise * math.sqrt(2 ** (len(levels) - 1 - place))
        drawn = (_DAMPED * deviation + 1) * shares + np.maximum(level, 0)
        shares = np.repeat(drawn / drawn.sum(axis=1, keepdims=True), 2, axis=0)
    found: Floats = shares[::2]
    return found
