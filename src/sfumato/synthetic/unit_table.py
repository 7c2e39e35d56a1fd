# SPDX-License-Identifier: Apache-2.0
"""One table of a family as weighted rows: every unit has the same weight. Proof:
unit_table.proof.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.noise import Integers
from sfumato.plan.rows import MISSING, BoundedRows
from sfumato.privacy.distance import Distance, Norm
from sfumato.query.stability import marginal
from sfumato.query.statistic import Opened, UnitRows
from sfumato.synthetic.relational import Child, Family, read_by
from sfumato.synthetic.schema import Axis

# The weight of a unit in each table.
FULL = 2**20


@dataclass(frozen=True, slots=True)
class UnitTable:
    """One of several related tables, with row weights such that every unit has the same total
    weight.

    Of the parent, the first row of a unit counts, with the weight ``FULL``. Of a child, the first
    ``most`` rows of a unit with a parent row count; each of n such rows has the weight ``FULL`` /
    n, rounded down.

    Guarantees:
        a unit adds at most the weight of one row to any marginal of any table
    """

    family: Family
    rows: BoundedRows
    table: int

    @property
    def refinement(self) -> int:
        """The integer that stands for one unit in a count: the total weight of its rows."""
        return FULL

    @property
    def unit(self) -> str | None:
        """The name of the unit."""
        return self.rows.unit

    @property
    def most(self) -> int:
        """The largest number of rows that a unit may have in the table."""
        return self.family.children[self.table - 1].most if self.table else 1

    @property
    def l1(self) -> Distance:
        """The sensitivity of a marginal in L1."""
        return marginal(1, FULL, Norm.L1, self.rows.neighbours)

    @property
    def l2(self) -> Distance:
        """The squared L2 sensitivity of a marginal."""
        return marginal(1, FULL, Norm.L2, self.rows.neighbours)

    @property
    def apart(self) -> Distance:
        """The sensitivity of the L1 distance between a marginal and a public table."""
        return marginal(1, FULL, Norm.LINF, self.rows.neighbours)

    def marginal(
        self,
        opened: Opened,
        names: Sequence[str],
    ) -> Integers:
        """Returns the exact weight of the rows in each cell of some axes."""
        known = (self.family, self.table)
        cells, weights = opened.derived(self.rows, known, self._rows_with_weights)
        axes = self.family.widened(self.table)
        listed = [one.name for one in axes]
        places = [listed.index(name) for name in names]
        shape = tuple(axes[place].cells for place in places)
        flat = np.zeros(len(weights), np.int64)
        for place, size in zip(places, shape, strict=True):
            flat = flat * size + cells[:, place]
        # sums of integers below 2^53 are exact
        counts = np.bincount(flat, weights, minlength=int(np.prod(shape)))
        return counts.astype(np.int64).reshape(shape)

    def with_axes(
        self,
        axes: Sequence[Axis],
    ) -> "UnitTable":
        """Returns the table with other axes for its own columns, which come first."""
        family = self.family.with_axes(self.table, axes)
        return UnitTable(family, read_by(self.rows, family), self.table)

    def _rows_with_weights(
        self,
        rows: UnitRows,
    ) -> tuple[Integers, Integers]:
        """Returns the cells of the rows that count, and their weights."""
        if not self.table:
            return _parent_rows(self.family, rows)
        return _child_rows(self.family, self.table, rows)


def _parent_rows(
    family: Family,
    rows: UnitRows,
) -> tuple[Integers, Integers]:
    """Returns the parent's rows that count, with the number of rows in each child, and their
    weights.
    """
    firsts = _firsts(rows)
    has_row = np.flatnonzero(firsts >= 0)
    cells = _cells(family.axes, rows.codes[firsts[has_row], 1:])
    numbers = []
    for place, child in enumerate(family.children, start=1):
        owners = _owners(rows)[rows.codes[:, 0] == place]
        held = np.bincount(owners, minlength=rows.units)[has_row]
        numbers.append(np.minimum(held, child.most))
    return np.column_stack([cells, *numbers]), np.full(len(cells), FULL)


def _child_rows(
    family: Family,
    table: int,
    rows: UnitRows,
) -> tuple[Integers, Integers]:
    """Returns a child's rows that count, with the columns they may depend on, and their weights."""
    child = family.children[table - 1]
    parents, _ = _parent_rows(family, rows)
    firsts = _firsts(rows)
    # the place of the parent of each unit that has one
    parent_of = np.cumsum(firsts >= 0) - 1
    owners = _owners(rows)
    listed = np.flatnonzero((rows.codes[:, 0] == table) & (firsts[owners] >= 0))
    listed = listed[_places(owners[listed]) < child.most]
    start = family.start(table)
    codes = rows.codes[listed, start : start + len(child.axes)]
    cells, owners = _cells(child.axes, codes), owners[listed]
    if child.order:
        by = _last_missing(codes[:, [one.name for one in child.axes].index(child.order)])
        order = np.lexsort((by, owners))
        cells, owners = cells[order], owners[order]
    held = np.bincount(owners, minlength=rows.units)[owners]
    widened = [cells, parents[parent_of[owners]]]
    if child.order:
        widened += _followed(child, cells, _places(owners))
    return np.column_stack(widened), FULL // np.maximum(held, 1)


def _followed(
    child: Child,
    cells: Integers,
    places: Integers,
) -> list[Integers]:
    """Returns the position of each row among those of its unit, and the cells of the previous row.

    The rows of a unit must be adjacent and in order.
    """
    before = np.roll(cells, 1, axis=0)
    before[places == 0] = [one.bins for one in child.before]
    return [places, before]


def _owners(rows: UnitRows) -> Integers:
    """Returns the unit of each row."""
    return np.repeat(np.arange(rows.units), np.diff(rows.starts))


def _firsts(rows: UnitRows) -> Integers:
    """Returns the first row of each unit in the parent table; -1 if it has none."""
    found = np.full(rows.units, -1)
    parents = np.flatnonzero(rows.codes[:, 0] == 0)
    owners, at = np.unique(_owners(rows)[parents], return_index=True)
    found[owners] = parents[at]
    return found


def _places(owners: Integers) -> Integers:
    """Returns the position of each row among those of its unit, from 0; rows of a unit are
    adjacent.
    """
    _, starts, sizes = np.unique(owners, return_index=True, return_counts=True)
    return np.arange(len(owners)) - np.repeat(starts, sizes)


def _last_missing(codes: Integers) -> Integers:
    return np.where(codes == MISSING, np.iinfo(np.int64).max, codes)


def _cells(
    axes: Sequence[Axis],
    codes: Integers,
) -> Integers:
    """Returns the cells of codes, one column per axis; a missing value has the last cell."""
    found = np.empty((len(codes), len(axes)), np.int64)
    for place, one in enumerate(axes):
        code = codes[:, place]
        cell = np.searchsorted(one.limits, code, side="right") - 1
        found[:, place] = np.where(code == MISSING, one.bins, cell)
    return found
