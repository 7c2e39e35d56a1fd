# SPDX-License-Identifier: Apache-2.0
"""Columns of an answer that are expressions of keys and released numbers, beside plain DuckDB."""

import random

import duckdb
import pyarrow as pa
import pytest

import sfumato as sf

ROWS = pa.table(
    {
        "age": [row % 3 for row in range(120)],
        "x": [row % 5 / 2 - 1 for row in range(120)],
        "job": ["abc"[row % 3] for row in range(120)],
        "old": [row % 2 == 0 for row in range(120)],
        "v": [row % 7 for row in range(120)],
    }
)
COLUMNS = {
    "age": sf.Integer(0, 2),
    "x": sf.Real(-1, 1, step="0.5"),
    "job": sf.Category("a", "b", "c"),
    "old": sf.Boolean(),
    "v": sf.Integer(0, 6),
}
NUMBERS = {"age": ["age"], "x": ["x"], "job": [], "old": []}
TESTS = {
    "age": ["age > 1", "age * 2 = 4", "age IN (0, 2)"],
    "x": ["x > 0", "x * 2 = 1", "x <= -0.5"],
    "job": ["job = 'a'", "job IN ('a', 'b')", "job LIKE 'a%'"],
    "old": ["old", "NOT old"],
}


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    ledger = tmp_path_factory.mktemp("ledger") / "l.db"
    table = sf.Table(ROWS, size=ROWS.num_rows, columns=COLUMNS)
    budget = sf.Budget(10**6)
    with sf.connect({"t": table}, dataset="d", budget=budget, ledger=ledger) as session:
        yield session


def number(choose: random.Random, key: str, depth: int) -> str:
    """A random expression of a key and of released numbers."""
    if not depth or choose.random() < 0.2:
        return choose.choice([*NUMBERS[key] * 3, "COUNT(*)", "SUM(v)", "2", "0.5"])
    left, right = (number(choose, key, depth - 1) for _ in range(2))
    test = choose.choice(TESTS[key])
    return choose.choice(
        [
            f"({left} {choose.choice('+-*')} {right})",
            f"(-{left})",
            f"ABS({left})",
            f"GREATEST({left}, {right})",
            f"CASE WHEN {test} THEN {left} ELSE {right} END",
        ]
    )


def shown(session: sf.Session, statement: str) -> dict[object, float]:
    return {row[0]: float(row[1]) for row in session.query(statement, epsilon=10_000).rows}


def expected(statement: str) -> dict[object, float]:
    with duckdb.connect() as connection:
        connection.register("t", ROWS)
        return {key: float(value) for key, value in connection.execute(statement).fetchall()}


@pytest.mark.parametrize(
    "column",
    [
        "age * 2",
        "age * -1",
        "2 * age",
        "CASE WHEN age > 1 THEN SUM(v) ELSE 3 END",
        "age * COUNT(*)",
    ],
)
def test_an_expression_of_a_key_has_its_value(session, column):
    statement = f"SELECT age, {column} AS y FROM t GROUP BY age"
    assert shown(session, statement) == pytest.approx(expected(statement), rel=0.01, abs=0.01)


def test_random_columns_are_those_of_duckdb(session):
    choose = random.Random(20_261_129)
    for _ in range(25):
        key = choose.choice(list(TESTS))
        column = number(choose, key, 2)
        having = f" HAVING {choose.choice(TESTS[key])}" if choose.random() < 0.3 else ""
        statement = f"SELECT {key}, {column} AS y FROM t GROUP BY {key}{having}"
        wanted = expected(statement)
        assert shown(session, statement) == pytest.approx(wanted, rel=0.02, abs=0.05), statement


def test_the_interval_of_a_case_on_a_key_holds_every_branch(session):
    statement = "SELECT age, CASE WHEN age > 1 THEN COUNT(*) ELSE 0 END AS n FROM t GROUP BY age"
    answer = session.query(statement, epsilon=1)
    for cells in (answer.error(), answer.error("0.9")):
        for row, true in zip(cells, (0, 0, 40), strict=True):
            assert row["n"]["low"] <= true <= row["n"]["high"]
            assert row["n"]["half_width"] is None
