# SPDX-License-Identifier: Apache-2.0
"""Another spelling is the same question as the one that the language has."""

import datetime

import pytest
from sqlglot import parse_one

from sfumato.errors import UnsupportedSql
from sfumato.sql import scalar_queries
from sfumato.sql.parse import parse
from sfumato.sql.spelling import respelled

COUNT = "SELECT COUNT(*) FROM events"
TODAY = datetime.date(2024, 6, 1)
PAIRS = [
    ('SELECT COUNT(*) FROM "db"."public"."events"', COUNT),
    ("SELECT AVG(p.events.age) FROM p.events", "SELECT AVG(age) FROM events"),
    (
        "SELECT r, AVG(a) FROM (SELECT region, age FROM events) AS t (r, a) GROUP BY r",
        "SELECT r, AVG(a) FROM (SELECT region AS r, age AS a FROM events) AS t GROUP BY r",
    ),
    (
        "SELECT r, AVG(age) FROM (SELECT region, age FROM events) AS t (r) GROUP BY r",
        "SELECT r, AVG(age) FROM (SELECT region AS r, age FROM events) AS t GROUP BY r",
    ),
    (
        "WITH t (who, a) AS (SELECT user_id, age FROM events) SELECT COUNT(DISTINCT who), AVG(a) FROM t",
        "WITH t AS (SELECT user_id AS who, age AS a FROM events) SELECT COUNT(DISTINCT who), AVG(a) FROM t",
    ),
    (
        "SELECT region, COUNT(*) AS n FROM events GROUP BY 1 ORDER BY n FETCH FIRST 2 ROWS ONLY",
        "SELECT region, COUNT(*) AS n FROM events GROUP BY 1 ORDER BY n LIMIT 2",
    ),
    (
        "SELECT region, COUNT(*) FROM events GROUP BY 1 FETCH NEXT ROW ONLY",
        "SELECT region, COUNT(*) FROM events GROUP BY 1 LIMIT 1",
    ),
    (COUNT + " LIMIT ALL", COUNT),
    ("SELECT AVG(age) FROM (SELECT age FROM events ORDER BY day) t", "SELECT AVG(age) FROM events"),
    (
        COUNT + " e WHERE EXISTS (SELECT 1 FROM users u WHERE u.user_id = e.user_id LIMIT 1)",
        COUNT + " e WHERE EXISTS (SELECT 1 FROM users u WHERE u.user_id = e.user_id)",
    ),
    (COUNT + " WHERE age = ANY(ARRAY[11, 12])", COUNT + " WHERE age IN (11, 12)"),
    (COUNT + " WHERE age <> ALL(ARRAY[11, 12])", COUNT + " WHERE age NOT IN (11, 12)"),
    (COUNT + " WHERE day >= TO_DATE('2024-03-01', 'YYYY-MM-DD')", COUNT + " WHERE day >= '2024-03-01'"),
    (COUNT + " WHERE day >= TO_DATE('2024-03-01')", COUNT + " WHERE day >= '2024-03-01'"),
    (COUNT + " WHERE day >= MAKE_DATE(2024, 3, 1)", COUNT + " WHERE day >= '2024-03-01'"),
    (
        COUNT + " WHERE day > TO_TIMESTAMP('01.03.2024 06', 'DD.MM.YYYY HH24')",
        COUNT + " WHERE day > TIMESTAMP '2024-03-01 06:00:00'",
    ),
    (COUNT + " WHERE DATE(day) = '2024-03-01'", COUNT + " WHERE day = '2024-03-01'"),
    (COUNT + " WHERE day >= DATE_SUB(CURRENT_DATE, INTERVAL 7 DAY)", COUNT + " WHERE day >= '2024-05-25'"),
    (
        COUNT + " WHERE (region, age) IN (('R01', 11), ('R02', 12))",
        COUNT + " WHERE (region = 'R01' AND age = 11) OR (region = 'R02' AND age = 12)",
    ),
    (
        "SELECT AVG(EXTRACT(YEAR FROM AGE(born))) FROM users",
        "SELECT AVG(EXTRACT(YEAR FROM AGE(DATE '2024-06-01', born))) FROM users",
    ),
    (COUNT + " WHERE day >= DATEADD(day, -7, CURRENT_DATE)", COUNT + " WHERE day >= '2024-05-25'"),
    (COUNT + " WHERE day >= DATEADD(month, 1, DATE '2024-01-31')", COUNT + " WHERE day >= '2024-02-29'"),
    (COUNT + " WHERE day < CURDATE()", COUNT + " WHERE day < '2024-06-01'"),
    (COUNT + " WHERE day < GETDATE()", COUNT + " WHERE day < NOW()"),
    (
        "SELECT DATE_FORMAT(day, '%Y-%m %W'), COUNT(*) FROM events GROUP BY 1",
        "SELECT STRFTIME(day, '%Y-%m %A'), COUNT(*) FROM events GROUP BY 1",
    ),
    (
        "SELECT FORMAT_DATE('%Y-%m', day), COUNT(*) FROM events GROUP BY 1",
        "SELECT STRFTIME(day, '%Y-%m'), COUNT(*) FROM events GROUP BY 1",
    ),
    (
        "SELECT DATEPART(month, day), COUNT(*) FROM events GROUP BY DATEPART(month, day)",
        "SELECT MONTH(day), COUNT(*) FROM events GROUP BY MONTH(day)",
    ),
    (
        "SELECT CONCAT_WS('-', region, MONTH(day)), COUNT(*) FROM events GROUP BY 1",
        "SELECT region || '-' || MONTH(day), COUNT(*) FROM events GROUP BY 1",
    ),
    (
        "SELECT CONCAT(region, '-', MONTH(day)), COUNT(*) FROM events GROUP BY 1",
        "SELECT region || '-' || MONTH(day), COUNT(*) FROM events GROUP BY 1",
    ),
    (
        "SELECT TIME_BUCKET(INTERVAL '1 week', day), COUNT(*) FROM events GROUP BY 1",
        "SELECT DATE_TRUNC('week', day), COUNT(*) FROM events GROUP BY 1",
    ),
    (
        "SELECT region, COUNT(*) FROM events GROUP BY region WITH ROLLUP",
        "SELECT region, COUNT(*) FROM events GROUP BY ROLLUP (region)",
    ),
    ("SELECT APPROX_PERCENTILE(age, 0.5) FROM events", "SELECT MEDIAN(age) FROM events"),
    ("SELECT AVG(ISNULL(age, 10)) FROM events", "SELECT AVG(COALESCE(age, 10)) FROM events"),
    ("SELECT COUNT(CASE WHEN age > 12 THEN user_id END) FROM events", "SELECT COUNT(*) FILTER (WHERE age > 12) FROM events"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "usual"), PAIRS)
