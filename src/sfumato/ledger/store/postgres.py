# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL through psycopg 3: threads, processes and machines share one ledger.

A transaction runs at READ COMMITTED and locks its accounts in the order of their ids. Its locks are
released *before* its flush: it commits with ``synchronous_commit = off``, and ``write`` returns
only after a second transaction, which writes to the log and commits with the server's own setting.
Since the log is flushed in order, this flush (with the synchronous standbys, if any) covers the
first transaction and all that it had seen. Callers of all processes share flushes, so the rate of
charges to an account is bounded by its lock, not by the disk.

Other callers may see what is committed and not yet flushed. They flush before they return, too, so
no row is ever returned that a crash can undo. Only ``peek`` does not wait. Source: PostgreSQL 15
manual, sections 30.4 (asynchronous commit) and 13.3.2 (row locks).
"""

import os
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar

import psycopg
from psycopg import errors
from psycopg.pq import TransactionStatus

from sfumato.errors import LedgerBusy, LedgerMissing
from sfumato.ledger.store import postgres_server as server
from sfumato.ledger.store.acknowledged import Acknowledged, not_passed
from sfumato.ledger.store.base import AccountRow, Rows
from sfumato.ledger.store.bodies import Packed, pack
from sfumato.ledger.store.format import FORMAT, too_new
from sfumato.ledger.store.pool import Pool
from sfumato.ledger.store.postgres_errors import (
    ROLLED_BACK,
    corrupt,
    heeding,
    incomplete,
    place_of,
    typed,
    unknown,
)
from sfumato.ledger.store.postgres_rows import CLOCK, Connection, PostgresRows, placed
from sfumato.ledger.store.postgres_schema import (
    GUARDS,
    PATH,
    PLACE,
    SCHEMA,
    create_tables,
    has_tables,
    keep_server,
    keep_tables,
    upgrade_tables,
)
from sfumato.ledger.store.rows import ACCOUNTS

T = TypeVar("T")

_CONNECTIONS = 16
# How often a transaction that the server rolled back is rerun; so many deadlocks in a row are not
# chance.
_ATTEMPTS = 20
# How often a transaction waits for a lock: 30 s with the server's timeout.
_WAITS = 6

_PEEK = placed(f"{ACCOUNTS} WHERE id = ?".replace("account", f"{SCHEMA}.account", 1))
_CLOCK = f"SELECT {CLOCK}"
_SIZE = (
    "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class "
    "WHERE relnamespace = to_regnamespace($1) AND relkind = 'r'"
)
_FOUND_GUARDS = (
    "SELECT conname FROM pg_constraint WHERE connamespace = to_regnamespace($1) AND convalidated "
    "UNION "
    "SELECT relname FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid "
    "WHERE relnamespace = to_regnamespace($1) AND indisunique AND indisvalid"
)


class _Undone(Exception):
    """The server rolled a transaction back, which may be rerun."""


class Postgres:
    """A ledger in the schema ``sfumato`` of a PostgreSQL database, shared by all who open it.

    Refuses a server that can lose commits (``fsync`` or ``synchronous_commit`` off), one that has
    lost what it acknowledged to this process, and one that has replaced the server on which the
    ledger was (a standby, a restored backup), until the owner has decided. ``accept_loss`` opens
    the last one all the same; ``shortfall`` then has the reason.

    Raises:
        LedgerBusy, LedgerCorrupt, LedgerIncomplete, LedgerReadOnly, LedgerTooNew,
        LedgerUnavailable.
    """

    exclusive = False
    read_only = False

    def __init__(self, url: str, *, create: bool = True, accept_loss: bool = False) -> None:
        self.place = place_of(url)
        self._process = os.getpid()
        self._durably = "on"
        self._latest = 0
        self._telling = threading.Lock()
        self._known = Acknowledged()
        self._listener: Callable[[int, str], None] = lambda seq, digest: None
        # the server and the tables in which the ledger was at the last write
        self._present = ""
        self._checked = weakref.WeakSet[Connection]()
        self.shortfall = ""
        self._pool: Pool[Connection] = Pool(lambda: server.connected(url), _is_idle, _CONNECTIONS)
        self._closing = weakref.finalize(self, _close_in, self._process, self._pool)
        try:
            self.identity = self._prepared(create=create, accept_loss=accept_loss)
        except BaseException:
            self.close()
            raise

    def write(self, transaction: Callable[[Rows], T]) -> T:
        return self._with_connection(lambda connection: self._written(connection, transaction))

    def read(self, transaction: Callable[[Rows], T]) -> T:
        return self._with_connection(lambda connection: self._seen(connection, transaction))

    def pack(self, body: bytes, size: int) -> Packed:
        return pack(body, size, lambda name, whole: self.write(lambda rows: rows.keep(name, whole)))

    def peek(self, account_id: str) -> AccountRow | None:
        def look(connection: Connection) -> AccountRow | None:
            row = connection.execute(_PEEK, (account_id,)).fetchone()
            return AccountRow(*row) if row else None

        return self._with_connection(look)

    def remember(self, listener: Callable[[int, str], None]) -> None:
        self._listener = listener

    def accept_server(self) -> None:
        """Records that the owner allows charges on this server, even if it lacks entries of the
        journal.
        """
        self._with_connection(keep_server)
        self.shortfall = ""

    def damage(self, *, pages: bool = True) -> list[str]:
        return self._with_connection(missing_guards)

    def size(self) -> int:
        return self._with_connection(size_of)

    def checkpoint(self) -> None:
        """Does nothing; the server checkpoints by itself."""

    def close(self) -> None:
        self._closing()

    def _with_connection(self, do: Callable[[Connection], T]) -> T:
        """Runs work on a connection, again if the server certainly rolled it back."""
        if os.getpid() != self._process:
            raise LedgerBusy(
                f"The ledger {self.place} was opened by another process, and this is a fork of it.",
                remedy="Open a session of its own in each process, after the fork.",
            )
        waits = 0
        for _ in range(_ATTEMPTS):
            with suppress(_Undone), typed(self.place), self._pool.one() as connection:
                try:
                    return do(connection)
                except psycopg.Error as error:
                    waits += isinstance(error, errors.LockNotAvailable)
                    self._give_up(connection, error, may_wait=waits < _WAITS)
        raise LedgerBusy(
            f"The ledger {self.place} undid one step {_ATTEMPTS} times.", remedy="Ask again."
        )

    def _give_up(self, connection: Connection, error: psycopg.Error, *, may_wait: bool) -> None:
        """Closes a connection after an error; raises the error, or ``_Undone`` if the transaction
        may be rerun.

        After an error in a pipeline, the client wrongly believes that some statements are prepared.
        """
        undone = connection.closed or isinstance(error, ROLLED_BACK)
        if connection.closed:
            self._pool.forget_idle()
        elif may_wait and isinstance(error, errors.LockNotAvailable):
            undone = True
            with suppress(psycopg.Error):
                server.end_stopped(connection)
        connection.close()
        if undone:
            raise _Undone from None
        raise error

    def _written(self, connection: Connection, transaction: Callable[[Rows], T]) -> T:
        committing, ended = False, None
        try:
            with heeding(connection, self.place), connection.pipeline() as pipeline:
                connection.execute(server.BEGIN)
                begun = cache(connection.execute(server.WRITING, (PATH,)).fetchone)
                rows = PostgresRows(connection, pipeline.sync, lambda: self._later(begun()))
                result = transaction(rows)
                self._require_all(connection, rows, str((begun() or ("", ""))[1]))
                rows.send()
                committing = True
                ended = connection.execute("COMMIT")
                connection.execute(server.FLUSH, (self._durably,))
        except BaseException as error:
            self._undo(connection, error)
            committed = ended is not None and ended.statusmessage == "COMMIT"
            if isinstance(error, psycopg.Error) and (
                committed or (committing and connection.closed)
            ):
                raise unknown(self.place) from None
            raise
        if ended.statusmessage != "COMMIT":
            raise unknown(self.place)
        self._known.note(rows.ends)
        for seq, digest in rows.ends.values():
            self._listener(seq, digest)
        return result

    def _require_all(self, connection: Connection, rows: PostgresRows, here: str) -> None:
        """Refuses a server that has lost transactions, or has replaced another one, and tables
        that have replaced others.
        """
        why = self._known.missing_from(rows.found)
        # a dump may have been restored after the transaction began and before it had its locks
        is_changed = here != self._present or not here.endswith(rows.tables)
        if not why and (is_changed or connection not in self._checked):
            why = self._lacking(connection)
            if not why and (is_changed or not self.shortfall):
                why = _moved(connection)
        if why:
            raise incomplete(self.place, why)
        self._present = here
        self._checked.add(connection)

    def _lacking(self, connection: Connection) -> str:
        """Describes which entries acknowledged to this process a server lacks; "" if none."""
        ends = self._known.ends()
        values = (list(ends), [seq for seq, _ in ends.values()])
        return (
            not_passed(ends, connection.execute(server.ENTRIES, values).fetchall()) if ends else ""
        )

    def _seen(self, connection: Connection, transaction: Callable[[Rows], T]) -> T:
        try:
            with connection.pipeline() as pipeline:
                connection.execute(server.BEGIN_READING)
                begun = connection.execute(server.READING, (PATH,))
                moment = lambda: self._later(connection.execute(_CLOCK).fetchone())  # noqa: E731
                result = transaction(PostgresRows(connection, pipeline.sync, moment))
                connection.execute("COMMIT")
                flushed = connection.execute(server.IS_FLUSHED, (_value(begun),))
        except BaseException as error:
            self._undo(connection, error)
            raise
        if not _value(flushed):
            self._flush(connection)
        return result

    def _undo(self, connection: Connection, error: BaseException) -> None:
        """Rolls a failed transaction back, after a flush of the rows that it had seen.

        Its error may reveal these rows, so a crash must not undo them.
        """
        status = connection.info.transaction_status
        if status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
            connection.execute("ROLLBACK", prepare=False)
            if not isinstance(error, psycopg.Error):
                self._flush(connection)
        if status == TransactionStatus.INERROR and not isinstance(error, psycopg.Error):
            # a statement of the same pipeline failed and the transaction did not see it
            connection.close()

    def _flush(self, connection: Connection) -> None:
        """Returns when the log up to now is on disk."""
        with heeding(connection, self.place):
            connection.execute(server.FLUSH, (self._durably,))

    def _later(self, row: tuple[Any, ...] | None) -> int:
        """The time of the server, never earlier than a time returned before."""
        with self._telling:
            self._latest = max(self._latest, row[0] if row else 0)
            return self._latest

    def _prepared(self, *, create: bool, accept_loss: bool) -> str:
        """Finds or creates the tables; returns the ledger's identity."""

        def prepare(connection: Connection) -> str:
            if not has_tables(connection):
                if not create:
                    raise LedgerMissing(f"No ledger in {self.place}.", remedy="Check the address.")
                create_tables(connection)
            self._durably = str(_value(connection.execute("SHOW synchronous_commit")))
            about: dict[str, str] = dict(
                connection.execute(f"SELECT name, value FROM {SCHEMA}.meta").fetchall()
            )
            version, identity = int(about["version"]), about["identity"]
            if version > FORMAT:
                raise too_new(self.place, version)
            if version < FORMAT:
                upgrade_tables(connection)
            self._present = str(_value(connection.execute(f"SELECT {PLACE}")))
            if "tables" not in about:
                # not otherwise: a role that may only read opens a ledger too
                keep_tables(connection)
            self.shortfall = _moved(connection)
            return identity

        try:
            identity = self._with_connection(prepare)
        except (KeyError, ValueError):
            raise corrupt(self.place) from None
        if self.shortfall and not accept_loss:
            raise incomplete(self.place, self.shortfall)
        return identity


