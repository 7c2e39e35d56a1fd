# SPDX-License-Identifier: Apache-2.0
"""Names of WITH are sub-queries in their places: one of another, renamed, and shadowed."""

import pytest
from sqlglot import parse_one

from sfumato.errors import UnsupportedSql
from sfumato.sql.with_clause import inlined


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ("WITH a AS (SELECT 1 AS x) SELECT x FROM a", "SELECT x FROM (SELECT 1 AS x) AS a"),
        (
            "WITH a AS (SELECT x FROM t), b AS (SELECT x FROM A) SELECT x FROM b AS c",
            "SELECT x FROM (SELECT x FROM (SELECT x FROM t) AS A) AS c",
        ),
        (
            "WITH a(y) AS (SELECT x FROM t) SELECT y FROM a",
            "SELECT y FROM (SELECT x FROM t) AS a(y)",
        ),
        (
            "WITH a AS (SELECT 1 AS x) SELECT x FROM (WITH a AS (SELECT 2 AS x) SELECT x FROM a) AS t",
            "SELECT x FROM (SELECT x FROM (SELECT 2 AS x) AS a) AS t",
        ),
        ("WITH a AS (SELECT 1 AS x) SELECT x FROM s.a", "SELECT x FROM s.a"),
    ],
)
def test_a_name_is_its_query(text, without):
    query = parse_one(text, dialect="duckdb")
    assert inlined(query, {}).sql("duckdb") == without
    assert query.sql("duckdb") == parse_one(text, dialect="duckdb").sql("duckdb"), "it is a copy"


def test_a_recursive_name_is_refused():
    query = parse_one("WITH RECURSIVE a AS (SELECT 1 AS x) SELECT x FROM a", dialect="duckdb")
    with pytest.raises(UnsupportedSql):
        inlined(query, {})
