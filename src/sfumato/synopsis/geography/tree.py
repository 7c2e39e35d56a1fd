# SPDX-License-Identifier: Apache-2.0
"""The shape of a spine: the parent of each area."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from sfumato.noise import Integers

Floats = npt.NDArray[np.float64]
Numbers = TypeVar("Numbers", Integers, Floats)


@dataclass(frozen=True, eq=False)
class Tree:
    """The tree of areas of a geography, level by level, the widest first.

    The areas of each level are numbered from 0. ``parents[k]`` has, for each area of level k + 1,
    the number of its parent in level k. It ascends, and every area but those of the last level has
    a child.

    >>> tree = Tree(1, (np.array([0, 0]), np.array([0, 1, 1])))
    >>> tree.sizes, tree.gathered(1, np.array([5, 6, 7])).tolist()
    ((1, 2, 3), [5, 13])
    """

    roots: int
    parents: tuple[Integers, ...]

    @property
    def levels(self) -> int:
        """The number of levels."""
        return len(self.parents) + 1

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of areas of each level."""
        return (self.roots, *map(len, self.parents))

    @cached_property
    def starts(self) -> tuple[Integers, ...]:
        """For each level but the last, the index of the first child of each of its areas."""
        found = []
        for parents in self.parents:
            first = np.flatnonzero(np.diff(parents, prepend=-1))
            found.append(first.astype(np.int64))
        return tuple(found)

    def gathered(self, level: int, values: Numbers) -> Numbers:
        """Returns, for each area of a level, the sum of the values of its children."""
        total: Numbers = np.add.reduceat(values, self.starts[level], axis=0)
        return total

    def spread(self, level: int, values: Numbers) -> Numbers:
        """Returns, for each area of the next level, the value of its parent in this level."""
        found: Numbers = values[self.parents[level]]
        return found

    def upto(self, level: int) -> "Tree":
        """Returns the tree without the levels below ``level``."""
        return Tree(self.roots, self.parents[:level])

    def ancestors(self, level: int) -> Integers:
        """Returns the number of each last-level area's ancestor at a level."""
        found = np.arange(self.sizes[-1], dtype=np.int64)
        for parents in reversed(self.parents[level:]):
            found = parents[found]
        return found

    @property
    def digest(self) -> str:
        """A hash of the whole shape, for the key of an answer."""
        found = hashlib.sha256(f"{self.roots}".encode())
        for parents in self.parents:
            found.update(f"/{len(parents)}/".encode())
            found.update(np.ascontiguousarray(parents, "<i8").tobytes())
        return found.hexdigest()
