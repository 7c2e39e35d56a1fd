# SPDX-License-Identifier: Apache-2.0
"""Converts the result of a statement to the integers of each part. Proof: result_rows.proof.md.

Declared groups are few. Groups that are not declared can be a hundred million, of which some are
released: they stay in columns until it is known which (``Columns``). So do the leaves of
quantiles, which can be as many.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from sfumato.engines.base import Codes, flattened, tidy
from sfumato.noise.law import Integers
from sfumato.plan.aggregate import Quantiles
from sfumato.plan.stages import Bounded

if TYPE_CHECKING:
    import pyarrow

T = TypeVar("T")

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
    """The integers of a part in columns: a row of ``table`` for each group, its codes first.

    As a mapping it equals what every engine returns (``tidy``); that mapping is computed when it is
    first used.
    """

    table: "pyarrow.Table"
    place: _Place

    @property
    def first(self) -> Integers:
        """The first integer of each row."""
        integers: Integers = self.table.column(self.place.start).cast("int64").to_numpy()
        return integers

    def groups(self, rows: Integers) -> list[Codes]:
        """Returns the groups of the rows with these indices."""
        keys = self.table.select([*range(self.place.keys)])
        return _tuples(keys.take(rows))

    def of(self, groups: Sequence[Codes]) -> Groups:
        """Returns the integers of some groups; a group without integers may be absent."""
        import pyarrow.compute  # only questions with open keys need it

        table = self.table
        for key, codes in enumerate(zip(*groups, strict=True)):
            column = _widest(table.column(key))
            wanted = pyarrow.array(set(codes), column.type)
            table = table.filter(pyarrow.compute.is_in(column, wanted))
        if groups:
            return self.place.read(_tuples(table))
        return {}

    def leaves(self, groups: Sequence[Codes]) -> list[Leaves]:
        """Returns the leaves with a weight and their weights, of each of some groups."""
        group_of = self._places(groups)
        leaf, weight = (
            self.table.column(self.place.keys + place).cast("int64").to_numpy() for place in (0, 1)
        )
        chosen = np.flatnonzero((group_of >= 0) & (weight > 0))
        order = chosen[np.lexsort((leaf[chosen], group_of[chosen]))]
        starts = np.searchsorted(group_of[order], np.arange(len(groups) + 1))
        parts = [order[start:end] for start, end in pairwise(starts)]
        return [(leaf[part], weight[part]) for part in parts]

    def _places(self, groups: Sequence[Codes]) -> Integers:
        """Returns the place of each row's group among ``groups``; -1 if it is none of them.

        One key after the other, by the place of what the keys so far are among the beginnings of
        the groups: no number is larger than the square of the number of groups.
        """
        import pyarrow.compute  # only questions with very many rows need it

        place = np.zeros(self.table.num_rows, np.int64)
        beginnings: dict[Codes, int] = {(): 0}
        for key in range(self.place.keys):
            column = _widest(self.table.column(key))
            codes = _numbered(group[key] for group in groups)
            wanted = pyarrow.array(list(codes), column.type)
            code = pyarrow.compute.index_in(column, wanted).fill_null(-1).to_numpy()
            longer = _numbered(group[: key + 1] for group in groups)
            numbers = [beginnings[group[:-1]] * len(codes) + codes[group[-1]] for group in longer]
            seen = np.where((place < 0) | (code < 0), -1, place * len(codes) + code)
            place = _positions(seen, np.array(numbers, np.int64))
            beginnings = longer
        return place

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
    """Whether the results of a plan stay in columns, because they may have very many rows."""
    raw = plan.tracked.raw
    return raw.is_open or any(isinstance(each, Quantiles) for each in raw.aggregates)


def gather(
    plan: Bounded,
    places: Sequence[int],
    result: Rows,
) -> dict[int, Groups]:
    """Returns the integers of the parts of a statement, given its rows.

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
    """Returns the same as ``gather``, given the result of a statement as columns."""
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


def _numbered(items: Iterable[T]) -> dict[T, int]:
    """Returns the number of each distinct item in the order of their first occurrences."""
    return {item: number for number, item in enumerate(dict.fromkeys(items))}


def _positions(values: Integers, among: Integers) -> Integers:
    """Returns the position of each value in a list of distinct ones; -1 if it is not in it."""
    order = np.argsort(among)
    at = np.searchsorted(among, values, sorter=order)
    position = np.append(order, 0)[at]
    return np.where(np.append(among, -1)[position] == values, position, -1)


def _widest(column: "pyarrow.ChunkedArray") -> "pyarrow.ChunkedArray":
    """Returns a column of integers with 64 bits, since declared codes may need more than its own."""
    return column.cast("int64") if "int" in str(column.type) else column


def _cells(column: "pyarrow.ChunkedArray") -> list[Any]:
    cells: list[Any] = column.to_pylist()
    if str(column.type).startswith("decimal"):
        return [*map(int, cells)]
    return cells
