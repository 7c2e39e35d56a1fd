# SPDX-License-Identifier: Apache-2.0
"""The rows in memory and the rows on disk never disagree."""

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.ledger.store import sqlite_schema
from sfumato.ledger.store.base import (
    COMMITTED,
    EXECUTING,
    FORFEITED,
    RESERVED,
    VOIDED,
    AccountRow,
    AnswerRow,
    ChargeRow,
)
from sfumato.ledger.store.rows import SqlRows
from sfumato.ledger.store.sqlite_rows import SQLiteRows
from tests.contracts.charges import opened as opened_ledger
from tests.contracts.charges import pure
from tests.contracts.ledger_store import ACCOUNT, ANSWER, BELOW, CHARGE, KEY, another, chain_of


def opened() -> apsw.Connection:
    """An empty ledger in memory, with a transaction begun."""
    connection = apsw.Connection(":memory:")
    sqlite_schema.create(connection)
    connection.execute("BEGIN")
    return connection


@pytest.fixture
def connection() -> Iterator[apsw.Connection]:
    connection = opened()
    yield connection
    connection.close()


class Tables(SQLiteRows):
    """The same rows read from the tables alone: what the memory must agree with."""

    account = SqlRows.account
    charge = SqlRows.charge
    under_way = SqlRows.under_way
    overdue = SqlRows.overdue
    failures = SqlRows.failures
    failed = SqlRows.failed
    answer = SqlRows.answer
    key = SqlRows.key


STATES = (RESERVED, EXECUTING, COMMITTED, FORFEITED, VOIDED)
acts = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "account",
                "charge",
                "charge",
                "answer",
                "key",
                "keep",
                "drop",
                "commit",
                "undo",
                "scan",
                "read",
            ]
        ),
        st.integers(2, 5),
        st.sampled_from(STATES),
        st.integers(0, 3),
        st.integers(0, 1),
    ),
    max_size=30,
)


REASONS = ("engine", "interrupted", "crash", "")


def asked(rows: SQLiteRows) -> list[object]:
    """Everything that the memory answers."""
    found: list[object] = [rows.account(f"d{n}") for n in range(2, 6)]
    found += [rows.charge(f"c{n}") for n in range(2, 6)]
    found += [(rows.answer(f"q{n}"), rows.key("d", f"k{n}")) for n in range(2, 6)]
    found += [rows.under_way(f"q{n}") for n in range(2, 6)]
    found += [
        rows.overdue(until, limit, dataset)
        for until in (None, 1)
        for limit in (1, 9)
        for dataset in (None, "d")
    ]
    return [
        *found,
        rows.failures("d"),
        rows.failures("e"),
        rows.failed("d", "a"),
        rows.failed("d", "b"),
    ]


@given(acts)
def test_memory_says_what_the_tables_say(steps: list[tuple[str, int, str, int, int]]) -> None:
    connection = opened()
    rows = SQLiteRows(connection)
    for act, number, state, lease, seen in steps:
        if act == "account":
            rows.put_account(ACCOUNT._replace(id=f"d{number}", spent=f"{lease}"))
        elif act == "charge":
            rows.put_charge(
                another(number, state, lease_until=lease, acknowledged=seen, reason=REASONS[lease])
            )
        elif act == "answer" and rows.answer(f"q{number}") is None:
            rows.put_answer(ANSWER._replace(question=f"q{number}", charge=f"c{number}"))
        elif act == "key" and rows.key("d", f"k{number}") is None:
            rows.put_key(KEY._replace(account="d", key=f"k{number}", seq=number))
        elif act == "drop" and not rows.torn:
            rows.drop_transaction()
        elif act == "read":
            rows.first_answer("s1", "d/p/a")
        elif act == "scan":
            list(rows.accounts())
        elif act == "undo":
            connection.execute("ROLLBACK; BEGIN")
            rows.undone()
        elif act in ("keep", "commit"):
            rows.end_transaction()
            if act == "commit":
                rows.end_batch()
                connection.execute("COMMIT; BEGIN")
                rows.committed()
                again = Tables(connection)
                again.load()
                assert asked(rows) == asked(again)
    said = asked(rows)
    rows.end_transaction()
    rows.end_batch()
    assert said == asked(rows) == asked(Tables(connection))
    connection.close()


