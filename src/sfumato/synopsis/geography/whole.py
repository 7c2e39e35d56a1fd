# SPDX-License-Identifier: Apache-2.0
"""Rounds numbers to integers with given sums, by largest remainders.

``topdown`` uses it after projection (``simplex``).
"""

from collections.abc import Iterator

import numpy as np

from sfumato.noise import Integers
from sfumato.synopsis.geography.simplex import Groups
from sfumato.synopsis.geography.tree import Floats

# Numbers that the rounding of floats leaves just below a whole one.
_NEARLY = 1e-7


def whole_groups(values: Floats, totals: Integers, groups: Groups) -> Integers:
    """Returns numbers rounded to integers such that each group has its given total.

    ``values`` are at least 0 and add up to about the totals, never to more.

    >>> groups = Groups(np.array([0, 2]), np.array([0, 0, 1]))
    >>> whole_groups(np.array([1.6, 1.4, 5.0]), np.array([3, 5]), groups).tolist()
    [2, 1, 5]
    """
    whole, rest = _floors(values)
    short = totals - np.add.reduceat(whole, groups.starts)
    order = np.lexsort((-rest, groups.of))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order)) - groups.starts[groups.of[order]]
    size = np.diff(groups.starts, append=len(order))
    # where floats lost more than one each, everyone gets the same more
    each, left = np.divmod(short, size)
    found: Integers = whole + each[groups.of] + (place < left[groups.of])
    return found


def whole_rows(values: Floats, totals: Integers) -> Integers:
    """Returns numbers rounded to integers such that each row has its given total; a 0 stays 0.

    >>> whole_rows(np.array([[1.6, 1.4, 0.0]]), np.array([3])).tolist()
    [[2, 1, 0]]
    """
    whole, rest = _floors(values)
    short = totals - whole.sum(axis=1)
    found: Integers = whole + _ones(np.where(values > 0, rest, -1.0), short)
    return found


def whole_tables(
    values: Floats,
    rows: Integers,
    columns: Integers,
    groups: Groups,
) -> Integers:
    """Returns tables rounded to integers such that rows and columns have exactly the given sums.

    A table is a group of rows. The numbers are at least 0; their sums are about those wanted. What
    is missing after rounding down is filled row by row: a row takes one more in the columns of its
    largest remainders that still need some, first in those that every row left must take. Columns
    and rows have one total, so what then remains fits as well.

    >>> groups = Groups(np.array([0]), np.array([0, 0]))
    >>> values = np.array([[0.6, 0.6], [1.4, 0.4]])
    >>> whole_tables(values, np.array([1, 2]), np.array([[2, 1]]), groups).tolist()
    [[1, 0], [1, 1]]
    """
    below = _not_above(values, rows, columns, groups)
    whole, rest = _floors(below)
    short = rows - whole.sum(axis=1)
    needed = columns - np.add.reduceat(whole, groups.starts, axis=0)
    for row, table, left in _turns(groups):
        wanted = rest[row] + 2.0 * (needed[table] >= left[:, None])
        taken = _ones(
            np.where(needed[table] > 0, wanted, -1.0),
            short[row],
        )
        _take(
            whole,
            short,
            needed,
            row=row,
            table=table,
            taken=taken,
        )
    for row, table, _ in _turns(groups):
        behind = np.flatnonzero(short[row])
        row, table = row[behind], table[behind]
        before = np.cumsum(needed[table], axis=1) - needed[table]
        taken = np.clip(short[row][:, None] - before, 0, needed[table])
        _take(
            whole,
            short,
            needed,
            row=row,
            table=table,
            taken=taken,
        )
    return whole


def _turns(
    groups: Groups,
) -> Iterator[tuple[Integers, Integers, Integers]]:
    """The first row of every table, then the second, ...: rows, their tables, how many are left."""
    sizes = np.diff(groups.starts, append=len(groups.of))
    for turn in range(sizes.max()):
        table = np.flatnonzero(sizes > turn)
        yield (
            groups.starts[table] + turn,
            table,
            sizes[table] - turn,
        )


def _take(
    whole: Integers,
    short: Integers,
    needed: Integers,
    *,
    row: Integers,
    table: Integers,
    taken: Integers,
) -> None:
    """Adds what rows take, and counts it as no longer missing."""
    whole[row] += taken
    short[row] -= taken.sum(axis=1)
    needed[table] -= taken


def _floors(values: Floats) -> tuple[Integers, Floats]:
    """Returns the numbers rounded down, and what that leaves of each."""
    floors = np.floor(values + _NEARLY)
    return floors.astype(np.int64), values - floors


def _ones(wanted: Floats, short: Integers) -> Integers:
    """One in as many places of a row as it is short of, the most wanted first; none below 0."""
    order = np.argsort(-wanted, axis=1, kind="stable")
    place = np.empty_like(order)
    np.put_along_axis(
        place,
        order,
        np.arange(wanted.shape[1])[None, :],
        axis=1,
    )
    found: Integers = ((place < short[:, None]) & (wanted >= 0)).astype(np.int64)
    return found


def _not_above(
    values: Floats,
    rows: Integers,
    columns: Integers,
    groups: Groups,
) -> Floats:
    """The numbers scaled down so that no sum of a row or a column is above the wanted one."""
    sums = groups.sums(values)
    scale = np.divide(
        columns,
        sums,
        out=np.ones_like(sums),
        where=sums > columns,
    )
    below = values * scale[groups.of]
    sums = below.sum(axis=1)
    scale = np.divide(
        rows,
        sums,
        out=np.ones_like(sums),
        where=sums > rows,
    )
    scaled: Floats = below * scale[:, None]
    return scaled
