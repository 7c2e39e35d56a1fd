# SPDX-License-Identifier: Apache-2.0
"""What an expression is made of is found through every relation, and nothing else is."""

import pytest
from hypothesis import given

import sfumato as sf
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
from sfumato.plan.scalar import Constant, Extreme, Field, Scalar, leaves
from sfumato.plan.scope import provided
from sfumato.plan.value import Value
from sfumato.query import lineage as module
from sfumato.query.lineage import origin
from tests.contracts import plans as world

AGE, COST = Column("age", sf.Integer(0, 120)), Column("cost", sf.Integer(0, 9))
PEOPLE = Scan("people", columns=(AGE, COST))
COUNTED = Computed(Column("per_unit.count", sf.Integer(1, 6)), Summary.COUNT)
HELD = Computed(
    Column("per_unit.count_values", sf.Integer(0, 6)), Summary.COUNT_VALUES, Value.of(AGE)
)
MOST = Computed(Column("per_unit.max", COST.type), Summary.MAXIMUM, Value.of(COST))
KEY = Column("per_unit.key", AGE.type)
BY_UNIT = PerUnit(PEOPLE, ((KEY, Value.of(AGE)),), (COUNTED, HELD, MOST))
UNITED = Column("union.column", sf.Integer(0, 120))


def fields(*columns: Column) -> tuple[Field, ...]:
    return tuple(map(Field, columns))


def of(expression: Scalar, relation: Relation) -> set[Column]:
    """The same in other words: from the relation down."""
    return {each for leaf in leaves(expression) for each in column_of(leaf.column, relation)}


def column_of(column: Column, relation: Relation) -> set[Column]:
    match relation:
        case Scan():
            return {column}
        case PublicJoin(source, table) | KeyJoin(source, table):
            return {column} if column in table.columns else column_of(column, source)
        case UnitJoin(source, other):
            return column_of(column, source if column in provided(source) else other)
        case Ranked(source, _, _, number):
            return set() if column == number else column_of(column, source)
        case Windowed(source, column=computed, value=value):
            if column != computed:
                return column_of(column, source)
            return set() if value is None else of(value.expression, source)
        case Union(sources, values, columns):
            place = columns.index(column)
            return {
                each
                for arm, row in zip(sources, values, strict=True)
                for each in of(row[place], arm)
            }
        case PerUnit(source, keys, columns):
            values = dict(keys)
            values |= {
                each.column: each.value
                for each in columns
                if each.summary not in (Summary.COUNT, HELD.summary)
            }
            return of(values[column].expression, source) if column in values else set()
        case Filter(source) | Semi(source):
            return column_of(column, source)


@given(world.relations())
def test_every_column_is_made_of_what_the_relation_makes_it_of(relation: Relation) -> None:
    for column in provided(relation):
        assert set(origin(relation, Field(column)).columns) == column_of(column, relation)


def test_summaries_are_told_once_in_the_order_in_which_they_are_read() -> None:
    found = origin(BY_UNIT, *fields(MOST.column, COUNTED.column, MOST.column))
    assert found.summaries == (MOST, COUNTED) and found.columns == (COST,)


def test_a_number_of_rows_is_made_of_no_value() -> None:
    assert origin(BY_UNIT, *fields(COUNTED.column, HELD.column)).columns == ()


def test_what_is_read_again_and_again_is_followed_once() -> None:
    relation: Relation = PEOPLE
    column = AGE
    for level in range(200):
        twice = Extreme(greatest=True, operands=(Field(column), Field(column)))
        column = Column(f"union.column{level}", AGE.type)
        relation = Union((relation, PEOPLE), ((twice,), (Constant(0),)), (column,))
    # each level reads the one below twice: 2^200 ways
    assert origin(relation, Field(column)).columns == (AGE,)


def test_a_union_that_is_not_followed_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    relation = Union((PEOPLE, PEOPLE), (fields(AGE), fields(COST)), (UNITED,))
    assert origin(relation, Field(UNITED)).columns == (AGE, COST)
    monkeypatch.setattr(module, "_inputs", lambda relation: {})
    assert set(origin(relation, Field(UNITED)).columns) != column_of(UNITED, relation)
