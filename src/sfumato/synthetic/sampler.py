# SPDX-License-Identifier: Apache-2.0
"""Draws rows of a fitted distribution as Arrow tables, with all columns or some."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import pyarrow as pa

from sfumato.noise import Integers
from sfumato.synthetic.drawing import Drawing
from sfumato.synthetic.estimate import Fitted
from sfumato.synthetic.export import Part
from sfumato.synthetic.fitting import Base
from sfumato.synthetic.public import next_counts
from sfumato.synthetic.rows import Dice

# The most rows that are drawn at once where they are written.
AT_ONCE = 250_000
# The same for a sample that stays in memory: parts are larger, so that more of it is even.
IN_MEMORY = 2_000_000


class Sampler(Protocol):
    """The interface of a fitted distribution of all tables, from which ``Model`` draws rows."""

    @property
    def rows(self) -> int:
        """The noisy number of rows of the first table."""
        ...

    def tables(
        self,
        count: int,
        dice: Dice,
    ) -> dict[str, pa.Table]:
        """Draws ``count`` rows of the first table, and the rows of other tables that belong to
        them.
        """
        ...

    def some_columns(
        self,
        count: int,
        dice: Dice,
        columns: Mapping[str, Collection[str]],
    ) -> dict[str, pa.Table]:
        """Draws rows as ``tables`` does, with at least the given columns of each table."""
        ...

    def parts(
        self,
        count: int,
        dice: Dice,
    ) -> Iterator[Part]:
        """Yields the rows that ``tables`` draws in parts, none of which needs much memory."""
        ...


@dataclass(frozen=True, eq=False)
class TableSampler:
    """Draws synthetic rows of a single table from its fitted distribution."""

    base: Base
    fitted: Fitted

    @property
    def rows(self) -> int:
        """The noisy number of rows."""
        return round(self.base.total)

    def tables(
        self,
        count: int,
        dice: Dice,
    ) -> dict[str, pa.Table]:
        """Draws ``count`` rows, many at a time."""
        name = self.base.schema.table
        parts = [part[name] for part in self._parts(count, dice, IN_MEMORY)]
        return {name: pa.concat_tables(parts)}

    def some_columns(
        self,
        count: int,
        dice: Dice,
        columns: Mapping[str, Collection[str]],
    ) -> dict[str, pa.Table]:
        """Draws ``count`` rows with some columns; with the first column if none is named."""
        schema = self.base.schema
        names = columns.get(schema.table) or schema.names[:1]
        wanted = sorted(schema.place(name) for name in names)
        cells = self._drawing.cells(count, dice, wanted=wanted)
        return {schema.table: pa.table(columns_of(self.base, cells, dice, wanted))}

    def parts(
        self,
        count: int,
        dice: Dice,
    ) -> Iterator[Part]:
        """Yields ``count`` rows in small parts."""
        return self._parts(count, dice, AT_ONCE)

    def _parts(
        self,
        count: int,
        dice: Dice,
        at_once: int,
    ) -> Iterator[Part]:
        """Yields ``count`` rows, at most ``at_once`` at a time; public counts are exact over all
        parts.
        """
        left = self._drawing.public_counts(count)
        for start in range(0, max(count, 1), at_once):
            size = min(at_once, count - start)
            counts = [next_counts(each, size) for each in left]
            left = [each - drawn for each, drawn in zip(left, counts, strict=True)]
            cells = self._drawing.cells(size, dice, counts)
            yield {self.base.schema.table: pa.table(columns_of(self.base, cells, dice))}

    @cached_property
    def _drawing(self) -> Drawing:
        """The object that draws the rows as cells."""
        return Drawing(self.base, self.fitted)


def columns_of(
    base: Base,
    cells: Integers,
    dice: Dice,
    wanted: Sequence[int] | None = None,
) -> dict[str, pa.Array]:
    """Converts rows from cell numbers to values; returns an Arrow array for each column.

    ``cells`` has the cells of the first columns of each row, ``wanted`` the indices of the columns
    to return (None: all).
    """
    columns = {}
    for place in range(cells.shape[1]) if wanted is None else wanted:
        axis = base.schema.axes[place]
        spread = dice.uniform(len(cells))
        codes = axis.codes(cells[:, place], spread, base.weights(place), base.reach(place))
        columns[axis.name] = axis.values(codes)
    return columns
