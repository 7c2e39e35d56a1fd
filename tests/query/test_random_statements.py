# SPDX-License-Identifier: Apache-2.0
"""Statements at random: how often the intervals of their cells contain what DuckDB computes.

One cell of each statement is looked at. Cells that are shown because they are large (HAVING, LIMIT)
are left out: their intervals are not those of cells that were chosen beforehand.
"""

import math
import random
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.query.answer import Answer
from sfumato.query.estimate import Released
from sfumato.query.session import Session
from sfumato.testing import assert_at_most

CHOICE = random.Random(36)
N = 900
ROWS = pa.table(
    {
        "e": [CHOICE.choice("abcd") for _ in range(N)],
        "s": [CHOICE.choice(["x", "y", "y", None]) for _ in range(N)],
        "v": [CHOICE.randrange(100) for _ in range(N)],
        "w": [CHOICE.randrange(-20, 21) for _ in range(N)],
    }
)
COLUMNS = {
    "e": sf.Category(*"abcd"),
    "s": sf.Category(*"xy", missing="N"),
    "v": sf.Integer(0, 99),
    "w": sf.Integer(-20, 20),
}
AGGREGATES = (
    "COUNT(*)",
    "COUNT(s)",
    "SUM(v)",
    "SUM(w)",
    "AVG(v)",
    "AVG(w)",
    "COUNT_IF(v > 50)",
    "STDDEV_POP(v)",
    "3 * COUNT(*) - 7",
    "100 * AVG(v)",
    "ROUND(AVG(v), 1)",
    "SUM(v) - SUM(w)",
    "COUNT_IF(v > 50) / NULLIF(COUNT(*), 0)",
    "SUM(v) / COUNT(*) - 1",
    "CASE WHEN COUNT(*) > 5 THEN AVG(v) END",
)
WHERE = ("", " WHERE v < 80", " WHERE e <> 'a' AND w >= 0", " WHERE s IS NOT NULL")
KEYS = ("", "e", "s", "e, s", "ROLLUP(e, s)", "CUBE(e, s)", "GROUPING SETS((e), (s))")
PRICES = ({"epsilon": 1}, {"epsilon": "0.2"}, {"rho": "0.02"})


def statement(choice: random.Random) -> tuple[str, int]:
    """A statement with one released column as the last, and the number of its keys."""
    aggregate, where, by = (choice.choice(each) for each in (AGGREGATES, WHERE, KEYS))
    if "STDDEV" in aggregate and "(" in by:
        by = "e"
    if not by:
        return f"SELECT {aggregate} AS r FROM t{where}", 0
    keys = [key for key in ("e", "s") if key in by.replace("SETS", "")]
    marks = [f"GROUPING({key})" for key in keys] if "(" in by else []
    columns = [*keys, *marks, f"{aggregate} AS r"]
    sql = f"SELECT {', '.join(columns)} FROM t{where} GROUP BY {by}"
    return sql, len(keys) + len(marks)


def misses(opened: Session, count: int, seed: int) -> tuple[int, int]:
    """How many of the intervals of one random cell of each statement miss, and how many there are."""
    choice = random.Random(seed)
    missed = looked = 0
    with duckdb.connect() as database:
        database.register("t", ROWS)
        for _ in range(count):
            sql, keys = statement(choice)
            exact = {row[:keys]: row[keys] for row in database.execute(sql).fetchall()}
            price = choice.choice(PRICES)
            answer = opened.query(sql, **price, key=str(choice.random()))
            row = choice.randrange(len(answer.rows))
            truth = exact.get(tuple(answer.rows[row][:keys]))
            error = answer.form["errors"][row][keys]
            if truth is None or error["low"] is None:
                continue
            looked += 1
            missed += not contains(error, truth)
    return missed, looked


def contains(error: dict[str, float], truth: float) -> bool:
    """Whether an interval contains a number, which DuckDB computes in floats."""
    far = 1e-9 * max(1.0, abs(truth))
    return error["low"] - far <= truth <= error["high"] + far


def session(folder: Path) -> Session:
    """A session whose rows are units, so that nothing is bounded."""
    table = sf.Table(ROWS, columns=COLUMNS, size=N)
    return sf.connect(
        {"t": table}, dataset="d", budget=sf.Budget(10**6, "1e-6"), ledger=folder / "l.db"
    )


@pytest.mark.parametrize(
    ("count", "notices"), [(50, 1), pytest.param(2_000, 0.21, marks=pytest.mark.long)]
)
def test_intervals_of_random_statements_contain_the_answer_of_duckdb(
    tmp_path: Path, count: int, notices: float
) -> None:
    with session(tmp_path) as opened:
        missed, looked = misses(opened, count, seed=count)
    assert looked > count * 3 // 4
    if count >= 2_000:
        # the intervals are wider than needed, so this bound fails by chance in less than 1e-3
        assert missed <= 0.05 * looked + 3 * math.sqrt(0.05 * 0.95 * looked)
    assert_at_most(missed, looked, 0.05, notices=notices)


def test_intervals_of_a_tenth_of_the_width_are_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interval = Released.interval

    def narrow(part: Released, *asked: object) -> object:
        found = interval(part, *asked)
        middle = sum(found) / 2
        return tuple(middle + (end - middle) / 10 for end in found)

    monkeypatch.setattr(Released, "interval", narrow)
    with session(tmp_path) as opened:
        missed, looked = misses(opened, 40, seed=7)
    assert missed > 0.05 * looked + 3 * math.sqrt(0.05 * 0.95 * looked)


def test_the_answers_are_those_of_the_stored_bytes(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        answer = opened.query("SELECT e, AVG(v) AS r FROM t GROUP BY e", epsilon=1)
    assert Answer(answer.bytes).error() == answer.error()
