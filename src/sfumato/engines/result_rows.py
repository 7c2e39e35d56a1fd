# SPDX-License-Identifier: Apache-2.0
"""What a statement gave, as the integers of each part. Proof: result_rows.proof.md.

Of declared groups there are few. Of groups that are not declared there may be a hundred
million, of which some are shown: they stay columns until it is known which (``Columns``).
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from sfumato.engines.base import Codes, tidy
from sfumato.noise.law import Integers
from sfumato.plan.aggregate import Quantiles, width
from sfumato.plan.stages import Bounded

if TYPE_CHECKING:
    import pyarrow

Rows: TypeAlias = Sequence[tuple[Any, ...]]
Groups: TypeAlias = Mapping[Codes, tuple[int, ...]]


@dataclass(frozen=True)
class _Place:
    """Where the integers of a part stand in the rows of a statement: behind the ``keys``, from ``start`` on."""

    keys: int
    start: int
    size: int
    is_leaf: bool

    def read(self, found: Rows) -> Groups:
        keys, start, end = self.keys, self.start, self.start + self.size
        if not self.is_leaf:
            return {row[:keys]: row[start:end] for row in found}
        cells: dict[Codes, list[int]] = defaultdict(([0] * self.size).copy)
        for row in found:
            cells[row[:keys]][row[keys]] = row[keys + 1]
        return {group: tuple(leaves) for group, leaves in cells.items()}


@dataclass(frozen=True, eq=False)
class Columns(Mapping[Codes, tuple[int, ...]]):
    """The integers of a part, in a row of ``table`` for each group, its codes first.

    As a mapping it is what any engine gives (``tidy``), made once it is asked for as such.
    """

    table: "pyarrow.Table"
    place: _Place

    @property
    def first(self) -> Integers:
        """The first integer of each row."""
        found: Integers = self.table.column(self.place.start).cast("int64").to_numpy()
        return found

    def groups(self, rows: Integers) -> list[Codes]:
        """The groups of some rows."""
        return _tuples(self.table.select([*range(self.place.keys)]).take(rows))

    def of(self, groups: Sequence[Codes]) -> Groups:
        """The integers of some groups; one without any may be absent."""
        import pyarrow.compute  # no other question needs it

        table = self.table
        for key, codes in enumerate(zip(*groups, strict=True)):
            column = table.column(key)
            table = table.filter(
                pyarrow.compute.is_in(column, pyarrow.array(set(codes), column.type))
            )
        return self.place.read(_tuples(table)) if groups else {}

    @cached_property
    def _all(self) -> Groups:
        return tidy(self.place.read(_tuples(self.table)))

    def __getitem__(self, group: Codes) -> tuple[int, ...]:
        return self._all[group]

    def __iter__(self) -> Iterator[Codes]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)


def gather(plan: Bounded, places: Sequence[int], found: Rows) -> dict[int, Groups]:
    """The integers of some parts, from the rows of their statement: Python integers, and texts of keys."""
    return {part: tidy(place.read(found)) for part, place in _places(plan, places).items()}


def columns(plan: Bounded, places: Sequence[int], found: "pyarrow.Table") -> dict[int, Groups]:
    """The same, of a statement whose rows are columns."""
    return {part: Columns(found, place) for part, place in _places(plan, places).items()}


def _places(plan: Bounded, places: Sequence[int]) -> dict[int, _Place]:
    keys = start = len(plan.tracked.raw.keys)
    found = {}
    for part in places:
        aggregate = plan.parts[part].aggregate
        found[part] = _Place(keys, start, width(aggregate), isinstance(aggregate, Quantiles))
        start += width(aggregate)
    return found


def _tuples(table: "pyarrow.Table") -> list[tuple[Any, ...]]:
    """Rows; a wide integer comes as a decimal."""
    return list(zip(*map(_cells, table.columns), strict=True))


def _cells(column: "pyarrow.ChunkedArray") -> list[Any]:
    cells: list[Any] = column.to_pylist()
    return [*map(int, cells)] if str(column.type).startswith("decimal") else cells
