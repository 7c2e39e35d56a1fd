# SPDX-License-Identifier: Apache-2.0
"""The rows of a relation in plain Python: each the codes of its columns, and its unit."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
    PerUnit,
    PublicJoin,
    Ranked,
    Relation,
    Scan,
    Semi,
    Summary,
    Union,
    UnitJoin,
)
from sfumato.plan.scalar import Field, Leaf, Scalar, Value

Tables = Mapping[str, Sequence[Mapping[str, object]]]


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a relation. A column that it lacks is NULL."""

    unit: str | None
    values: Mapping[str, Value]

    def read(self, expression: Scalar) -> Value:
        """The value of an expression over the row."""

        def lookup(leaf: Leaf) -> Value:
            if not isinstance(leaf, Field):
                raise TypeError("an expression over rows reads columns only")
            return self.values.get(leaf.column.name)

        return evaluate(expression, lookup)

    def code(self, expression: Scalar) -> int | str | None:
        """The same, of an expression that has a code or a text."""
        value = self.read(expression)
        if (
            value is None
            or isinstance(value, str)
            or (isinstance(value, int) and not isinstance(value, bool))
        ):
            return value
        raise TypeError("a value that is no code and no text")


def rows(relation: Relation, tables: Tables) -> list[Row]:
    """The rows of a relation.

    >>> from sfumato.metadata.column import Integer
    >>> rows(Scan("t", "t.", (Column("t.a", Integer(0, 9)),), Owner(("who",))), {"t": [{"who": "p", "a": "12"}]})
    [Row(unit='p', values={'t.a': 9})]
    """
    match relation:
        case Scan():
            return _scan(relation, tables)
        case Filter(source, predicate):
            return [row for row in rows(source, tables) if row.read(predicate) is True]
        case PublicJoin():
            return _public_join(relation, tables)
        case UnitJoin(source, other, outer):
            partners = {row.unit: row for row in rows(other, tables)}
            return _joined(rows(source, tables), lambda row: partners.get(row.unit), outer=outer)
        case Semi(source, units, negated):
            present = {row.unit for row in rows(units, tables)}
            return [row for row in rows(source, tables) if (row.unit in present) is not negated]
        case PerUnit():
            return _per_unit(relation, tables)
        case Ranked():
            return _ranked(relation, tables)
        case Union(sources, values, columns):
            return [
                Row(
                    row.unit,
                    {
                        column.name: row.read(value)
                        for column, value in zip(columns, read, strict=True)
                    },
                )
                for source, read in zip(sources, values, strict=True)
                for row in rows(source, tables)
            ]
        case _:
            raise unknown(relation)


def _scan(scan: Scan, tables: Tables) -> list[Row]:
    owners = None if scan.owner is None else _owners(scan.owner, tables)
    found = []
    for raw in tables[scan.table]:
        unit = None if owners is None else owners(raw)
        if owners is not None and unit is None:
            continue
        values = {
            column.name: code_of(column, raw.get(column.name.removeprefix(scan.prefix)))
            for column in scan.columns
        }
        found.append(Row(unit, values))
    return found


def _owners(owner: Owner, tables: Tables) -> Callable[[Mapping[str, object]], str | None]:
    """Who owns a raw row; None: nobody."""
    if owner.via is None or owner.owner is None:
        return lambda raw: _named(raw, owner.columns)
    above = _owners(owner.owner, tables)
    smallest: dict[str, str] = {}
    for raw in tables[owner.via]:
        key, unit = _named(raw, owner.keys), above(raw)
        if key is not None and unit is not None:
            smallest[key] = min(unit, smallest.get(key, unit))

    def find(raw: Mapping[str, object]) -> str | None:
        key = _named(raw, owner.columns)
        return None if key is None else smallest.get(key)

    return find


def _named(raw: Mapping[str, object], columns: Sequence[str]) -> str | None:
    """The text of one column, or of several: each with its length before it."""
    values = [raw.get(column) for column in columns]
    if None in values:
        return None
    texts = [text_of(value) for value in values]
    return texts[0] if len(texts) == 1 else "".join(f"{len(each)}:{each}" for each in texts)


def _joined(source: list[Row], find: Callable[[Row], Row | None], *, outer: bool) -> list[Row]:
    """Each row with its partner; ``outer``: without one it stays as it is."""
    found = []
    for row in source:
        partner = find(row)
        if partner is not None:
            found.append(Row(row.unit, {**row.values, **partner.values}))
        elif outer:
            found.append(row)
    return found


def _public_join(join: PublicJoin, tables: Tables) -> list[Row]:
    scan = join.table
    candidates = rows(
        Scan(scan.table, scan.prefix, tuple(dict.fromkeys((*scan.columns, join.right))), None),
        tables,
    )
    candidates.sort(
        key=lambda row: [nulls_first(row.code(Field(column))) for column in scan.columns]
    )
    public: dict[Value, Row] = {}
    for row in candidates:
        key = row.code(Field(join.right))
        if key is not None:
            public.setdefault(key, row)
    return _joined(
        rows(join.source, tables), lambda row: public.get(row.code(join.left)), outer=join.outer
    )


def _per_unit(relation: PerUnit, tables: Tables) -> list[Row]:
    held: dict[tuple[str | None, tuple[int | str | None, ...]], list[Row]] = defaultdict(list)
    for row in rows(relation.source, tables):
        held[row.unit, tuple(row.code(value.expression) for _, value in relation.keys)].append(row)
    found = []
    for (unit, codes), own in held.items():
        keys = {column.name: code for (column, _), code in zip(relation.keys, codes, strict=True)}
        found.append(
            Row(
                unit,
                {**keys, **{each.column.name: _summary(each, own) for each in relation.columns}},
            )
        )
    return found


def _summary(computed: Computed, own: list[Row]) -> int | None:
    """A summary of one unit's rows, cut to the range of its column."""
    if computed.value is None:
        return _cut(computed.column, len(own))
    codes = [code for row in own if (code := row.code(computed.value.expression)) is not None]
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
    held: dict[str | None, list[Row]] = defaultdict(list)
    for row in rows(relation.source, tables):
        held[row.unit].append(row)
    # a stable sort by the last key first, then by those before it
    sorts = [
        *((each.expression, each.descending) for each in relation.order),
        *((tie, False) for tie in relation.ties),
    ]
    found = []
    for own in held.values():
        ordered = own
        for expression, descending in reversed(sorts):
            ordered = _sorted(ordered, expression, descending=descending)
        for number, row in enumerate(ordered, start=1):
            found.append(
                Row(row.unit, {**row.values, relation.column.name: _cut(relation.column, number)})
            )
    return found


def _sorted(own: list[Row], expression: Scalar, *, descending: bool) -> list[Row]:
    """Rows in the order of an expression, NULL last in both directions; rows alike keep theirs."""
    present = [row for row in own if row.code(expression) is not None]
    absent = [row for row in own if row.code(expression) is None]
    return [
        *sorted(present, key=lambda row: nulls_first(row.code(expression)), reverse=descending),
        *absent,
    ]