def test_what_is_live_is_loaded_when_a_ledger_is_opened(connection: apsw.Connection) -> None:
    first = SQLiteRows(connection)
    first.put_account(ACCOUNT)
    live = [another(2), another(3, EXECUTING), another(4, FORFEITED, reason="engine")]
    for row in (*live, another(5, COMMITTED), another(6, FORFEITED, acknowledged=1)):
        first.put_charge(row)
    first.end_transaction()
    first.end_batch()
    again = SQLiteRows(connection)
    assert again.overdue(None, 9) == []
    again.load()
    assert (again.overdue(None, 9), again.failures("d")) == (live[:2], live[2:])


def test_a_batch_writes_an_account_once_however_often_it_moved(connection: apsw.Connection) -> None:
    rows = SQLiteRows(connection)
    for number in range(32):
        rows.put_account(ACCOUNT._replace(seq=number))
        rows.end_transaction()
    before = connection.total_changes()
    rows.end_batch()
    assert connection.total_changes() - before == 1
    found = connection.execute("SELECT * FROM account").fetchall()
    assert [AccountRow(*row) for row in found] == [ACCOUNT._replace(seq=31)]


def test_a_unit_however_long_is_not_kept_in_memory(connection: apsw.Connection) -> None:
    rows, before = SQLiteRows(connection), connection.total_changes()
    for number in range(2, 10_002):
        rows.put_charge(another(number, COMMITTED))
    assert rows.torn
    assert connection.total_changes() - before >= 8_000
    assert rows.charge("c2") == another(2, COMMITTED)
    rows.end_transaction()
    rows.end_batch()
    assert connection.total_changes() - before == 10_000
    assert rows.counts().charges == 10_000


def test_a_long_unit_may_be_sent_between_a_charge_and_its_answer(
    connection: apsw.Connection,
) -> None:
    connection.execute("COMMIT; PRAGMA foreign_keys = ON; BEGIN")
    rows = SQLiteRows(connection)
    # so that the 8,192nd write is a charge, and the next is its answer
    rows.put_charge(another(2))
    for number in range(3, 5_000):
        rows.put_charge(another(number))
        rows.put_answer(AnswerRow(f"q{number}", "s", "", f"c{number}", b""))
    rows.end_transaction()
    rows.end_batch()
    assert (rows.counts().charges, rows.counts().answers) == (4_998, 4_997)


