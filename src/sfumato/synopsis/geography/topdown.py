# SPDX-License-Identifier: Apache-2.0
"""Estimates a census from the top down: non-negative integers that add up at every level.

``Census.counts`` are these estimates. The first level is estimated by itself. Then the estimate of
each area is divided among its children: first its total, then its cells, so that the cells of the
children add up to those of the parent. Both steps project the least-squares estimate (``simplex``)
and round it with all sums preserved (``whole``). All of it is post-processing of released numbers.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sfumato.noise import Integers
from sfumato.synopsis.geography.design import (
    Axes,
    Design,
    residual_of,
    spread_over,
)
from sfumato.synopsis.geography.impossible import impossible_in
from sfumato.synopsis.geography.least_squares import (
    PublicTotals,
    by_axes,
)
from sfumato.synopsis.geography.simplex import (
    Groups,
    projected,
    projected_rows,
    projected_tables,
)
from sfumato.synopsis.geography.tree import (
    Floats,
    Numbers,
)
from sfumato.synopsis.geography.tree_squares import Mask
from sfumato.synopsis.geography.whole import (
    whole_groups,
    whole_rows,
    whole_tables,
)

# Less than any estimate, so that nothing is given to it, and small enough to compute with.
_NEVER = -1e15
# The most cells that are estimated together, so that they fit a processor's cache.
_CHUNK = 2**18


@dataclass(frozen=True, eq=False)
class TopDown:
    """The constraints of a top-down estimate: the design, and the public facts.

    ``impossible`` is the mask of the cells, of all axes together, that are declared to be 0.
    ``public`` are the public totals with those that follow from them, and ``least`` is the least
    total of each area that they allow.
    """

    design: Design
    impossible: Mask
    public: PublicTotals
    least: tuple[Integers, ...]

    def estimates(
        self,
        squares: Sequence[Floats],
        done: Callable[[int], object] = lambda level: None,
    ) -> list[Integers]:
        """Returns the published counts of each level's detail table, from its least-squares
        estimate.

        ``done`` is called with the index of each finished level.
        """
        found = [self._first(squares[0])]
        done(0)
        for level in range(1, self.design.tree.levels):
            found.append(self._below(level, squares[level], found[-1]))
            done(level)
        return found

    def _first(self, squares: Floats) -> Integers:
        """Returns the estimate of the first level: totals, then tables that are finer and finer."""
        axes = self.design.detail(0)
        totals = _totals(squares)
        known = self.public.known[0]
        whole = np.rint(totals).astype(np.int64)
        whole = np.maximum(whole, self.least[0])
        whole[known] = self.least[0][known]
        filled = squares
        if not self.design.is_complete(0):
            alike = _independent(squares, axes)
            filled = _completed(self.design, 0, squares, alike)
        for coarse, fine in pairwise(self.design.chain(0)):
            near = _rows_of(by_axes(filled, axes, fine), coarse, fine)
            never = impossible_in(self.impossible, fine)
            ordered = _rows_of(never[None].astype(np.int64), coarse, fine)
            near = np.where(ordered, _NEVER, near)
            rows = near.reshape(-1, near.shape[-1])
            sums = whole.ravel()
            projection = projected_rows(rows, sums.astype(float))
            found = whole_rows(projection, sums)
            whole = _cells_of(
                found.reshape(near.shape),
                coarse,
                fine,
                self.design,
            )
        return whole.reshape(squares.shape)

    def _below(self, level: int, squares: Floats, above: Integers) -> Integers:
        """Returns the estimate of a level, given that of the level above."""
        design = self.design
        before = design.detail(level - 1)
        axes = design.detail(level)
        parents = by_axes(above, before, axes)
        totals = self._shared(level, _totals(squares), _totals(parents))
        cells = np.empty(squares.shape, np.int64)
        for first, last in _chunks(design, level):
            groups, rows = _groups(design, level, first, last)
            part = parents[first:last]
            filled = self._filled(
                level,
                squares[rows],
                part[groups.of],
                totals[rows],
            )
            cells[rows] = self._divided(level, filled, part, totals[rows], groups)
        return cells

    def _divided(
        self,
        level: int,
        squares: Floats,
        parents: Integers,
        totals: Integers,
        groups: Groups,
    ) -> Integers:
        """Returns the tables of some parents divided among children that have these totals.

        From one table of the chain to the next, each cell of the coarse one is a table of its own:
        its rows are the children, with the sums that they have, and its columns are the cells of
        the fine one that lie in it, whose sums are those of the parent.
        """
        axes = self.design.detail(level)
        whole = totals
        for coarse, fine in pairwise(self.design.chain(level)):
            near = _rows_of(by_axes(squares, axes, fine), coarse, fine)
            columns = _rows_of(by_axes(parents, axes, fine), coarse, fine)
            size = near.shape[-1]
            stacked = near.swapaxes(0, 1).reshape(-1, size)
            sums = whole.reshape(len(whole), -1).swapaxes(0, 1).ravel()
            wanted = columns.swapaxes(0, 1).reshape(-1, size)
            many = groups.repeated(near.shape[1])
            close = projected_tables(
                stacked,
                sums.astype(float),
                wanted.astype(float),
                many,
            )
            found = whole_tables(close, sums, wanted, many)
            found = found.reshape(near.shape[1], len(near), size).swapaxes(0, 1)
            whole = _cells_of(found, coarse, fine, self.design)
        return whole.reshape(squares.shape)

    def _shared(self, level: int, totals: Floats, above: Integers) -> Integers:
        """Returns the totals of the areas of a level, which add up to those of their parents."""
        tree = self.design.tree
        groups = Groups(
            tree.starts[level - 1],
            tree.parents[level - 1],
        )
        least = self.least[level]
        more = np.where(
            self.public.known[level],
            _NEVER,
            totals - least,
        )
        left = above - tree.gathered(level - 1, least)
        near = projected(
            more[:, None],
            left[:, None].astype(float),
            groups,
        ).ravel()
        near[self.public.known[level]] = 0.0
        free = ~self.public.known[level]
        return least + _whole_of(near, left, groups, free)

    def _filled(
        self,
        level: int,
        squares: Floats,
        above: Integers,
        totals: Integers,
    ) -> Floats:
        """The least-squares estimate; what no table determines is divided as in the parent."""
        if self.design.is_complete(level):
            return squares
        whole = _totals(above)
        share = np.divide(
            totals,
            whole,
            out=np.zeros(len(whole)),
            where=whole > 0,
        )
        shares = share.reshape(-1, *[1] * (above.ndim - 1))
        alike = np.multiply(above, shares, dtype=float)
        return _completed(self.design, level, squares, alike)


def least_totals(design: Design, public: PublicTotals) -> tuple[Integers, ...]:
    """Returns a lower bound of each area's total: the public one, or else the sum of its
    children's.
    """
    totals: list[Integers] = []
    for level in range(design.tree.levels - 1, -1, -1):
        least = np.zeros(design.tree.sizes[level], np.int64)
        if totals:
            least = design.tree.gathered(level, totals[-1])
        stated = public.totals[level].astype(np.int64)
        totals.append(np.where(public.known[level], stated, least))
    return tuple(totals[::-1])


def _whole_of(
    near: Floats,
    totals: Integers,
    groups: Groups,
    free: Mask,
) -> Integers:
    """``whole_groups`` of the areas that are free to move; 0 for the others."""
    whole = np.zeros(len(near), np.int64)
    if free.all():
        return whole_groups(near, totals, groups)
    group = groups.of[free]
    groups_inside, start = np.unique(group, return_index=True)
    inside = Groups(start, np.searchsorted(groups_inside, group))
    whole[free] = whole_groups(near[free], totals[groups_inside], inside)
    return whole


def _totals(tables: Numbers) -> Numbers:
    """Returns the total of each table."""
    found: Numbers = tables.reshape(len(tables), -1).sum(axis=1)
    return found


def _rows_of(tables: Numbers, coarse: Axes, fine: Axes) -> Numbers:
    """Tables by the fine axes with a row for each cell of the coarse table that they refine."""
    inner = [place + 1 for place, axis in enumerate(fine) if axis in coarse]
    outer = [place + 1 for place, axis in enumerate(fine) if axis not in coarse]
    moved = tables.transpose(0, *inner, *outer)
    rows = 1
    for place in inner:
        rows *= tables.shape[place]
    found: Numbers = moved.reshape(len(tables), rows, -1)
    return found


def _cells_of(
    rows: Integers,
    coarse: Axes,
    fine: Axes,
    design: Design,
) -> Integers:
    """Returns the reverse of ``_rows_of``."""
    order = [axis for axis in fine if axis in coarse] + [
        axis for axis in fine if axis not in coarse
    ]
    shaped = rows.reshape(len(rows), *[design.sizes[axis] for axis in order])
    places = [order.index(axis) + 1 for axis in fine]
    return shaped.transpose(0, *places)


def _independent(squares: Floats, axes: Axes) -> Floats:
    """Tables with the totals of these by each one axis, in which the axes are independent."""
    whole = np.maximum(_totals(squares), 1.0)
    cells = whole.reshape(-1, *[1] * len(axes))
    for place, _ in enumerate(axes, start=1):
        others = tuple(other for other in range(1, len(axes) + 1) if other != place)
        single = np.maximum(squares.sum(axis=others, keepdims=True), 0.0)
        total = single.sum(axis=place, keepdims=True)
        size = single.shape[place]
        share = np.divide(
            single,
            total,
            out=np.full_like(single, 1 / size),
            where=total > 0,
        )
        cells = cells * share
    return cells


def _completed(
    design: Design,
    level: int,
    squares: Floats,
    alike: Floats,
) -> Floats:
    """Estimates whose undetermined residuals are those of other tables."""
    axes = design.detail(level)
    found = squares + alike
    for residual in design.residuals(level):
        part = residual_of(alike, axes, residual)
        outside = design.outside(residual, axes)
        found -= spread_over(part, residual, axes, outside)
    return found


def _chunks(design: Design, level: int) -> Iterator[tuple[int, int]]:
    """Runs of parents, from the first to before the last, whose children are few enough."""
    starts = [
        *design.tree.starts[level - 1].tolist(),
        design.tree.sizes[level],
    ]
    most = max(_CHUNK // design.cells(design.detail(level)), 1)
    first = 0
    for parent in range(1, len(starts)):
        is_last = parent == len(starts) - 1
        if is_last or starts[parent + 1] - starts[first] > most:
            yield first, parent
            first = parent


def _groups(design: Design, level: int, first: int, last: int) -> tuple[Groups, slice]:
    """Returns the children of some parents as groups, and where they are in the level."""
    starts = design.tree.starts[level - 1]
    end = design.tree.sizes[level] if last == len(starts) else int(starts[last])
    rows = slice(int(starts[first]), end)
    of = design.tree.parents[level - 1][rows] - first
    return Groups(starts[first:last] - rows.start, of), rows
