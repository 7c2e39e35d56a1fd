# SPDX-License-Identifier: Apache-2.0
"""The rows of a relation in plain Python, for the reference engine: a unit and codes by column."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.engines.base import nulls_first
from sfumato.engines.value_codes import code_of, text_of
from sfumato.errors import unknown
from sfumato.metadata.column import Column, Text
from sfumato.plan.evaluate import evaluate
from sfumato.plan.owner import Owner
from sfumato.plan.relation import (
    Computed,
    Filter,
    KeyJoin,
    PerUnit,
    PublicJoin,
    Ranked,
    Relation,
    Scan,
    Semi,
    Sort,
    Summary,
    Union,
    UnitJoin,
    Windowed,
    WindowFunction,
)
from sfumato.plan.scalar import Field, Leaf, Scalar, Value

Tables = Mapping[str, Sequence[Mapping[str, object]]]


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a relation in the reference engine: its unit, and its codes by column name; other
    columns are NULL.
    """

    unit: str | None
    values: Mapping[str, Value]

    def read(self, expression: Scalar) -> Value:
        """Evaluates an expression over the row."""

        def lookup(leaf: Leaf) -> Value:
            if not isinstance(leaf, Field):
                raise TypeError("an expression over rows reads columns only")
            return self.values.get(leaf.column.name)

        return evaluate(expression, lookup)

    def code(self, expression: Scalar) -> int | str | None:
        """Evaluates an expression whose value is a code or a string.

        Raises:
            TypeError: the value is neither.
        """
        value = self.read(expression)
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        raise TypeError("a value that is no code and no text")


def rows(relation: Relation, tables: Tables) -> list[Row]:
    """Returns the rows of a plan's relation (scan, filter, join or union), computed in plain
    Python.

    >>> from sfumato.metadata.column import Integer
    >>> age = Column("t.a", Integer(0, 9))
    >>> rows(Scan("t", "t.", (age,), Owner(("who",))), {"t": [{"who": "p", "a": "12"}]})
    [Row(unit='p', values={'t.a': 9})]
    """
    match relation:
        case Scan():
            return _scan(relation, tables)
        case Filter(source, predicate):
            return [row for row in rows(source, tables) if row.read(predicate) is True]
        case PublicJoin():
            return _public_join(relation, tables)
        case KeyJoin():
            return _key_join(relation, tables)
        case UnitJoin(source, other, outer):
            partners = {row.unit: row for row in rows(other, tables)}
            return _joined(
                rows(source, tables),
                lambda row: partners.get(row.unit),
                outer=outer,
            )
        case Semi(source, units, negated):
            present = {row.unit for row in rows(units, tables)}
            return [row for row in rows(source, tables) if (row.unit in present) is not negated]
        case PerUnit():
            return _per_unit(relation, tables)
        case Ranked():
            return _ranked(relation, tables)
        case Windowed():
            return _windowed(relation, tables)
        case Union():
            return _union(relation, tables)
        case _:
            raise unknown(relation)


def _union(union: Union, tables: Tables) -> list[Row]:
    names = [column.name for column in union.columns]
    united = []
    for source, values in zip(union.sources, union.values, strict=True):
        for row in rows(source, tables):
            cells = [row.read(value) for value in values]
            united.append(Row(row.unit, dict(zip(names, cells, strict=True))))
    return united


def _scan(scan: Scan, tables: Tables) -> list[Row]:
    owners = None if scan.owner is None else _owners(scan.owner, tables)
    scanned = []
    for raw in tables[scan.table]:
        unit = None if owners is None else owners(raw)
        if owners is not None and unit is None:
            continue
        values = {}
        for column in scan.columns:
            stored = raw.get(column.name.removeprefix(scan.prefix))
            values[column.name] = code_of(column, stored)
        scanned.append(Row(unit, values))
    return scanned


