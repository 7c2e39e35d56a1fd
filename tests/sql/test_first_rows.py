# SPDX-License-Identifier: Apache-2.0
"""ARG_MIN, ARG_MAX and FIRST are a value of one row; test_statements compares them with DuckDB."""

import pytest
from sqlglot import parse_one

from sfumato.errors import UnsupportedSql
from sfumato.plan.relation import PerUnit, UnitJoin, is_single, predicates
from sfumato.plan.scalar import IsNull, Not
from sfumato.sql.first_rows import is_of_first

OF_UNIT = "SELECT COUNT(v), COUNT(*) FROM (SELECT user_id, {} AS v FROM events GROUP BY user_id) t"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("ARG_MIN(a, b)", True),
        ("MAX_BY(a, b)", True),
        ("FIRST(a ORDER BY b)", True),
        ("ARG_MAX(a, b) FILTER (WHERE c)", True),
        ("FIRST(a)", False),
        ("LAST(a ORDER BY b)", False),
        ("MIN(a)", False),
    ],
)
def test_they_are_known(text, wanted):
    assert is_of_first(parse_one(text, dialect="duckdb")) is wanted


def test_the_row_is_joined_to_the_unit(ask):
    relation = ask(OF_UNIT.format("ARG_MIN(region, day)")).raw.relation
    assert isinstance(relation, UnitJoin) and relation.outer
    assert isinstance(relation.source, PerUnit) and is_single(relation)
    # neither of the two values of the row is NULL
    first = predicates(relation.other)[0]
    assert all(
        isinstance(test, Not) and isinstance(test.operand, IsNull) for test in first.operands
    )
    assert len(first.operands) == 2


def test_a_text_may_be_the_value(ask):
    assert ask(OF_UNIT.format("ARG_MAX(product, amount)")).raw.aggregates


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("ARG_MIN(user_id, day)", "names single persons"),
        ("ARG_MIN(day, age, 3)", "not part of the language"),
        ("FIRST(day ORDER BY 1)", "constant"),
        ("LAST(day ORDER BY age)", "is not computed in a sub-query"),
    ],
)
def test_another_value_is_refused(ask, value, says):
    with pytest.raises(UnsupportedSql, match=says):
        ask(OF_UNIT.format(value))
