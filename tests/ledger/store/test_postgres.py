# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL as a store: the shared suite, and what only a server can do to a ledger."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from urllib.parse import quote

import psycopg
import pytest

from sfumato.errors import (
    LedgerBusy,
    LedgerCorrupt,
    LedgerError,
    LedgerMissing,
    LedgerReadOnly,
    LedgerTooNew,
    LedgerUnavailable,
)
from sfumato.ledger.store import postgres as module
from sfumato.ledger.store import postgres_server as server
from sfumato.ledger.store.base import AccountRow, Rows, Store
from sfumato.ledger.store.format import FORMAT
from sfumato.ledger.store.postgres import Postgres
from sfumato.ledger.store.postgres_rows import CLOCK
from tests.contracts.ledger_store import LedgerStoreContract
from tests.contracts.postgres import Cluster
from tests.contracts.proxy import Cut, Wire

ACCOUNT = AccountRow("d", "", "{}", "{}", "{}", "{}", "{}", "", "{}", "[]", 0, "", "d")


@pytest.fixture
def store(database: str) -> Iterator[Postgres]:
    """A store with one account."""
    opened = Postgres(database)
    opened.write(lambda rows: rows.put_account(ACCOUNT))
    yield opened
    opened.close()


class TestPostgres(LedgerStoreContract):
    """The shared suite."""

    @pytest.fixture
    def open_store(self, database: str) -> Callable[[], Store]:
        return lambda: Postgres(database)


def count_up(rows: Rows) -> int:
    """A transaction that reads, decides and writes: a race would lose one."""
    row = rows.lock(["d"])["d"]
    rows.put_account(row._replace(seq=row.seq + 1))
    return row.seq + 1


def counted(store: Store) -> int:
    """How far the transactions have counted, on disk."""
    return store.read(counted_in)


def counted_in(rows: Rows) -> int:
    """How far the transactions have counted, as a transaction sees it."""
    row = rows.account("d")
    assert row is not None
    return row.seq


def administered(url: str, *statements: str) -> None:
    """Statements of the server's owner."""
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def with_settings(url: str, **settings: str) -> str:
    """An address whose connections have other settings."""
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    return f"{url}&options={quote(options)}"


@contextmanager
def restarted(server: Cluster, **settings: str) -> Iterator[None]:
    """The server with other settings, for a while."""
    server.stop()
    server.start(**settings)
    try:
        yield
    finally:
        server.stop()
        server.start()


def hold_log_writer(server: Cluster) -> int:
    """Stops the process that writes the log by itself (each commit may wake it); its id."""
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        found = None
        while found is None:  # a server that has just started begins it a little later
            found = connection.execute(
                "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'"
            ).fetchone()
    os.kill(found[0], signal.SIGSTOP)
    return int(found[0])


def crash(server: Cluster, held: int | None = None, **settings: str) -> None:
    """``pg_ctl stop -m immediate``: what was not flushed is gone."""
    if held is not None:
        os.kill(held, signal.SIGKILL)
    server.stop(signal.SIGQUIT)
    server.start(**settings)


# what only wakes after the test, so that nothing but our own flush brings a transaction to the disk
LAZY = {"wal_writer_delay": "10s"}
NO_FLUSH = "SELECT set_config('synchronous_commit', $1, true)"


@pytest.mark.parametrize("flush", [server.FLUSH, NO_FLUSH])
def test_what_was_answered_survives_a_crash_of_the_server(
    postgres: Cluster, store: Postgres, monkeypatch: pytest.MonkeyPatch, flush: str
) -> None:
    with restarted(postgres, **LAZY):
        store.write(count_up)
        held = hold_log_writer(postgres)
        monkeypatch.setattr(server, "FLUSH", flush)
        store.write(count_up)
        crash(postgres, held, **LAZY)
        # without the flush the second is lost: this test would notice
        assert counted(store) == (1 if flush == NO_FLUSH else 2)


def test_the_smallest_log_is_enough(postgres: Cluster, store: Postgres) -> None:
    smallest = LAZY | {"wal_level": "minimal", "max_wal_senders": "0"}
    with restarted(postgres, **smallest):
        store.write(count_up)
        crash(postgres, **smallest)
        assert counted(store) == 1


