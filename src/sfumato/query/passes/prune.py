# SPDX-License-Identifier: Apache-2.0
"""Raw -> Raw: drops the columns that are not read, and completes the order of ranked rows."""

from collections import Counter
from dataclasses import replace

from sfumato.errors import unknown
from sfumato.plan.relation import (
    Filter,
    KeyJoin,
    PerUnit,
    PublicJoin,
    Ranked,
    Relation,
    Scan,
    Semi,
    Union,
    UnitJoin,
    Windowed,
)
from sfumato.plan.scalar import Field, Scalar, leaves
from sfumato.plan.scope import expressions, introduced, nodes, provided, read_of
from sfumato.plan.stages import Raw
from sfumato.query.passes import Context


def prune(plan: Raw, context: Context) -> Raw:
    """Returns the plan without columns that no expression reads, and with all others as ties of
    every ``Ranked`` and ``Windowed``.

    Afterwards these ties distinguish all rows that differ in a column that the question reads, so
    the ranks are a function of the rows (lemma 1 of stability.proof.md).

    Guarantees:
        what is read stays and nothing else

    Raises:
        TypeError: a column is provided twice, or is read where it is not provided.
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
    """Returns the names of the relation's columns that the keys and aggregates read.

    For one relation, ``prune`` returns the same result whenever these names are the same.
    """
    names = set()
    for expression in _above(plan):
        for leaf in leaves(expression):
            if isinstance(leaf, Field):
                names.add(leaf.column.name)
    return frozenset(names)


def _above(plan: Raw) -> tuple[Scalar, ...]:
    """The expressions of the keys and aggregates over the relation."""
    values = [key.value for key in plan.keys]
    for aggregate in plan.aggregates:
        value = aggregate.read
        if value is not None:
            values.append(value)
    return tuple(value.expression for value in values)


def _cut(relation: Relation, read: set[str]) -> Relation:
    """The relation without the columns that are not in ``read``."""
    match relation:
        case Scan():
            return _cut_scan(relation, read)
        case Filter() | PerUnit():
            return replace(relation, source=_cut(relation.source, read))
        case PublicJoin(source, table) | KeyJoin(source, table):
            return replace(relation, source=_cut(source, read), table=_cut_scan(table, read))
        case UnitJoin(source, other):
            return replace(relation, source=_cut(source, read), other=_cut(other, read))
        case Semi(source, units):
            return replace(relation, source=_cut(source, read), units=_cut(units, read))
        case Ranked(source) | Windowed(source):
            kept = _cut(source, read)
            return replace(relation, source=kept, ties=_completed(relation.ties, kept, read))
        case Union(sources):
            return replace(relation, sources=tuple(_cut(source, read) for source in sources))
        case _:
            raise unknown(relation)


def _completed(ties: tuple[Scalar, ...], source: Relation, read: set[str]) -> tuple[Scalar, ...]:
    """Every column that is read as a tie: the present ties first, then the others."""
    fields = {column.name: Field(column) for column in provided(source) if column.name in read}
    present = {}
    for tie in ties:
        if isinstance(tie, Field) and tie == fields.get(tie.column.name):
            present[tie.column.name] = tie
    return tuple((present | fields).values())


def _cut_scan(table: Scan, read: set[str]) -> Scan:
    """The scan without the columns that are not in ``read``."""
    columns = tuple(column for column in table.columns if column.name in read)
    return replace(table, columns=columns)
