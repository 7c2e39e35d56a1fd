# SPDX-License-Identifier: Apache-2.0
"""Ledgers on a server of which an older state came back: the whole server, a database, a schema."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest

from sfumato.errors import AccountFrozen, LedgerIncomplete, LedgerUnavailable
from sfumato.ledger import Head, Ledger, Signer, failover, verify
from sfumato.ledger.failover import accept_server
from sfumato.ledger.remembered_head import LastEntry, RememberedHead
from sfumato.ledger.store import postgres as store_module
from sfumato.ledger.store import postgres_rows, postgres_schema, postgres_server
from sfumato.ledger.store.base import Rows
from sfumato.ledger.store.postgres import Postgres
from sfumato.noise.entropy import token
from sfumato.privacy import Budget
from tests.contracts.charges import contract, entries, opened, paid, pure
from tests.contracts.postgres import Cluster
from tools.postgres import programs

FULL = "ab" * 32


@contextmanager
def stopped(server: Cluster) -> Iterator[Path]:
    """A server that does not run meanwhile; its data."""
    server.stop()
    yield server.folder / "data"
    server.own(server.folder / "data")
    server.start()


def charge_and_set_back(url: str) -> None:
    """A ledger that spends 0.9 of 1, and whose rows are then again those from before."""
    tables = ("account", "charge", "answer", "journal")
    with closing(opened(url)) as ledger, psycopg.connect(url, autocommit=True) as disk:
        for table in ("account", "journal"):
            disk.execute(f"CREATE TABLE sfumato.{table}_then AS SELECT * FROM sfumato.{table}")
        paid(ledger, pure("0.9", "first"))
        ledger.close()
        disk.execute(f"TRUNCATE {', '.join(f'sfumato.{table}' for table in tables)} CASCADE")
        for table in ("account", "journal"):
            disk.execute(f"INSERT INTO sfumato.{table} SELECT * FROM sfumato.{table}_then")


@pytest.fixture
def set_back(database: str, home: Path) -> str:
    """The address of a ledger that was set back."""
    charge_and_set_back(database)
    return database


def test_a_server_whose_disk_is_older_is_refused_to_who_charged_it(
    postgres: Cluster, database: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(opened(database)) as ledger:
        paid(ledger, pure("0.1", "first"))
    with stopped(postgres) as data:
        shutil.copytree(data, tmp_path / "older")
    with closing(Ledger.open(database)) as ledger:
        paid(ledger, pure("0.9", "second"))
    with stopped(postgres) as data:
        shutil.rmtree(data)
        shutil.copytree(tmp_path / "older", data)
    with pytest.raises(LedgerIncomplete, match="this user charged on this machine") as refusal:
        Ledger.open(database)
    assert "sfumato ledger accept-server --accept-loss" in str(refusal.value)
    # who reads it is told by ``verify``
    with closing(Ledger.open(database, read_only=True)) as ledger:
        (problem,) = verify(ledger).problems
        assert "this user charged on this machine" in problem
    # who never charged it is not: 1.9 is spent of 1
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "somebody else"))
    with closing(Ledger.open(database)) as ledger:
        paid(ledger, pure("0.9", "second"))


@pytest.mark.parametrize("mutant", ["nothing is compared", "another identity", "nothing is noted"])
def test_a_broken_memory_lets_a_set_back_server_charge(
    database: str, home: Path, mutant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = RememberedHead.__init__

    def of_another(self: RememberedHead, identity: str, *, shared: bool = False) -> None:
        right(self, token(), shared=shared)

    if mutant == "nothing is compared":
        monkeypatch.setattr(RememberedHead, "missing_from", lambda *_: "")
    elif mutant == "another identity":
        monkeypatch.setattr(RememberedHead, "__init__", of_another)
    else:
        monkeypatch.setattr(Postgres, "remember", lambda *_: None)
    charge_and_set_back(database)
    with closing(Ledger.open(database)) as ledger:
        paid(ledger, pure("0.9", "first"))


def test_an_accepted_loss_freezes_first_and_is_remembered_anew(
    set_back: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(LedgerIncomplete, match="no head to compare"):
        accept_server(set_back, [])
    # killed before the memory is given up: nobody charges
    with monkeypatch.context() as killed, pytest.raises(KeyboardInterrupt):
        killed.setattr(RememberedHead, "accept", interrupted)
        accept_server(set_back, [], accept_loss=True)
    with pytest.raises(LedgerIncomplete):
        Ledger.open(set_back)
    lacking = accept_server(set_back, [], accept_loss=True)
    assert any("this user charged on this machine" in line for line in lacking)
    with closing(Ledger.open(set_back)) as ledger:
        with pytest.raises(AccountFrozen):
            ledger.reserve(pure("0.1", "third"))
        ledger.thaw("d", reason="counted as nothing")
        paid(ledger, pure("0.2", "third"))
        assert RememberedHead(ledger.store.identity).entries()[0].hash == entries(ledger)[-1].hash
    # and a second time there is nothing to decide
    assert accept_server(set_back, []) == []


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_head_that_knows_less_than_the_memory_accepts_no_server(
    set_back: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as blind:
        blind.setattr(RememberedHead, "missing_from", lambda *_: "")
        with closing(Ledger.open(set_back)) as ledger:
            head = signed(ledger, tmp_path)
    with pytest.raises(LedgerIncomplete, match="this user charged on this machine"):
        accept_server(set_back, [head])
    # the mutant
    monkeypatch.setattr(failover.RememberedHead, "missing_from", lambda *_: "")
    assert accept_server(set_back, [head]) == []


def signed(ledger: Ledger, folder: Path) -> Head:
    """The present head of a ledger."""
    return ledger.store.read(lambda rows: Signer(folder / "key").sign(ledger.store.identity, rows))


def test_what_is_not_flushed_is_not_remembered(
    database: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(opened(database)) as ledger:
        (head,) = home.iterdir()
        known = head.read_bytes()
        with monkeypatch.context() as broken:
            # the charge is committed, and the flush after it fails
            broken.setattr(postgres_server, "FLUSH", "SELECT 1 / 0 WHERE $1::text IS NOT NULL")
            with pytest.raises(LedgerUnavailable):
                ledger.reserve(pure("0.1"))
        assert head.read_bytes() == known
        paid(ledger, pure("0.2", "another"))
        assert head.read_bytes() != known


def test_sessions_that_share_a_ledger_remember_what_was_charged_last(
    database: str, home: Path
) -> None:
    with closing(opened(database)) as one, closing(Ledger.open(database)) as other:
        for number in range(6):
            paid(other if number % 2 else one, pure("0.01", f"question {number}"))
            newest, earlier = RememberedHead(one.store.identity).entries()
            journal = [entry.hash for entry in entries(one)]
            assert [newest.hash, earlier.hash] == [journal[-1], journal[-2]]


def test_sharers_that_do_not_read_each_other_forget(home: Path) -> None:
    """The mutant of sharing: each writes slots and orders of its own."""

    def newest(*, shared: bool) -> int:
        one, other = (RememberedHead(f"{shared}", shared=shared) for _ in range(2))
        for seq, head in enumerate((other, one, one, one, one, other), start=1):
            head.note(seq, FULL)
        return RememberedHead(f"{shared}").entries()[0].seq

    assert newest(shared=True) == 6
    assert newest(shared=False) == 5


def test_both_slots_are_compared(database: str, home: Path) -> None:
    with closing(opened(database)) as ledger:
        identity, last = ledger.store.identity, entries(ledger)[-1]
    # two processes noted an entry that is gone, and later one that is there
    path = RememberedHead(identity).path
    for gone in (0, 1):
        slots = [LastEntry(1, 9, FULL), LastEntry(2, last.seq, last.hash)]
        path.write_bytes(b"".join(slot.to_bytes() for slot in (slots if gone else slots[::-1])))
        with pytest.raises(LedgerIncomplete, match="entry 9"):
            Ledger.open(database)


def test_a_torn_memory_of_a_server_locks_nothing(
    set_back: str, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (head,) = home.iterdir()
    head.write_bytes(head.read_bytes()[:100])
    Ledger.open(set_back).close()
    assert "is ignored" in caplog.text


def program(server: Cluster, name: str, *arguments: str) -> None:
    """Runs a program of PostgreSQL on its server."""
    folder = programs()
    assert folder is not None, "the server has them"
    subprocess.run([folder / name, *arguments], check=True, capture_output=True)


def from_dump(server: Cluster, url: str, dump: Path) -> None:
    """Restores a dump of the schema in its place."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA sfumato CASCADE")
    program(server, "pg_restore", f"--dbname={url}", str(dump))


