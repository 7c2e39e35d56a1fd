# SPDX-License-Identifier: Apache-2.0
"""What is divided by what; tests/sql/test_meaning.py compares values with DuckDB."""

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import UnsupportedSql

COLUMNS = {"age": sf.Integer(0, 99), "pay": sf.Real(0, 10, step="0.5")}


@pytest.fixture
def session(tmp_path):
    people = sf.Table(pa.table({"age": [1, 2, 33], "pay": [0.5, 1.0, 2.5]}), columns=COLUMNS)
    ledger = tmp_path / "l.db"
    with sf.connect({"t": people}, dataset="d", budget=sf.Budget(10**6), ledger=ledger) as opened:
        yield opened


def test_ages_are_grouped_by_the_quotient(session):
    """At epsilon 1,000 noise is 0, but for a chance of e^-1000."""
    sql = "SELECT age // 10 * 10 AS decade, COUNT(*) AS n FROM t GROUP BY decade ORDER BY decade"
    rows = session.query(sql, epsilon=1000).to_dicts()
    assert [(row["decade"], row["n"]) for row in rows[:4]] == [(0, 2), (10, 0), (20, 0), (30, 1)]
    assert len(rows) == 10


@pytest.mark.parametrize("wrong", ["pay // 2", "age // 0.5", "age // GREATEST(pay, 0.5)"])
def test_only_whole_numbers_have_a_whole_quotient(session, wrong):
    with pytest.raises(UnsupportedSql, match="no whole number"):
        session.preview(f"SELECT SUM({wrong}) FROM t", epsilon=1)


@pytest.mark.parametrize("wrong", ["age // 0", "age // age", "age / (age - 5)", "age % age"])
def test_what_may_divide_by_zero_is_refused(session, wrong):
    with pytest.raises(UnsupportedSql):
        session.preview(f"SELECT SUM({wrong}) FROM t", epsilon=1)
