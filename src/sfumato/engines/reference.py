# SPDX-License-Identifier: Apache-2.0
"""The same integers in plain Python: slow, short, obviously right.

It is the oracle of every engine test, and the subject of the tests of the sensitivity
proof: what neighbours can differ by is checked on it, row by row.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from math import isqrt

import numpy as np

from sfumato.engines.base import Codes, Exact, UnitRows, nulls_first, tidy
from sfumato.engines.reference_order import hashed, unit_rows
from sfumato.engines.reference_rows import Row, Tables, rows
from sfumato.engines.stop import ENDLESS, Patience
from sfumato.engines.value_codes import WHOLE_PATTERN
from sfumato.errors import unknown
from sfumato.metadata.column import Text
from sfumato.noise.law import Integers
from sfumato.plan.aggregate import (
    Aggregate,
    CountDistinct,
    CountRows,
    CountUnits,
    CountValues,
    Mean,
    Quantiles,
    Sum,
    Variance,
    levels,
)
from sfumato.plan.cube import BoundedCube, Places
from sfumato.plan.relation import Filter, PublicJoin, Ranked, Relation, Scan, Semi, UnitJoin, scans
from sfumato.plan.rows import BoundedRows
from sfumato.plan.scalar import Field
from sfumato.plan.stages import Bounded
from sfumato.plan.value import GroupKey, Value
from sfumato.privacy.distance import Norm

_PRIME = 2**31 - 1
# What the rows of a layout are called: as many of a unit as a part counts, or one.
_SAMPLE, _FIRST = "{} prepared", "{} first"
# The rows of one unit, by group.
Held = Mapping[Codes, list[Row]]


@dataclass(frozen=True, slots=True)
class Sample:
    """A prepared layout as plain Python means it: the whole declared table, and the key of its order."""

    scan: Scan
    key: str


class Reference:
    """An engine over rows held as Python mappings; ``layouts`` are the samples of tables that are prepared."""

    def __init__(self, tables: Tables, layouts: Mapping[str, Sample] | None = None) -> None:
        self._tables = tables
        self._layouts = layouts or {}

    def statement(self, plan: Bounded) -> str:
        """What it would run."""
        return f"plain Python over {', '.join(sorted({scan.table for scan in scans(plan.tracked.raw.relation)}))}"

    def wait(self, patience: Patience = ENDLESS) -> None:
        """Never waits: any number of plans run at once."""

    def ready(
        self, plan: Bounded, sampling_key: str, patience: Patience = ENDLESS
    ) -> Callable[[], Exact]:
        """What computes the exact integers of a plan, once it is called; it is not interrupted."""
        return partial(self.run, plan, sampling_key)

    def run(self, plan: Bounded, sampling_key: str) -> Exact:
        """The exact integers of a plan.

        >>> from sfumato.engines.reference import Reference
        >>> Reference({"t": []}).statement  # doctest: +ELLIPSIS
        <bound method Reference.statement ...>
        """
        if plan.tracked.kept is not None:
            return tuple(tidy(self._sampled(plan, part.aggregate)) for part in plan.parts)
        found = rows(plan.tracked.raw.relation, self._tables)
        if plan.tracked.unit is None:
            return _of_rows(plan, found)
        return _of_units(plan, found, sampling_key)

    def cube(
        self, plan: BoundedCube, patience: Patience = ENDLESS
    ) -> AbstractContextManager["Counted"]:
        """The marginals of a bounded cube (see ``Engine``); what reads it is not interrupted."""
        return self._counted(plan)

    @contextmanager
    def _counted(self, plan: BoundedCube) -> "Iterator[Counted]":
        found = rows(plan.cube.relation, self._tables)
        units = Counter(row.unit for row in found)
        yield Counted(plan, [(row, _weight(plan, units[row.unit])) for row in found])

    def rows(
        self, plan: BoundedRows, key: str, patience: Patience = ENDLESS
    ) -> AbstractContextManager[UnitRows]:
        """Bounded rows (see ``Engine``); what reads them is not interrupted."""
        return self._listed(plan, key)

    @contextmanager
    def _listed(self, plan: BoundedRows, key: str) -> Iterator[UnitRows]:
        yield unit_rows(plan, rows(plan.rows.relation, self._tables), key)

    def _sampled(self, plan: Bounded, aggregate: Aggregate) -> Mapping[Codes, tuple[int, ...]]:
        """One part of a plan of a prepared layout: each row that it counts, by itself.

        Of tables that are joined to it, or asked for its unit, the first row of each unit is there.
        """
        relation, tables = plan.tracked.raw.relation, dict(self._tables)
        for table in {scan.table for scan in scans(relation)}:
            for name, most in ((_SAMPLE, plan.tracked.counted(aggregate)), (_FIRST, 1)):
                tables[name.format(table)] = _first_rows(self._layouts[table], self._tables, most)
        groups = _grouped(plan, rows(_renamed(relation, _SAMPLE), tables))
        if isinstance(aggregate, CountUnits):
            return {
                group: (len({row.unit for row in inside}) * plan.refinement,)
                for group, inside in groups.items()
            }
        return {group: _plain(plan, aggregate, inside) for group, inside in groups.items()}


def _weight(plan: BoundedCube, held: int) -> int:
    """floor(f min(1, T / N)) of each row of a unit with N; one that is its own unit weighs 1."""
    return 1 if plan.unit is None else min(plan.refinement, plan.refinement * plan.most // held)


@dataclass(frozen=True, slots=True, repr=False)
class Counted:
    """The rows of a cube with their weights; nothing but marginals comes out."""

    plan: BoundedCube
    weighed: Sequence[tuple[Row, int]]

    def marginals(self, cliques: Sequence[Sequence[str]]) -> list[Integers]:
        """The exact marginals."""
        return [self._marginal(clique) for clique in self.plan.cube.places(cliques)]

    def _marginal(self, clique: Places) -> Integers:
        cells: Integers = np.zeros(self.plan.cube.shape(clique), np.int64)
        axes = [self.plan.cube.axes[place] for place in clique]
        for row, weight in self.weighed:
            cells[tuple(_cell(axis, row.code(axis.value.expression)) for axis in axes)] += weight
        return cells


def _cell(axis: GroupKey, code: int | str | None) -> int:
    """The place of a code on an axis: NULL is the last."""
    codes = (*(axis.codes or ()), None)
    return codes.index(code)


def _renamed(relation: Relation, name: str) -> Relation:
    """The relation over the rows of a layout; those that lead to the units are looked up in whole tables."""
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
    """The first rows of each unit: by the hash of what a row holds, its unit, and its number among equal ones."""
    scan, held = sample.scan, defaultdict[str, list[tuple[Codes, Mapping[str, object]]]](list)
    for raw in tables[scan.table]:
        for row in rows(scan, {**tables, scan.table: [raw]}):
            assert row.unit is not None, "a prepared table has units"
            held[row.unit].append((tuple(row.code(Field(column)) for column in scan.columns), raw))
    kept: list[Mapping[str, object]] = []
    for unit, own in held.items():
        seen, placed = Counter[Codes](), []
        for codes, raw in own:
            seen[codes] += 1
            order = (
                hashed(sample.key, *codes, unit, seen[codes]),
                [nulls_first(code) for code in codes],
                seen[codes],
            )
            placed.append((order, raw))
        placed.sort(key=lambda each: each[0])
        kept += [raw for _, raw in placed[:most]]
    return kept


def _grouped(plan: Bounded, found: Iterable[Row]) -> dict[Codes, list[Row]]:
    """Rows by group; a row whose key is not declared is in none."""
    keys, groups = plan.tracked.raw.keys, defaultdict(list)
    for row in found:
        codes = tuple(row.code(key.value.expression) for key in keys)
        if all(
            key.missing if code is None else key.codes is None or code in key.codes
            for key, code in zip(keys, codes, strict=True)
        ):
            groups[codes].append(row)
    return dict(groups)


def _of_rows(plan: Bounded, found: list[Row]) -> Exact:
    """Each row is its own unit: plain sums."""
    groups = _grouped(plan, found)

    return tuple(
        tidy({group: _plain(plan, part.aggregate, inside) for group, inside in groups.items()})
        for part in plan.parts
    )


def _plain(plan: Bounded, aggregate: Aggregate, inside: list[Row]) -> tuple[int, ...]:
    """The integers of a group in which each row counts by itself."""
    match aggregate:
        case CountUnits():
            return (len(inside) * plan.refinement,)
        case CountDistinct(value):
            return (len(set(_codes(value, inside))) * plan.refinement,)
        case Quantiles():
            leaves = _leaves(aggregate, inside)
            return tuple(leaves[leaf] * plan.refinement for leaf in range(aggregate.leaves))
        case CountRows() | CountValues() | Sum() | Mean() | Variance():
            return tuple(integer * plan.refinement for integer in _linear(aggregate, inside, None))
        case _:
            raise unknown(aggregate)


def _of_units(plan: Bounded, found: list[Row], sampling_key: str) -> Exact:
    """What each unit contributes to its groups, added up."""
    by_unit: dict[str, list[Row]] = defaultdict(list)
    for row in found:
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
    """One part: contributions added up, of distinct values united."""
    if isinstance(aggregate, CountDistinct):
        kept: dict[Codes, set[int | str]] = defaultdict(set)
        for each in contributions:
            for group in each.first:
                kept[group] |= each.distinct(aggregate, group)
        return {group: (len(values) * fine,) for group, values in kept.items()}
    totals: dict[Codes, tuple[int, ...]] = {}
    for each in contributions:
        for group in each.shown:
            amounts = each.integers(aggregate, group)
            totals[group] = tuple(
                old + new
                for old, new in zip(totals.get(group, (0,) * len(amounts)), amounts, strict=True)
            )
    return totals


@dataclass(frozen=True, slots=True)
class _Unit:
    """One unit's rows by group: ``first`` are its groups within the limit, in hash order;
    ``shown`` those whose rows count at all."""

    plan: Bounded
    name: str
    sampling_key: str
    shown: Held
    first: tuple[Codes, ...]

    @classmethod
    def of(cls, plan: Bounded, name: str, held: Held, sampling_key: str) -> "_Unit":
        """Orders the groups of a unit, and drops those beyond the limit where keys are open."""
        limits = plan.tracked.limits
        order = sorted(
            held,
            key=lambda group: (
                _place(sampling_key, *group, name),
                [nulls_first(code) for code in group],
            ),
        )
        first = tuple(order[: _smaller(limits.groups, limits.total)])
        shown = {group: held[group] for group in first} if plan.tracked.raw.is_open else held
        return cls(plan, name, sampling_key, shown, first)

    def integers(self, aggregate: Aggregate, group: Codes) -> list[int]:
        """What the unit adds to a group."""
        limit, own = self.plan.tracked.limits.rows, self.shown[group]
        match aggregate:
            case CountUnits():
                return [self.plan.refinement if group in self.first else 0]
            case Quantiles(value):
                count, leaves = len(_codes(value, own)), _leaves(aggregate, own)
                share = self.weight(Norm.L1) * _at_most(count, limit) // max(count, 1)
                return [leaves[leaf] * share for leaf in range(aggregate.leaves)]
            case CountRows() | CountValues() | Sum() | Mean() | Variance():
                return [
                    integer * self.weight(self.plan.norm)
                    for integer in _linear(aggregate, own, limit)
                ]
            case _:
                raise TypeError(f"{type(aggregate).__name__} is not added up by weight")

    def weight(self, norm: Norm) -> int:
        """floor(f min(1, B/N)), N the rows that count; or floor(f sqrt(min(1, R B / sum n^2))) (RULES 13)."""
        limits, fine = self.plan.tracked.limits, self.plan.refinement
        held = [_at_most(len(own), limits.rows) for own in self.shown.values()]
        rows, groups = (
            _smaller(limits.rows, limits.total),
            None if self.plan.tracked.raw.is_open else limits.groups,
        )
        most = _smaller(None if rows is None or groups is None else rows * groups, limits.total)
        if most is None or rows is None:
            return fine
        if norm is Norm.L1:
            return min(fine, fine * most // sum(held))
        return isqrt(min(fine**2, fine**2 * rows * most // sum(each**2 for each in held)))

    def distinct(self, aggregate: CountDistinct, group: Codes) -> set[int | str]:
        """The values of the unit in a group that are kept (RULES 14)."""
        limits = self.plan.tracked.limits
        values = set(_codes(aggregate.value, self.shown[group]))

        def order(value: int | str) -> tuple[int, tuple[bool, int, str]]:
            return _place(self.sampling_key, *group, value, self.name), nulls_first(value)

        return set(sorted(values, key=order)[: _smaller(limits.rows, limits.total)])


def _linear(aggregate: Aggregate, inside: Sequence[Row], limit: int | None) -> list[int]:
    """The integers of rows in a group, clipped as if they were at most ``limit``."""
    match aggregate:
        case CountRows():
            return [_at_most(len(inside), limit)]
        case CountValues(value):
            return [_at_most(len(_codes(value, inside)), limit)]
        case Sum(value):
            total = sum(_numbers(value, inside))
            if limit is None:
                return [total]
            kind = value.numeric
            return [
                min(max(total, limit * min(kind.lower_code, 0)), limit * max(kind.upper_code, 0))
            ]
        case Mean(value):
            low, high = value.numeric.lower_code, value.numeric.upper_code
            numbers = _numbers(value, inside)
            whole = [sum(code - low for code in numbers), sum(high - code for code in numbers)]
        case Variance(value):
            top = levels(aggregate)
            amounts = [
                (code - value.numeric.lower_code) // aggregate.coarse
                for code in _numbers(value, inside)
            ]
            whole = [
                sum(u * u for u in amounts),
                sum(2 * u * (top - u) for u in amounts),
                sum((top - u) ** 2 for u in amounts),
            ]
        case _:
            raise TypeError(f"{type(aggregate).__name__} is not linear")
    count = len(_codes(aggregate.value, inside))
    return [
        each * limit // count if limit is not None and count > limit else each for each in whole
    ]


def _leaves(aggregate: Quantiles, inside: Sequence[Row]) -> dict[int, int]:
    """How many rows are in each leaf."""
    kind, counts = aggregate.value.type, dict.fromkeys(range(aggregate.leaves), 0)
    assert not isinstance(kind, Text), "a text has no leaf"
    for code in _numbers(aggregate.value, inside):
        counts[(code - kind.lower_code) // aggregate.coarse] += 1
    return counts


def _codes(value: Value, inside: Iterable[Row]) -> list[int | str]:
    """The values of rows, without NULL."""
    return [code for row in inside if (code := row.code(value.expression)) is not None]


def _numbers(value: Value, inside: Iterable[Row]) -> list[int]:
    return [code for code in _codes(value, inside) if isinstance(code, int)]


def _place(key: str, *held: int | str | None) -> int:
    """Where a group, or a value, stands among those of a unit, which is named last: the upper bits of a y + b modulo a prime."""
    *codes, unit = held
    a, b, *_ = _quarters(hashed(key, *codes))
    first, *times = _quarters(hashed(key))
    number, mask = _number(str(unit)), 2**22 - 1
    y = (first + sum(times[each] * (number >> 22 * each & mask) for each in range(3))) % _PRIME
    return (a * y + b) % _PRIME // 2**7


def _quarters(digits: str) -> list[int]:
    return [int(digits[start : start + 8], 16) for start in range(0, 32, 8)]


def _number(unit: str) -> int:
    """A unit as a number of 64 bits: itself where it is one, else made from its text."""
    if re.fullmatch(WHOLE_PATTERN, unit) and -(2**63) <= int(unit) < 2**63:
        return int(unit)
    return int(hashed(unit)[:15], 16)


def _at_most(count: int, limit: int | None) -> int:
    return count if limit is None else min(count, limit)


def _smaller(*limits: int | None) -> int | None:
    return min((each for each in limits if each is not None), default=None)


def rows_of(columns: Mapping[str, Iterable[object]]) -> list[Mapping[str, object]]:
    """Rows of a table given by columns.

    >>> rows_of({"a": [1, 2]})
    [{'a': 1}, {'a': 2}]
    """
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
