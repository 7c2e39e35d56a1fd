# SPDX-License-Identifier: Apache-2.0
"""What an expression is made of: through sub-queries by unit and unions, down to the declared columns."""

from collections.abc import Mapping
from dataclasses import dataclass

from sfumato.errors import unknown
from sfumato.metadata.column import Column
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
from sfumato.plan.scalar import Field, Scalar, leaves
from sfumato.plan.scope import nodes


@dataclass(frozen=True, slots=True)
class Origin:
    """The declared columns whose values an expression is made of, and the summaries of a unit's rows, each once."""

    columns: tuple[Column, ...]
    summaries: tuple[Computed, ...]


def origin(relation: Relation, *expressions: Scalar) -> Origin:
    """What expressions over a relation's rows are made of.

    >>> from sfumato.metadata.column import Integer
    >>> from sfumato.plan.relation import Scan
    >>> from sfumato.plan.value import Value
    >>> age, most = Column("age", Integer(0, 120)), Column("per_unit.max", Integer(0, 120))
    >>> oldest = PerUnit(Scan("people", columns=(age,)), (), (Computed(most, Summary.MAXIMUM, Value.of(age)),))
    >>> origin(oldest, Field(most)).columns
    (Column(name='age', type=Integer(0, 120)),)
    """
    made, summaries = _made(relation), _summaries(relation)
    seen: dict[Column, None] = {}
    waiting = list(reversed(expressions))
    while waiting:
        found = [
            leaf.column
            for leaf in leaves(waiting.pop())
            if isinstance(leaf, Field) and leaf.column not in seen
        ]
        seen |= dict.fromkeys(found)
        waiting += [
            each for column in reversed(found) for each in reversed(made.get(column.name, ()))
        ]
    return Origin(
        tuple(column for column in seen if column.name not in made),
        tuple(summaries[column.name] for column in seen if column.name in summaries),
    )


def _made(relation: Relation) -> Mapping[str, tuple[Scalar, ...]]:
    """By the name of each column that is not declared: what its values are made of."""
    found: dict[str, tuple[Scalar, ...]] = {}
    for each in nodes(relation):
        match each:
            case PerUnit(_, keys, columns):
                found |= {column.name: (value.expression,) for column, value in keys}
                found |= {computed.column.name: _of(computed) for computed in columns}
            case Ranked(_, _, _, column):
                found[column.name] = ()
            case Union(_, values, columns):
                found |= {
                    column.name: tuple(row[place] for row in values)
                    for place, column in enumerate(columns)
                }
            case Scan() | Filter() | PublicJoin() | UnitJoin() | Semi():
                pass
            case _:
                raise unknown(each)
    return found


def _of(computed: Computed) -> tuple[Scalar, ...]:
    """A number of rows, or of those that have a value, is made of no value."""
    counts = computed.summary in (Summary.COUNT, Summary.COUNT_VALUES)
    return () if computed.value is None or counts else (computed.value.expression,)


def _summaries(relation: Relation) -> Mapping[str, Computed]:
    return {
        each.column.name: each
        for node in nodes(relation)
        if isinstance(node, PerUnit)
        for each in node.columns
    }
