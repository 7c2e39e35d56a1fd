# SPDX-License-Identifier: Apache-2.0
"""Which columns a relation provides, and which an expression may read of it."""

from collections.abc import Iterable, Iterator

from sfumato.errors import unknown
from sfumato.metadata.column import Column
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
    below,
    is_single,
)
from sfumato.plan.scalar import Field, Scalar, leaves


def nodes(relation: Relation) -> Iterator[Relation]:
    """A relation and every one below it whose rows belong to units, lowest last."""
    yield relation
    for each in below(relation):
        yield from nodes(each)


def provided(relation: Relation) -> tuple[Column, ...]:
    """The columns that can be read of a relation's rows.

    >>> from sfumato.metadata.column import Integer
    >>> age = Column("age", Integer(0, 120))
    >>> provided(Ranked(Scan("people", columns=(age,)), (), (), Column("rank", Integer(1, 2))))
    (Column(name='age', type=Integer(0, 120)), Column(name='rank', type=Integer(1, 2)))
    """
    match relation:
        case Scan():
            return relation.columns
        case Filter(source, _) | Semi(source, _, _):
            return provided(source)
        case PublicJoin(source, table):
            return (*provided(source), *table.columns)
        case UnitJoin(source, other):
            return (*provided(source), *provided(other))
        case PerUnit(_, keys, columns):
            return (*(column for column, _ in keys), *(each.column for each in columns))
        case Ranked(source, _, _, column):
            return (*provided(source), column)
        case Union(_, _, columns):
            return columns
        case _:
            raise unknown(relation)


def same_in_unit(relation: Relation) -> frozenset[Column]:
    """Columns that have one value in all rows of a unit, by construction: what it has one row of.

    >>> from sfumato.metadata.column import Integer
    >>> people = Scan("people", columns=(Column("age", Integer(0, 120)),))
    >>> same_in_unit(people), same_in_unit(UnitJoin(people, PerUnit(people, (), ())))
    (frozenset(), frozenset())
    """
    if is_single(relation):
        return frozenset(provided(relation))
    match relation:
        case UnitJoin(source, other):
            return same_in_unit(source) | frozenset(provided(other))
        case Filter(source, _) | PublicJoin(source) | Semi(source) | Ranked(source):
            return same_in_unit(source)
        case Scan() | PerUnit() | Union():
            return frozenset()
        case _:
            raise unknown(relation)


def is_one_group(relation: Relation, keys: Iterable[Scalar]) -> bool:
    """Whether the keys have one value in all rows of a unit, by construction."""
    read = {leaf.column for key in keys for leaf in leaves(key) if isinstance(leaf, Field)}
    return read <= same_in_unit(relation)


def introduced(relation: Relation) -> tuple[Column, ...]:
    """The columns that a relation itself brings, not one below it."""
    match relation:
        case Scan(_, _, columns) | Union(_, _, columns):
            return columns
        case PublicJoin(_, table):
            return table.columns
        case PerUnit():
            return provided(relation)
        case Ranked(_, _, _, column):
            return (column,)
        case Filter() | UnitJoin() | Semi():
            return ()
        case _:
            raise unknown(relation)


def expressions(relation: Relation) -> list[tuple[Relation, tuple[Scalar, ...]]]:
    """The expressions of one node, by the relation whose rows they read.

    Without the ties of an order, and the key of a public table, which its join itself reads.
    """
    match relation:
        case Filter(source, predicate):
            return [(source, (predicate,))]
        case PublicJoin(source, _, left):
            return [(source, (left,))]
        case PerUnit(source, keys, columns):
            values = [
                *(value for _, value in keys),
                *(each.value for each in columns if each.value is not None),
            ]
            return [(source, tuple(value.expression for value in values))]
        case Ranked(source, order):
            return [(source, tuple(each.expression for each in order))]
        case Union(sources, values):
            return list(zip(sources, values, strict=True))
        case Scan() | UnitJoin() | Semi():
            return []
        case _:
            raise unknown(relation)


def read_of(source: Relation, readers: tuple[Scalar, ...]) -> set[str]:
    """The names of the columns that expressions read of a relation's rows.

    Guarantees:
        a column is read as it is provided

    Raises:
        TypeError: a column that the relation does not provide, or not with that type: its
            declared range would say nothing of its codes.
    """
    known = {column.name: column for column in provided(source)}
    read = set()
    for leaf in (each for reader in readers for each in leaves(reader)):
        if not isinstance(leaf, Field) or known.get(leaf.column.name) != leaf.column:
            raise TypeError(f"{leaf} is not provided by the rows that it is read of")
        read.add(leaf.column.name)
    return read
