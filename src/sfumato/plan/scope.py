# SPDX-License-Identifier: Apache-2.0
"""Which columns a relation provides, and which of them its expressions read."""

import itertools
from collections.abc import Iterable, Iterator

from sfumato.errors import unknown
from sfumato.metadata.column import Column
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
    below,
    is_single,
)
from sfumato.plan.scalar import Field, Scalar, leaves


def nodes(relation: Relation) -> Iterator[Relation]:
    """Yields a relation and, depth first, all relations below it; public tables are left out."""
    yield relation
    for source in below(relation):
        yield from nodes(source)


def provided(relation: Relation) -> tuple[Column, ...]:
    """Returns the columns of a relation's rows: those that expressions over it may read.

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
        case PublicJoin(source, other) | KeyJoin(source, other) | UnitJoin(source, other):
            return (*provided(source), *provided(other))
        case PerUnit(_, keys, columns):
            return (*(column for column, _ in keys), *(computed.column for computed in columns))
        case Ranked(source) | Windowed(source):
            return (*provided(source), relation.column)
        case Union(_, _, columns):
            return columns
        case _:
            raise unknown(relation)


def same_in_unit(relation: Relation) -> frozenset[Column]:
    """Returns the columns that have one value for all rows of a unit, whatever the data.

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
        case (
            Filter(source)
            | PublicJoin(source)
            | KeyJoin(source)
            | Semi(source)
            | Ranked(source)
            | Windowed(source)
        ):
            return same_in_unit(source)
        case Scan() | PerUnit() | Union():
            return frozenset()
        case _:
            raise unknown(relation)


def is_one_group(relation: Relation, keys: Iterable[Scalar]) -> bool:
    """Returns whether GROUP BY ``keys`` puts all rows of a unit into one group, because the keys
    read only columns that are constant within a unit.
    """
    read = {leaf.column for key in keys for leaf in leaves(key) if isinstance(leaf, Field)}
    return read <= same_in_unit(relation)


def introduced(relation: Relation) -> tuple[Column, ...]:
    """Returns the columns that a relation adds to those of its sources."""
    match relation:
        case Scan(_, _, columns) | Union(_, _, columns):
            return columns
        case PublicJoin(_, table):
            return table.columns
        case PerUnit():
            return provided(relation)
        case Ranked() | Windowed():
            return (relation.column,)
        case Filter() | KeyJoin() | UnitJoin() | Semi():
            return ()
        case _:
            raise unknown(relation)


def expressions(relation: Relation) -> list[tuple[Relation, tuple[Scalar, ...]]]:
    """Returns the expressions that the top node of a relation evaluates, each with the relation
    over whose rows it is evaluated.

    The tie-breakers of an order and the key of a joined table are left out.
    """
    match relation:
        case Filter(source, predicate):
            return [(source, (predicate,))]
        case PublicJoin(source, _, left) | KeyJoin(source, _, left):
            return [(source, (left,))]
        case PerUnit(source, keys, columns):
            values = [
                *(value for _, value in keys),
                *(computed.value for computed in columns if computed.value is not None),
            ]
            return [(source, tuple(value.expression for value in values))]
        case Ranked(source, order):
            return [(source, tuple(sort.expression for sort in order))]
        case Windowed(source, _, by, order, value=value):
            looked_up = () if value is None else (value.expression,)
            return [(source, (*by, *(sort.expression for sort in order), *looked_up))]
        case Union(sources, values):
            return list(zip(sources, values, strict=True))
        case Scan() | UnitJoin() | Semi():
            return []
        case _:
            raise unknown(relation)


def read_of(source: Relation, readers: tuple[Scalar, ...]) -> set[str]:
    """Returns the names of the columns of a relation that the expressions ``readers`` read.

    Guarantees:
        a column is read as it is provided

    Raises:
        TypeError: the relation does not have the column, or has it with another type, so that the
            declared range of its codes would not hold.
    """
    known = {column.name: column for column in provided(source)}
    read = set()
    for leaf in itertools.chain.from_iterable(map(leaves, readers)):
        if not isinstance(leaf, Field) or known.get(leaf.column.name) != leaf.column:
            raise TypeError(f"{leaf} is not provided by the relation that it is read from")
        read.add(leaf.column.name)
    return read
