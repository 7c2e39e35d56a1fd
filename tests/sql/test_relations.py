# SPDX-License-Identifier: Apache-2.0
"""FROM, WITH and sub-queries are read from the inside out; names stay within their place."""

import pytest

from sfumato.errors import Refused
from sfumato.metadata.column import Column
from sfumato.plan.relation import Filter, PerUnit, Scan
from sfumato.plan.scalar import Arithmetic, Constant, Field, Operation
from sfumato.sql import relations
from tests.sql.conftest import EVENTS

AGE = Field(Column("age", EVENTS["age"]))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT SUM(older) FROM (SELECT user_id, age + 1 AS older FROM events)",
        "SELECT SUM(x.older) FROM (SELECT user_id, age + 1 AS older FROM events) AS x",
        "WITH x AS (SELECT age + 1 AS older FROM events) SELECT SUM(older) FROM x",
        "WITH a AS (SELECT * FROM events), b AS (SELECT age + 1 AS older FROM a) SELECT SUM(older) FROM b AS c",
        "SELECT SUM(older) FROM (WITH x AS (SELECT age + 1 AS older FROM events) SELECT * FROM x) AS y",
        "SELECT SUM(older) FROM ((SELECT age + 1 AS older FROM events)) AS y",
        "WITH events AS (SELECT age + 1 AS older FROM events) SELECT SUM(older) FROM events",
        "SELECT SUM(b) FROM (SELECT a.age + 1 AS b, a.* FROM events AS a)",
    ],
)
def test_a_sub_query_of_rows_is_its_expressions(ask, text):
    raw = ask(text).raw
    assert isinstance(raw.relation, Scan)
    assert raw.aggregates[0].value.expression == Arithmetic(Operation.ADD, AGE, Constant(1))


def test_each_where_is_a_filter_of_its_own_rows(ask):
    found = ask(
        "SELECT COUNT(*) FROM (SELECT * FROM events WHERE age > 12) WHERE age < 15"
    ).raw.relation
    assert (
        isinstance(found, Filter)
        and isinstance(found.source, Filter)
        and isinstance(found.source.source, Scan)
    )


def test_a_name_that_is_not_selected_is_not_seen(ask):
    with pytest.raises(
        Refused, match="The sub-query 'x' has no declared column 'amount'"
    ) as refusal:
        ask("SELECT SUM(amount) FROM (SELECT user_id, age FROM events) AS x")
    assert refusal.value.allowed == "user_id, age"
    with pytest.raises(Refused, match="no declared column 'user_id'"):
        ask("SELECT COUNT(DISTINCT user_id) FROM (SELECT age FROM events) AS x")
    with pytest.raises(Refused, match="No table 'events'"):
        ask("SELECT SUM(events.age) FROM (SELECT age FROM events) AS x")


def test_a_star_is_every_column_and_the_unit(ask):
    assert ask(
        "SELECT COUNT(DISTINCT user_id), COUNT(day) FROM (SELECT * FROM events)"
    ).raw.aggregates
    both = "SELECT * FROM events e JOIN users u ON e.user_id = u.user_id"
    assert ask(
        f"SELECT COUNT(DISTINCT user_id), COUNT(age_band), COUNT(age) FROM ({both})"
    ).raw.aggregates
    assert ask(f"SELECT COUNT(born) FROM ({both.replace('*', 'u.*')})").raw.aggregates
    with pytest.raises(Refused, match="no declared column 'age'"):
        ask(f"SELECT COUNT(age) FROM ({both.replace('*', 'u.*')})")


def test_a_name_of_with_is_lowered_anew_each_time(ask):
    per = "WITH p AS (SELECT user_id, COUNT(*) AS n FROM events GROUP BY user_id)"
    found = ask(
        f"{per} SELECT COUNT(*) FROM p a JOIN p b USING (user_id) WHERE a.n < b.n"
    ).raw.relation.source
    assert isinstance(found.source, PerUnit) and isinstance(found.other, PerUnit)
    assert found.source.columns[0].column.name != found.other.columns[0].column.name


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (
            "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT COUNT(*) FROM r",
            "RECURSIVE",
        ),
        (
            "WITH a AS (SELECT * FROM b), b AS (SELECT * FROM events) SELECT COUNT(*) FROM a",
            "No table 'b'",
        ),
        ("WITH a AS (SELECT * FROM a) SELECT COUNT(*) FROM a", "No table 'a'"),
        ("WITH a(x, X) AS (SELECT age, day FROM events) SELECT COUNT(*) FROM a", "of 2 columns"),
        ("WITH x AS (DELETE FROM events) SELECT COUNT(*) FROM events", "DELETE FROM events"),
        ("SELECT COUNT(*) FROM (SELECT * FROM events LIMIT 3)", "LIMIT in a sub-query"),
        ("SELECT COUNT(*) FROM (SELECT * FROM events ORDER BY age LIMIT 2)", "in a sub-query"),
        ("SELECT COUNT(*) FROM (SELECT * EXCLUDE (age) FROM events)", "EXCEPT|not part"),
        ("SELECT COUNT(*) FROM (VALUES (1)) AS v", "VALUES"),
        ("SELECT COUNT(*) FROM (events JOIN users USING (user_id))", "sub-query"),
        ("SELECT COUNT(*) FROM (SELECT 1)", "without FROM"),
        ("SELECT COUNT(*) FROM (SELECT age AS a, day AS a FROM events)", "two columns 'a'"),
        (
            "SELECT COUNT(*) FROM (SELECT age, kind FROM products p JOIN events e USING (product)) AS x(kind)",
            "two columns of one name",
        ),
        ("SELECT COUNT(*) FROM (SELECT product FROM products)", "public tables alone"),
        (
            "SELECT COUNT(*) FROM (SELECT kind, COUNT(*) FROM products GROUP BY kind)",
            "public tables alone",
        ),
    ],
)
def test_another_from_is_refused(ask, text, word):
    with pytest.raises(Refused, match=word) as refusal:
        ask(text)
    assert refusal.value.remedy or refusal.value.allowed


def test_a_clause_let_through_is_noticed(ask, monkeypatch):
    monkeypatch.setattr(relations, "require_only", lambda node, *allowed: None)
    assert ask("SELECT COUNT(*) FROM (SELECT * FROM events LIMIT 3)").raw.aggregates
