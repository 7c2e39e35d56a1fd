# SPDX-License-Identifier: Apache-2.0
"""Compiled constraints: combinations of cells that no row may have. They are public, always
kept.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np

from sfumato.noise import Integers
from sfumato.synthetic.merging import Merging
from sfumato.synthetic.schema import Floats
from sfumato.synthetic.tree import Clique, JunctionTree, Truths, cells_of, components

# The logarithm of what cannot occur; its exponential is 0.
IMPOSSIBLE = -1e6


@dataclass(frozen=True, eq=False)
class Rule:
    """A compiled constraint: which combinations of cells of some columns a row may have.

    >>> rule = Rule((0, 1), np.array([[True, False], [True, True], [True, True]]))
    >>> rule.classes(0).tolist()
    [0, 1, 1]
    """

    columns: Clique
    allowed: Truths

    def classes(self, column: int) -> Integers:
        """Returns a class number for each cell of a column; cells of one class have the same
        allowed combinations.
        """
        rows = np.moveaxis(self.allowed, self.columns.index(column), 0)
        flat = rows.reshape(len(rows), -1)
        return np.unique(flat, axis=0, return_inverse=True)[1].ravel()

    def among(self, cells: Mapping[int, Integers]) -> Truths:
        """Returns the allowed combinations of selected cells of each column."""
        table = self.allowed
        for axis, column in enumerate(self.columns):
            table = table.take(cells[column], axis=axis)
        return table

    def blocks(self, merges: Sequence[Merging]) -> Truths:
        """Returns the allowed combinations of blocks; the rule treats the cells of a block
        alike.
        """
        return self.among({column: merges[column].firsts for column in self.columns})

    def logarithms(self, merges: Sequence[Merging]) -> Floats:
        """Returns the logarithm of 1 (allowed) or 0 (forbidden) for each combination of blocks."""
        return np.where(self.blocks(merges), 0.0, IMPOSSIBLE)


def kinds(rules: Sequence[Rule], column: int, cells: int) -> Integers:
    """Returns a class number for each cell of a column; cells of one class have the same allowed
    combinations under every rule.

    >>> kinds([], 0, 3).tolist()
    [0, 0, 0]
    """
    classes = [rule.classes(column) for rule in rules if column in rule.columns]
    if not classes:
        return np.zeros(cells, np.int64)
    return np.unique(np.array(classes), axis=1, return_inverse=True)[1].ravel()


@dataclass(frozen=True, eq=False)
class Together:
    """Constraints that share columns, solved together to find which cells of some columns
    (``asked``) can occur.

    Cells that the constraints treat alike are reduced to one per class. ``sizes`` are the numbers
    of cells of all columns; ``asked`` are the columns of interest.

    >>> equal, other = np.eye(2, dtype=bool), ~np.eye(2, dtype=bool)
    >>> rules = Rule((0, 1), other), Rule((1, 2), other), Rule((0, 2), equal)
    >>> Together(rules, (2, 2, 2)).allowed().item(), Together(rules[:2], (2, 2, 2), (0,)).allowed()
    (True, array([ True,  True]))
    """

    rules: tuple[Rule, ...]
    sizes: tuple[int, ...]
    asked: Clique = ()

    @cached_property
    def columns(self) -> Clique:
        """The columns of the rules, and the columns of interest."""
        listed = {*self.asked, *chain.from_iterable(rule.columns for rule in self.rules)}
        return tuple(sorted(listed))

    @cached_property
    def _kinds(self) -> dict[int, Integers]:
        """The class of each cell, by column."""
        return {column: kinds(self.rules, column, self.sizes[column]) for column in self.columns}

    @cached_property
    def _shape(self) -> list[int]:
        """The number of classes of each column."""
        return [int(of.max()) + 1 for of in self._kinds.values()]

    def _places(self, columns: Clique) -> Clique:
        """Returns the indices of columns among those of the rules."""
        return tuple(self.columns.index(column) for column in columns)

    @cached_property
    def _cliques(self) -> list[Clique]:
        """The columns of each rule, and those of interest."""
        return [*(self._places(rule.columns) for rule in self.rules), self._places(self.asked)]

    @property
    def cells(self) -> int:
        """The number of combinations of classes to try."""
        return cells_of(self._shape, self._cliques)

    def allowed(self) -> Truths:
        """Returns which cells of the columns of interest occur in a row that all rules allow.

        Without such columns, returns whether there is such a row.
        """
        firsts = {}
        for column, of in self._kinds.items():
            firsts[column] = np.unique(of, return_index=True)[1]
        tree = JunctionTree.over(self._shape, self._cliques)
        parts = [(self._places(rule.columns), rule.among(firsts)) for rule in self.rules]
        asked = self._places(self.asked)
        home = tree.home(asked)
        found = np.asarray(tree.possible(parts)[home].any(axis=tree.others(home, asked)))
        for axis, column in enumerate(self.asked):
            found = found.take(self._kinds[column], axis=axis)
        return found


def together(rules: Sequence[Rule], sizes: tuple[int, ...]) -> list[Together]:
    """Groups rules that share columns, directly or through other rules."""
    within = components(len(sizes), [rule.columns for rule in rules])
    found: dict[int, list[Rule]] = {}
    for rule in rules:
        found.setdefault(within[rule.columns[0]], []).append(rule)
    return [Together(tuple(each), sizes) for each in found.values()]
