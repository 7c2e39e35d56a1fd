# SPDX-License-Identifier: Apache-2.0
"""The lineage of expressions: the declared columns that they read, also through sub-queries.

``explain`` uses it to say which columns were clipped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sfumato.errors import unknown
from sfumato.metadata.column import Column
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
    Summary,
    Union,
    UnitJoin,
    Windowed,
)
from sfumato.plan.scalar import Field, Scalar, leaves
from sfumato.plan.scope import nodes


@dataclass(frozen=True, slots=True)
class Origin:
    """The declared columns and per-unit summaries from which the values of expressions are
    computed.

    ``columns`` are the declared columns that the expressions read; ``summaries`` are the per-unit
    summaries that they read (of sub-queries with a row for each unit).
    """

    columns: tuple[Column, ...]
    summaries: tuple[Computed, ...]


def origin(relation: Relation, *expressions: Scalar) -> Origin:
    """Returns the declared columns and summaries that expressions over a relation depend on.

    >>> from sfumato.metadata.column import Integer
    >>> from sfumato.plan.relation import Scan
    >>> from sfumato.plan.value import Value
    >>> age, most = Column("age", Integer(0, 120)), Column("per_unit.max", Integer(0, 120))
    >>> maximum = Computed(most, Summary.MAXIMUM, Value.of(age))
    >>> oldest = PerUnit(Scan("people", columns=(age,)), (), (maximum,))
    >>> origin(oldest, Field(most)).columns
    (Column(name='age', type=Integer(0, 120)),)
    """
    below = list(nodes(relation))
    inputs = _inputs(below)
    summaries = _summaries(below)
    seen: dict[Column, None] = {}
    waiting = list(reversed(expressions))
    while waiting:
        new = []
        for leaf in leaves(waiting.pop()):
            if isinstance(leaf, Field) and leaf.column not in seen:
                new.append(leaf.column)
        seen |= dict.fromkeys(new)
        for column in reversed(new):
            waiting += reversed(inputs.get(column.name, ()))
    columns = []
    read = []
    for column in seen:
        if column.name not in inputs:
            columns.append(column)
        if column.name in summaries:
            read.append(summaries[column.name])
    return Origin(tuple(columns), tuple(read))


def _inputs(relations: Sequence[Relation]) -> Mapping[str, tuple[Scalar, ...]]:
    """For each computed column, by name, the expressions from which it is computed."""
    inputs: dict[str, tuple[Scalar, ...]] = {}
    for node in relations:
        match node:
            case PerUnit(_, keys, columns):
                for column, value in keys:
                    inputs[column.name] = (value.expression,)
                for computed in columns:
                    inputs[computed.column.name] = _read(computed)
            case Ranked(_, _, _, column):
                inputs[column.name] = ()
            case Windowed():
                looked_up = () if node.value is None else (node.value.expression,)
                inputs[node.column.name] = looked_up
            case Union(_, values, columns):
                for place, column in enumerate(columns):
                    inputs[column.name] = tuple(row[place] for row in values)
            case Scan() | Filter() | PublicJoin() | KeyJoin() | UnitJoin() | Semi():
                pass
            case _:
                raise unknown(node)
    return inputs


def _read(computed: Computed) -> tuple[Scalar, ...]:
    """The expression whose values a summary returns; none if it only counts rows or values."""
    if computed.value is None or computed.summary in (Summary.COUNT, Summary.COUNT_VALUES):
        return ()
    return (computed.value.expression,)


def _summaries(relations: Sequence[Relation]) -> Mapping[str, Computed]:
    """The summaries of a unit's rows, by the name of their column."""
    summaries = {}
    for node in relations:
        if isinstance(node, PerUnit):
            for computed in node.columns:
                summaries[computed.column.name] = computed
    return summaries
