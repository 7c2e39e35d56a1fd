# SPDX-License-Identifier: Apache-2.0
"""Comma joins are the inner joins that they mean, and nothing else changes."""

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import parse_one

from sfumato.sql.comma_join import with_conditions


def written(text):
    return with_conditions(parse_one(text, dialect="duckdb")).sql(dialect="duckdb")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("SELECT 1 FROM a, b WHERE a.x = b.x", "SELECT 1 FROM a JOIN b ON a.x = b.x"),
        (
            "SELECT 1 FROM a AS p, b AS q WHERE Q.x = P.x AND p.y > 1 AND q.z = p.z",
            "SELECT 1 FROM a AS p JOIN b AS q ON Q.x = P.x AND q.z = p.z WHERE p.y > 1",
        ),
        (
            "SELECT 1 FROM a, b, c WHERE b.y = c.y AND a.x = b.x",
            "SELECT 1 FROM a JOIN b ON a.x = b.x JOIN c ON b.y = c.y",
        ),
        (
            "SELECT 1 FROM a LEFT JOIN b ON a.x = b.x, c WHERE a.y = c.y",
            "SELECT 1 FROM a LEFT JOIN b ON a.x = b.x JOIN c ON a.y = c.y",
        ),
        ("SELECT 1 FROM a WHERE (SELECT 1 FROM b)", "SELECT 1 FROM a WHERE ((SELECT 1 FROM b))"),
        (
            "SELECT 1 FROM (SELECT a.x FROM a, b WHERE a.x = b.x) AS s",
            "SELECT 1 FROM (SELECT a.x FROM a JOIN b ON a.x = b.x) AS s",
        ),
    ],
)
def test_a_comma_join_has_its_condition(text, wanted):
    assert written(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 FROM a, b WHERE a.x = 1",
        "SELECT 1 FROM a, b WHERE x = y",
        "SELECT 1 FROM a, b WHERE a.x = b.x OR a.y = b.y",
        "SELECT 1 FROM a, b WHERE a.x < b.x",
        "SELECT 1 FROM a, b WHERE a.x = b.x + 1",
        "SELECT 1 FROM a, b WHERE a.x = a.y",
        "SELECT 1 FROM a, b WHERE NOT a.x = b.x",
        "SELECT 1 FROM a, b RIGHT JOIN c ON b.x = c.x WHERE a.x = b.x",
        "SELECT 1 FROM a JOIN b ON a.y = b.y WHERE a.x = b.x",
        "SELECT 1 FROM a CROSS JOIN b WHERE a.x = b.x",
        "SELECT 1 FROM a WHERE a.x = 1 AND a.y = 2",
        "SELECT 1 FROM a",
    ],
)
def test_what_links_no_comma_join_stays(text):
    assert written(text) == parse_one(text, dialect="duckdb").sql(dialect="duckdb")


ROWS = st.lists(st.tuples(*[st.sampled_from([None, 0, 1])] * 2), min_size=1, max_size=4)
TESTS = ["a.x = b.x", "b.y = a.y", "c.x = b.y", "a.y = c.y", "a.x > 0", "c.x IS NULL", "b.x = 1"]


@given(ROWS, ROWS, ROWS, st.lists(st.sampled_from(TESTS), min_size=1, max_size=4), st.booleans())
@settings(max_examples=40, deadline=None)
def test_the_rows_are_the_same(a, b, c, tests, left):
    """NULLs too, and beside a LEFT JOIN."""
    third = "LEFT JOIN c ON b.x = c.x" if left else ", c"
    text = f"SELECT a.x, a.y, b.x, b.y, c.x FROM a, b {third} WHERE {' AND '.join(tests)}"
    database = duckdb.connect()
    for name, rows in zip("abc", (a, b, c), strict=True):
        database.execute(f"CREATE TABLE {name} (x INT, y INT)")
        database.executemany(f"INSERT INTO {name} VALUES (?, ?)", rows)
    found = [sorted(database.execute(each).fetchall(), key=repr) for each in (text, written(text))]
    assert found[0] == found[1]