class Told(Exception):
    """An error that tells what a transaction has seen."""


def tell(rows: Rows) -> None:
    raise Told(rows.lock(["d"])["d"].seq)


def see_by_reading(store: Postgres) -> int:
    return counted(store)


def see_by_refusal(store: Postgres) -> int:
    with pytest.raises(Told) as told:
        store.write(tell)
    return int(told.value.args[0])


def see_by_an_idle_transaction(store: Postgres) -> int:
    return store.write(lambda rows: rows.lock(["d"])["d"].seq)


EVERY_SIGHT = pytest.mark.parametrize(
    "see", [see_by_reading, see_by_refusal, see_by_an_idle_transaction]
)


def after_a_crash(postgres: Cluster, store: Postgres, see: Callable[[Postgres], int]) -> int:
    """What is left of a change of 7 that another process committed and did not flush, once it was
    seen.
    """
    with restarted(postgres, **LAZY):
        store.write(count_up)
        held, lazy = hold_log_writer(postgres), "SET synchronous_commit = off"
        administered(store_url(postgres, store), lazy, "UPDATE sfumato.account SET seq = 7")
        assert see(store) == 7
        crash(postgres, held, **LAZY)
        return counted(store)


@EVERY_SIGHT
def test_nobody_is_told_of_what_a_crash_takes_back(
    postgres: Cluster, store: Postgres, see: Callable[[Postgres], int]
) -> None:
    assert after_a_crash(postgres, store, see) == 7


@EVERY_SIGHT
def test_who_is_told_before_the_flush_is_noticed(
    postgres: Cluster,
    store: Postgres,
    monkeypatch: pytest.MonkeyPatch,
    see: Callable[[Postgres], int],
) -> None:
    monkeypatch.setattr(server, "FLUSH", NO_FLUSH)
    assert after_a_crash(postgres, store, see) != 7


def store_url(server: Cluster, store: Postgres) -> str:
    """The address that a store was opened with."""
    return server.url(store.place.rpartition("/")[2])