@pytest.mark.parametrize("count", [1, 2, 3, 31, 256, 257, 700])
def test_a_batch_of_any_size_writes_each_row_once_in_few_statements(
    connection: apsw.Connection, count: int
) -> None:
    rows, seen = SQLiteRows(connection), list[str]()
    for number in range(2, count + 2):
        rows.put_charge(another(number))
        rows.put_answer(AnswerRow(f"q{number}", "s", "", f"c{number}", b""))
        rows.end_transaction()

    def trace(_cursor: object, statement: str, _values: object) -> bool:
        seen.append(statement)
        return True

    connection.exec_trace = trace
    rows.end_batch()
    connection.exec_trace = None
    assert len(seen) == 2 * (count // 256 + (count % 256).bit_count())
    assert [row.id for row, _ in rows.history()] == [f"c{number}" for number in range(2, count + 2)]
    # the first answer of a statement is found by the order in which they came
    found = connection.execute("SELECT charge FROM answer ORDER BY rowid").fetchall()
    assert [row[0] for row in found] == [f"c{number}" for number in range(2, count + 2)]


def test_a_batch_that_is_undone_is_not_written_by_the_next(connection: apsw.Connection) -> None:
    rows, before = SQLiteRows(connection), connection.total_changes()
    rows.put_account(ACCOUNT)
    rows.put_charge(CHARGE)
    rows.put_answer(ANSWER)
    rows.put_key(KEY)
    rows.end_transaction()
    rows.put_charge(another(2))
    rows.undone()
    rows.end_transaction()
    rows.end_batch()
    assert connection.total_changes() == before
    assert (rows.account("d"), rows.charge("c1"), rows.answer("q1"), rows.key("d/p/a", "k")) == (
        None,
    ) * 4


def test_a_unit_that_ends_badly_before_it_reads_has_written_nothing(
    connection: apsw.Connection,
) -> None:
    rows, before = SQLiteRows(connection), connection.total_changes()
    rows.put_account(BELOW)
    rows.put_charge(CHARGE)
    rows.append(chain_of("d", 1)[0])
    assert (rows.torn, connection.total_changes()) == (False, before)
    rows.drop_transaction()
    assert (rows.charge("c1"), rows.last_entry("d"), rows.account("d/p"), rows.torn) == (
        None,
        None,
        None,
        False,
    )


@pytest.mark.parametrize("read", ["accounts", "counts", "history", "chains"])
def test_a_unit_that_reads_what_it_wrote_can_only_be_undone_with_its_batch(
    connection: apsw.Connection, read: str
) -> None:
    rows = SQLiteRows(connection)
    rows.put_account(BELOW)
    rows.put_charge(CHARGE)
    found = getattr(rows, read)()
    list(found if isinstance(found, Iterator) else [])
    assert rows.torn
    rows.end_transaction()
    assert not rows.torn


def test_a_charge_that_has_ended_is_seen_by_its_unit_and_by_the_next(
    connection: apsw.Connection,
) -> None:
    rows = SQLiteRows(connection)
    rows.put_charge(CHARGE)
    rows.end_transaction()
    rows.put_charge(CHARGE._replace(state=COMMITTED))
    ended: ChargeRow = CHARGE._replace(state=COMMITTED)
    assert (rows.charge("c1"), rows.under_way("q1"), rows.torn) == (ended, None, False)
    rows.put_answer(ANSWER)
    rows.end_transaction()
    assert rows.charge("c1") == ended


def test_what_every_question_asks_for_is_not_read_from_the_disk(
    connection: apsw.Connection,
) -> None:
    rows, seen = SQLiteRows(connection), list[str]()
    rows.put_account(ACCOUNT)
    rows.put_charge(CHARGE)
    rows.end_transaction()

    def trace(_cursor: object, statement: str, _values: object) -> bool:
        seen.append(statement)
        return True

    connection.exec_trace = trace
    (
        rows.lock(["d"]),
        rows.under_way("q1"),
        rows.overdue(1, 2),
        rows.failed("d", "a"),
        rows.charge("c1"),
    )
    connection.exec_trace = None
    assert seen == []


def test_opening_a_ledger_reads_only_what_is_live(connection: apsw.Connection) -> None:
    rows, seen = SQLiteRows(connection), list[str]()
    rows.put_account(ACCOUNT)
    rows.end_transaction()
    rows.end_batch()

    def trace(_cursor: object, statement: str, _values: object) -> bool:
        seen.append(statement)
        return True

    connection.exec_trace = trace
    rows.load()
    connection.exec_trace = None
    charges = [statement for statement in seen if "FROM charge" in statement]
    assert len(charges) == 4
    for statement in charges:
        values = tuple([1] * statement.count("?"))
        plan = " ".join(
            str(row) for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)
        )
        assert "USING INDEX charge_" in plan, statement


def test_the_clock_does_not_follow_the_one_on_the_wall(
    connection: apsw.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = SQLiteRows(connection)
    before = rows.now()
    monkeypatch.setattr("time.time_ns", lambda: 0)
    monkeypatch.setattr("time.time", lambda: 0.0)
    assert before <= rows.now() < before + 60_000


def test_failures_that_do_not_count_are_not_kept_in_memory(tmp_path: Path) -> None:
    ledger = opened_ledger(tmp_path / "l.db")
    rows = ledger.store._batches.rows
    for number, reason in enumerate(["interrupted"] * 5 + ["engine"]):
        charge = ledger.reserve(pure("0.01", str(number)))
        ledger.execute(charge)
        ledger.forfeit(charge, reason)
    # what each question looks through: nothing, however many questions were interrupted
    assert rows._charges.known == {}
    assert [len(each.rows) for each in rows._failed.known.values()] == [1]
    assert ledger.thaw("d") == 6
    assert rows._failed.known == {}
