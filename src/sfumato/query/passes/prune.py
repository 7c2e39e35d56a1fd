# SPDX-License-Identifier: Apache-2.0
"""Raw -> Raw: the columns that are read, each provided once and read as it is provided."""

from collections import Counter
from dataclasses import replace

from sfumato.errors import unknown
from sfumato.plan.aggregate import read_value
from sfumato.plan.relation import (
    Filter,
    PerUnit,
    PublicJoin,
    Ranked,
    Relation,
    Scan,
    Semi,
    Union,
    UnitJoin,
)
from sfumato.plan.scalar import Field, Scalar, leaves
from sfumato.plan.scope import expressions, introduced, nodes, provided, read_of
from sfumato.plan.stages import Raw
from sfumato.query.passes import Context


def prune(plan: Raw, context: Context) -> Raw:
    """Drops the columns that no expression reads, and completes the ties of every order.

    After it the ties of a ``Ranked`` tell apart all rows that differ in anything the question
    reads, so that its numbers are a function of the rows (lemma 1 of stability.proof.md).

    Guarantees:
        what is read stays and nothing else

    Raises:
        TypeError: a column that is provided twice, or that is read where it is not provided.
    """
    every = list(nodes(plan.relation))
    names = Counter(column.name for each in every for column in introduced(each))
    twice = [name for name, times in names.items() if times > 1]
    if twice:
        raise TypeError(f"provided twice: {', '.join(twice)}")
    read = read_of(plan.relation, _above(plan))
    for each in every:
        for source, readers in expressions(each):
            read |= read_of(source, readers)
    return replace(plan, relation=_cut(plan.relation, read))


def columns_above(plan: Raw) -> frozenset[str]:
    """The names of the columns that the question reads of the whole relation: of plans that differ in
    nothing else of the relation and have the same ones, ``prune`` leaves the same relation."""
    found = (leaf for each in _above(plan) for leaf in leaves(each))
    return frozenset(leaf.column.name for leaf in found if isinstance(leaf, Field))


def _above(plan: Raw) -> tuple[Scalar, ...]:
    """What the question reads of the whole relation."""
    values = [key.value for key in plan.keys] + [read_value(each) for each in plan.aggregates]
    return tuple(value.expression for value in values if value is not None)


def _cut(relation: Relation, read: set[str]) -> Relation:
    match relation:
        case Scan():
            return _cut_scan(relation, read)
        case Filter() | PerUnit():
            return replace(relation, source=_cut(relation.source, read))
        case PublicJoin(source, table):
            return replace(relation, source=_cut(source, read), table=_cut_scan(table, read))
        case UnitJoin(source, other):
            return replace(relation, source=_cut(source, read), other=_cut(other, read))
        case Semi(source, units):
            return replace(relation, source=_cut(source, read), units=_cut(units, read))
        case Ranked(source, _, ties):
            kept = _cut(source, read)
            fields = {
                column.name: Field(column) for column in provided(kept) if column.name in read
            }
            known = {
                each.column.name: each
                for each in ties
                if isinstance(each, Field) and each.column.name in fields
            }
            known = {name: each for name, each in known.items() if each == fields[name]}
            return replace(relation, source=kept, ties=tuple((known | fields).values()))
        case Union(sources):
            return replace(relation, sources=tuple(_cut(each, read) for each in sources))
        case _:
            raise unknown(relation)


def _cut_scan(table: Scan, read: set[str]) -> Scan:
    return replace(table, columns=tuple(column for column in table.columns if column.name in read))
