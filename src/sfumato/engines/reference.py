# SPDX-License-Identifier: Apache-2.0
"""The reference engine: computes the same integers in plain Python, slowly and obviously.

Tests compare every engine with it. The tests of the sensitivity proof run on it too: they check row
by row how much neighbouring datasets can differ.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from math import isqrt
from operator import add

import numpy as np

from sfumato.engines.base import Codes, Exact, Graph, UnitRows, flattened, nulls_first, tidy
from sfumato.engines.reference_graph import reference_graph
from sfumato.engines.reference_order import hashed, place, unit_rows
from sfumato.engines.reference_rows import Row, Tables, rows
from sfumato.engines.stop import ENDLESS, Patience
from sfumato.metadata.column import Text
from sfumato.noise.law import Integers
from sfumato.plan.aggregate import (
    Aggregate,
    CountDistinct,
    CountUnits,
    Linear,
    Quantiles,
    Sum,
)
from sfumato.plan.cube import BoundedCube, Places
from sfumato.plan.graph import BoundedGraph
from sfumato.plan.relation import Filter, PublicJoin, Ranked, Relation, Scan, Semi, UnitJoin, scans
from sfumato.plan.rows import BoundedRows
from sfumato.plan.scalar import Field
from sfumato.plan.stages import Bounded
from sfumato.plan.units_where import CountUnitsWhere
from sfumato.plan.value import GroupKey, Value
from sfumato.privacy.distance import Norm

# Table names for the rows of a layout: as many rows of each unit as a part counts, or one.
_SAMPLE = "{} prepared"
_FIRST = "{} first"
# The rows of one unit by group.
Held = Mapping[Codes, list[Row]]


@dataclass(frozen=True, slots=True)
class Sample:
    """A prepared layout for the reference engine: the scan of the table, and its sampling key."""

    scan: Scan
    key: str


class Reference:
    """The plain Python implementation of ``Engine``, against which other engines are tested. Its
    tables are sequences of mappings.

    ``layouts`` describes the tables that have a prepared layout.
    """

    collects_codes = True

    def __init__(self, tables: Tables, layouts: Mapping[str, Sample] | None = None) -> None:
        self._tables = tables
        self._layouts = layouts or {}

    def statement(self, plan: Bounded) -> str:
        """Returns a short description of what would run."""
        names = sorted({scan.table for scan in scans(plan.tracked.raw.relation)})
        return f"plain Python over {', '.join(names)}"

    def wait(self, patience: Patience = ENDLESS) -> None:
        """Returns at once: any number of plans can run at the same time."""

    def interrupt(self) -> None:
        """Does nothing: plans are not interrupted."""

    def close(self) -> None:
        """Does nothing, since the engine has no resources."""

    def ready(
        self, plan: Bounded, sampling_key: str, patience: Patience = ENDLESS
    ) -> Callable[[], Exact]:
        """Returns a function that computes the integers of a plan; it cannot be interrupted."""
        return partial(self.run, plan, sampling_key)

    def run(self, plan: Bounded, sampling_key: str) -> Exact:
        """Computes the exact integers of a plan.

        >>> from sfumato.engines.reference import Reference
        >>> Reference({"t": []}).statement  # doctest: +ELLIPSIS
        <bound method Reference.statement ...>
        """
        if plan.tracked.kept is not None:
            return tuple(tidy(self._sampled(plan, part.aggregate)) for part in plan.parts)
        relation_rows = rows(plan.tracked.raw.relation, self._tables)
        if plan.tracked.unit is None:
            return _of_rows(plan, relation_rows)
        return _of_units(plan, relation_rows, sampling_key)

    def cube(
        self, plan: BoundedCube, patience: Patience = ENDLESS
    ) -> AbstractContextManager["Counted"]:
        """Opens a bounded cube (see ``Engine``); reading it cannot be interrupted."""
        return self._counted(plan)

    @contextmanager
    def _counted(self, plan: BoundedCube) -> "Iterator[Counted]":
        cube_rows = rows(plan.cube.relation, self._tables)
        units = Counter(row.unit for row in cube_rows)
        yield Counted(plan, [(row, _weight(plan, units[row.unit])) for row in cube_rows])

    def rows(
        self, plan: BoundedRows, key: str, patience: Patience = ENDLESS
    ) -> AbstractContextManager[UnitRows]:
        """Opens bounded rows (see ``Engine``); reading them cannot be interrupted."""
        return self._listed(plan, key)

    @contextmanager
    def _listed(self, plan: BoundedRows, key: str) -> Iterator[UnitRows]:
        yield unit_rows(plan, rows(plan.rows.relation, self._tables), key)

    def edges(
        self, plan: BoundedGraph, key: str, patience: Patience = ENDLESS
    ) -> Callable[[], Graph]:
        """Prepares a bounded graph (see ``Engine``); reading it cannot be interrupted."""
        return partial(reference_graph, plan, self._tables, key)

    def _sampled(self, plan: Bounded, aggregate: Aggregate) -> Mapping[Codes, tuple[int, ...]]:
        """Computes one part of a plan that reads prepared layouts: every row counts by itself.

        A table that is joined to the first one, or tested for having a row of the same unit, has
        only the first row of each unit.
        """
        relation = plan.tracked.raw.relation
        tables = dict(self._tables)
        counted = plan.tracked.counted(aggregate)
        for table in {scan.table for scan in scans(relation)}:
            layout = self._layouts[table]
            tables[_SAMPLE.format(table)] = _first_rows(layout, self._tables, counted)
            tables[_FIRST.format(table)] = _first_rows(layout, self._tables, 1)
        groups = _grouped(plan, rows(_renamed(relation, _SAMPLE), tables))
        integers: dict[Codes, tuple[int, ...]] = {}
        for group, inside in groups.items():
            if isinstance(aggregate, CountUnits):
                units = {row.unit for row in inside}
                integers[group] = (len(units) * plan.refinement,)
            else:
                integers[group] = _plain(plan, aggregate, inside)
        return integers


def _weight(plan: BoundedCube, row_count: int) -> int:
    """Weight of each row of a unit with n (``row_count``) rows: floor(f min(1, T / n)).

    It is 1 where each row is its own unit.
    """
    if plan.unit is None:
        return 1
    return min(plan.refinement, plan.refinement * plan.most // row_count)


@dataclass(frozen=True, slots=True, repr=False)
class Counted:
    """The rows of an open cube with their weights; only marginals can be read from it."""

    plan: BoundedCube
    weighed: Sequence[tuple[Row, int]]

    def marginals(self, cliques: Sequence[Sequence[str]]) -> list[Integers]:
        """Returns the exact marginals of the cliques."""
        return [self._marginal(clique) for clique in self.plan.cube.places(cliques)]

    def _marginal(self, clique: Places) -> Integers:
        cells: Integers = np.zeros(self.plan.cube.shape(clique), np.int64)
        axes = [self.plan.cube.axes[place] for place in clique]
        for row, weight in self.weighed:
            cells[tuple(_cell(axis, row.code(axis.value.expression)) for axis in axes)] += weight
        return cells


def _cell(axis: GroupKey, code: int | str | None) -> int:
    """Returns the index of a code on an axis; NULL is the last cell."""
    codes = (*(axis.codes or ()), None)
    return codes.index(code)


def _renamed(relation: Relation, name: str) -> Relation:
    """Replaces table names by those of a layout.

    Tables that are joined by unit, or tested for a row of the unit, get the name of the first rows.
    """
    match relation:
        case Scan():
            return replace(relation, table=name.format(relation.table))
        case UnitJoin(source, other):
            return replace(relation, source=_renamed(source, name), other=_renamed(other, _FIRST))
        case Semi(source, units):
            return replace(relation, source=_renamed(source, name), units=_renamed(units, _FIRST))
        case Filter() | PublicJoin() | Ranked():
            return replace(relation, source=_renamed(relation.source, name))
        case _:
            raise TypeError("a prepared layout is read row by row")


def _first_rows(sample: Sample, tables: Tables, most: int) -> list[Mapping[str, object]]:
    """Returns the first ``most`` rows of each unit in the order of a layout.

    Rows are ordered by the hash of their content, their unit and their number among equal rows.
    """
    scan = sample.scan
    by_unit = defaultdict[str, list[tuple[Codes, Mapping[str, object]]]](list)
    for raw in tables[scan.table]:
        for row in rows(scan, {**tables, scan.table: [raw]}):
            assert row.unit is not None, "a prepared table has units"
            codes = tuple(row.code(Field(column)) for column in scan.columns)
            by_unit[row.unit].append((codes, raw))
    first_rows: list[Mapping[str, object]] = []
    for unit, own in by_unit.items():
        seen = Counter[Codes]()
        placed = []
        for codes, raw in own:
            seen[codes] += 1
            number = seen[codes]
            digest = hashed(sample.key, *codes, unit, number)
            order = digest, [nulls_first(code) for code in codes], number
            placed.append((order, raw))
        placed.sort(key=lambda pair: pair[0])
        first_rows += [raw for _, raw in placed[:most]]
    return first_rows


def _grouped(plan: Bounded, relation_rows: Iterable[Row]) -> dict[Codes, list[Row]]:
    """Groups rows by their keys; drops a row with a key that is not declared."""
    keys = plan.tracked.raw.keys
    groups = defaultdict(list)
    for row in relation_rows:
        codes = tuple(row.code(key.value.expression) for key in keys)
        if all(map(_is_declared, keys, codes)):
            groups[codes].append(row)
    return dict(groups)


def _is_declared(key: GroupKey, code: int | str | None) -> bool:
    """Whether a group with this code of the key can exist."""
    if code is None:
        return key.missing
    return key.codes is None or code in key.codes


def _of_rows(plan: Bounded, relation_rows: list[Row]) -> Exact:
    """Computes all parts where each row is its own unit: plain sums."""
    groups = _grouped(plan, relation_rows)
    parts = []
    for part in plan.parts:
        integers = {group: _plain(plan, part.aggregate, inside) for group, inside in groups.items()}
        parts.append(tidy(integers))
    return tuple(parts)


def _plain(plan: Bounded, aggregate: Aggregate, inside: list[Row]) -> tuple[int, ...]:
    """Returns the integers of a group in which each row counts by itself."""
    match aggregate:
        case CountUnitsWhere(value):
            return (sum(code is not None for code in _codes(value, inside)) * plan.refinement,)
        case CountUnits():
            return (len(inside) * plan.refinement,)
        case CountDistinct(value):
            return (len(set(_codes(value, inside))) * plan.refinement,)
        case Quantiles():
            return flattened(_leaves(aggregate, inside, plan.refinement))
        case Linear():
            return tuple(integer * plan.refinement for integer in _linear(aggregate, inside, None))
        case _:
            raise TypeError(f"{type(aggregate).__name__} is not known here")


def _of_units(plan: Bounded, relation_rows: list[Row], sampling_key: str) -> Exact:
    """Computes all parts by adding up the bounded contribution of every unit."""
    by_unit: dict[str, list[Row]] = defaultdict(list)
    for row in relation_rows:
        assert row.unit is not None, "a relation of units has no row without one"
        by_unit[row.unit].append(row)
    contributions = [
        _Unit.of(plan, unit, _grouped(plan, own), sampling_key) for unit, own in by_unit.items()
    ]
    return tuple(
        tidy(_summed(part.aggregate, contributions, plan.refinement)) for part in plan.parts
    )


def _summed(
    aggregate: Aggregate, contributions: "list[_Unit]", fine: int
) -> dict[Codes, tuple[int, ...]]:
    """Computes one part: the sum of all contributions, or the union of the distinct values."""
    if isinstance(aggregate, CountDistinct):
        kept: dict[Codes, set[int | str]] = defaultdict(set)
        for unit in contributions:
            for group in unit.first:
                kept[group] |= unit.distinct(aggregate, group)
        return {group: (len(values) * fine,) for group, values in kept.items()}
    if isinstance(aggregate, Quantiles):
        return _summed_leaves(aggregate, contributions)
    totals: dict[Codes, tuple[int, ...]] = {}
    for unit in contributions:
        for group in unit.shown:
            amounts = unit.integers(aggregate, group)
            before = totals.get(group, (0,) * len(amounts))
            totals[group] = tuple(map(add, before, amounts))
    return totals


def _summed_leaves(
    aggregate: Quantiles, contributions: "list[_Unit]"
) -> dict[Codes, tuple[int, ...]]:
    """Computes the weights of the leaves of each group, added up over the units."""
    totals: dict[Codes, Counter[int]] = defaultdict(Counter)
    for unit in contributions:
        for group in unit.shown:
            totals[group].update(unit.leaves(aggregate, group))
    return {group: flattened(weights) for group, weights in totals.items()}


@dataclass(frozen=True, slots=True)
class _Unit:
    """The rows of one unit by group.

    ``first`` are its groups within the limit, in hash order; ``shown`` are the groups whose rows
    count at all.
    """

    plan: Bounded
    name: str
    sampling_key: str
    shown: Held
    first: tuple[Codes, ...]

    @classmethod
    def of(cls, plan: Bounded, name: str, held: Held, sampling_key: str) -> "_Unit":
        """Orders the groups of a unit; where keys are open, drops those beyond the limit."""

        def order(group: Codes) -> tuple[int, list[tuple[bool, int, str]]]:
            return place(sampling_key, *group, name), [nulls_first(code) for code in group]

        limits = plan.tracked.limits
        kept = _smaller(limits.groups, limits.total)
        first = tuple(sorted(held, key=order)[:kept])
        shown = {group: held[group] for group in first} if plan.tracked.raw.is_open else held
        return cls(plan, name, sampling_key, shown, first)

    def integers(self, aggregate: Aggregate, group: Codes) -> list[int]:
        """Returns the integers that the unit adds to a group."""
        limit = self.plan.tracked.limits.rows
        own = self.shown[group]
        match aggregate:
            case CountUnitsWhere(value) if all(code is None for code in _codes(value, own)):
                return [0]
            case CountUnits():
                return [self.plan.refinement if group in self.first else 0]
            case Linear():
                weight = self.weight(self.plan.norm)
                return [integer * weight for integer in _linear(aggregate, own, limit)]
            case _:
                raise TypeError(f"{type(aggregate).__name__} is not added up by weight")

    def leaves(self, aggregate: Quantiles, group: Codes) -> Counter[int]:
        """Returns the weights that the unit adds to the leaves of a group."""
        own = self.shown[group]
        count = len(_codes(aggregate.value, own))
        few = _at_most(count, self.plan.tracked.limits.rows)
        return _leaves(aggregate, own, self.weight(Norm.L1) * few // max(count, 1))

    def weight(self, norm: Norm) -> int:
        """Returns the weight of the unit, for f the refinement of the plan (RULES 13).

        In L1 it is floor(f min(1, B / N)), with N the number of rows that count and B their limit;
        in L2 it is floor(f sqrt(min(1, R B / S))), with S the sum of n^2 over the groups.
        """
        limits = self.plan.tracked.limits
        fine = self.plan.refinement
        sizes = [_at_most(len(own), limits.rows) for own in self.shown.values()]
        rows = _smaller(limits.rows, limits.total)
        most = limits.total
        if rows is not None and limits.groups is not None and not self.plan.tracked.raw.is_open:
            most = _smaller(rows * limits.groups, limits.total)
        if most is None or rows is None:
            return fine
        if norm is Norm.L1:
            return min(fine, fine * most // sum(sizes))
        squares = sum(size**2 for size in sizes)
        return isqrt(min(fine**2, fine**2 * rows * most // squares))

    def distinct(self, aggregate: CountDistinct, group: Codes) -> set[int | str]:
        """Returns the values of the unit in a group that are kept (RULES 14)."""

        def order(value: int | str) -> tuple[int, tuple[bool, int, str]]:
            return place(self.sampling_key, *group, value, self.name), nulls_first(value)

        limits = self.plan.tracked.limits
        values = set(_codes(aggregate.value, self.shown[group]))
        kept = _smaller(limits.rows, limits.total)
        return set(sorted(values, key=order)[:kept])


def _linear(aggregate: Linear, inside: Sequence[Row], limit: int | None) -> list[int]:
    """Returns the integers of the rows in a group, clipped as if there were at most ``limit``."""
    rows = [aggregate.row(code) for code in _counted(aggregate, inside)]
    whole = [0] * aggregate.width
    for row in rows:
        whole = [total + integer for total, integer in zip(whole, row, strict=True)]
    if limit is None or len(rows) <= limit:
        return whole
    if isinstance(aggregate, Sum):
        return [_clipped(aggregate.value, whole[0], limit)]
    return [integer * limit // len(rows) for integer in whole]


def _counted(aggregate: Linear, inside: Sequence[Row]) -> list[int]:
    """Returns the codes of the rows that count; 0 where only the rows are counted."""
    value = aggregate.read
    if value is None:
        return [0] * len(inside)
    if aggregate.reads_codes:
        return _numbers(value, inside)
    return [0] * len(_codes(value, inside))


def _clipped(value: Value, total: int, limit: int) -> int:
    """Returns a sum, clipped to what ``limit`` rows can add up to."""
    low = limit * min(value.numeric.lower_code, 0)
    high = limit * max(value.numeric.upper_code, 0)
    return min(max(total, low), high)


def _leaves(aggregate: Quantiles, inside: Sequence[Row], weight: int) -> Counter[int]:
    """Adds up the weights of the rows in each leaf."""
    kind = aggregate.value.type
    weights: Counter[int] = Counter()
    assert not isinstance(kind, Text), "a text has no leaf"
    for code in _numbers(aggregate.value, inside):
        weights[(code - kind.lower_code) // aggregate.coarse] += weight
    return weights


def _codes(value: Value, inside: Iterable[Row]) -> list[int | str]:
    """Returns the values of the rows without NULL."""
    codes = (row.code(value.expression) for row in inside)
    return [code for code in codes if code is not None]


def _numbers(value: Value, inside: Iterable[Row]) -> list[int]:
    return [code for code in _codes(value, inside) if isinstance(code, int)]


def _at_most(count: int, limit: int | None) -> int:
    if limit is None:
        return count
    return min(count, limit)


def _smaller(*limits: int | None) -> int | None:
    """Returns the smallest limit that is set; None if none is."""
    return min((limit for limit in limits if limit is not None), default=None)


def rows_of(columns: Mapping[str, Iterable[object]]) -> list[Mapping[str, object]]:
    """Converts a table given as columns by name to a list of rows, each a mapping from column name
    to value.

    >>> rows_of({"a": [1, 2]})
    [{'a': 1}, {'a': 2}]
    """
    names = list(columns)
    cells = zip(*columns.values(), strict=True)
    return [dict(zip(names, row, strict=True)) for row in cells]