def missing_guards(connection: Connection) -> list[str]:
    """Returns the constraints that the ledger's tables should have and lack."""
    guards = {row[0] for row in connection.execute(_FOUND_GUARDS, (SCHEMA,)).fetchall()}
    return [f"the constraint {name} is missing or invalid" for name in sorted(GUARDS - guards)]


def size_of(connection: Connection) -> int:
    """Returns the number of bytes of the ledger's tables and indexes."""
    return int(_value(connection.execute(_SIZE, (SCHEMA,))) or 0)


def _moved(connection: Connection) -> str:
    """Why a server is not the one on which the ledger was; "" if it is."""
    said, here, tables, present = connection.execute(server.SERVERS).fetchone() or [""] * 4
    if said != here:
        return f"it was kept on the server {said}, and this is {here}"
    if tables != present:
        return "its tables are not those in which it was kept: a dump was restored, or a copy made"
    return ""


def _close_in(process: int, pool: Pool[Connection]) -> None:
    """Closes the connections in the process that opened them; a fork would close its parent's."""
    if os.getpid() == process:
        pool.close()


def _is_idle(connection: Connection) -> bool:
    return not connection.closed and connection.info.transaction_status == TransactionStatus.IDLE


def _value(cursor: psycopg.Cursor[tuple[Any, ...]]) -> Any:
    """The single value of a result."""
    row = cursor.fetchone()
    return row[0] if row else None
