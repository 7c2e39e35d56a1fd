# SPDX-License-Identifier: Apache-2.0
"""Clients that stop, poolers, and defaults of a server that are not the ones a transaction needs."""

import os
import signal
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from urllib.parse import quote

import psycopg
import pytest

from sfumato.errors import LedgerBusy, LedgerUnavailable
from sfumato.ledger.store import postgres as module
from sfumato.ledger.store import postgres_server as server
from sfumato.ledger.store.base import AccountRow, Rows, Store
from sfumato.ledger.store.postgres import Postgres
from tests.contracts.bouncer import CONNECTIONS, bouncer
from tests.contracts.ledger_store import LedgerStoreContract
from tests.contracts.postgres import Cluster

ACCOUNT = AccountRow("d", "", "{}", "{}", "{}", "{}", "{}", "", "{}", "[]", 0, "", "d")


@pytest.fixture
def store(database: str) -> Iterator[Postgres]:
    """A store with one account."""
    opened = Postgres(database)
    opened.write(lambda rows: rows.put_account(ACCOUNT))
    yield opened
    opened.close()


def count_up(rows: Rows) -> int:
    """A transaction that reads, decides and writes."""
    row = rows.lock(["d"], lambda: rows.charge("c"))["d"]
    rows.put_account(row._replace(seq=row.seq + 1))
    return row.seq + 1


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody waits for 0.2 s where it would be 5 s."""
    for name in ("WRITING", "END_STOPPED"):
        monkeypatch.setattr(server, name, getattr(server, name).replace("'5s'", "'200ms'"))


def stopped_after_the_lock(url: str) -> int:
    """A process that locks the account and then stops, as a suspended machine does; its id."""
    child = os.fork()
    if child == 0:

        def transaction(rows: Rows) -> None:
            rows.lock(["d"])
            os.kill(os.getpid(), signal.SIGSTOP)

        Postgres(url).write(transaction)
        os._exit(1)
    os.waitpid(child, os.WUNTRACED)
    return child


def ended(child: int) -> None:
    """Ends a process that was stopped."""
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_a_client_that_stops_with_the_lock_loses_it(
    store: Postgres, database: str, impatient: None
) -> None:
    child = stopped_after_the_lock(database)
    try:
        assert store.write(count_up) == 1
    finally:
        ended(child)


def test_a_client_whose_batches_have_no_end_holds_the_lock(
    store: Postgres, database: str, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant: without a Sync after the lock the server never begins to count."""
    monkeypatch.setattr(psycopg.Pipeline, "sync", lambda _: None)
    monkeypatch.setattr(server, "END_STOPPED", "SELECT $1::text")
    child = stopped_after_the_lock(database)
    try:
        with pytest.raises(LedgerBusy, match="held by somebody else"):
            store.write(count_up)
    finally:
        ended(child)


