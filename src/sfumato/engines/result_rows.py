# SPDX-License-Identifier: Apache-2.0
"""Converts the result of a statement to the integers of each part. Proof: result_rows.proof.md.

Declared groups are few. Groups of open keys can be a hundred million, of which some are released;
they stay in columns (``Columns``) until the released ones are chosen. So do the leaves of
quantiles, which can be as many.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from sfumato.engines.base import Codes, flattened, tidy
from sfumato.noise.law import Integers
from sfumato.plan.aggregate import Quantiles
from sfumato.plan.stages import Bounded

if TYPE_CHECKING:
    import pyarrow

Rows: TypeAlias = Sequence[tuple[Any, ...]]
Groups: TypeAlias = Mapping[Codes, tuple[int, ...]]
# Leaves with a weight, ascending, and their weights.
Leaves: TypeAlias = tuple[Integers, Integers]


@dataclass(frozen=True)
class _Place:
    """The columns of a part in the rows of a statement: after the ``keys``, from ``start`` on."""

    keys: int
    start: int
    size: int
    is_leaf: bool

    def read(self, result: Rows) -> Groups:
        keys = self.keys
        start = self.start
        end = self.start + self.size
        if not self.is_leaf:
            return {row[:keys]: row[start:end] for row in result}
        weights: dict[Codes, dict[int, int]] = defaultdict(dict)
        for row in result:
            weights[row[:keys]][row[keys]] = row[keys + 1]
        return {group: flattened(leaves) for group, leaves in weights.items()}


@dataclass(frozen=True, eq=False)
class Columns(Mapping[Codes, tuple[int, ...]]):
    """The exact integers of one aggregate by group, stored as an Arrow table: one row for each
    group, its keys first.

    Large results are read from the table by column, without a Python object per group. As a mapping
    from group codes to integers it equals the result of ``tidy``; the mapping is computed at its
    first use.
    """

    table: "pyarrow.Table"
    place: _Place

    @property
    def first(self) -> Integers:
        """The first integer of each group, as an array."""
        integers: Integers = self.table.column(self.place.start).cast("int64").to_numpy()
        return integers

    def groups(self, rows: Integers) -> list[Codes]:
        """Returns the group keys of the rows with these indices."""
        keys = self.table.select([*range(self.place.keys)])
        return _tuples(keys.take(rows))

    def of(self, groups: Sequence[Codes]) -> Groups:
        """Returns the exact integers of the given groups, by group; groups without integers may be
        absent.
        """
        return self.place.read(_tuples(self._rows_of(groups))) if groups else {}

    def leaves(self, groups: Sequence[Codes]) -> list[Leaves]:
        """Returns, for each given group, the weights of a quantile's leaves (cells of codes) that
        are not zero.
        """
        import pyarrow  # only questions with very many rows need it

        *keys, leaf, weight = self._rows_of(groups).columns
        # of one value, so that there is a key
        every = leaf.cast("int64"), weight.cast("int64"), pyarrow.nulls(len(leaf))
        table = pyarrow.table([*every, *keys], [*map(str, range(3 + len(keys)))])
        by_group = table.group_by(table.column_names[2:]).aggregate([("0", "list"), ("1", "list")])
        listed = by_group.column("0_list"), by_group.column("1_list")
        leaves_by_group: dict[Codes, Leaves] = {}
        groups_found = _tuples(by_group.select(table.column_names[2:]))
        for group, *arrays in zip(groups_found, *listed, strict=True):
            leaves, weights = (array.values.to_numpy() for array in arrays)
            order = np.argsort(leaves)
            order = order[weights[order] > 0]
            leaves_by_group[group[1:]] = leaves[order], weights[order]
        nothing = np.zeros(0, np.int64)
        return [leaves_by_group.get(group, (nothing, nothing)) for group in groups]

    def _rows_of(self, groups: Sequence[Codes]) -> "pyarrow.Table":
        """Returns the rows of some groups; rows of others may be among them."""
        import pyarrow.compute  # only questions with very many rows need it

        table = self.table
        for key, codes in enumerate(zip(*groups, strict=True)):
            column = table.column(key)
            if pyarrow.types.is_integer(column.type):
                # declared codes may need more bits than those that occur
                column = column.cast("int64")
            wanted = pyarrow.array(set(codes), column.type)
            table = table.filter(pyarrow.compute.is_in(column, wanted))
        return table

    @cached_property
    def _all(self) -> Groups:
        return tidy(self.place.read(_tuples(self.table)))

    def __getitem__(self, group: Codes) -> tuple[int, ...]:
        return self._all[group]

    def __iter__(self) -> Iterator[Codes]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)


def is_read_in_columns(plan: Bounded) -> bool:
    """Whether the results of a plan are stored as ``Columns`` (Arrow), because they may have very
    many rows.
    """
    raw = plan.tracked.raw
    return raw.is_open or any(isinstance(each, Quantiles) for each in raw.aggregates)


def gather(
    plan: Bounded,
    places: Sequence[int],
    result: Rows,
) -> dict[int, Groups]:
    """Returns the exact integers of each aggregate by group, from the result rows of a SQL
    statement; ``places`` are the indices of its aggregates.

    The cells must be Python integers, and strings for text keys.
    """
    parts: dict[int, Groups] = {}
    for part, place in _places(plan, places).items():
        parts[part] = tidy(place.read(result))
    return parts


def columns(
    plan: Bounded,
    places: Sequence[int],
    result: "pyarrow.Table",
) -> dict[int, Groups]:
    """Returns the exact integers of each aggregate by group, from the Arrow result of a SQL
    statement; ``places`` are the indices of its aggregates.

    The result equals that of ``gather``, without a Python object per group.
    """
    return {part: Columns(result, place) for part, place in _places(plan, places).items()}


def _places(plan: Bounded, places: Sequence[int]) -> dict[int, _Place]:
    """Returns the columns of each part in the rows of its statement."""
    keys = start = len(plan.tracked.raw.keys)
    by_part = {}
    for part in places:
        aggregate = plan.parts[part].aggregate
        size = aggregate.width
        by_part[part] = _Place(
            keys,
            start,
            size,
            isinstance(aggregate, Quantiles),
        )
        start += size
    return by_part


def _tuples(table: "pyarrow.Table") -> list[tuple[Any, ...]]:
    """Returns the rows of a table; a HUGEINT, which Arrow has as a decimal, becomes an int."""
    cells = [_cells(column) for column in table.columns]
    return list(zip(*cells, strict=True))


def _cells(column: "pyarrow.ChunkedArray") -> list[Any]:
    cells: list[Any] = column.to_pylist()
    if str(column.type).startswith("decimal"):
        return [*map(int, cells)]
    return cells
