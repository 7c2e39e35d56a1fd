# SPDX-License-Identifier: Apache-2.0
"""Sub-queries that give groups: which are taken out of a statement, and what is left."""

import datetime

import pytest
from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.sql import understand
from sfumato.sql.key_lists import declared_values, key_lists
from sfumato.sql.parse import parse
from tests.contracts.corpus import DATASET

TOP = "SELECT region, COUNT(*) AS n FROM events GROUP BY region ORDER BY n DESC LIMIT 2"
COUNT = "SELECT COUNT(*) FROM events"


def taken(text, *values):
    """The statement whose one list has these values, the sub-query, and its column."""
    tree = parse(text)
    (found,) = key_lists(tree)
    found.fill(values)
    return tree.sql("duckdb"), found.query.sql("duckdb"), found.place


@pytest.mark.parametrize(
    "text",
    [
        f"{COUNT} JOIN ({TOP}) USING (region)",
        f"{COUNT} JOIN ({TOP}) AS t USING (region)",
        f"WITH top AS ({TOP}) {COUNT} JOIN top USING (region)",
        f"WITH top AS ({TOP}) {COUNT} WHERE region IN (SELECT region FROM top)",
        f"{COUNT} WHERE region IN (SELECT region FROM ({TOP}))",
    ],
)
def test_a_sub_query_that_gives_groups_becomes_a_list(text):
    left, query, place = taken(text, "R01", "R02")
    assert left == f"{COUNT} WHERE region IN ('R01', 'R02')"
    assert (query, place) == (TOP, 0)


def test_a_join_by_on_keeps_the_name_outside():
    text = f"SELECT e.region, COUNT(*) FROM events AS e JOIN ({TOP}) AS t ON t.region = e.region WHERE amount > 3 GROUP BY e.region"
    left, _, _ = taken(text, "R01")
    assert left == (
        "SELECT e.region, COUNT(*) FROM events AS e WHERE amount > 3 AND e.region IN ('R01') "
        "GROUP BY e.region"
    )


def test_the_column_of_the_groups_may_be_any():
    other = TOP.replace("region, COUNT(*) AS n", "COUNT(*) AS n, region")
    assert taken(f"{COUNT} JOIN ({other}) USING (region)", "R01")[2] == 1


def test_values_are_constants():
    text = f"{COUNT} WHERE region IN (SELECT region FROM ({TOP}))"
    left, _, _ = taken(text, "it's", 3, True, datetime.date(2024, 1, 31), None)
    assert left.endswith("IN ('it''s', 3, TRUE, CAST('2024-01-31' AS DATE))")
    assert taken(text)[0] == f"{COUNT} WHERE FALSE"
    assert taken(text, None)[0] == f"{COUNT} WHERE FALSE"


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT COUNT(*), MAX(t.n) FROM events JOIN ({TOP}) AS t USING (region)",
        f"SELECT COUNT(*), MAX(n) FROM events JOIN ({TOP}) AS t USING (region)",
        f"{COUNT} LEFT JOIN ({TOP}) AS t USING (region)",
        f"{COUNT} AS e JOIN ({TOP}) AS t ON t.n = e.amount AND t.region = e.region",
        f"{COUNT} AS e JOIN ({TOP}) AS t ON t.region > e.region",
        f"{COUNT} WHERE region IN (SELECT region FROM events GROUP BY region)",
        f"{COUNT} WHERE user_id IN (SELECT user_id FROM events GROUP BY user_id HAVING COUNT(*) > 3)",
        f"{COUNT} WHERE region IN ('R01')",
        f"WITH top AS ({TOP}) {COUNT}, top",
    ],
)
def test_what_reads_more_of_it_stays(text):
    assert key_lists(parse(text)) == []


def test_declared_values_are_those_of_the_key():
    assert declared_values(understand(TOP, DATASET), 0) == ["R01", "R02", "R03"]
    by_day = "SELECT day, COUNT(*) FROM events WHERE day < DATE '2024-01-03' GROUP BY day"
    days = declared_values(understand(by_day, DATASET), 0)
    assert days[:2] == [datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)]
    assert declared_values(
        understand("SELECT product, COUNT(*) FROM events GROUP BY product", DATASET), 0
    ) == [""]
    with pytest.raises(UnsupportedSql, match="no key"):
        declared_values(understand(TOP, DATASET), 1)


def test_a_name_of_with_that_is_used_is_gone():
    tree = parse(
        f"WITH top AS ({TOP}), e AS (SELECT * FROM events) SELECT COUNT(*) FROM e JOIN top USING (region)"
    )
    key_lists(tree)
    assert [cte.alias for cte in tree.find_all(exp.CTE)] == ["e"]
