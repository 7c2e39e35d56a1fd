# SPDX-License-Identifier: Apache-2.0
"""Junction trees: joint distributions as exact arithmetic on small tables over cliques of columns.

``estimate`` fits their potentials, ``rows`` draws from them. Source: Lauritzen and Spiegelhalter
(1988); triangulation by least fill and least cells.

Source: Lauritzen and Spiegelhalter (1988); triangulation by least fill and least cells.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from string import ascii_letters
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sfumato.synthetic.schema import Floats

# Positions of columns, ascending.
Clique: TypeAlias = tuple[int, ...]
# A table for each clique of a tree.
Tables: TypeAlias = list[Floats]
# A table over some columns.
Part: TypeAlias = tuple[Clique, Floats]
# Whether each combination of cells of some columns can occur.
Truths: TypeAlias = npt.NDArray[np.bool_]

_TINY = 1e-300
# Tables of so many cells, and of at most so many axes, are summed by einsum.
_LARGE, _MOST_AXES = 1000, 32


def _triangulate(sizes: Sequence[int], cliques: Iterable[Clique]) -> list[Clique]:
    """Returns the maximal cliques of a chordal graph that contains all given cliques.

    Columns are eliminated one by one: first those that add no edge, then those with the smallest
    table.

    >>> _triangulate([2, 2, 2, 2], [(0, 1), (1, 2), (2, 3), (0, 3)])
    [(0, 1, 3), (1, 2, 3)]
    """
    near: list[set[int]] = [set() for _ in sizes]
    for clique in cliques:
        for one, other in combinations(clique, 2):
            near[one].add(other)
            near[other].add(one)
    columns_left = set(range(len(sizes)))
    costs = {column: _elimination_cost(column, near, sizes) for column in columns_left}
    maximal_cliques: list[frozenset[int]] = []
    while columns_left:
        column = min(columns_left, key=lambda other: (costs[other], other))
        eliminated = frozenset(near[column] | {column})
        if not any(eliminated <= other for other in maximal_cliques):
            maximal_cliques.append(eliminated)
        touched = _eliminate(column, near)
        columns_left.remove(column)
        for neighbour in touched & columns_left:
            costs[neighbour] = _elimination_cost(neighbour, near, sizes)
    return [tuple(sorted(clique)) for clique in maximal_cliques]


def _elimination_cost(column: int, near: list[set[int]], sizes: Sequence[int]) -> tuple[bool, int]:
    """Returns whether eliminating a column adds an edge, and the number of cells of its clique."""
    neighbours = near[column]
    fills = any(not neighbours <= near[each] | {each} for each in neighbours)
    return fills, math.prod(sizes[each] for each in neighbours) * sizes[column]


def _eliminate(column: int, near: list[set[int]]) -> set[int]:
    """Connects the neighbours of a column and removes it; returns the columns whose costs
    change.
    """
    neighbours = near[column]
    touched = set(neighbours)
    for neighbour in neighbours:
        added = neighbours - near[neighbour] - {neighbour}
        if added:
            near[neighbour] |= added
            # an added edge can also save a common neighbour from filling
            touched |= near[neighbour]
        near[neighbour].discard(column)
    return touched


def components(columns: int, cliques: Iterable[Clique]) -> list[int]:
    """Returns the connected component of each column in the graph of the cliques.

    >>> components(4, [(0, 2), (2, 3)])
    [0, 1, 0, 0]
    """
    found = list(range(columns))
    for first, *others in cliques:
        for other in others:
            old, new = found[other], found[first]
            found = [new if each == old else each for each in found]
    return found


def cells_of(sizes: Sequence[int], cliques: Iterable[Clique]) -> int:
    """Returns the number of cells of all tables of the junction tree of these cliques."""
    total = 0
    for clique in _triangulate(sizes, cliques):
        total += math.prod(sizes[each] for each in clique)
    return total


def summed_over(table: Floats, columns: Clique, kept: Clique) -> Floats:
    """Returns the marginal of a table of numbers on the columns ``kept``: its sum over all others.

    The axes of the result are those columns in ascending order. ``einsum`` takes a third of the
    time of ``sum`` if a large table has short axes.

    >>> summed_over(np.array([[1.0, 2.0], [3.0, 4.0]]), (5, 7), (7,)).tolist()
    [4.0, 6.0]
    """
    if kept == columns:
        return table
    sums: Floats
    if table.size < _LARGE or table.ndim > _MOST_AXES:
        sums = table.sum(axis=tuple(at for at, each in enumerate(columns) if each not in kept))
    else:
        axes = ascii_letters[: table.ndim]
        left = [axis for axis, each in zip(axes, columns, strict=True) if each in kept]
        sums = np.einsum(f"{axes}->{''.join(left)}", table)
    return sums


@dataclass(frozen=True)
class JunctionTree:
    """A tree of cliques (sets of columns), over which a joint distribution is computed from small
    tables.

    Each clique follows its parent, with which it shares columns; ``parents`` has -1 for the first.
    A clique that shares no column with any other has a parent too, with an empty separator.

    >>> chain = JunctionTree.over([2, 3, 2], [(0, 1), (1, 2)])
    >>> chain.cliques, chain.parents, chain.separators
    (((0, 1), (1, 2)), (-1, 0), ((), (1,)))
    """

    sizes: tuple[int, ...]
    cliques: tuple[Clique, ...]
    parents: tuple[int, ...]

    @classmethod
    def over(cls, sizes: Sequence[int], cliques: Iterable[Clique]) -> "JunctionTree":
        """Returns a junction tree that contains all columns and the given cliques.

        It is a maximum spanning tree by the size of separators (Prim).
        """
        maximal_cliques = _triangulate(sizes, cliques)
        order, parents = [0], [-1]
        best = {
            clique: (len(set(maximal_cliques[clique]) & set(maximal_cliques[0])), 0)
            for clique in range(1, len(maximal_cliques))
        }
        while best:
            nearest = max(best, key=lambda clique: best[clique][0])
            parents.append(best.pop(nearest)[1])
            order.append(nearest)
            for clique, (shared, _) in best.items():
                closer = len(set(maximal_cliques[clique]) & set(maximal_cliques[nearest]))
                if closer > shared:
                    best[clique] = closer, len(order) - 1
        return cls(tuple(sizes), tuple(maximal_cliques[clique] for clique in order), tuple(parents))

    @cached_property
    def separators(self) -> tuple[Clique, ...]:
        """The columns that each clique shares with its parent."""
        shared: list[Clique] = [()]
        for clique, parent in zip(self.cliques[1:], self.parents[1:], strict=True):
            shared.append(tuple(sorted(set(clique) & set(self.cliques[parent]))))
        return tuple(shared)

    def shape(self, place: int) -> tuple[int, ...]:
        """Returns the shape of the table of a clique, given its index."""
        return tuple(self.sizes[each] for each in self.cliques[place])

    def summed(self, parts: Iterable[Part]) -> Tables:
        """Adds up tables clique by clique: each table is added to the clique that contains its
        columns.

        Cliques without such a table get zeros.
        """
        tables = [np.zeros(self.shape(place)) for place in range(len(self.cliques))]
        for columns, table in parts:
            home = self.home(columns)
            tables[home] = tables[home] + self.spread(home, columns, table)
        return tables

    @cached_property
    def cells(self) -> int:
        """The number of cells of all tables."""
        return sum(math.prod(self.shape(place)) for place in range(len(self.cliques)))

    @cached_property
    def _neighbours(self) -> list[list[int]]:
        """The parent and the children of each clique."""
        near: list[list[int]] = [[] for _ in self.cliques]
        for place, parent in enumerate(self.parents[1:], start=1):
            near[place].append(parent)
            near[parent].append(place)
        return near

    def rooted(self, root: int) -> tuple["JunctionTree", list[int]]:
        """Returns the same tree with another clique first, and the index here of each of its
        cliques.

        >>> chain = JunctionTree.over([2, 3, 2], [(0, 1), (1, 2)])
        >>> again, order = chain.rooted(1)
        >>> again.cliques, again.parents, order
        (((1, 2), (0, 1)), (-1, 0), [1, 0])
        """
        order, parents = [root], [-1]
        for place, one in enumerate(order):
            for other in self._neighbours[one]:
                if other not in order:
                    order.append(other)
                    parents.append(place)
        cliques = tuple(self.cliques[each] for each in order)
        return JunctionTree(self.sizes, cliques, tuple(parents)), order

    def possible(self, parts: Iterable[tuple[Clique, Truths]]) -> list[Truths]:
        """Returns which cells of each clique are possible, given tables of allowed combinations.

        A cell is possible if it is part of a row that all tables allow. Makes one pass to the root
        and one back, so any choice in a clique can be completed in the others.
        """
        tables = [np.ones(self.shape(place), bool) for place in range(len(self.cliques))]
        for columns, allowed in parts:
            home = self.home(columns)
            tables[home] &= self.spread(home, columns, allowed)
        for place in range(len(tables) - 1, 0, -1):
            parent, separator = self.parents[place], self.separators[place]
            left = np.asarray(tables[place].any(axis=self.others(place, separator)))
            tables[parent] &= self.spread(parent, separator, left)
        for place in range(1, len(tables)):
            parent, separator = self.parents[place], self.separators[place]
            left = np.asarray(tables[parent].any(axis=self.others(parent, separator)))
            tables[place] &= self.spread(place, separator, left)
        return tables

    def growths(self, column: int) -> list[int]:
        """Returns, for each clique, at most how many cells the tree gains if ``column`` is added to
        it.

        The column is also added to every clique on the path from those that have it.
        """
        near = self._neighbours
        growths = [-1] * len(self.cliques)
        reached = [at for at, clique in enumerate(self.cliques) if column in clique]
        for place in reached:
            growths[place] = 0
        for place in reached:
            for other in near[place]:
                if growths[other] < 0:
                    more = math.prod(self.shape(other)) * (self.sizes[column] - 1)
                    growths[other] = growths[place] + more
                    reached.append(other)
        return growths

    def home(self, columns: Clique) -> int:
        """Returns the index of the clique with the fewest cells that contains these columns; -1 if
        there is none.
        """
        wanted = set(columns)
        homes = [at for at, clique in enumerate(self.cliques) if wanted <= set(clique)]
        return min(homes, key=lambda at: math.prod(self.shape(at)), default=-1)

    def others(self, clique_index: int, columns: Clique) -> tuple[int, ...]:
        """Returns the axis numbers of a clique's table that belong to none of these columns."""
        return tuple(
            at for at, each in enumerate(self.cliques[clique_index]) if each not in columns
        )

    def spread(
        self,
        clique_index: int,
        columns: Clique,
        table: npt.NDArray[Any],
    ) -> npt.NDArray[Any]:
        """Reshapes a table over some columns so that it broadcasts to the table of a clique."""
        shape = [1] * len(self.cliques[clique_index])
        for at, each in enumerate(self.cliques[clique_index]):
            if each in columns:
                shape[at] = self.sizes[each]
        return table.reshape(shape)

    def projected(self, clique_index: int, columns: Clique, table: Floats) -> Floats:
        """Returns a clique's table summed over all columns except these, which are in ascending
        order.
        """
        return summed_over(table, self.cliques[clique_index], columns)

    def marginals(self, potentials: Tables, total: float) -> Tables:
        """Returns the clique marginals of the distribution whose logarithm is the sum of the
        potentials.

        They are scaled to a total. It makes one pass to the root and one back.
        """
        tables = list(potentials)
        scaled: list[tuple[Floats, Floats]] = []
        for place in range(len(tables) - 1, 0, -1):
            separator = self.separators[place]
            exponentials, message = self._message_upward(place, tables[place])
            scaled.append((exponentials, message))
            parent = self.parents[place]
            added = np.log(np.maximum(message, _TINY)) + tables[place].max()
            tables[parent] = tables[parent] + self.spread(parent, separator, added)
        root = np.exp(tables[0] - tables[0].max())
        marginals = [root * (total / root.sum())]
        for place in range(1, len(tables)):
            exponentials, have = scaled[len(tables) - 1 - place]
            parent, separator = self.parents[place], self.separators[place]
            wanted = self.projected(parent, separator, marginals[parent])
            share = wanted / np.maximum(have, _TINY)
            exponentials *= self.spread(place, separator, share)
            marginals.append(exponentials)
        return marginals

    def _message_upward(self, clique_index: int, table: Floats) -> tuple[Floats, Floats]:
        """Returns the exponentials of a table, scaled to at most 1, and their sums over the
        separator.
        """
        exponentials = np.exp(table - table.max())
        return exponentials, self.projected(
            clique_index, self.separators[clique_index], exponentials
        )