def test_an_account_is_free_while_the_disk_works(
    postgres: Cluster, store: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Early release of the locks: a second transaction ends while the first waits for its flush."""
    url = store_url(postgres, store)
    with psycopg.connect(url) as gate:
        gate.execute("SELECT pg_advisory_lock(7)")
        held = "SELECT set_config('synchronous_commit', $1, true), pg_advisory_xact_lock_shared(7)"
        monkeypatch.setattr(server, "FLUSH", held)
        with ThreadPoolExecutor(2) as threads:
            first, second = (
                threads.submit(store.write, count_up),
                threads.submit(store.write, count_up),
            )
            with psycopg.connect(url, autocommit=True) as looking:
                while looking.execute("SELECT seq FROM sfumato.account").fetchone() != (2,):
                    assert not first.done() and not second.done()
            gate.execute("SELECT pg_advisory_unlock(7)")
            assert {first.result(10), second.result(10)} == {1, 2}


def test_threads_count_without_losing_one(store: Postgres) -> None:
    with ThreadPoolExecutor(8) as threads:
        seen = list(threads.map(lambda _: store.write(count_up), range(80)))
    assert sorted(seen) == list(range(1, 81))


def test_a_unit_that_forgets_to_lock_loses_one(store: Postgres) -> None:
    """The mutant of the test above."""
    together = threading.Barrier(2)

    def careless(rows: Rows) -> int:
        row = rows.account("d")
        assert row is not None
        together.wait(10)
        rows.put_account(row._replace(seq=row.seq + 1))
        return row.seq + 1

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(store.write, [careless] * 2)) == [1, 1]


def test_a_deadlock_is_undone_and_run_again(postgres: Cluster, store: Postgres) -> None:
    store.write(lambda rows: rows.put_account(ACCOUNT._replace(id="e")))
    impatient = Postgres(with_settings(store_url(postgres, store), deadlock_timeout="10ms"))
    together = threading.Barrier(2)
    runs: list[str] = []

    def crossed(first: str, second: str) -> Callable[[Rows], None]:
        def transaction(rows: Rows) -> None:
            runs.append(first)
            rows.lock([first])
            if runs.count(first) == 1:
                together.wait(10)
            row = rows.lock([second])[second]
            rows.put_account(row._replace(seq=row.seq + 1))

        return transaction

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(impatient.write, [crossed("d", "e"), crossed("e", "d")]))
    assert len(runs) > 2
    assert impatient.read(lambda rows: [row.seq for row in rows.accounts()]) == [1, 1]
    impatient.close()


def test_only_one_can_create_an_account_that_is_not_there(store: Postgres) -> None:
    def create(rows: Rows) -> bool:
        if "new" in rows.lock(["new"]):
            return False
        rows.put_account(ACCOUNT._replace(id="new"))
        return True

    with ThreadPoolExecutor(8) as threads:
        assert sorted(threads.map(lambda _: store.write(create), range(8))) == [False] * 7 + [True]


def test_processes_that_open_an_empty_database_at_once_find_one_ledger(database: str) -> None:
    with ThreadPoolExecutor(8) as threads:
        stores = list(threads.map(lambda _: Postgres(database), range(8)))
    assert len({store.identity for store in stores}) == 1
    for store in stores:
        store.close()


@pytest.mark.parametrize("where", Cut)
def test_a_wire_cut_at_the_commit_is_no_answer(
    postgres: Cluster, database: str, where: Cut
) -> None:
    with Wire(postgres.socket) as wire:
        store = Postgres(wire.url(database))
        store.write(lambda rows: rows.put_account(ACCOUNT))
        wire.cut(where)
        with pytest.raises(LedgerUnavailable, match="nobody knows yet"):
            store.write(count_up)
        # who asks again finds what was stored, or does it now
        assert (wire.cuts, counted(store)) == (1, 1 if where is Cut.AFTER_COMMIT else 0)
        assert store.write(count_up) == (2 if where is Cut.AFTER_COMMIT else 1)
        store.close()


def test_a_wire_cut_before_the_commit_was_sent_is_mended(
    store: Postgres, postgres: Cluster
) -> None:
    runs: list[int] = []

    def transaction(rows: Rows) -> int:
        runs.append(1)
        row = rows.lock(["d"])["d"]
        if len(runs) == 1:
            disconnect(store_url(postgres, store))
        rows.put_account(row._replace(seq=row.seq + 1))
        return counted_in(rows)

    assert store.write(transaction) == 1
    assert (len(runs), counted(store)) == (2, 1)


def disconnect(url: str) -> None:
    """Ends every connection of a store, and returns when the server has none of them."""
    ours = "FROM pg_stat_activity WHERE application_name = 'sfumato'"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"SELECT pg_terminate_backend(pid) {ours}")
        while connection.execute(f"SELECT 1 {ours}").fetchone():
            pass


def test_a_server_that_was_restarted_is_found_again(postgres: Cluster, store: Postgres) -> None:
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: store.write(count_up), range(8)))
    crash(postgres)
    assert (store.write(count_up), counted(store)) == (9, 9)


def test_a_server_that_is_gone_is_said_so(postgres: Cluster, store: Postgres) -> None:
    postgres.stop()
    try:
        for use in (
            lambda: store.write(count_up),
            lambda: counted(store),
            lambda: store.peek("d"),
            store.damage,
        ):
            with pytest.raises(LedgerUnavailable, match="does not answer"):
                use()
    finally:
        postgres.start()
    assert store.write(count_up) == 1


@contextmanager
def waiting_for_a_standby(url: str) -> Iterator[None]:
    """The server waits for a standby that does not exist."""
    administered(
        url, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()"
    )
    try:
        with psycopg.connect(url, autocommit=True) as looking:
            while looking.execute("SHOW synchronous_standby_names").fetchone() != ("nobody",):
                pass
        yield
    finally:
        administered(
            with_settings(url, synchronous_commit="local"),
            "ALTER SYSTEM RESET synchronous_standby_names",
            "SELECT pg_reload_conf()",
        )


def cancel_waiting(url: str, waiting: "Future[int]") -> None:
    """Cancels a wait for a standby, as soon as there is one."""
    cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    with psycopg.connect(url, autocommit=True) as looking:
        while looking.execute(cancel).fetchone() is None:
            assert not waiting.done()


def test_a_wait_for_a_standby_that_is_cancelled_is_no_answer(
    postgres: Cluster, store: Postgres
) -> None:
    url = store_url(postgres, store)
    with waiting_for_a_standby(url), ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(store.write, count_up)
        cancel_waiting(url, waiting)
        with pytest.raises(LedgerUnavailable, match="nobody knows yet"):
            waiting.result(10)


def test_a_reader_waits_for_the_standby_too(postgres: Cluster, store: Postgres) -> None:
    url = store_url(postgres, store)
    with waiting_for_a_standby(url), ThreadPoolExecutor(1) as threads:
        reading = threads.submit(counted, store)
        cancel_waiting(url, reading)
        with pytest.raises(LedgerUnavailable, match="nobody knows yet"):
            reading.result(10)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"synchronous_commit": "off"}, "synchronous_commit=off"),
        ({"client_encoding": "LATIN1"}, ""),
        ({"synchronous_commit": "local"}, ""),
        ({"synchronous_commit": "remote_apply"}, ""),
    ],
)
def test_a_role_whose_commits_may_be_lost_is_refused(
    database: str, settings: dict[str, str], named: str
) -> None:
    if named:
        with pytest.raises(LedgerUnavailable, match=f"could lose a charge.*{named}"):
            Postgres(with_settings(database, **settings))
    else:
        Postgres(with_settings(database, **settings)).close()


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes"])
def test_a_server_that_does_not_sync_is_refused(
    postgres: Cluster, database: str, setting: str
) -> None:
    with (
        restarted(postgres, **{setting: "off"}),
        pytest.raises(LedgerUnavailable, match=f"{setting}=off"),
    ):
        Postgres(database)


def test_an_old_server_is_refused(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "OLDEST_SERVER", 990000)
    with pytest.raises(LedgerUnavailable, match="is PostgreSQL 1"):
        Postgres(database)


def test_a_database_of_another_encoding_is_refused(postgres: Cluster, database: str) -> None:
    administered(
        database,
        "DROP DATABASE IF EXISTS latin",
        "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0",
    )
    with pytest.raises(LedgerUnavailable, match="server_encoding=LATIN1"):
        Postgres(postgres.url("latin"))


def test_a_newer_format_is_refused_and_left_alone(database: str) -> None:
    Postgres(database).close()
    administered(database, f"UPDATE sfumato.meta SET value = '{FORMAT + 1}' WHERE name = 'version'")
    with pytest.raises(LedgerTooNew, match=f"has format {FORMAT + 1}"):
        Postgres(database)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE sfumato.meta SET value = 'two' WHERE name = 'version'",
        "DELETE FROM sfumato.meta",
        "ALTER TABLE sfumato.meta DROP COLUMN value",
    ],
)
def test_what_is_no_ledger_is_refused(database: str, statement: str) -> None:
    Postgres(database).close()
    administered(database, statement)
    with pytest.raises(LedgerCorrupt, match="is not a ledger"):
        Postgres(database)


def test_no_ledger_is_made_where_none_is_wanted(database: str) -> None:
    with pytest.raises(LedgerMissing, match="No ledger in"):
        Postgres(database, create=False)
    Postgres(database).close()
    Postgres(database, create=False).close()


def test_damage_names_the_guard_that_is_missing(store: Postgres, postgres: Cluster) -> None:
    assert store.damage() == []
    administered(
        store_url(postgres, store),
        "DROP INDEX sfumato.charge_question",
        "ALTER TABLE sfumato.charge DROP CONSTRAINT charge_seq",
    )
    assert store.damage() == [
        f"the constraint {name} is missing or invalid" for name in ("charge_question", "charge_seq")
    ]


def test_a_role_that_may_only_read_is_told_so(store: Postgres, postgres: Cluster) -> None:
    url = store_url(postgres, store)
    administered(
        url,
        "DROP ROLE IF EXISTS reader",
        "CREATE ROLE reader LOGIN",
        "GRANT USAGE ON SCHEMA sfumato TO reader",
        "GRANT SELECT ON ALL TABLES IN SCHEMA sfumato TO reader",
    )
    reader = Postgres(url.replace("sfumato@", "reader@"))
    assert counted(reader) == 0
    with pytest.raises(LedgerReadOnly, match="cannot be written"):
        reader.write(count_up)
    reader.close()
    for role in (
        url.replace("sfumato@", "reader@"),
        with_settings(url, default_transaction_read_only="on"),
    ):
        administered(url, "DROP SCHEMA IF EXISTS sfumato CASCADE")
        with pytest.raises(LedgerReadOnly):
            Postgres(role)


def test_a_standby_is_no_place_to_charge(postgres: Cluster, store: Postgres) -> None:
    url, signal_file = store_url(postgres, store), postgres.folder / "data" / "standby.signal"
    store.close()
    postgres.stop()
    signal_file.touch()
    postgres.start()
    try:
        with pytest.raises(LedgerReadOnly, match="is a standby"):
            Postgres(url)
    finally:
        postgres.stop()
        signal_file.unlink()
        postgres.start()


def test_an_account_that_somebody_never_lets_go_is_busy(
    store: Postgres, postgres: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        server, "WRITING", server.WRITING.replace("'lock_timeout', '5s'", "'lock_timeout', '1ms'")
    )
    with psycopg.connect(store_url(postgres, store)) as somebody:
        somebody.execute("SELECT 1 FROM sfumato.account FOR UPDATE")
        with pytest.raises(LedgerBusy, match="held by somebody else"):
            store.write(count_up)
        assert store.peek("d") == ACCOUNT
    assert store.write(count_up) == 1


def test_no_table_of_a_session_stands_before_the_ledgers(
    postgres: Cluster, store: Postgres
) -> None:
    with store._pool.one() as connection:
        connection.execute("CREATE TEMPORARY TABLE account AS SELECT * FROM sfumato.account")
        connection.execute("UPDATE pg_temp.account SET seq = 99")
    assert (store.write(count_up), counted(store)) == (1, 1)


def test_a_fork_has_no_ledger_and_does_not_disturb_its_parents(store: Postgres) -> None:
    child = os.fork()
    if child == 0:
        refused = False
        try:
            counted(store)
        except LedgerBusy:
            refused = True
        store.close()
        os._exit(0 if refused else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert store.write(count_up) == 1


def test_a_store_that_is_forgotten_lets_its_connections_go(
    postgres: Cluster, database: str
) -> None:
    Postgres(database)
    with psycopg.connect(database, autocommit=True) as looking:
        open_ = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'sfumato' AND datname = current_database()"
        while looking.execute(open_).fetchone():
            pass


def test_a_closed_store_refuses(store: Postgres) -> None:
    store.close()
    store.close()
    with pytest.raises(LedgerUnavailable, match="closed"):
        store.write(count_up)


def test_no_message_tells_the_password(postgres: Cluster) -> None:
    url = f"postgresql://sfumato:hunter2@/nothing?host={postgres.folder}"
    with pytest.raises(LedgerError) as failed:
        Postgres(url)
    assert "hunter2" not in str(failed.value)
    with pytest.raises(LedgerError) as failed:
        Postgres("postgresql://sfumato:hunter2@/?nonsense")
    assert "hunter2" not in str(failed.value)


def test_the_clock_is_the_servers_and_never_steps_back(
    postgres: Cluster, store: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = store.read(lambda rows: rows.now())
    for place, name in ((server, "WRITING"), (module, "_CLOCK")):
        monkeypatch.setattr(place, name, getattr(place, name).replace(CLOCK, "5::bigint"))
    for run in (store.read, store.write):
        assert run(lambda rows: rows.now()) >= first
    fresh = Postgres(store_url(postgres, store))
    assert (fresh.read(lambda rows: rows.now()), fresh.write(lambda rows: rows.now())) == (5, 5)
    fresh.close()
