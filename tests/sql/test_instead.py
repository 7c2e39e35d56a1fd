# SPDX-License-Identifier: Apache-2.0
"""What is proposed in place of a statement, the nearest in meaning first."""

import pytest

from sfumato.sql.instead import proposals
from sfumato.sql.parse import parse
from tests.contracts.corpus import DATASET


def proposed(text):
    return [each.sql("duckdb") for each in proposals(parse(text), DATASET)]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        (
            "SELECT SUM(ammount) FROM event WHERE region = 'R01'",
            "SELECT SUM(amount) FROM events WHERE region = 'R01'",
        ),
        (
            ("SELECT COUNT(DISTINCT a.user_id) FROM events AS a JOIN orders AS b "
            "ON a.user_id = b.user_id WHERE a.region = 'R01' AND b.price > 5"),
            ("SELECT COUNT(DISTINCT a.user_id) FROM events AS a WHERE a.region = 'R01' AND "
            "a.user_id IN (SELECT b.user_id FROM orders AS b WHERE b.price > 5)"),
        ),
        (
            "SELECT day, SUM(amount) OVER (ORDER BY day) AS so_far FROM events",
            "SELECT day, SUM(SUM(amount)) OVER (ORDER BY day) AS so_far FROM events GROUP BY day",
        ),
        (
            "SELECT UPPER(product) AS p, COUNT(*) AS n FROM events GROUP BY 1",
            ("SELECT UPPER(product) AS p, SUM(n) AS n FROM "
            "(SELECT product, COUNT(*) AS n FROM events GROUP BY product) AS texts GROUP BY 1"),
        ),
        (
            "SELECT region, STRING_AGG(product, ',') FROM events GROUP BY region",
            "SELECT region, product, COUNT(*) AS n FROM events GROUP BY region, product",
        ),
        (
            "SELECT MODE(region) FROM events",
            "SELECT region, COUNT(*) AS n FROM events GROUP BY region ORDER BY n DESC",
        ),
        (
            "SELECT user_id, region, SUM(amount) AS total FROM events GROUP BY 1, 2 LIMIT 9",
            ("SELECT region, AVG(total) AS total FROM (SELECT user_id, region, "
            "SUM(amount) AS total FROM events GROUP BY 1, 2) AS person GROUP BY region"),
        ),
        (
            "SELECT r AS place, COUNT(*) AS n FROM t GROUP BY r",
            "SELECT LEAST(r, 20) AS place, COUNT(*) AS n FROM t GROUP BY LEAST(r, 20)",
        ),
        (
            "SELECT region, COUNT(*) AS n FROM events NATURAL LEFT JOIN people GROUP BY region",
            "SELECT region, COUNT(*) AS n FROM events LEFT JOIN people USING (user_id) GROUP BY region",
        ),
        ("SELECT DISTINCT region FROM events", "SELECT region, COUNT(*) AS n FROM events GROUP BY region"),
        ("SELECT * FROM events WHERE amount > 5 LIMIT 3", "SELECT COUNT(*) AS n FROM events WHERE amount > 5"),
    ],
)  # fmt: skip
def test_the_nearest_in_meaning_is_proposed_first(text, first):
    assert proposed(text)[0] == first


def test_a_number_of_rows_is_cut():
    numbers = "SELECT ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY day) AS r FROM events"
    cut = f"SELECT LEAST(r, 20) AS r, COUNT(*) AS n FROM ({numbers}) AS t GROUP BY LEAST(r, 20)"
    assert cut in proposed(f"SELECT r, COUNT(*) AS n FROM ({numbers}) AS t GROUP BY r")


def test_a_join_whose_columns_are_shown_is_no_test_of_persons():
    text = (
        "SELECT b.price, COUNT(DISTINCT a.user_id) FROM events AS a JOIN orders AS b "
        "ON a.user_id = b.user_id GROUP BY b.price"
    )
    assert not [each for each in proposed(text) if " IN (SELECT" in each]


def test_means_are_not_added_up():
    assert proposed("SELECT UPPER(product) AS p, AVG(amount) AS m FROM events GROUP BY 1") == []
    assert proposed("SELECT COUNT(*) FROM events WHERE UPPER(product) = 'A'") == []


def test_all_rows_are_proposed_in_place_of_a_sample():
    whole = "SELECT COUNT(*) FROM events"
    assert proposed(f"{whole} TABLESAMPLE 10 PERCENT")[0] == whole
    assert proposed(f"{whole} WHERE RANDOM() < 0.1")[0] == whole
    tested = f"{whole} WHERE amount > 5"
    assert proposed(f"{tested} AND RANDOM() < 0.1")[0] == tested


def test_rows_are_counted_only_where_columns_are_shown():
    assert proposed("SELECT my_function(amount) FROM events") == []


def test_a_statement_itself_stays_as_it_is():
    select = parse("SELECT * FROM evnts LIMIT 3")
    before = select.sql()
    assert len(list(proposals(select, DATASET))) > 1
    assert select.sql() == before
