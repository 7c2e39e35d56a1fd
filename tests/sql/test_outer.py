# SPDX-License-Identifier: Apache-2.0
"""The allow-list of outer statements."""

import pytest
from sqlglot import parse_one

from sfumato.errors import Refused
from sfumato.sql.outer import require_allowed, text_of_outer

ALLOWED = [
    "SELECT region, n - LAG(n, 1, 0) OVER (ORDER BY region) FROM a",
    "SELECT * FROM a JOIN a AS b USING (region) WHERE b.n > 3 QUALIFY ROW_NUMBER() OVER () = 1",
    "SELECT region, SUM(n) FILTER (WHERE n > 0) FROM a GROUP BY ROLLUP (region) HAVING SUM(n) > 1",
    "SELECT QUANTILE_CONT(n, 0.5), MEDIAN(n), STDDEV(n), CORR(n, n), ARG_MAX(region, n) FROM a",
    "SELECT n FROM a UNION ALL (SELECT n FROM a ORDER BY n LIMIT 1) EXCEPT SELECT 1",
    "SELECT DATE_TRUNC('month', DATE '2024-01-01'), STRFTIME(d, '%Y') FROM a",
    "SELECT region || '-' || n FROM a WHERE region ILIKE 'a%' AND n IS DISTINCT FROM 3",
    "SELECT v.x FROM (VALUES (1), (2)) AS v(x), a WHERE EXISTS (SELECT 1 FROM a AS b WHERE b.n = v.x)",
]
REFUSED = [
    "SELECT RANDOM() FROM a",
    "SELECT NOW() FROM a",
    "SELECT n FROM b",
    "SELECT n FROM main.a",
    "SELECT n FROM information_schema.tables",
    "SELECT * FROM range(10)",
    "SELECT * FROM read_csv('x')",
    "SELECT * FROM 'x.csv'",
    "SELECT * FROM query('SELECT 1')",
    "SELECT UNNEST([1, 2]) FROM a",
    "SELECT [n] FROM a",
    "SELECT {'a': n} FROM a",
    "SELECT REPEAT(region, 1000000000) FROM a",
    "SELECT LPAD(region, 1000000000, 'x') FROM a",
    "SELECT STRING_AGG(region, ',') FROM a",
    "SELECT LIST(n) FROM a",
    "SELECT GETENV('HOME') FROM a",
    "SELECT CURRENT_SETTING('threads') FROM a",
    "SELECT NEXTVAL('s') FROM a",
    "SELECT MD5(region) FROM a",
    "SELECT CAST(n AS JSON) FROM a",
    "SELECT CAST(n AS INT[]) FROM a",
    "SELECT n FROM a LIMIT (SELECT 1)",
    "SELECT n FROM a LIMIT 10%",
    "SELECT n FROM a TABLESAMPLE 10%",
    "SELECT x || x FROM (SELECT region || region AS x FROM a)",
    "SELECT LIST_TRANSFORM([1], x -> x) FROM a",
    "SELECT COLUMNS('n') FROM a",
    "SELECT n FROM a FOR UPDATE",
    "PIVOT a ON region USING SUM(n)",
]


@pytest.mark.parametrize("text", ALLOWED)
def test_what_analysts_write_over_answers_is_allowed(text):
    require_allowed(parse_one(text, dialect="duckdb"), {"a"})


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_allowed_is_refused(text):
    with pytest.raises(Refused):
        require_allowed(parse_one(text, dialect="duckdb"), {"a"})


def test_every_name_of_the_text_is_quoted():
    tree = parse_one('SELECT a."x y", "Q""q" FROM t AS a', dialect="duckdb")
    assert text_of_outer(tree) == 'SELECT "a"."x y", "Q""q" FROM "t" AS "a"'
