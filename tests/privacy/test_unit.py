# SPDX-License-Identifier: Apache-2.0
"""A unit needs its column, and limits that are counts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidDeclaration
from sfumato.privacy import AddRemove, Relation, ReplaceOne, Unit

LIMITS = ["max_rows", "max_groups", "max_rows_total"]


@given(st.text(min_size=1), st.integers(1, 2**31), st.none() | st.integers(1, 2**31))
@settings(deadline=None)
def test_a_unit_keeps_what_it_was_given(column, rows, groups):
    unit = Unit(column, max_rows=rows, max_groups=groups)
    assert (unit.column, unit.max_rows, unit.max_groups, unit.max_rows_total) == (column, rows, groups, None)


@pytest.mark.parametrize("column", ["", None, 3, b"id", [], ["id", ""]])
def test_a_unit_without_the_name_of_a_column_is_refused(column):
    with pytest.raises(InvalidDeclaration, match="column"):
        Unit(column)


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("value", [0, -1, True, 1.0, "1", 2**31 + 1, float("nan")])
def test_a_limit_that_is_no_count_is_refused_by_name(name, value):
    with pytest.raises(InvalidDeclaration, match=f"{name} = "):
        Unit("id", **{name: value})


@pytest.mark.parametrize("name", LIMITS)
def test_the_extremes_of_a_limit_are_allowed(name):
    assert getattr(Unit("id", **{name: 1}), name) == 1
    assert getattr(Unit("id", **{name: 2**31}), name) == 2**31


def test_the_relations_are_two_and_named_for_the_contract():
    assert [each.value for each in Relation] == ["add-remove", "replace-one"]
    assert (AddRemove, ReplaceOne) == (Relation.ADD_REMOVE, Relation.REPLACE_ONE)
