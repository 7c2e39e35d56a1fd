# SPDX-License-Identifier: Apache-2.0
"""The strategies make what they say, and reach the edges."""

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from sfumato.engines.value_codes import code_of, text_of
from sfumato.metadata.column import Boolean, Category, Column, Date, Integer, Real, Text
from sfumato.plan.aggregate import CountUnits, Mean, Sum
from sfumato.plan.relation import Filter
from sfumato.plan.scalar import Field, leaves
from sfumato.privacy.distance import Norm
from sfumato.privacy.unit import Relation
from sfumato.query.pipeline import compile_plan
from sfumato.testing.strategies import (
    TABLE,
    UNIT,
    aggregates,
    column_types,
    data,
    datasets,
    neighbours,
    plans,
    predicates,
    rows,
    tables,
    units,
    values,
)

# an example is enough: to find the simplest one takes longer
SEARCH = settings(max_examples=5_000, database=None, phases=[Phase.generate])


@pytest.mark.parametrize("kind", [Integer, Real, Date, Category, Boolean, Text])
def test_every_type_is_reached(kind):
    assert find(column_types(), lambda drawn: isinstance(drawn, kind), settings=SEARCH)


@pytest.mark.parametrize("wanted", ["lower_code", "upper_code", None])
def test_values_reach_the_bounds_and_missing(wanted):
    kind = Integer(-3, 2, missing="N")
    code = getattr(kind, wanted) if wanted else None
    find(
        values(kind),
        lambda text: text is not None and code_of(Column("x", kind), text) == code,
        settings=SEARCH,
    )
    find(values(kind), lambda text: text is None, settings=SEARCH)


@settings(deadline=None)
@given(units())
def test_a_unit_can_bound_any_question(unit):
    assert unit.column == UNIT
    assert unit.max_rows_total or (unit.max_rows and unit.max_groups)


@settings(deadline=None)
@given(st.data())
def test_rows_hold_every_column_and_their_unit(drawn):
    table = drawn.draw(tables())
    row = drawn.draw(rows(table, unit="u"))
    assert set(table.columns) | ({UNIT} if table.unit else set()) == set(row)
    assert row.get(UNIT, "u") == "u"
    assert all(each is None or text_of(each) == each for each in row.values())


@settings(deadline=None)
@given(st.data(), st.booleans())
def test_tables_have_a_unit_where_one_is_asked_for(drawn, owned):
    assert (drawn.draw(tables(unit=owned)).unit is not None) is owned


def owners(held):
    """The units of a dataset; None is nobody."""
    return {row[UNIT] for row in held} - {None}


def without(held, taken):
    return [row for row in held if row[UNIT] is not None and row[UNIT] not in taken]


@settings(deadline=None)
@given(st.data(), st.sampled_from(Relation))
def test_neighbours_differ_in_one_unit(drawn, relation):
    pair = drawn.draw(neighbours(drawn.draw(tables(unit=True)), relation))
    if relation is Relation.ADD_REMOVE:
        assert len(owners(pair.other) - owners(pair.one)) == 1
        assert owners(pair.one) < owners(pair.other)
    else:
        assert len(owners(pair.one)) == len(owners(pair.other))
        assert len(owners(pair.one) - owners(pair.other)) <= 1
    assert without(pair.one, {"v", "w"}) == without(pair.other, {"v", "w"})


@settings(deadline=None)
@given(st.data())
def test_neighbours_of_rows_differ_in_one_row(drawn):
    table = drawn.draw(tables(unit=False))
    added, replaced = (drawn.draw(neighbours(table, relation)) for relation in Relation)
    assert added.other[:-1] == added.one
    assert len(replaced.one) == len(replaced.other)
    assert replaced.one[:-1] == replaced.other[:-1]


def test_data_hold_more_of_a_unit_than_a_limit_allows():
    table = find(tables(unit=True), lambda drawn: True, settings=SEARCH)
    find(data(table), lambda held: sum(row[UNIT] == "u1" for row in held) > 3, settings=SEARCH)
    find(data(table), lambda held: any(row[UNIT] is None for row in held), settings=SEARCH)


@settings(deadline=None)
@given(st.data())
def test_a_plan_asks_what_its_table_has(drawn):
    dataset = drawn.draw(datasets(tables()))
    table = dataset.tables[TABLE]
    raw = drawn.draw(plans(table))
    values = [
        *(key.value for key in raw.keys),
        *(item.read for item in raw.aggregates if item.read is not None),
    ]
    read = [value.expression for value in values]
    if isinstance(raw.relation, Filter):
        read.append(raw.relation.predicate)
    used = {
        leaf.column for expression in read for leaf in leaves(expression) if isinstance(leaf, Field)
    }
    assert used <= {Column(name, kind) for name, kind in table.columns.items()}
    assert raw.is_open == any(isinstance(key.value.type, Text) for key in raw.keys)
    assert table.unit or CountUnits() not in raw.aggregates
    assert all(compile_plan(raw, dataset, norm).parts for norm in (Norm.L1, Norm.L2))


@pytest.mark.parametrize("kind", [Sum, Mean, CountUnits])
def test_every_aggregate_is_reached(kind):
    wanted = tables(unit=True).flatmap(aggregates)
    assert find(wanted, lambda drawn: isinstance(drawn, kind), settings=SEARCH)


def test_predicates_read_columns_only():
    table = find(tables(), lambda drawn: True, settings=SEARCH)
    test = find(predicates(table), lambda drawn: len(leaves(drawn)) > 1, settings=SEARCH)
    assert all(isinstance(leaf, Field) for leaf in leaves(test))
