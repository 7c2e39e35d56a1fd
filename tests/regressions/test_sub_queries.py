# SPDX-License-Identifier: Apache-2.0
"""Sub-queries that are answers of their own: once charged, then refused for what they had
answered.
"""

from fractions import Fraction
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.errors import Refused, UnsupportedSql
from sfumato.metadata.dataset import Dataset
from sfumato.sql import understand
from tests.contracts.people import EXACTLY, session

INNER = "(SELECT COUNT(*) FROM people)"
CODED = sf.Table(
    "p.csv", columns={"code": sf.Category("1", "2"), "age": sf.Integer(0, 99), "job": sf.Text()}
)
DATASET = Dataset("d", {"people": CODED})


@pytest.mark.parametrize(
    "inner",
    [
        "(SELECT NULLIF(COUNT(*), COUNT(*)) FROM people)",
        "(SELECT COUNT(*) / 0 FROM people)",
        "(SELECT CASE WHEN COUNT(*) > 1000000 THEN 1 END FROM people)",
        "(SELECT ROUND(SUM(age) / (COUNT(*) - COUNT(*)), 1) FROM people)",
    ],
)
@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT COUNT(*) AS n FROM people WHERE age > {}", [[0]]),
        ("SELECT COUNT(*) AS n FROM people WHERE age > {} OR age < 30", [[20]]),
        ("SELECT COUNT(*) + {} AS n FROM people", [[None]]),
        ("SELECT COUNT(COALESCE({}, age)) AS n FROM people", [[40]]),
    ],
)
def test_a_sub_query_that_is_null_is_used_as_null(
    tmp_path: Path, inner: str, sql: str, rows: object
) -> None:
    with session(tmp_path) as opened:
        answer = opened.query(sql.format(inner), epsilon=2 * EXACTLY)
        assert answer.rows == rows
        assert any(" = NULL was answered first" in note for note in answer.notes)
        # where both count everybody it is one release, paid for once
        same = sql.startswith("SELECT COUNT(*) +") and "SUM" not in inner
        assert opened.budget.spent == str(EXACTLY if same else 2 * EXACTLY)


def test_where_a_null_would_be_refused_it_is_refused_while_it_is_free(tmp_path: Path) -> None:
    with session(tmp_path) as opened:
        # a bucket, a power, a divisor: none can be NULL, and all are refused with a number too
        for sql in ("SELECT SUM(age ** {}) FROM people", "SELECT SUM(age / {}) FROM people"):
            with pytest.raises(Refused):
                opened.query(sql.format("(SELECT SUM(age) / COUNT(*) FROM people)"), epsilon=1)
        assert opened.budget.spent == "0"


@pytest.mark.parametrize(
    "test",
    [
        f"code = {INNER}",
        f"{INNER} <> code",
        f"code = {INNER} + 1",
        f"CASE code WHEN {INNER} THEN TRUE ELSE FALSE END",
        f"NULLIF(code, {INNER}) IS NULL",
    ],
)
@pytest.mark.parametrize("answer", [1, 2, 3, Fraction(7, 2)])
def test_a_declared_text_is_not_compared_with_an_answer_whatever_it_is(
    test: str, answer: object
) -> None:
    with pytest.raises(UnsupportedSql, match="the answer of a sub-query"):
        understand(
            f"SELECT COUNT(*) FROM people WHERE {test}",
            DATASET,
            scalars={"SELECT COUNT(*) FROM people": Fraction(answer)},
        )
    understand("SELECT COUNT(*) FROM people WHERE code = 1", DATASET)


@pytest.mark.parametrize(
    "test", [f"age < {INNER}", f"age = {INNER}", f"NOT age > {INNER}", f"(age < {INNER} AND 1 = 1)"]
)
@pytest.mark.parametrize("answer", [-5, 0, Fraction(7, 2), 50, 10**9, None])
def test_which_groups_there_are_is_written_and_never_answered(test: str, answer: object) -> None:
    sql = f"SELECT age, COUNT(*) FROM people WHERE {test} AND age >= 90 GROUP BY age"
    asked = understand(
        sql,
        DATASET,
        scalars={"SELECT COUNT(*) FROM people": None if answer is None else Fraction(answer)},
    )
    assert asked.raw.keys[0].codes == tuple(range(90, 100))


def test_an_inner_answer_that_leaves_no_group_is_no_refusal(tmp_path: Path) -> None:
    sql = "SELECT age, COUNT(*) AS n FROM people WHERE age < (SELECT -SUM(age) FROM people) GROUP BY age"
    with session(tmp_path) as opened:
        assert [row[1] for row in opened.query(sql, epsilon=2 * EXACTLY).rows] == [0] * 100
