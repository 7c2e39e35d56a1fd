# SPDX-License-Identifier: Apache-2.0
"""A correlated sub-query of one person is a join; test_statements compares them with DuckDB."""

import pytest
from sqlglot import parse_one

from sfumato.errors import UnsupportedSql
from sfumato.sql.correlated import with_joins

USERS = "SELECT AVG(({})) FROM users u"
JOIN = (
    "LEFT JOIN (SELECT {key}, {number} AS value FROM events AS e{where} GROUP BY {key}) AS "
    "correlated ON correlated.user_id = u.user_id"
)


def rewritten(text):
    return with_joins(parse_one(text, dialect="duckdb")).sql()


@pytest.mark.parametrize(
    ("inner", "value", "number", "where"),
    [
        ("SUM(e.age)", "correlated.value", "SUM(e.age)", ""),
        ("COUNT(*)", "COALESCE(correlated.value, 0)", "COUNT(*)", ""),
        ("MAX(age) - MIN(age)", "correlated.value", "MAX(age) - MIN(age)", " WHERE e.age > 3"),
    ],
)
def test_one_number_of_a_person_is_a_join(inner, value, number, where):
    tests = "u.user_id = e.user_id" + where.replace(" WHERE", " AND")
    text = USERS.format(f"SELECT {inner} FROM events e WHERE {tests}")
    join = JOIN.format(key="e.user_id", number=number, where=where)
    assert rewritten(text) == f"SELECT AVG({value}) FROM users AS u {join}"


@pytest.mark.parametrize(
    "inner",
    [
        "SELECT AVG(age) FROM events",
        "SELECT COUNT(*) * 2 FROM events e WHERE e.user_id = u.user_id",
        "SELECT COALESCE(SUM(age), 1) FROM events e WHERE e.user_id = u.user_id",
        "SELECT SUM(age) FROM events e WHERE e.user_id = u.user_id AND e.day < u.born",
        "SELECT SUM(age) FROM events e WHERE e.user_id = u.user_id OR e.age = 3",
        "SELECT SUM(age) FROM events e WHERE e.user_id = u.user_id LIMIT 1",
        "SELECT SUM(e.age + u.x) FROM events e WHERE e.user_id = u.user_id",
        "SELECT e.age FROM events e WHERE e.user_id = u.user_id",
        "SELECT SUM(age) FROM events e WHERE e.user_id = v.user_id",
    ],
)
def test_any_other_sub_query_stays(inner):
    tree = parse_one(USERS.format(inner), dialect="duckdb")
    assert with_joins(tree.copy()) == tree


def test_several_have_names_of_their_own():
    one = "(SELECT COUNT(*) FROM events e WHERE e.user_id = u.user_id)"
    text = rewritten(f"SELECT SUM({one} + {one}) FROM users u JOIN correlated c ON c.a = u.a")
    assert text.count("LEFT JOIN") == 2
    assert "AS correlated2" in text and "AS correlated " in text
    inside = f"SELECT COUNT(*) FROM (SELECT u.user_id, {one} AS n FROM users u) AS t WHERE n > 1"
    assert "FROM users AS u LEFT JOIN" in rewritten(inside)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM events e WHERE age > (SELECT AVG(x.age) FROM events x WHERE x.day = e.day)",
        "SELECT COUNT(*) FROM events e WHERE age > (SELECT AVG(x.age) FROM events x WHERE x.user_id = e.user_id AND x.day < e.day)",
        (
            "SELECT COUNT(*) FROM events e JOIN users u ON u.user_id = e.user_id AND "
            "e.age > (SELECT MIN(age) FROM events x WHERE x.user_id = e.user_id)"
        ),
    ],
)
def test_one_that_is_not_of_one_person_is_refused(ask, text):
    with pytest.raises(UnsupportedSql, match="reads the row outside") as refusal:
        ask(text)
    assert "i.unit = o.unit" in refusal.value.remedy
