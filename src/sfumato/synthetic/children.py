# SPDX-License-Identifier: Apache-2.0
"""The model of a child table: draws its rows, column by column, given the parent's rows.

The distribution of a column, given earlier columns and the parent, is a product of odds (a
log-linear model: McCullagh and Nelder, 1989, section 6). It is fitted so that the expected counts
over the drawn parent rows equal the measured ones. So no joint distribution of the parent's columns
is needed, and correlated columns of the parent are not counted twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
from scipy import sparse

from sfumato.noise import Integers
from sfumato.synthetic.estimate import Measurement, compared, descended
from sfumato.synthetic.fitting import Base
from sfumato.synthetic.merging import Merging
from sfumato.synthetic.relational import Child
from sfumato.synthetic.rows import Dice, conditional, grouped
from sfumato.synthetic.schedule import Schedule
from sfumato.synthetic.schema import Floats, Schema
from sfumato.synthetic.tree import Clique, Tables
from sfumato.synthetic.unit_table import UnitTable

# The steps of the fit of a column, and how often all columns are fitted and drawn again.
_STEPS, _PASSES = 150, 3
# Numbers of rows are one block, where little is spent, up to so many standard deviations of units.
_ALIKE = 30.0


def child_base(
    plan: UnitTable,
    schedule: Schedule,
    singles: Sequence[Floats],
    parent: Base,
) -> Base:
    """Returns the single-column counts with which the fit of a child table begins: the noisy counts
    of the child's own columns, then those of the parent table's columns.
    """
    family, child = plan.family, plan.family.children[plan.table - 1]
    alone = Base(Schema(child.table, child.axes, plan), schedule, tuple(singles))
    merges = [*alone.merges, *parent.merges]
    if schedule.neighbours:
        numbers = len(family.axes)
        least = _ALIKE * parent.sigma[0]
        merges[len(singles) + numbers :] = [_few(one, least) for one in parent.singles[numbers:]]
    all_counts = [*singles, *parent.singles]
    if child.order:
        merges += [_one_each(child.place.bins), *map(_with_none, alone.merges)]
        all_counts += [np.ones(one.cells) for one in (child.place, *child.before)]
    schema = Schema(child.table, family.widened(plan.table), plan)
    own = len(singles)
    return Base(schema, schedule, tuple(all_counts), pinned=tuple(merges), counted=own)


def _few(
    counts: Floats,
    least: float,
) -> Merging:
    """Returns the blocks of a number of rows: none and missing first, then adjacent numbers."""
    found = Merging.of_neighbours(counts[1:-1], least)
    return Merging((0, *(block + 1 for block in found.blocks), 0))


def _one_each(values: int) -> Merging:
    """Returns one block per value; missing, which does not occur, joins the last."""
    return Merging((*range(values), values - 1))


def _with_none(own: Merging) -> Merging:
    """Returns the blocks of a previous row's column: those of the column, and one for "no such
    row".
    """
    blocks = np.array([*own.blocks[:-1], own.size])
    return Merging(tuple(np.unique(blocks, return_inverse=True)[1].tolist()))


@dataclass(frozen=True, eq=False)
class Conditional:
    """The distribution of one column given some others.

    ``potentials`` are logarithms of odds: first those of the column alone, then one table per given
    column, with one row per block of that column.
    """

    column: int
    given: Clique
    potentials: tuple[Floats, ...]

    def shares(
        self,
        blocks: Integers,
    ) -> Floats:
        """Returns the distribution of the column for each row of blocks of the given columns."""
        return _shares(self.potentials, blocks)

    def drawn(
        self,
        rows: Integers,
        sizes: Sequence[int],
        dice: Dice,
    ) -> Integers:
        """Draws a block of the column for each row."""
        firsts, combination = grouped(rows, self.given, tuple(sizes))
        return conditional(self.shares(rows[firsts][:, self.given]), combination, dice)


def _shares(
    potentials: Sequence[Floats],
    blocks: Integers,
) -> Floats:
    logarithms = np.tile(potentials[0], (len(blocks), 1))
    for place, table in enumerate(potentials[1:]):
        logarithms += table[blocks[:, place]]
    odds = np.exp(logarithms - logarithms.max(axis=1, keepdims=True))
    found: Floats = odds / odds.sum(axis=1, keepdims=True)
    return found


@dataclass(frozen=True, eq=False)
class _Expected:
    """The fit target of a column: expected counts over weighted rows, compared with
    measurements.
    """

    measurements: Sequence[Measurement]
    blocks: Integers
    weights: Floats

    @cached_property
    def sums(self) -> list[sparse.csr_array]:
        """For each given column, the sparse matrix that adds up rows by their block."""
        found = []
        for place, each in enumerate(self.measurements[1:]):
            where = (self.blocks[:, place], np.arange(len(self.blocks)))
            shape = (each.counts.shape[0], len(self.blocks))
            found.append(sparse.csr_array((self.weights, where), shape))
        return found

    def marginals(
        self,
        potentials: Sequence[Floats],
    ) -> Tables:
        """Returns the expected counts for these potentials."""
        shares = _shares(potentials, self.blocks)
        return [self.weights @ shares, *(added @ shares for added in self.sums)]

    def residual(
        self,
        marginals: Tables,
    ) -> tuple[float, list[Floats]]:
        """Returns the misfit to the measurements, and the descent direction of each potential."""
        parts = [compared(one, two) for one, two in zip(marginals, self.measurements, strict=True)]
        return sum(loss for loss, _ in parts), [slope for _, slope in parts]


@dataclass(frozen=True, eq=False)
class ChildModel:
    """The fitted distribution of a child table's columns, given the row of the parent table.

    ``number`` is the index of the column with the number of child rows of a parent row. While
    fitting, each synthetic parent row represents ``each`` real ones. Rows are arrays of block
    numbers with one column per column of ``base``; the child rows of a parent are adjacent and in
    order.
    """

    base: Base
    child: Child
    number: int
    each: int
    pairs: tuple[Measurement, ...]
    columns: tuple[Conditional, ...]

    @classmethod
    def begin(
        cls,
        base: Base,
        plan: UnitTable,
        each: int,
    ) -> "ChildModel":
        """Returns the initial model, in which the child's columns are independent, from the noisy
        counts of each column.
        """
        family, table = plan.family, plan.table
        child = family.children[table - 1]
        columns = []
        for place, seen in enumerate(base.measured):
            odds = np.log(np.maximum(seen.counts, 0.1 * seen.sigma))
            columns.append(Conditional(place, (), (odds,)))
        number = len(child.axes) + len(family.axes) + table - 1
        return cls(base, child, number, each, (), tuple(columns))

    @property
    def own(self) -> int:
        """The number of columns that belong to the child table itself, not to its parent."""
        return len(self.columns)

    def fitted(
        self,
        pairs: Sequence[Measurement],
        parents: Integers,
        dice: Dice,
    ) -> "ChildModel":
        """Returns the model fitted to the noisy marginals ``pairs`` and the synthetic parent rows
        ``parents``: a few passes, each of which fits and redraws every column in turn.
        """
        model = replace(self, pairs=tuple(pairs))
        for _ in range(_PASSES):
            rows = model.drawn(parents, dice)
            weights = model.weights(rows)
            columns = []
            for column in model.columns:
                again = model.fitted_column(column, rows, weights)
                rows[:, column.column] = again.drawn(rows, self.base.sizes, dice)
                columns.append(again)
            model = replace(model, columns=tuple(columns))
        return model

    def fitted_column(
        self,
        column: Conditional,
        rows: Integers,
        weights: Floats,
    ) -> Conditional:
        """Returns one column's conditional distribution, fitted to the marginals in which it is the
        column that is drawn last; ``rows`` are synthetic rows with ``weights``.
        """
        given_columns = []
        measurements = [self.base.measured[column.column]]
        for each in self.pairs:
            if self.last(each.columns) == column.column:
                given_columns.append(sum(each.columns) - column.column)
                measurements.append(_facing(each, column.column))
        known = dict(zip(column.given, column.potentials[1:], strict=True))
        start = [column.potentials[0]]
        for place, pair in zip(given_columns, measurements[1:], strict=True):
            start.append(known.get(place, np.zeros(pair.counts.shape)))
        firsts, combination = grouped(rows, tuple(given_columns), self.base.sizes)
        masses: Floats = np.bincount(combination, weights, len(firsts)).astype(np.float64)
        target = _Expected(measurements, rows[firsts][:, given_columns], masses)
        potentials, _ = descended(target, start, _STEPS)
        return Conditional(column.column, tuple(given_columns), tuple(potentials))

    def last(
        self,
        pair: Clique,
    ) -> int:
        """Returns which column of a pair is drawn last: of the columns that are the child's own,
        the one with the larger index.
        """
        return max(column for column in pair if column < self.own)

    @property
    def candidates(self) -> list[Clique]:
        """The pairs of columns that may still be selected for measurement: at least one column is
        the child's own, and the pair is small enough and not yet measured.
        """
        measured = {each.columns for each in self.pairs}
        found: list[Clique] = []
        for pair in combinations(range(len(self.base.sizes)), 2):
            if pair[0] < self.own and pair not in measured and self.base.is_small(pair):
                found.append(pair)
        return found

    def numbers(
        self,
        parents: Integers,
    ) -> Integers:
        """Returns the number of child rows of each parent; ``parents`` are rows of cells."""
        held = parents[:, self.number - self.own]
        return np.where(held > self.child.most, 0, held)

    def weights(
        self,
        rows: Integers,
    ) -> Floats:
        """Returns the weight of each synthetic child row, in privacy units.

        It is the row's share of its unit, times the number of units that its parent stands for.
        """
        owners = self.owners(rows)
        return self.each / np.bincount(owners, minlength=1)[owners]

    def owners(
        self,
        rows: Integers,
    ) -> Integers:
        """Returns, for each synthetic child row, the index of its parent row (the last column)."""
        owners: Integers = rows[:, -1]
        return owners

    def drawn(
        self,
        parents: Integers,
        dice: Dice,
    ) -> Integers:
        """Draws the synthetic child rows of some parent rows, as block numbers; an additional last
        column is the index of the parent row.
        """
        numbers = self.numbers(parents)
        owners = np.repeat(np.arange(len(parents)), numbers)
        places = np.arange(len(owners)) - np.repeat(np.cumsum(numbers) - numbers, numbers)
        rows = np.zeros((len(owners), len(self.base.sizes) + 1), np.int64)
        rows[:, -1] = owners
        for place in range(parents.shape[1]):
            blocks = np.array(self.base.merges[self.own + place].blocks)
            rows[:, self.own + place] = blocks[parents[owners, place]]
        if not self.child.order:
            self._draw_columns(rows, np.arange(len(rows)), dice)
            return rows
        start = self.own + parents.shape[1]
        rows[:, start] = places
        for place in range(int(numbers.max(initial=0))):
            chosen = np.flatnonzero(places == place)
            rows[chosen, start + 1 : -1] = self._previous_blocks(rows[chosen - 1], place)
            self._draw_columns(rows, chosen, dice)
        return rows

    def _draw_columns(
        self,
        rows: Integers,
        chosen: Integers,
        dice: Dice,
    ) -> None:
        """Draws the child's own columns of some rows."""
        for column in self.columns:
            part = rows[chosen]
            rows[chosen, column.column] = column.drawn(part, self.base.sizes, dice)

    def _previous_blocks(
        self,
        previous: Integers,
        place: int,
    ) -> Integers:
        """Returns the blocks of the columns of the previous rows; a block of its own where there is
        none.
        """
        before = np.empty((len(previous), self.own), np.int64)
        for column in range(self.own):
            merging = self.base.merges[column - self.own]
            own = self.base.merges[column]
            column_blocks = np.array([merging.blocks[cells[0]] for cells in own.members])
            before[:, column] = column_blocks[previous[:, column]] if place else merging.blocks[-1]
        return before


def _facing(
    pair: Measurement,
    column: int,
) -> Measurement:
    """Returns a measured pair with its axes in order, this column last."""
    if pair.columns[-1] == column:
        return pair
    return Measurement(pair.columns[::-1], pair.counts.T, pair.sigma.T)