def test_a_spelling_asks_the_same(ask, text, usual):
    spelled, wanted = ask(text, today=TODAY), ask(usual, today=TODAY)
    assert spelled.raw.keys == wanted.raw.keys
    assert spelled.raw.aggregates == wanted.raw.aggregates
    assert spelled.output.limit == wanted.output.limit
    assert spelled.raw.relation == wanted.raw.relation


@pytest.mark.parametrize("pair", PAIRS[:3])
def test_a_spelling_that_means_something_else_is_noticed(ask, pair):
    other = ask(pair[1].replace("COUNT(*)", "COUNT(age)").replace("AVG", "SUM"))
    assert ask(pair[0]).raw.aggregates != other.raw.aggregates


@pytest.mark.parametrize(
    "text",
    [
        "SELECT region, COUNT(*) FROM events GROUP BY region ORDER BY 2 LIMIT 3",
        "SELECT AVG(x) FROM (SELECT a AS x FROM t LIMIT 3 OFFSET 1) AS s",
        "SELECT COUNT(*) FROM t WHERE a = 1 AND b <> 2 AND c IN (1, 2)",
    ],
)
def test_a_statement_without_them_stays_as_it_is(text):
    tree = parse_one(text, dialect="duckdb")
    assert respelled(tree.copy()) == tree


def test_order_decides_where_rows_are_cut(ask):
    text = "SELECT AVG(age) FROM (SELECT age FROM events ORDER BY day LIMIT 3) t"
    with pytest.raises(UnsupportedSql, match="in a sub-query"):
        ask(text)
    assert "ORDER BY" in parse(text).sql()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (COUNT + " FETCH FIRST 5 PERCENT ROWS ONLY", "percentage"),
        (COUNT + " WHERE day > TO_DATE('03/2024', 'YYYY-MM-DD')", "does not have its format"),
        (COUNT + " WHERE day > TO_DATE('2024', 'Q')", "The pattern Q"),
        (COUNT + " WHERE (region, age) IN (('R01', 11), 'R02')", "not part of the language"),
        (COUNT + " WHERE TO_DATE(product) > '2024-01-01'", "TO_DATE"),
        ("SELECT AVG(EXTRACT(MONTH FROM AGE(born))) FROM users", "other parts than years"),
        (COUNT + " WHERE day > DATEADD(day, age, DATE '2024-01-01')", "DATEADD"),
        (
            "SELECT TIME_BUCKET(INTERVAL '2 weeks', day), COUNT(*) FROM events GROUP BY 1",
            "TIME_BUCKET",
        ),
        ("SELECT DATEPART(weekday, day), COUNT(*) FROM events GROUP BY 1", "DATEPART"),
        ("SELECT DATE_FORMAT(day, region), COUNT(*) FROM events GROUP BY 1", "DATE_FORMAT"),
        ("SELECT DATE_FORMAT(day, 'yyyy-MM'), COUNT(*) FROM events GROUP BY 1", "DATE_FORMAT"),
        ("SELECT DATE_FORMAT(day, '%V'), COUNT(*) FROM events GROUP BY 1", "directive %U"),
    ],
)
def test_what_is_no_spelling_is_refused(ask, text, says):
    with pytest.raises(UnsupportedSql, match=says):
        ask(text)


def test_parameters_may_touch(ask, where):
    for text, given, usual in [
        ("age IN ($1,$2)", [11, 12], "age IN (11, 12)"),
        ("age < $2-$1", [1, 16], "age < 16 - 1"),
        ("age IN ($a,$b)", {"a": 11, "b": 12}, "age IN (11, 12)"),
        ("product IN ($1,$2) AND product <> '$1,$2'", ["x", "y"], "product IN ('x', 'y') AND product <> '$1,$2'"),
    ]:  # fmt: skip
        asked = ask(f"{COUNT} WHERE {text}", parameters=given)
        assert asked.raw.relation.predicate == where(usual)


def test_an_inner_question_is_spelled_too():
    (inner,) = scalar_queries(
        parse("SELECT COUNT(*) FROM t WHERE a > (SELECT AVG(a) FROM t WHERE b = ANY(ARRAY[1]))")
    )
    assert inner.sql() == "SELECT AVG(a) FROM t WHERE b IN (1)"
