# SPDX-License-Identifier: Apache-2.0
"""The DuckDB of outer statements: it sees its tables alone, and ends within its limits."""

import datetime

import pytest

from sfumato.engines import scratch as module
from sfumato.engines.scratch import MOST_ROWS, Held, Scratch, Stopped, Unbound
from sfumato.engines.stop import Patience, Stop
from sfumato.errors import Cancelled

TABLE = Held(
    (("region", "text"), ("n", "integer"), ("x", "real"), ("d", "date"), ("t", "local time"), ("b", "boolean")),
    list(zip(*(
        ("a", 1, 0.5, "2024-01-31", "2024-01-31 10:00:00", True),
        ("b'\"", 10**30, 1e-300, "1960-02-29", "1960-02-29 00:00:00", False),
        (None,) * 6,
    ), strict=True)),
)  # fmt: skip
secret = {"n": [1, 2, 3]}
AT_TEN = datetime.datetime.fromisoformat("2024-01-31 10:00:00")
AT_MIDNIGHT = datetime.datetime.fromisoformat("1960-02-29 00:00:00")


def rows_of(scratch, *statement):
    """The rows of a statement."""
    return list(zip(*scratch.values(*statement), strict=True))


@pytest.fixture(scope="module")
def scratch():
    with Scratch() as opened:
        yield opened


def test_rows_come_back_as_they_were_given(scratch):
    rows = rows_of(scratch, 'SELECT * FROM "a b"', {"a b": TABLE})
    assert rows == [
        ("a", 1, 0.5, datetime.date(2024, 1, 31), AT_TEN, True),
        ("b'\"", 10**30, 1e-300, datetime.date(1960, 2, 29), AT_MIDNIGHT, False),
        (None,) * 6,
    ]


def test_columns_are_described_without_rows(scratch):
    text = "SELECT region AS r, SUM(n) AS s, AVG(x), MAX(d), MAX(t), 1.5, COUNT(*) > 1 AS c FROM t GROUP BY 1"
    kinds = [kind for _, kind in scratch.described(text, {"t": TABLE})]
    assert kinds == ["text", "integer", "real", "date", "local time", "real", "boolean"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT nothing FROM t",
        "SELECT FROM",
        "SELECT n + d FROM t",
        "SELECT 'x' + n FROM t",
        "SELECT [n] FROM t",
        "SELECT INTERVAL 1 DAY FROM t",
    ],
)
def test_what_cannot_be_bound_is_told_before_there_are_rows(scratch, text):
    with pytest.raises(Unbound):
        scratch.described(text, {"t": TABLE})


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "COPY (SELECT 1) TO '/tmp/out-of-scratch.csv'",
        "ATTACH '/tmp/out-of-scratch.db'",
        "SET threads = 8",
        "SET memory_limit = '100GB'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SELECT * FROM secret",
        "SELECT * FROM other",
        "SELECT * FROM rows_to_insert",
    ],
)
def test_a_statement_sees_the_tables_that_it_is_given_and_nothing_else(scratch, text):
    rows_of(scratch, "SELECT 1", {"other": TABLE})
    with pytest.raises(Stopped):
        rows_of(scratch, text, {"t": TABLE})
    # it lives
    assert rows_of(scratch, "SELECT COUNT(*) FROM t", {"t": TABLE}) == [(3,)]


LARGE = Held(TABLE.columns, [[*values] * 400 for values in TABLE.values])


def test_many_rows_come_back_as_they_were_given(scratch):
    for names in (
        "region, n, x, b",
        "region, n, x, d, t, b",
        "CAST(n / 1e15 AS BIGINT), -n, n - n",
    ):
        asked = f"SELECT {names} FROM t"
        few = rows_of(scratch, asked, {"t": TABLE})
        assert rows_of(scratch, asked, {"t": LARGE}) == few * 400
    assert scratch.values("SELECT region, n FROM t WHERE n = 7", {"t": LARGE}) == [[], []]


@pytest.mark.parametrize("name", ["secret", "LARGE", "rows_to_insert", "'/etc/passwd'"])
def test_a_statement_over_many_rows_sees_nothing_else_either(scratch, name):
    with pytest.raises(Stopped):
        rows_of(scratch, f"SELECT * FROM {name}", {"t": LARGE})


def test_a_table_ends_with_its_statement(scratch):
    rows_of(scratch, "CREATE TEMP TABLE mine AS SELECT 1", {})
    with pytest.raises(Stopped):
        rows_of(scratch, "SELECT * FROM mine", {})


def numbers(count):
    return Held((("n", "integer"),), [range(count)])


@pytest.fixture
def hurried(monkeypatch):
    """One whose statements end after a third of a second."""
    monkeypatch.setattr(module, "SECONDS", 0.3)
    with Scratch() as opened:
        yield opened


def test_a_statement_ends_within_the_limits(scratch, hurried):
    many = {"t": numbers(3_000)}
    with pytest.raises(Stopped, match=f"more than {MOST_ROWS:,} rows"):
        rows_of(scratch, "SELECT * FROM t AS a, t AS b", many)
    with pytest.raises(Stopped, match=r"more than 0\.3 seconds"):
        rows_of(hurried, "SELECT SUM(SIN(a.n * b.n + c.n)) FROM t AS a, t AS b, t AS c", many)
    distinct = "SELECT COUNT(*) FROM (SELECT DISTINCT a.n, b.n, c.n FROM t a, t b, t c)"
    with pytest.raises(Stopped, match="Memory"):
        rows_of(scratch, distinct, {"t": numbers(300)})
    assert rows_of(scratch, "SELECT MAX(n) FROM t", many) == [(2_999,)]


def test_a_statement_that_takes_long_over_any_rows_is_described_within_the_limits(
    hurried,
):
    rows = ", ".join(f"({n})" for n in range(1_000))
    sources = ", ".join(f"(VALUES {rows}) AS {name}(n)" for name in "abc")
    with pytest.raises(Stopped, match=r"more than 0\.3 seconds"):
        hurried.described(f"SELECT SUM(SIN(a.n * b.n + c.n)) FROM {sources}, t", {"t": TABLE})
    assert hurried.described("SELECT MAX(n) FROM t", {"t": TABLE}) == [("max(n)", "integer")]


def test_a_run_time_error_is_told_in_one_line(scratch):
    with pytest.raises(Stopped, match="Could not convert string 'a' to INT32") as failed:
        rows_of(scratch, "SELECT CAST(region AS INT) FROM t", {"t": TABLE})
    assert "\n" not in str(failed.value)


def test_who_stops_waiting_is_told_that_the_answers_are_paid(scratch):
    stop = Stop()
    stop.stop()
    with pytest.raises(Cancelled) as cancelled:
        rows_of(
            scratch, "SELECT SUM(a.n) FROM t a, t b, t c", {"t": numbers(3_000)}, Patience(stop)
        )
    assert cancelled.value.paid


def test_nothing_runs_in_one_that_is_closed():
    closed = Scratch()
    closed.close()
    with pytest.raises(Cancelled):
        rows_of(closed, "SELECT 1", {})
