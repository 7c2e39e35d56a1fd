# SPDX-License-Identifier: Apache-2.0
"""The tables of each level of a census, and the residuals that they determine.

``plan`` and ``least_squares`` build on it. A table counts the rows of each area by some axes. The
residual of a set A of axes is the part of the table by A that the tables by fewer axes do not
determine: it adds up to 0 along each axis of A. Residuals are orthogonal, so least squares of all
tables of all levels separates into one problem for each residual, about numbers of areas that add
up to their parents (``tree_squares``). A table by S of precision w (one over the variance of its
noise) measures the residual of each subset A of S with precision w / n(S - A), where n is the
number of cells along some axes. Source: for one area Xiao et al. (2023), "An optimal and scalable
matrix mechanism for noisy marginals".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TypeAlias

from sfumato.synopsis.geography.tree import Floats, Tree

# Some axes, by their numbers, ascending.
Axes: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Design:
    """Which tables are measured at each level of a tree of areas.

    A table is a pair of a level and axes; ``sizes`` are the numbers of cells of all axes.
    ``tables`` are in the order of levels. The last level has a table.

    >>> import numpy as np
    >>> tree = Tree(1, (np.array([0, 0]),))
    >>> design = Design(tree, (3, 2), ((0, (0, 1)), (1, (1,))))
    >>> design.detail(0), design.detail(1), design.residuals(1), design.chain(0)
    ((0, 1), (1,), ((), (1,)), ((), (1,), (0, 1)))
    """

    tree: Tree
    sizes: tuple[int, ...]
    tables: tuple[tuple[int, Axes], ...]

    def cells(self, axes: Sequence[int]) -> int:
        """Returns the number of cells of a table by some axes."""
        return math.prod(self.sizes[axis] for axis in axes)

    def detail(self, level: int) -> Axes:
        """Returns the axes of a level's detail table: all axes of the tables of this level and of
        those below.
        """
        found: set[int] = set()
        for place, axes in self.tables:
            if place >= level:
                found |= set(axes)
        return tuple(sorted(found))

    def chain(self, level: int) -> tuple[Axes, ...]:
        """Returns an increasing chain of axes of a level, from () to those of the detail table.

        The level's own tables come first, the smaller before the larger, then those of the levels
        below.
        """
        order = sorted(
            self.tables,
            key=lambda each: (
                each[0] != level,
                self.cells(each[1]),
            ),
        )
        found: list[Axes] = [(), self.detail(level)]
        for place, axes in order:
            nested = all(set(axes) < set(other) or set(other) < set(axes) for other in found)
            if place >= level and nested:
                found.append(axes)
        return tuple(sorted(set(found), key=len))

    def residuals(self, level: int) -> tuple[Axes, ...]:
        """Returns the residuals (interactions of some axes, orthogonal to those of fewer) that the
        measured tables determine in each area of a level, smallest first.
        """
        found = {part for part, deepest in self.deepest.items() if deepest >= level}
        return tuple(sorted(found, key=lambda axes: (len(axes), axes)))

    def is_complete(self, level: int) -> bool:
        """Whether tables of the level or below determine every cell of its detail table."""
        return self.detail(level) in self.deepest and self.deepest[self.detail(level)] >= level

    @cached_property
    def deepest(self) -> dict[Axes, int]:
        """For each residual, the deepest level with a table that measures it."""
        found: dict[Axes, int] = {}
        for level, axes in self.tables:
            for part in parts(axes):
                found[part] = max(found.get(part, 0), level)
        return found

    def precisions(self, residual: Axes, table_precisions: Sequence[float]) -> tuple[float, ...]:
        """Returns, for each level, the precision (1 / variance) with which its tables measure a
        residual.

        ``table_precisions`` has the precision of each table.
        """
        level_precisions = [0.0] * (self.deepest[residual] + 1)
        for (level, axes), precision in zip(self.tables, table_precisions, strict=True):
            if set(residual) <= set(axes):
                level_precisions[level] += precision / self.outside(residual, axes)
        return tuple(level_precisions)

    def outside(self, residual: Axes, axes: Axes) -> int:
        """Returns the product of the sizes of those of the axes that are not among the
        residual's.
        """
        return self.cells([axis for axis in axes if axis not in residual])

    def counted(self, residual: Axes, axes: Axes) -> float:
        """Returns the factor by which a residual's variance contributes to the variance of a cell
        of a table with these axes.
        """
        kept = math.prod(1 - 1 / self.sizes[axis] for axis in residual)
        return kept / self.outside(residual, axes) ** 2


def parts(axes: Axes) -> list[Axes]:
    """Returns all subsets of a set of axes, from the empty set to all of them.

    >>> parts((0, 2))
    [(), (0,), (2,), (0, 2)]
    """
    found: list[Axes] = []
    for size in range(len(axes) + 1):
        found += combinations(axes, size)
    return found


def residual_of(values: Floats, axes: Axes, residual: Axes) -> Floats:
    """Returns the residual part (the pure interaction of the axes ``residual``) of tables by some
    axes; the first dimension is the areas.
    """
    dropped = [axes.index(axis) + 1 for axis in axes if axis not in residual]
    found = values.sum(axis=tuple(dropped)) if dropped else values
    for place in range(1, found.ndim):
        found = found - found.mean(axis=place, keepdims=True)
    return found


def spread_over(
    values: Floats,
    residual: Axes,
    axes: Axes,
    outside: int,
) -> Floats:
    """Returns a residual's values as an array that broadcasts to tables with the given axes.

    Each cell of a table gets the share that the residual adds to it; ``outside`` is the number of
    cells of the axes that the table sums over.
    """
    shape = [len(values)]
    sizes = dict(zip(residual, values.shape[1:], strict=True))
    shape += [sizes.get(axis, 1) for axis in axes]
    return values.reshape(shape) / outside