def dump_to(server: Cluster, url: str, dump: Path) -> None:
    """Dumps the schema of a ledger into a file."""
    arguments = ("--format=custom", "--schema=sfumato", f"--file={dump}", f"--dbname={url}")
    program(server, "pg_dump", *arguments)


@pytest.fixture
def restored(postgres: Cluster, database: str, tmp_path: Path) -> str:
    """A ledger whose schema alone was restored from a dump; its address."""
    with closing(opened(database)) as ledger:
        paid(ledger, pure("0.1", "first"))
    dump_to(postgres, database, tmp_path / "dump")
    with closing(Ledger.open(database)) as ledger:
        paid(ledger, pure("0.9", "second"))
    from_dump(postgres, database, tmp_path / "dump")
    return database


def test_a_dump_that_was_restored_on_the_same_server_is_refused_to_everybody(
    restored: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "somebody else"))
    with pytest.raises(LedgerIncomplete, match="a dump was restored"):
        Ledger.open(restored)
    # the owner decides, as on another server
    with pytest.raises(LedgerIncomplete, match="no head"):
        accept_server(restored, [])
    assert accept_server(restored, [], accept_loss=True)
    with closing(Ledger.open(restored)) as ledger, pytest.raises(AccountFrozen):
        ledger.reserve(pure("0.1", "third"))


