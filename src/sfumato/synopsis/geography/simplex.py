# SPDX-License-Identifier: Apache-2.0
"""Euclidean projections on non-negative numbers with given sums, for many groups at once.

``topdown`` uses them. A projection shifts all numbers of a group by one amount and cuts at 0. The
shift is found by Newton's method on the sum of the positive part, a convex function of the shift,
so from the second step on it converges from one side and ends after finitely many steps (Michelot
1986, "A finite algorithm for finding the projection of a point onto the canonical simplex"; Condat
2016).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfumato.noise import Integers
from sfumato.synopsis.geography.tree import Floats

# More steps of Newton's method than any projection takes.
_STEPS = 60
_EXACT = 1e-9
# The turns of rows and columns, and how far a sum may then be off: whole numbers mend the rest.
_SWEEPS = 40
_NEAR = 0.5


@dataclass(frozen=True, eq=False)
class Groups:
    """A partition of the rows of an array into groups of adjacent rows.

    ``starts`` has the first row of each group, ``of`` the group of each row.
    """

    starts: Integers
    of: Integers

    def repeated(self, times: int) -> "Groups":
        """Returns the groups of ``times`` copies of the array, one after the other."""
        turn = np.arange(times)[:, None]
        starts = self.starts + turn * len(self.of)
        return Groups(
            starts.ravel(),
            (self.of + turn * len(self.starts)).ravel(),
        )

    def sums(self, values: Floats) -> Floats:
        """Returns the sum of each group, column by column."""
        total: Floats = np.add.reduceat(values, self.starts, axis=0)
        return total

    def largest(self, values: Floats) -> Floats:
        """Returns the largest of each group, column by column."""
        found: Floats = np.maximum.reduceat(values, self.starts, axis=0)
        return found


def projected(values: Floats, totals: Floats, groups: Groups) -> Floats:
    """Returns the Euclidean projection of numbers on the non-negative numbers whose groups have the
    given totals, column by column.

    >>> groups = Groups(np.array([0, 2]), np.array([0, 0, 1]))
    >>> values = np.array([[3.0], [-1.0], [7.0]])
    >>> projected(values, np.array([[2.0], [5.0]]), groups).ravel().tolist()
    [2.0, 0.0, 5.0]
    """
    return _moved(
        values,
        _column_shift(values, totals, groups)[groups.of],
    )


def projected_rows(values: Floats, totals: Floats) -> Floats:
    """Returns the Euclidean projection of numbers on the non-negative numbers whose rows have the
    given totals.

    >>> projected_rows(np.array([[3.0, -1.0], [1.0, 1.0]]), np.array([2.0, 3.0])).tolist()
    [[2.0, 0.0], [1.5, 1.5]]
    """
    return _moved(values, _row_shift(values, totals))


def projected_tables(
    values: Floats,
    rows: Floats,
    columns: Floats,
    groups: Groups,
) -> Floats:
    """Returns about the Euclidean projection of tables on the non-negative tables with the given
    sums of rows and of columns.

    A table is a group of rows; ``columns`` has the sums of its columns. Both sums give each table
    one total. Rows and columns are shifted in turn, which climbs the dual problem, until no sum is
    off by more than half a step, or for ``_SWEEPS`` turns.

    >>> groups = Groups(np.array([0]), np.array([0, 0]))
    >>> values = np.array([[4.0, 0.0], [-1.0, 2.0]])
    >>> found = projected_tables(values, np.array([3.0, 2.0]), np.array([[3.0, 2.0]]), groups)
    >>> found.round(1).tolist()
    [[3.0, 0.0], [0.0, 2.0]]
    """
    column = np.zeros_like(columns)
    for _ in range(_SWEEPS):
        row = _row_shift(values + column[groups.of], rows)
        column = _column_shift(values + row, columns, groups)
        found = _moved(values + row, column[groups.of])
        if (np.abs(found.sum(axis=1) - rows) <= _NEAR).all():
            break
    return found


def _moved(values: Floats, shift: Floats) -> Floats:
    found: Floats = np.maximum(values + shift, 0.0)
    return found


def _column_shift(values: Floats, totals: Floats, groups: Groups) -> Floats:
    def spread(shift: Floats) -> Floats:
        return shift[groups.of]

    return _shift(
        values,
        totals,
        groups.sums,
        groups.largest,
        spread,
    )


def _row_shift(values: Floats, totals: Floats) -> Floats:
    def sums(numbers: Floats) -> Floats:
        total: Floats = numbers.sum(axis=1, keepdims=True)
        return total

    def largest(numbers: Floats) -> Floats:
        found: Floats = numbers.max(axis=1, keepdims=True)
        return found

    return _shift(
        values,
        totals[:, None],
        sums,
        largest,
        lambda shift: shift,
    )


def _shift(
    values: Floats,
    totals: Floats,
    sums: Callable[[Floats], Floats],
    largest: Callable[[Floats], Floats],
    spread: Callable[[Floats], Floats],
) -> Floats:
    """Returns the shift of each group after which what is above 0 adds up to its total."""
    # after it the largest number alone has the total, so no shift need be larger
    shift = totals - largest(values)
    for _ in range(_STEPS):
        moved = values + spread(shift)
        over = sums(np.maximum(moved, 0.0)) - totals
        if (over <= _EXACT * (1.0 + totals)).all():
            break
        count = np.maximum(sums((moved > 0).astype(float)), 1.0)
        shift = shift - over / count
    return shift
