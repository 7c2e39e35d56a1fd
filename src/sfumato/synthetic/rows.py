# SPDX-License-Identifier: Apache-2.0
"""Draws rows from a junction tree: clique by clique, each value as often as the model says.

Within rows that share the separator's columns, evenly spread positions are mapped through the
conditional distribution (systematic sampling). So a count in the rows is less than one row off the
model's where groups are large. The order of rows is shuffled.
"""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from sfumato.noise import Integers
from sfumato.noise.entropy import SYSTEM, Bytes, Entropy, words
from sfumato.synthetic.estimate import Fitted
from sfumato.synthetic.schema import Floats
from sfumato.synthetic.tree import Clique, JunctionTree

# The most combinations of cells that are numbered one by one.
_MOST_KEYS = 2**40
# Random bits by which rows are shuffled within a group; the bits above them are the group's number.
_RANDOM_BITS = 40


class Same:
    """An ``Entropy`` that returns the same bits in each run, for fits that must be reproducible.

    It draws the rows that a model is fitted with, and nothing that is released.
    """

    def __init__(self) -> None:
        self._drawn = 0

    def fill(
        self,
        buffer: Bytes,
    ) -> None:
        """Fills a buffer with the hash of a counter."""
        self._drawn += 1
        hashed = hashlib.shake_128(str(self._drawn).encode()).digest(len(buffer))
        buffer[:] = np.frombuffer(hashed, np.uint8)

    def bits(
        self,
        count: int,
    ) -> int:
        """Returns ``count`` bits as an integer."""
        found = np.empty(-(-count // 8), np.uint8)
        self.fill(found)
        return int.from_bytes(found.tobytes()) % (1 << count)


@dataclass(frozen=True, slots=True)
class Dice:
    """Uniform random numbers for drawing rows: they are not noise, and protect nothing."""

    entropy: Entropy = SYSTEM

    def uniform(
        self,
        count: int,
    ) -> Floats:
        """Returns uniform numbers in [0, 1)."""
        bits = words(count, self.entropy) >> np.uint64(11)
        return bits.astype(np.float64) * 2.0**-53

    def order(
        self,
        count: int,
    ) -> Integers:
        """Returns a random permutation of ``count`` indices."""
        return np.argsort(words(count, self.entropy))


def systematic(
    weights: Floats,
    count: int,
    dice: Dice,
) -> Integers:
    """Draws ``count`` indices by systematic sampling, in random order; weights must not all be 0.

    Each index occurs as often as its weight says, rounded up or down.

    >>> sorted(systematic(np.array([1.0, 0.0, 3.0]), 4, Dice()).tolist())
    [0, 2, 2, 2]
    """
    if not count:
        return np.zeros(0, np.int64)
    heights = np.cumsum(weights)
    at = (np.arange(count) + dice.uniform(1)[0]) / count * heights[-1]
    found = np.searchsorted(heights, at, side="right")
    last = int(np.flatnonzero(weights > 0)[-1])
    chosen: Integers = np.minimum(found, last)[dice.order(count)]
    return chosen


@dataclass(frozen=True, eq=False)
class Given:
    """Columns of rows to be drawn whose cells are fixed beforehand.

    >>> Given((2,), np.array([[0], [1]])).columns
    (2,)
    """

    columns: Clique
    cells: Integers


def sampled(
    fitted: Fitted,
    count: int,
    dice: Dice,
    given: Given | None = None,
    wanted: Collection[int] | None = None,
) -> Integers:
    """Draws ``count`` rows of a fitted distribution, as block numbers with one column per column of
    the model.

    Some columns of the first clique may be given; the others are drawn given these. If only some
    columns are ``wanted``, others may be left at 0.
    """
    tree = fitted.tree
    rows = np.zeros((count, len(tree.sizes)), np.int64)
    known: Clique = ()
    if given is not None:
        known = given.columns
        rows[:, list(known)] = given.cells
    needed = range(len(tree.cliques)) if wanted is None else sorted(_needed_cliques(tree, wanted))
    for place in needed:
        clique = tree.cliques[place]
        separator = tree.separators[place] if place else known
        new = tuple(each for each in clique if each not in separator)
        table = _arrange_table(fitted, place, separator, new)
        keys = joined(rows, separator, tree.sizes)
        cells = conditional(table, keys, dice)
        for column in reversed(new):
            cells, rows[:, column] = np.divmod(cells, tree.sizes[column])
    return rows


def _needed_cliques(tree: JunctionTree, wanted: Collection[int]) -> set[int]:
    """Returns the cliques needed for some columns: their own, and those between them and the
    root.
    """
    columns, places = set(wanted), set()
    for place in range(len(tree.cliques) - 1, -1, -1):
        separator = tree.separators[place] if place else ()
        if columns & (set(tree.cliques[place]) - set(separator)):
            places.add(place)
            columns |= set(separator)
    return places


def _arrange_table(
    fitted: Fitted,
    clique_index: int,
    separator: Clique,
    own_columns: Clique,
) -> Floats:
    """Returns the table of a clique as a matrix with one row per cell of the separator."""
    clique = fitted.tree.cliques[clique_index]
    axes = [clique.index(each) for each in (*separator, *own_columns)]
    table = fitted.marginals[clique_index].transpose(axes)
    separator_cells = int(np.prod(table.shape[: len(separator)]))
    return table.reshape(separator_cells, -1)


def grouped(
    rows: Integers,
    columns: Clique,
    sizes: tuple[int, ...],
) -> tuple[Integers, Integers]:
    """Groups rows that have equal cells in some columns.

    Returns the index of one row of each group, and the group of each row.
    """
    keys = np.zeros(len(rows), np.int64)
    combinations = 1
    for column in columns:
        combinations *= sizes[column]
        if combinations > _MOST_KEYS:
            keys, combinations = np.unique(keys, return_inverse=True)[1], len(rows) * sizes[column]
        keys = keys * sizes[column] + rows[:, column]
    _, firsts, owners = np.unique(keys, return_index=True, return_inverse=True)
    return firsts, owners


def joined(
    rows: Integers,
    columns: Clique,
    sizes: tuple[int, ...],
) -> Integers:
    """Returns one number per row that identifies its cells in some columns."""
    keys = np.zeros(len(rows), np.int64)
    for column in columns:
        keys = keys * sizes[column] + rows[:, column]
    return keys


def conditional(
    table: Floats,
    keys: Integers,
    dice: Dice,
) -> Integers:
    """Draws a cell for each row, from the row of weights in ``table`` whose index is in
    ``keys``.
    """
    unique_keys = np.flatnonzero(np.bincount(keys, minlength=len(table)))
    numbers = np.zeros(len(table), np.int64)
    numbers[unique_keys] = np.arange(len(unique_keys))
    owners = numbers[keys]
    weights = np.maximum(table[unique_keys], 0.0)
    # a cell of the separator that has rows has a positive sum, except for rounding
    weights[weights.sum(axis=1) <= 0] = 1.0
    width = weights.shape[1]
    heights = np.cumsum(weights, axis=1)
    heights = heights / heights[:, -1:] + np.arange(len(unique_keys))[:, np.newaxis]
    order, at = _spread_out(owners, len(unique_keys), dice)
    owner = owners[order]
    places = np.searchsorted(heights.ravel(), owner + at, side="right")
    last = width - 1 - np.argmax(weights[:, ::-1] > 0, axis=1)
    drawn = np.empty(len(keys), np.int64)
    drawn[order] = np.clip(places - owner * width, 0, last[owner])
    return drawn


def _spread_out(
    owners: Integers,
    groups: int,
    dice: Dice,
) -> tuple[Integers, Floats]:
    """Returns rows sorted by group, in random order within a group, with evenly spread
    positions.
    """
    # one sort of both: the group above, random bits below, which the order within a group follows
    keys = owners.astype(np.uint64) << np.uint64(_RANDOM_BITS)
    order = np.argsort(keys | words(len(owners), dice.entropy) >> np.uint64(64 - _RANDOM_BITS))
    owner = owners[order]
    sizes = np.bincount(owners, minlength=groups)
    starts = np.cumsum(sizes) - sizes
    at = np.arange(len(owners)) - starts[owner] + dice.uniform(groups)[owner]
    return order, at / sizes[owner]