def test_without_its_tables_a_restored_dump_charges_again(
    restored: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "somebody else"))
    monkeypatch.setattr(store_module, "_moved", lambda _: "")
    with closing(Ledger.open(restored)) as ledger:
        paid(ledger, pure("0.9", "second"))


def charge_past_a_restored_dump(server: Cluster, url: str, dump: Path, *, earlier: bool) -> None:
    """A connected session charges one dataset, somebody else 0.9 of 1 of another, an older dump is
    restored, and the session charges 0.9 of the other.

    ``earlier``: the dump is of a version that recorded no tables.
    """
    with closing(opened(url)) as session:
        session.adopt(contract(Budget(1), "e"), Budget(1))
        paid(session, pure("0.1", "first", dataset="e"))
        with psycopg.connect(url, autocommit=True) as connection:
            if earlier:
                connection.execute("DELETE FROM sfumato.meta WHERE name = 'tables'")
            dump_to(server, url, dump)
        with closing(Ledger.open(url)) as other:
            paid(other, pure("0.9", "second"))
        from_dump(server, url, dump)
        paid(session, pure("0.9", "third"))


@pytest.mark.parametrize("earlier", [False, True])
def test_a_session_that_was_connected_refuses_a_restored_dump(
    postgres: Cluster, database: str, tmp_path: Path, *, earlier: bool
) -> None:
    with pytest.raises(LedgerIncomplete, match="a dump was restored"):
        charge_past_a_restored_dump(postgres, database, tmp_path / "dump", earlier=earlier)


def lock_blindly(patch: pytest.MonkeyPatch) -> None:
    """Tables are not read with the locks."""
    read = "'/' || 'journal'::regclass::oid::text"
    assert read in postgres_rows._LOCK
    patch.setattr(postgres_rows, "_LOCK", postgres_rows._LOCK.replace(read, "''"))


@pytest.mark.parametrize("is_blind", [False, True])
def test_a_dump_restored_before_a_write_has_its_locks_is_refused(
    postgres: Cluster,
    database: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_blind: bool,
) -> None:
    """The mutant compares what the transaction read at its begin, alone."""
    with closing(opened(database)) as session:
        dump_to(postgres, database, tmp_path / "dump")

        def restore_meanwhile(rows: Rows) -> int:
            rows.now()
            from_dump(postgres, database, tmp_path / "dump")
            return len(rows.lock(["d"]))

        if is_blind:
            lock_blindly(monkeypatch)
            assert session.store.write(restore_meanwhile) == 1
            return
        with pytest.raises(LedgerIncomplete, match="a dump was restored"):
            session.store.write(restore_meanwhile)


def test_a_session_that_compares_the_server_alone_charges_a_restored_dump(
    postgres: Cluster, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant: 1.8 is spent of 1."""
    blind = postgres_server.WRITING.replace(postgres_schema.PLACE, postgres_schema.SERVER)
    monkeypatch.setattr(postgres_server, "WRITING", blind)
    monkeypatch.setattr(store_module, "PLACE", postgres_schema.SERVER)
    lock_blindly(monkeypatch)
    charge_past_a_restored_dump(postgres, database, tmp_path / "dump", earlier=False)


def test_a_copy_of_the_database_on_the_same_server_is_refused(
    postgres: Cluster, database: str
) -> None:
    opened(database).close()
    with psycopg.connect(postgres.url("template1"), autocommit=True) as server:
        server.execute("CREATE DATABASE copy TEMPLATE postgres STRATEGY wal_log")
        try:
            with pytest.raises(LedgerIncomplete, match="a copy made"):
                Ledger.open(postgres.url("copy"))
        finally:
            server.execute("DROP DATABASE copy WITH (FORCE)")
    Ledger.open(database).close()


@pytest.mark.parametrize(
    "work",
    [
        "VACUUM FULL sfumato.journal",
        "CLUSTER sfumato.journal USING journal_seq",
        "REINDEX TABLE sfumato.journal",
        "ALTER TABLE sfumato.journal ADD COLUMN note text",
    ],
)
def test_an_administrator_who_tidies_up_locks_nothing(database: str, work: str) -> None:
    opened(database).close()
    with psycopg.connect(database, autocommit=True) as administrator:
        administrator.execute(work)
    with closing(Ledger.open(database)) as ledger:
        paid(ledger, pure("0.1"))


def test_a_ledger_that_recorded_no_tables_charges_and_records_them(database: str) -> None:
    opened(database).close()
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("DELETE FROM sfumato.meta WHERE name = 'tables'")
        Ledger.open(database).close()
        recorded = connection.execute("SELECT FROM sfumato.meta WHERE name = 'tables'")
        assert recorded.fetchone() is not None
