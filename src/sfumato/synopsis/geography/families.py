# SPDX-License-Identifier: Apache-2.0
"""Groups areas whose subtrees have the same shape, to compute exact errors of large spines fast.

The variance of an area follows from the shape of the tree alone, so siblings whose subtrees have
the same shape have the same variance. A tree of 100,000 areas becomes one of a few thousand
families, on which the error of a split of the cost and its gradient are two passes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sfumato.noise import Integers
from sfumato.synopsis.geography.tree import Floats, Tree


@dataclass(frozen=True, eq=False)
class Families:
    """A tree of areas in which siblings with subtrees of the same shape are merged, so that
    variances are computed once for all of them.

    Each area stands for ``times`` siblings.

    >>> tree = Tree(1, (np.array([0, 0, 0]), np.array([0, 0, 1, 1, 2])))
    >>> found = Families.of(tree)
    >>> found.tree.sizes, [each.tolist() for each in found.times]
    ((1, 2, 2), [[1], [2, 1], [2, 1]])
    """

    tree: Tree
    times: tuple[Integers, ...]

    @classmethod
    def of(cls, tree: Tree) -> "Families":
        """Returns the merged tree of a tree of areas."""
        shapes = _shapes(tree)
        representatives = np.arange(tree.roots)
        parents = []
        times = [np.ones(tree.roots, np.int64)]
        for level, above in enumerate(tree.parents):
            number = np.full(tree.sizes[level], -1)
            number[representatives] = np.arange(len(representatives))
            inside = np.flatnonzero(number[above] >= 0)
            pairs = np.stack(
                [
                    number[above[inside]],
                    shapes[level + 1][inside],
                ]
            )
            joined, first, count = np.unique(
                pairs,
                axis=1,
                return_index=True,
                return_counts=True,
            )
            representatives = inside[first]
            parents.append(joined[0])
            times.append(count)
        return cls(Tree(tree.roots, tuple(parents)), tuple(times))

    def upto(self, level: int) -> "Families":
        """Returns the merged tree without the levels below ``level``."""
        return Families(self.tree.upto(level), self.times[: level + 1])

    @property
    def counts(self) -> list[Floats]:
        """For each level, the number of areas of the original tree that each merged area
        represents.
        """
        found = [self.times[0].astype(float)]
        for level, times in enumerate(self.times[1:]):
            found.append(times * self.tree.spread(level, found[level]))
        return found

    def variances(self, precisions: Sequence[float]) -> "Passes":
        """Returns the exact least-squares variances of the areas, given the precision of each
        level's measurement.
        """
        below = [
            np.full(
                self.tree.sizes[-1],
                1 / precisions[-1],
            )
        ]
        sums = []
        for level in range(self.tree.levels - 2, -1, -1):
            total = self.tree.gathered(level, self.times[level + 1] * below[-1])
            sums.append(total)
            below.append(1 / (precisions[level] + 1 / total))
        below, sums = below[::-1], sums[::-1]
        after = [below[0]]
        for level, total in enumerate(sums):
            short = (total - after[level]) / total**2
            after.append(below[level + 1] - below[level + 1] ** 2 * self.tree.spread(level, short))
        return Passes(self, below, sums, after)


@dataclass(frozen=True, eq=False)
class Passes:
    """Both passes of least squares over the families.

    ``below`` are the variances from each subtree alone, ``sums`` those of the sums of children,
    ``after`` the final variances.
    """

    families: Families
    below: list[Floats]
    sums: list[Floats]
    after: list[Floats]

    @property
    def means(self) -> Floats:
        """The mean variance of the areas of each level."""
        counts = self.families.counts
        found = []
        for count, variance in zip(counts, self.after, strict=True):
            found.append(float(count @ variance / count.sum()))
        return np.array(found)

    def slopes(self, weights: Sequence[float]) -> Floats:
        """Returns the derivative of the weighted sum of ``means`` by the precision of each level.

        It is reverse-mode differentiation: back through the pass down, then through the pass up.
        """
        tree = self.families.tree
        towards_after = []
        for weight, count in zip(weights, self.families.counts, strict=True):
            towards_after.append(weight * count / count.sum())
        towards_below: list[Floats] = [np.zeros(size) for size in tree.sizes]
        towards_sums: list[Floats] = [np.zeros(size) for size in tree.sizes[:-1]]
        for level in range(tree.levels - 2, -1, -1):
            total = self.sums[level]
            after = self.after[level]
            child = self.below[level + 1]
            moved = towards_after[level + 1]
            short = tree.spread(level, (total - after) / total**2)
            towards_below[level + 1] = moved * (1 - 2 * child * short)
            energy = tree.gathered(level, moved * child**2)
            towards_after[level] = towards_after[level] + energy / total**2
            towards_sums[level] = energy * (1 / total**2 - 2 * after / total**3)
        towards_below[0] = towards_after[0]
        return self._upward(towards_below, towards_sums)

    def _upward(
        self,
        towards_below: list[Floats],
        towards_sums: list[Floats],
    ) -> Floats:
        """Returns the slopes, back through the pass up."""
        tree = self.families.tree
        times = self.families.times
        slopes = np.zeros(tree.levels)
        for level, below in enumerate(self.below):
            towards = -towards_below[level] * below**2
            slopes[level] = towards.sum()
            if level < tree.levels - 1:
                through = towards_sums[level] - towards / self.sums[level] ** 2
                passed = times[level + 1] * tree.spread(level, through)
                towards_below[level + 1] = towards_below[level + 1] + passed
        return slopes


def _shapes(tree: Tree) -> list[Integers]:
    """For each area of each level, the number of the shape of its subtree."""
    shapes_by_level = [np.zeros(tree.sizes[-1], np.int64)]
    for level in range(tree.levels - 2, -1, -1):
        below = shapes_by_level[-1]
        starts = [
            *tree.starts[level].tolist(),
            len(below),
        ]
        seen: dict[bytes, int] = {}
        shapes = []
        for start, end in pairwise(starts):
            key = np.sort(below[start:end]).tobytes()
            shapes.append(seen.setdefault(key, len(seen)))
        shapes_by_level.append(np.array(shapes, np.int64))
    return shapes_by_level[::-1]