def test_a_client_that_stops_in_the_middle_of_a_batch_is_ended_by_who_waits(
    store: Postgres, database: str, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(psycopg.Pipeline, "sync", lambda _: None)
        child = stopped_after_the_lock(database)
    try:
        assert store.write(count_up) == 1
    finally:
        ended(child)


def test_a_client_that_stops_in_the_middle_of_a_message_is_ended_too(
    store: Postgres, impatient: None
) -> None:
    """The server waits for the rest of a message, where no time limit of its own reaches it."""
    with store._pool.one() as connection:
        connection.execute(server.BEGIN)
        connection.execute(server.WRITING, ("sfumato, pg_temp",))
        connection.execute("SELECT FROM account FOR UPDATE")
        # Parse, and the first byte of a Bind
        raw = socket.socket(fileno=os.dup(connection.fileno()))
        parse = b"\0SELECT 1\0\0\0"
        raw.sendall(
            b"P"
            + (len(parse) + 4).to_bytes(4, "big")
            + parse
            + b"B"
            + (1000).to_bytes(4, "big")
            + b"\0"
        )
        assert store.write(count_up) == 1
        raw.close()
        connection.close()


def test_who_only_reads_is_not_ended_by_who_waits(
    store: Postgres, database: str, impatient: None
) -> None:
    with psycopg.connect(database, autocommit=True) as somebody, store._pool.one() as reader:
        somebody.execute("BEGIN; SELECT FROM sfumato.account FOR UPDATE")
        with reader.pipeline() as pipeline:
            reader.execute(server.BEGIN_READING)
            row = reader.execute("SELECT seq FROM sfumato.account").fetchone()  # a Flush, no Sync
            with pytest.raises(LedgerBusy):
                store.write(count_up)
            pipeline.sync()
        assert row == (0,)
        assert somebody.execute("SELECT seq FROM sfumato.account").fetchone() == (0,)


def poisoned(database: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What transactions say that follow a lock timeout, which comes after so many transactions on the same
    connection.
    """
    monkeypatch.setattr(
        server, "WRITING", server.WRITING.replace("'lock_timeout', '5s'", "'lock_timeout', '1ms'")
    )
    monkeypatch.setattr(module, "_WAITS", 0)
    said = []
    for warm in range(8):
        store = Postgres(database)
        with pytest.raises(
            KeyError
        ):  # the first ROLLBACK of a connection makes psycopg forget what it prepared
            store.write(lambda rows: rows.lock(["d"])["nobody"])
        for _ in range(warm):
            store.write(count_up)
        with psycopg.connect(database) as somebody:
            somebody.execute("SELECT FROM sfumato.account FOR UPDATE")
            with pytest.raises(LedgerBusy):
                store.write(count_up)
        try:
            store.write(count_up)
        except LedgerUnavailable as error:
            said.append(str(error))
        store.close()
    return said


def test_a_lock_timeout_poisons_no_connection(
    store: Postgres, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert poisoned(database, monkeypatch) == []


def test_a_connection_that_is_kept_after_an_error_is_poisoned(
    store: Postgres, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant: the connection goes back into the pool, and what it says of itself is no matter
    of retrying.
    """

    def keep(_: object, __: object, error: psycopg.Error, **___: object) -> None:
        raise error

    monkeypatch.setattr(Postgres, "_give_up", keep)
    (said,) = poisoned(database, monkeypatch)
    # and nobody is told to restore a backup
    assert "does not answer (InvalidSqlStatementName 26000)" in said


def admitted(url: str) -> int:
    """How many of eight transactions that meet at one account are admitted at their first try."""
    opened = Postgres(url)
    opened.write(lambda rows: rows.put_account(ACCOUNT))
    runs: list[int] = []

    def transaction(rows: Rows) -> int:
        runs.append(1)
        return count_up(rows)

    with ThreadPoolExecutor(8) as threads:
        assert sorted(threads.map(lambda _: opened.write(transaction), range(40))) == list(
            range(1, 41)
        )
    opened.close()
    return len(runs)


STRICT = "&options=" + quote("-c default_transaction_isolation=serializable")


def test_another_default_of_isolation_changes_nothing(database: str) -> None:
    assert admitted(database + STRICT) == 40


def test_a_unit_that_takes_the_default_of_isolation_is_undone(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant."""
    monkeypatch.setattr(server, "BEGIN", "BEGIN")
    monkeypatch.setattr(module, "_ATTEMPTS", 1)
    with pytest.raises(LedgerBusy, match="undid one step"):
        admitted(database + STRICT)


def test_processes_open_an_empty_database_at_once_whatever_the_default_of_isolation(
    database: str,
) -> None:
    with ThreadPoolExecutor(8) as threads:
        stores = list(threads.map(lambda _: Postgres(database + STRICT), range(8)))
    assert len({store.identity for store in stores}) == 1
    for store in stores:
        store.close()


@pytest.fixture(scope="module")
def pooler(postgres: Cluster) -> Iterator[str]:
    """The address of the database behind PgBouncer."""
    with bouncer(postgres) as url:
        yield url


@pytest.fixture
def bounced(pooler: str, database: str) -> str:
    """The same, without a ledger."""
    assert database
    # the server has ended all connections of the pooler: each of them is met here
    with ExitStack() as opened:
        for _ in range(CONNECTIONS):
            with suppress(psycopg.Error):
                connection = opened.enter_context(closing(psycopg.connect(pooler)))
                connection.execute("SELECT 1")
    return pooler


class TestBehindPgBouncer(LedgerStoreContract):
    """The shared suite through PgBouncer in transaction mode."""

    @pytest.fixture
    def open_store(self, bounced: str) -> Callable[[], Store]:
        return lambda: Postgres(bounced)


def test_callers_share_the_few_connections_of_a_pooler(
    bounced: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Postgres, "_give_up", lambda _, __, error, **___: pytest.fail(str(error)))
    assert admitted(bounced) == 40


def errors_behind(url: str, monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The SQLSTATEs met by a caller whose next transaction runs on another connection of the pooler than
    all before.
    """
    states: list[str | None] = []
    give_up = Postgres._give_up

    def note(
        store: Postgres, connection: server.Connection, error: psycopg.Error, *, may_wait: bool
    ) -> None:
        states.append(error.sqlstate)
        give_up(store, connection, error, may_wait=may_wait)

    monkeypatch.setattr(Postgres, "_give_up", note)
    opened = Postgres(url)
    opened.write(lambda rows: rows.put_account(ACCOUNT))
    # a busy pooler may have ended a connection: once is not enough
    for tried in range(1, 4):
        with psycopg.connect(url) as other:
            other.execute("SELECT 1")
            for _ in range(8):
                opened.write(count_up)
            other.commit()
            # what was let go last is taken first
            assert opened.write(count_up) == 9 * tried
    opened.close()
    return states


def test_a_caller_meets_another_connection_of_a_pooler(
    bounced: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert errors_behind(bounced, monkeypatch) == []


def test_statements_that_are_prepared_behind_a_pooler_are_not_found(
    bounced: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant: the pooler is taken for the server.

    Even so the transaction is run again, and nobody reads of damage.
    """
    monkeypatch.setattr(server, "_is_direct", lambda _: True)
    assert "26000" in errors_behind(bounced, monkeypatch)


def test_a_warning_is_heard_even_where_a_role_has_turned_warnings_off(database: str) -> None:
    quiet = Postgres(database + "&options=" + quote("-c client_min_messages=error"))
    with quiet._pool.one() as connection:
        told: list[object] = []
        connection.add_notice_handler(told.append)
        warn = "DO $$BEGIN RAISE WARNING 'the wait was cancelled'; END$$"
        connection.execute(warn)
        with connection.transaction():
            connection.execute(server.FLUSH, ("on",))
            connection.execute(warn)
    assert len(told) == 1
    quiet.close()
