# SPDX-License-Identifier: Apache-2.0
"""What is answered is what was asked: without noise and within limits, plain DuckDB's answer to the
same SQL.

The noise is taken out (each draw is zero), so that answers are exact. Where sfumato means
something else on purpose, the statement of plain SQL says so beside it.
"""

import datetime
from collections import Counter
from fractions import Fraction

import duckdb
import numpy as np
import pytest

import sfumato as sf
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.noise.truncated import Truncated
from sfumato.query import charge
from sfumato.sql import where
from tests.attacks import shop

ALIKE = [
    "SELECT COUNT(*), COUNT(amount), SUM(amount), COUNT(DISTINCT user_id), COUNT(DISTINCT product) FROM events",
    "SELECT AVG(amount), SUM(amount) / COUNT(*), SUM(amount) - 3 * COUNT(*) AS d FROM events",
    "SELECT region, COUNT(*) AS n FROM events GROUP BY region ORDER BY n DESC, region LIMIT 2",
    "SELECT region, AVG(amount) FROM events GROUP BY region HAVING COUNT(*) > 9 AND region <> 'R03' ORDER BY region",
    "SELECT COUNT(*) FILTER (WHERE amount > 50), COUNT(*) FROM events",
    "SELECT SUM(CASE WHEN amount > 50 THEN 1 ELSE 0 END), SUM(LEAST(amount, 100)) FROM events",
    "SELECT COUNT(*) FROM events WHERE day BETWEEN DATE '2024-03-01' AND DATE '2024-08-30' AND region IN ('R01', 'R02')",
    "SELECT u.age_band, AVG(e.amount), COUNT(*) FROM events e JOIN users u ON e.user_id = u.user_id GROUP BY u.age_band",
    "SELECT p.category, COUNT(*) FROM events e JOIN products p ON e.product = p.product GROUP BY p.category",
    "WITH per AS (SELECT user_id, SUM(amount) AS total FROM events GROUP BY user_id) SELECT AVG(total), COUNT(*) FROM per",
    "SELECT COUNT(*) FROM (SELECT user_id FROM events WHERE amount > 100 GROUP BY user_id HAVING COUNT(*) >= 2) AS t",
    "SELECT COUNT(*), SUM(amount) FROM events WHERE user_id IN (SELECT user_id FROM users WHERE age_band = '18-24')",
    "SELECT COUNT(*) FROM events e WHERE EXISTS (SELECT 1 FROM users u WHERE u.user_id = e.user_id AND u.age_band = '65+')",
    "SELECT COUNT(*) FROM events WHERE user_id NOT IN (SELECT user_id FROM users WHERE age_band = '65+')",
    "SELECT UPPER(region) AS r, COUNT(*) FROM events GROUP BY UPPER(region)",
    "SELECT region, COUNT(*), SUM(amount) FROM events GROUP BY ROLLUP(region)",
    "SELECT region, COUNT(*) FROM events WHERE region LIKE 'R0%' GROUP BY region",
    "SELECT COUNT(*) FROM events WHERE region LIKE 'R0%' AND product LIKE '%p%'",
    "SELECT region, APPROX_COUNT_DISTINCT(user_id) FROM events GROUP BY region",
    (
        "WITH x AS (SELECT user_id, amount, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY day, product, amount) AS rn"
        " FROM events) SELECT AVG(amount), COUNT(*) FROM x WHERE rn = 1"
    ),
    "SELECT COUNT(*), SUM(x) FROM (SELECT user_id, amount AS x FROM events UNION ALL SELECT user_id, 3 FROM users) AS b",
    "SELECT COUNT(*), COUNT(u.age_band) FROM events e LEFT JOIN users u ON e.user_id = u.user_id AND u.joined > DATE '2022-05-01'",
    "SELECT amount > 100 AS dear, COUNT(*), AVG(amount) FROM events GROUP BY dear",
    "SELECT CASE WHEN amount < 100 THEN 'low' WHEN amount < 300 THEN 'mid' ELSE 'high' END AS b, SUM(amount) FROM events GROUP BY b",
    "SELECT QUARTER(day) AS q, COUNT(*) AS n, SUM(amount) FROM events GROUP BY q HAVING SUM(amount) > 1000",
    "SELECT ROUND(AVG(amount)), FLOOR(SUM(amount)), COALESCE(SUM(amount), 0), NULLIF(COUNT(*), 0) FROM events",
    "SELECT COUNT(*) > 5 AS many, CASE WHEN COUNT(*) > 5 THEN 1 ELSE 0 END AS n FROM events WHERE amount > 10",
    "SELECT SUM(DATE_DIFF('day', u.joined, e.day)), AVG(YEAR(u.joined)) FROM events e JOIN users u USING (user_id)",
    "SELECT product, COUNT(*) AS n, SUM(amount) FROM events GROUP BY product ORDER BY n DESC, product LIMIT 3",
    "SELECT SUM(ABS(amount - 250) * 2 + 1) FROM events",
]
# asked of sfumato, and what plain SQL has to say for the same
OTHERWISE = [
    # a declared group without rows is shown, with zero
    (
        "SELECT MONTH(day) AS m, COUNT(*) FROM events WHERE region = 'R03' GROUP BY m",
        (
            "SELECT m, COUNT(day) FROM range(1, 13) AS t(m)"
            " LEFT JOIN (SELECT day FROM events WHERE region = 'R03') ON MONTH(day) = m GROUP BY m"
        ),
    ),
    # LEAST and GREATEST are NULL where an argument is
    (
        "SELECT SUM(LEAST(x, 50)) FROM (SELECT user_id, CASE WHEN amount > 99 THEN amount END AS x FROM events) AS t",
        "SELECT SUM(CASE WHEN amount > 99 THEN LEAST(amount, 50) END) FROM events",
    ),
    # SUM over no row is 0
    ("SELECT SUM(amount) FROM events WHERE amount > 499", "SELECT 0"),
    # a constant is rounded to the lattice of the column that it is compared with
    (
        "SELECT COUNT(*) FROM events WHERE amount < 0.50001",
        "SELECT COUNT(*) FROM events WHERE amount < 0.5",
    ),
    # where a key has no row in a public table the row has no group, unless NULL is one
    (
        "SELECT p.category, COUNT(*) FROM events e LEFT JOIN products p ON e.product = p.product GROUP BY p.category",
        "SELECT p.category, COUNT(*) FROM events e LEFT JOIN products p ON e.product = p.product GROUP BY p.category",
    ),
    # a group of a text that one unit alone is in is not shown
    (
        "SELECT product, COUNT(*) FROM events WHERE user_id = 'u01' GROUP BY product",
        "SELECT 1 WHERE FALSE",
    ),
    (
        "SELECT product, COUNT(DISTINCT user_id) FROM events WHERE product = 'tea' GROUP BY product",
        "SELECT 'tea', 12",
    ),
    # OFFSET and LIMIT after ORDER BY a number that is the same twice keep the order of the groups
    (
        "SELECT region, COUNT(*) AS n FROM events WHERE FALSE GROUP BY region ORDER BY n LIMIT 2",
        "VALUES ('R01', 0), ('R02', 0)",
    ),
]
_TYPES = {"amount": "DOUBLE", "price": "DOUBLE", "day": "DATE", "joined": "DATE"}