def _owners(owner: Owner, tables: Tables) -> Callable[[Mapping[str, object]], str | None]:
    """Returns a function from a raw row to the unit that owns it, or None."""
    if owner.via is None or owner.owner is None:
        return lambda raw: _named(raw, owner.columns, unordered=owner.unordered)
    above = _owners(owner.owner, tables)
    smallest: dict[str, str] = {}
    for raw in tables[owner.via]:
        key = _named(raw, owner.keys)
        unit = above(raw)
        if key is not None and unit is not None:
            smallest[key] = min(unit, smallest.get(key, unit))

    def find(raw: Mapping[str, object]) -> str | None:
        key = _named(raw, owner.columns)
        if key is None:
            return None
        return smallest.get(key)

    return find


def _named(
    raw: Mapping[str, object], columns: Sequence[str], *, unordered: bool = False
) -> str | None:
    """Returns the name that columns of a row spell; None if one of them is NULL.

    It is the string of a single column; of several, each string follows its length. With
    ``unordered``, the strings come in ascending order.
    """
    values = [raw.get(column) for column in columns]
    if None in values:
        return None
    texts = [text_of(value) for value in values]
    if len(texts) == 1:
        return texts[0]
    if unordered:
        texts.sort()
    return "".join(f"{len(part)}:{part}" for part in texts)


def _joined(
    source: list[Row],
    find: Callable[[Row], Row | None],
    *,
    outer: bool,
) -> list[Row]:
    """Joins each row to its partner; ``outer`` keeps a row that has none as it is."""
    joined = []
    for row in source:
        partner = find(row)
        if partner is not None:
            joined.append(Row(row.unit, {**row.values, **partner.values}))
        elif outer:
            joined.append(row)
    return joined


def _public_join(join: PublicJoin, tables: Tables) -> list[Row]:
    """Joins to the first public row of each key, in the order of the columns."""
    public: dict[Value, Row] = {}
    for key, row in _keyed(join, tables):
        public.setdefault(key, row)
    source = rows(join.source, tables)
    return _joined(
        source,
        lambda row: public.get(row.code(join.left)),
        outer=join.outer,
    )


def _key_join(join: KeyJoin, tables: Tables) -> list[Row]:
    """Joins to the first row of the same unit with each key, in the order of the columns."""
    own: dict[tuple[str | None, Value], Row] = {}
    for key, row in _keyed(join, tables):
        own.setdefault((row.unit, key), row)
    source = rows(join.source, tables)
    return _joined(
        source,
        lambda row: own.get((row.unit, row.code(join.left))),
        outer=join.outer,
    )


def _keyed(join: PublicJoin | KeyJoin, tables: Tables) -> list[tuple[Value, Row]]:
    """Returns the keys and rows of the joined table, in the order of the columns."""
    scan = join.table
    columns = tuple(dict.fromkeys((*scan.columns, join.right)))
    candidates = rows(replace(scan, columns=columns), tables)

    def order(row: Row) -> list[tuple[bool, int, str]]:
        return [nulls_first(row.code(Field(column))) for column in scan.columns]

    keyed = [(row.code(Field(join.right)), row) for row in sorted(candidates, key=order)]
    return [(key, row) for key, row in keyed if key is not None]


def _per_unit(relation: PerUnit, tables: Tables) -> list[Row]:
    """Returns a row for each unit and group of it, with the summaries of its rows."""
    groups: dict[tuple[str | None, tuple[int | str | None, ...]], list[Row]] = defaultdict(list)
    for row in rows(relation.source, tables):
        codes = tuple(row.code(value.expression) for _, value in relation.keys)
        groups[row.unit, codes].append(row)
    summarised = []
    for (unit, codes), own in groups.items():
        values: dict[str, Value] = {
            column.name: code for (column, _), code in zip(relation.keys, codes, strict=True)
        }
        for computed in relation.columns:
            values[computed.column.name] = _summary(computed, own)
        summarised.append(Row(unit, values))
    return summarised


