# SPDX-License-Identifier: Apache-2.0
"""The rows of one PostgreSQL transaction: the order of locks, streams in pages, one moment."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from sfumato.ledger.store import postgres_rows as module
from sfumato.ledger.store.base import AccountRow, Rows
from sfumato.ledger.store.postgres import Postgres
from sfumato.ledger.store.postgres_rows import placed

ACCOUNT = AccountRow("d", "", "c", "l", "g", "s", "h", "", "{}", "[]", 0, "", "d")


@pytest.fixture
def store(database: str) -> Iterator[Postgres]:
    """A store with seven accounts."""
    opened = Postgres(database)

    def fill(rows: Rows) -> None:
        for name in "gfedcba":
            rows.put_account(ACCOUNT._replace(id=name))

    opened.write(fill)
    yield opened
    opened.close()


def test_accounts_named_in_any_order_are_locked_in_one(store: Postgres) -> None:
    runs: list[str] = []

    def crossing(first: str, second: str) -> None:
        def transaction(rows: Rows) -> None:
            runs.append(first)
            for row in rows.lock([first, second]).values():
                rows.put_account(row._replace(seq=row.seq + 1))

        for _ in range(25):
            store.write(transaction)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(crossing, "abab", "baba"))
    # no deadlock was undone, and none was lost
    assert len(runs) == 100
    assert store.read(lambda rows: [row.seq for row in rows.accounts()][:3]) == [100, 100, 0]


def test_what_was_asked_ahead_is_not_asked_again(store: Postgres) -> None:
    def transaction(rows: Rows) -> None:
        assert isinstance(rows, module.PostgresRows)
        ahead = lambda: (rows.charge("c"), rows.answer("q"))  # noqa: E731
        rows.lock(["a"], ahead)
        sent = list[str]()
        asking = rows._asking

        class Told:
            def execute(self, sql: str, values: object, **options: object) -> object:
                sent.append(sql)
                return asking.execute(sql, values, **options)

        rows._asking = Told()
        assert (rows.charge("c"), rows.answer("q"), rows.answer("another"), rows.answer("q")) == (
            None,
        ) * 4
        # each was asked once ahead; another question and a second time are asked for
        assert len(sent) == 2
        rows._asking = asking
        rows.lock(["a"], ahead)
        rows.lock(["a", "b"])
        sent.clear()
        rows._asking = Told()
        # what was asked before the last locks is not believed
        assert (rows.charge("c"), len(sent)) == (None, 1)

    store.write(transaction)


@pytest.mark.parametrize("ids", [["a"], ["a", "new"]])
def test_what_is_asked_ahead_is_read_after_the_locks(store: Postgres, ids: list[str]) -> None:
    held, waiting = threading.Event(), threading.Event()

    def first(rows: Rows) -> None:
        (row,) = rows.lock(["a"]).values()
        held.set()
        waiting.wait()
        rows.put_account(row._replace(id="b", spent="told"))

    def second(rows: Rows) -> object:
        rows.lock(ids, lambda: rows.account("b"))
        row = rows.account("b")
        return row and row.spent

    with ThreadPoolExecutor(2) as threads:
        told = threads.submit(store.write, first)
        held.wait()
        asked = threads.submit(store.write, second)
        while not store.read(lambda rows: rows._all("SELECT FROM pg_locks WHERE NOT granted")):  # type: ignore[attr-defined]
            pass
        waiting.set()
        told.result()
        assert asked.result() == "told"


def test_long_results_come_in_pages_and_may_be_read_side_by_side(
    store: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PAGE", 2)

    def transaction(rows: Rows) -> list[tuple[str, str]]:
        return [
            (left.id, right.id)
            for left, right in zip(rows.accounts(), rows.accounts(), strict=True)
        ]

    for run in (store.read, store.write):
        assert run(transaction) == [(name, name) for name in "abcdefg"]


def test_a_unit_happens_at_one_moment_and_a_later_one_not_before_it(store: Postgres) -> None:
    first, again = store.write(lambda rows: (rows.now(), rows.now()))
    assert first == again
    assert store.write(lambda rows: rows.now()) >= first


def test_a_reader_sees_one_state_whatever_is_written_meanwhile(store: Postgres) -> None:
    def transaction(rows: Rows) -> list[int]:
        before = [row.seq for row in rows.accounts()]
        store.write(lambda other: other.put_account(ACCOUNT._replace(id="a", seq=9)))
        return [after.seq - seq for after, seq in zip(rows.accounts(), before, strict=True)]

    assert store.read(transaction) == [0] * 7
    assert store.peek("a") == ACCOUNT._replace(id="a", seq=9)


def test_the_sign_for_a_value_is_the_servers() -> None:
    assert placed("SELECT ? + ?") == "SELECT $1 + $2"