@pytest.fixture(scope="module")
def plain():
    """The shop in DuckDB."""
    connection = duckdb.connect()
    for name, rows in shop.data().items():
        columns = ", ".join(f"{column} {_TYPES.get(column, 'VARCHAR')}" for column in rows[0])
        connection.execute(f"CREATE TABLE {name} ({columns})")
        marks = ", ".join("?" for _ in rows[0])
        connection.executemany(
            f"INSERT INTO {name} VALUES ({marks})", [list(row.values()) for row in rows]
        )
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """A session whose noise is zero."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            AdditiveMechanism, "draw", lambda mechanism, cells, entropy=None: (0,) * cells
        )
        patch.setattr(
            charge, "drawn", lambda event, cells: [np.zeros(size, np.int64) for size in cells]
        )
        patch.setattr(
            Truncated, "sample", lambda noise, shape, entropy=None: np.zeros(shape, np.int64)
        )
        with shop.connected(tmp_path_factory.mktemp("shop"), shop.data()) as opened:
            yield opened


def asked(session: sf.Session, text: str) -> Counter:
    """The rows of an answer."""
    price: dict[str, object] = {"epsilon": 100}
    try:
        answer = session.query(text, **price)
    except sf.SfumatoError as refused:
        assert "spends delta" in str(refused)
        answer = session.query(text, **price, delta="1e-9")
    return Counter(tuple(map(_plain, row)) for row in answer.rows)


def _plain(value: object) -> object:
    """A cell in a form that both have; numbers up to what a float rounds away."""
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, bool | str) or value is None:
        return value
    return Fraction(value).limit_denominator(10**6)


@pytest.mark.parametrize("text", ALIKE)
def test_an_answer_without_noise_is_that_of_plain_sql(session, plain, text):
    told = Counter(tuple(map(_plain, row)) for row in plain.execute(text).fetchall())
    assert asked(session, text) == told


@pytest.mark.parametrize(("text", "same"), OTHERWISE)
def test_what_is_meant_otherwise_is_documented(session, plain, text, same):
    told = Counter(tuple(map(_plain, row)) for row in plain.execute(same).fetchall())
    assert asked(session, text) == told


def test_a_question_that_is_answered_otherwise_is_noticed(session, plain, monkeypatch):
    text = "SELECT COUNT(*) FROM events WHERE user_id NOT IN (SELECT user_id FROM users WHERE age_band IN ('65+', '25-34'))"
    told = Counter(tuple(map(_plain, row)) for row in plain.execute(text).fetchall())
    monkeypatch.setattr(where, "Semi", lambda relation, units, negated: relation)
    assert asked(session, text) != told