def _summary(computed: Computed, own: list[Row]) -> int | None:
    """Summarises the rows of one unit, clipped to the range of the column."""
    if computed.value is None:
        return _cut(computed.column, len(own))
    read = [row.code(computed.value.expression) for row in own]
    codes = [code for code in read if code is not None]
    numbers = [code for code in codes if isinstance(code, int)]
    match computed.summary:
        case Summary.COUNT_VALUES:
            return _cut(computed.column, len(codes))
        case Summary.COUNT_DISTINCT:
            return _cut(computed.column, len(set(codes)))
        case _ if not numbers:
            return None
        case Summary.SUM:
            return _cut(computed.column, sum(numbers))
        case Summary.MEAN:
            mean = Fraction(sum(numbers), len(numbers)) * computed.finer
            return _cut(computed.column, math.floor(mean + Fraction(1, 2)))
        case Summary.MINIMUM:
            return _cut(computed.column, min(numbers))
        case Summary.MAXIMUM:
            return _cut(computed.column, max(numbers))
        case _:
            raise TypeError("no summary that is known")


def _cut(column: Column, number: int) -> int:
    assert not isinstance(column.type, Text), "a plan computes no text"
    return min(max(number, column.type.lower_code), column.type.upper_code)


def _ranked(relation: Ranked, tables: Tables) -> list[Row]:
    """Numbers the rows of each unit in the order of the relation."""
    by_unit: dict[str | None, list[Row]] = defaultdict(list)
    for row in rows(relation.source, tables):
        by_unit[row.unit].append(row)
    name = relation.column.name
    ranked = []
    for own in by_unit.values():
        ordered = _ordered(own, relation.order, relation.ties)
        for number, row in enumerate(ordered, start=1):
            rank = _cut(relation.column, number)
            ranked.append(Row(row.unit, {**row.values, name: rank}))
    return ranked


def _windowed(relation: Windowed, tables: Tables) -> list[Row]:
    """Computes a window function over the rows of each unit and partition."""
    partitions: dict[tuple[str | None, tuple[Value, ...]], list[Row]] = defaultdict(list)
    for row in rows(relation.source, tables):
        partitions[row.unit, tuple(map(row.code, relation.by))].append(row)
    computed = []
    for own in partitions.values():
        ordered = _ordered(own, relation.order, relation.ties)
        for row, cell in zip(ordered, _cells(relation, ordered), strict=True):
            computed.append(Row(row.unit, {**row.values, relation.column.name: cell}))
    return computed


def _cells(relation: Windowed, ordered: list[Row]) -> list[Value]:
    """Returns the values of a window function for the rows of one partition, in their order."""
    if relation.value is not None:
        codes = [row.code(relation.value.expression) for row in ordered]
        nulls: list[Value] = [None] * min(relation.offset, len(codes))
        if relation.function is WindowFunction.LAG:
            return [*nulls, *codes][: len(codes)]
        return [*codes, *nulls][len(nulls) :]
    keys = [tuple(row.code(part.expression) for part in relation.order) for row in ordered]
    numbers = list(range(1, len(keys) + 1))
    if relation.function is WindowFunction.RANK:
        numbers = [keys.index(key) + 1 for key in keys]
    elif relation.function is WindowFunction.DENSE_RANK:
        places = {key: place for place, key in enumerate(dict.fromkeys(keys), start=1)}
        numbers = [places[key] for key in keys]
    return [_cut(relation.column, number) for number in numbers]


def _ordered(own: list[Row], order: Sequence[Sort], ties: Sequence[Scalar]) -> list[Row]:
    """Sorts the rows of one unit: stably by the last key first, then by those before it."""
    sorts = [(part.expression, part.descending) for part in order]
    sorts += [(tie, False) for tie in ties]
    for expression, descending in reversed(sorts):
        own = _sorted(own, expression, descending=descending)
    return own


def _sorted(
    own: list[Row],
    expression: Scalar,
    *,
    descending: bool,
) -> list[Row]:
    """Sorts rows by an expression, stably, with NULL last in both directions."""
    present = [row for row in own if row.code(expression) is not None]
    absent = [row for row in own if row.code(expression) is None]
    present.sort(key=lambda row: nulls_first(row.code(expression)), reverse=descending)
    return present + absent
