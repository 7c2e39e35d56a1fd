# SPDX-License-Identifier: Apache-2.0
"""The recipe ``Forest``: several decision trees under one cost, each without some of the
columns.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import accumulate
from typing import ClassVar

import numpy as np

from sfumato.errors import WrongUse, shown
from sfumato.learning.decision_tree import DecisionTree, Growth
from sfumato.learning.examples_of import Examples
from sfumato.learning.features import Features
from sfumato.learning.recipe import Asked, OneRelease, Planned, Recipe
from sfumato.learning.split_scores import Sorting
from sfumato.learning.trees import Grown, Trees
from sfumato.metadata.dataset import Dataset
from sfumato.noise import Integers
from sfumato.plan.rows import BoundedRows
from sfumato.plan.show import form
from sfumato.privacy.event import Composed, Event
from sfumato.query.allowance import Allowance
from sfumato.query.cost import Cost
from sfumato.query.curator import Curator

_MOST_TREES = 100
# A tree leaves out one of so many features.
_LEFT_OUT = 3


@dataclass(frozen=True, slots=True)
class Forest(Recipe[Trees]):
    """The mean of ``trees`` decision trees that share the cost equally.

    Each tree leaves out a third of the features, a different third than the tree before. ``edges``,
    ``bins`` and ``depth`` are those of ``DecisionTree``. Compared with one tree of the same cost, a
    forest ranks rows better, but its predictions are not more often right. The cost is a pure
    epsilon, a rho (for which trees are cheaper), or an epsilon with a delta.

    >>> Forest(depth=4).trees
    4
    """

    edges: Mapping[str, Sequence[float]] = field(default_factory=dict)
    bins: int = 64
    depth: int = 5
    trees: int = 4

    def __post_init__(self) -> None:
        # its own arguments are refused as those of a tree
        DecisionTree(self.edges, self.bins, self.depth)
        if type(self.trees) is not int or not 1 <= self.trees <= _MOST_TREES:
            raise WrongUse(f"trees={shown(self.trees)}.", allowed="a whole number from 1 to 100")

    def task(
        self,
        examples: Examples,
        allowed: Allowance,
    ) -> "ForestGrowth":
        """Returns the task that grows all trees of a private forest on these examples, each at an
        equal share of the allowed cost; nothing is charged.

        Raises:
            WrongUse: as ``DecisionTree``.
        """
        all_features = (
            DecisionTree(self.edges, self.bins, self.depth).task(examples, allowed).sorting
        )
        share = replace(allowed, amount=allowed.amount / self.trees)
        growths = []
        for tree in range(self.trees):
            kept = kept_features(len(all_features.places), tree)
            growths.append(Growth(_with_features(all_features, kept), self.depth, share))
        return ForestGrowth(all_features, tuple(growths))

    def planned(
        self,
        examples: Examples,
        asked: Asked,
        orders: Collection[Fraction],
    ) -> Planned[Trees]:
        """Returns the planned fit of a forest: one task with the private selections and the noisy
        leaf counts of each tree.
        """
        task = self.task(examples, asked.allowance)

        def made(body: bytes, cost: Cost, charge: str) -> Trees:
            features, classes = task.whole.features, examples.classes
            return Trees(features, examples.columns, task.grown(body), classes, cost, charge)

        first = task.growths[0]
        return OneRelease(task, first.cells[0], first.noise, made, self.trees)


def kept_features(count: int, tree: int) -> tuple[int, ...]:
    """Returns the indices of the features of a tree: all but a third if there are at least three.

    >>> kept_features(6, 0), kept_features(6, 1), kept_features(2, 5)
    ((1, 2, 4, 5), (0, 2, 3, 5), (0, 1))
    """
    if count < _LEFT_OUT:
        return tuple(range(count))
    return tuple(place for place in range(count) if (place - tree) % _LEFT_OUT)


def _with_features(sorting: Sorting, feature_places: tuple[int, ...]) -> Sorting:
    """Returns the sorting restricted to some of the features."""
    features = Features(tuple(sorting.features.parts[place] for place in feature_places))
    places = tuple(sorting.places[place] for place in feature_places)
    return Sorting(sorting.plan, features, places, sorting.label)


@dataclass(frozen=True, slots=True)
class ForestGrowth:
    """The task that grows several trees; ``whole`` sorts rows by all features."""

    whole: Sorting
    growths: tuple[Growth, ...]

    kind: ClassVar[str] = "training"

    @property
    def line(self) -> str:
        """The number of trees."""
        return f"forest of {len(self.growths)} trees"

    @property
    def form(self) -> str:
        """The canonical form of the plan, the features and the trees."""
        return form(self)

    @property
    def event(self) -> Event:
        """The event of all trees."""
        return Composed(tuple(growth.event for growth in self.growths))

    @property
    def cells(self) -> tuple[int, ...]:
        """The number of class counts of the leaves of each tree."""
        return tuple(growth.cells[0] for growth in self.growths)

    @property
    def size(self) -> int:
        """The exact number of bytes of the answer."""
        return sum(growth.size for growth in self.growths)

    def ready(self, declarations: Dataset) -> BoundedRows:
        """The bounded rows."""
        return self.whole.plan

    def run(self, curator: Curator) -> bytes:
        """Returns the trees as bytes, each as ``Growth`` writes it."""
        return b"".join(growth.run(curator) for growth in self.growths)

    def grown(self, body: bytes) -> tuple[Grown, ...]:
        """Reads the trees of an answer; their tests are numbered as coordinates of all features."""
        ends = list(accumulate(growth.size for growth in self.growths))
        found = []
        for tree, (growth, end) in enumerate(zip(self.growths, ends, strict=True)):
            levels, shares = growth.grown(body[end - growth.size : end])
            moved = self._moved(tree)
            found.append(Grown(tuple(moved[level] for level in levels), shares))
        return tuple(found)

    def _moved(self, tree: int) -> Integers:
        """Returns, for each coordinate of the features of a tree, its number among all features."""
        starts = self.whole.features.starts
        parts = self.whole.features.parts
        kept = kept_features(len(parts), tree)
        return np.concatenate(
            [np.arange(starts[place], starts[place] + parts[place].width) for place in kept]
        ).astype(np.int64)
