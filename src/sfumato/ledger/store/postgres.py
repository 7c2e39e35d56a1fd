# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL through psycopg 3: threads, processes and machines share one ledger.

A unit is one READ COMMITTED transaction that locks its accounts in the order of their ids.
Its locks are released *before* its flush: the transaction commits with
``synchronous_commit = off``, and ``write`` returns only after a second transaction, which
writes to the log and commits with the server's own setting. The log is flushed in order, so
this flush (and the synchronous standbys, where there are some) covers the unit and all that
it had seen. Waiting callers of every process share it: an account takes as many charges a
second as its lock is handed on, not as many as the disk flushes.

Meanwhile others see what is committed and not flushed. They flush before they return, too,
so nobody is told of a row that a crash takes back. Only ``peek`` does not wait.
Source: PostgreSQL 15 manual, sections 30.4 (asynchronous commit) and 13.3.2 (row locks).
"""

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import DeadlockDetected, Diagnostic, SerializationFailure
from psycopg.pq import TransactionStatus

from sfumato.errors import (
    LedgerBusy,
    LedgerCorrupt,
    LedgerError,
    LedgerMissing,
    LedgerReadOnly,
    LedgerTooNew,
    LedgerUnavailable,
)
from sfumato.ledger.store.base import AccountRow, Rows
from sfumato.ledger.store.format import FORMAT
from sfumato.ledger.store.pool import Pool
from sfumato.ledger.store.postgres_rows import CLOCK, Connection, Cursor, PostgresRows, placed
from sfumato.ledger.store.postgres_schema import (
    GUARDS,
    PATH,
    SCHEMA,
    create_tables,
    has_tables,
    upgrade_tables,
)
from sfumato.ledger.store.rows import ACCOUNTS

T = TypeVar("T")

_OLDEST_SERVER = 140000
_CONNECTIONS = 16
# How often a unit that the server undid is run again; so many deadlocks in a row are not chance.
_ATTEMPTS = 20

_PEEK = placed(f"{ACCOUNTS} WHERE id = ?".replace("account", f"{SCHEMA}.account", 1))
_CLOCK = f"SELECT {CLOCK}"
# A client that is gone does not hold an account for ever, and nobody waits for one for ever.
_WRITING = (
    f"SELECT {CLOCK}, set_config('search_path', $1, true), set_config('synchronous_commit', 'off', true), "
    "set_config('lock_timeout', '30s', true), set_config('idle_in_transaction_session_timeout', '30s', true)"
)
# The snapshot is older than this position: the log up to here holds all that the reader can see.
_READING = "SELECT pg_current_wal_insert_lsn()::text, set_config('search_path', $1, true)"
# Of a standby that is waited for it is not known here how far it is.
_IS_FLUSHED = "SELECT pg_current_wal_flush_lsn() >= $1::pg_lsn AND current_setting('synchronous_standby_names') = ''"
_FLUSH = "SELECT set_config('synchronous_commit', $1, true), pg_logical_emit_message(true, 'sfumato', '')"
_PROMISES = (
    "SELECT pg_is_in_recovery(), current_setting('fsync'), current_setting('full_page_writes'), "
    "current_setting('synchronous_commit'), current_setting('synchronous_standby_names'), "
    "current_setting('server_encoding')"
)
_FOUND_GUARDS = (
    "SELECT conname FROM pg_constraint WHERE connamespace = to_regnamespace($1) AND convalidated UNION "
    "SELECT relname FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid "
    "WHERE relnamespace = to_regnamespace($1) AND indisunique AND indisvalid"
)


class _Undone(Exception):
    """The server took back a unit, which may be run again."""


class Postgres:
    """A ledger in the schema ``sfumato`` of a database, shared by all who open it.

    Refuses a server that forgets: ``fsync`` or ``synchronous_commit`` off.

    Raises:
        LedgerBusy, LedgerCorrupt, LedgerReadOnly, LedgerTooNew, LedgerUnavailable.
    """

    exclusive = False
    read_only = False

    def __init__(self, url: str, *, create: bool = True) -> None:
        self.place = _place(url)
        self._process = os.getpid()
        self._durably = "on"
        self._latest = 0
        self._telling = threading.Lock()
        self._pool: Pool[Connection] = Pool(lambda: _connected(url), _is_idle, _CONNECTIONS)
        self._closing = weakref.finalize(self, _close_in, self._process, self._pool)
        try:
            self.identity = self._prepared(create=create)
        except BaseException:
            self.close()
            raise

    def write(self, unit: Callable[[Rows], T]) -> T:
        return self._with_connection(lambda connection: self._written(connection, unit))

    def read(self, unit: Callable[[Rows], T]) -> T:
        return self._with_connection(lambda connection: self._seen(connection, unit))

    def peek(self, account_id: str) -> AccountRow | None:
        def look(connection: Connection) -> AccountRow | None:
            row = connection.execute(_PEEK, (account_id,)).fetchone()
            return AccountRow(*row) if row else None

        return self._with_connection(look)

    def damage(self) -> list[str]:
        return self._with_connection(missing_guards)

    def checkpoint(self) -> None:
        """The server's own business."""

    def close(self) -> None:
        self._closing()

    def _with_connection(self, do: Callable[[Connection], T]) -> T:
        """Does it on a connection; again if the server is sure to have undone it."""
        if os.getpid() != self._process:
            raise LedgerBusy(
                f"The ledger {self.place} was opened by another process, and this is a fork of it.",
                remedy="Open a session of its own in each process, after the fork.",
            )
        for _ in range(_ATTEMPTS):
            with suppress(_Undone), _typed(self.place), self._pool.one() as connection:
                try:
                    return do(connection)
                except psycopg.Error as error:
                    if connection.closed:
                        self._pool.forget_idle()
                    if connection.closed or isinstance(error, DeadlockDetected | SerializationFailure):
                        raise _Undone from None
                    raise
        raise LedgerBusy(f"The ledger {self.place} undid one step {_ATTEMPTS} times.", remedy="Ask again.")

    def _written(self, connection: Connection, unit: Callable[[Rows], T]) -> T:
        committing, ended = False, None
        try:
            with _heeding(connection, self.place), connection.pipeline():
                connection.execute("BEGIN")
                begun = connection.execute(_WRITING, (PATH,))
                rows = PostgresRows(connection, lambda: self._later(begun))
                result = unit(rows)
                rows.send()
                committing = True
                ended = connection.execute("COMMIT")
                connection.execute(_FLUSH, (self._durably,))
        except BaseException as error:
            self._undo(connection, error)
            committed = ended is not None and ended.statusmessage == "COMMIT"
            if isinstance(error, psycopg.Error) and (committed or (committing and connection.closed)):
                raise _unknown(self.place) from None
            raise
        if ended.statusmessage != "COMMIT":
            raise _unknown(self.place)
        return result

    def _seen(self, connection: Connection, unit: Callable[[Rows], T]) -> T:
        try:
            with connection.pipeline():
                connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                begun = connection.execute(_READING, (PATH,))
                result = unit(PostgresRows(connection, lambda: self._later(connection.execute(_CLOCK))))
                connection.execute("ROLLBACK")
                flushed = connection.execute(_IS_FLUSHED, (_value(begun),))
        except BaseException as error:
            self._undo(connection, error)
            raise
        if not _value(flushed):
            self._flush(connection)
        return result

    def _undo(self, connection: Connection, error: BaseException) -> None:
        """Takes everything back; what the unit had seen, and its error may tell, is on disk then."""
        if connection.info.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
            connection.execute("ROLLBACK")
            if not isinstance(error, psycopg.Error):
                self._flush(connection)

    def _flush(self, connection: Connection) -> None:
        """Returns when the log is on disk, up to now at least."""
        with _heeding(connection, self.place):
            connection.execute(_FLUSH, (self._durably,))

    def _later(self, clock: Cursor) -> int:
        """The moment that the server tells, never earlier than one that it has told before."""
        with self._telling:
            self._latest = max(self._latest, _value(clock))
            return self._latest

    def _prepared(self, *, create: bool) -> str:
        """Finds the tables or makes them; the ledger's identity."""

        def prepare(connection: Connection) -> str:
            if not has_tables(connection):
                if not create:
                    raise LedgerMissing(f"No ledger in {self.place}.", remedy="Check the address.")
                create_tables(connection)
            self._durably = str(_value(connection.execute("SHOW synchronous_commit")))
            about: dict[str, str] = dict(connection.execute(f"SELECT name, value FROM {SCHEMA}.meta").fetchall())
            version, identity = int(about["version"]), about["identity"]
            if version > FORMAT:
                raise LedgerTooNew(
                    f"The ledger {self.place} has format {version}; this version reads up to {FORMAT}.",
                    remedy="Use the newer sfumato that wrote it. Nothing was changed.",
                )
            if version < FORMAT:
                upgrade_tables(connection)
            return identity

        try:
            return self._with_connection(prepare)
        except (KeyError, ValueError):
            raise _corrupt(self.place) from None


def missing_guards(connection: Connection) -> list[str]:
    """The constraints that the tables must have and have not."""
    found = {row[0] for row in connection.execute(_FOUND_GUARDS, (SCHEMA,)).fetchall()}
    return [f"the constraint {name} is missing or invalid" for name in sorted(GUARDS - found)]


def _connected(url: str) -> Connection:
    """A connection to a server that keeps what it is given."""
    settings: dict[str, Any] = {"application_name": "sfumato", "connect_timeout": 10} | conninfo_to_dict(url)
    connection = psycopg.connect(**settings, autocommit=True, cursor_factory=psycopg.RawCursor)
    try:
        _require_durable(connection, _place(url))
    except BaseException:
        connection.close()
        raise
    return connection


def _close_in(process: int, pool: Pool[Connection]) -> None:
    """Closes the connections where they were opened: a fork would end its parent's."""
    if os.getpid() == process:
        pool.close()


def _require_durable(connection: Connection, place: str) -> None:
    """Refuses a server that could lose what it has confirmed."""
    if connection.info.server_version < _OLDEST_SERVER:
        raise LedgerUnavailable(
            f"The server of {place} is PostgreSQL {connection.info.server_version // 10000}.",
            allowed=f"PostgreSQL {_OLDEST_SERVER // 10000} or newer",
        )
    row = connection.execute(_PROMISES).fetchone()
    assert row is not None
    replica, fsync, pages, durably, standbys, encoding = row
    if replica:
        raise LedgerReadOnly(f"The server of {place} is a standby.", remedy="Use the address of the primary.")
    waits = durably in (("on", "remote_apply") if standbys else ("on", "remote_apply", "remote_write", "local"))
    if (fsync, pages, encoding) != ("on", "on", "UTF8") or not waits:
        raise LedgerUnavailable(
            f"The server of {place} could lose a charge: fsync={fsync}, full_page_writes={pages}, "
            f"synchronous_commit={durably}, server_encoding={encoding}.",
            allowed="fsync=on, full_page_writes=on, synchronous_commit=on (or remote_apply), server_encoding=UTF8",
            remedy="Set them in postgresql.conf, or synchronous_commit for this role with ALTER ROLE.",
        )


@contextmanager
def _heeding(connection: Connection, place: str) -> Iterator[None]:
    """A warning is a promise not kept: the wait for a standby was cancelled, say."""
    heard: list[str | None] = []

    def hear(notice: Diagnostic) -> None:
        heard.append(notice.severity_nonlocalized)

    connection.add_notice_handler(hear)
    try:
        yield
    finally:
        connection.remove_notice_handler(hear)
    if "WARNING" in heard:
        raise _unknown(place)


@contextmanager
def _typed(place: str) -> Iterator[None]:
    """The server's errors as ours; its own texts may hold values, so they stay here."""
    try:
        yield
    except psycopg.Error as error:
        raise _translate(error, place) from None


def _translate(error: psycopg.Error, place: str) -> LedgerError:
    what = f"{type(error).__name__} {error.sqlstate or ''}".strip()
    match error:
        case errors.LockNotAvailable():
            return LedgerBusy(f"An account of the ledger {place} is held by somebody else.", remedy="Ask again.")
        case errors.ReadOnlySqlTransaction() | errors.InsufficientPrivilege():
            return LedgerReadOnly(
                f"The ledger {place} cannot be written ({what}), so nothing can be charged.",
                remedy=f"Give this role SELECT, INSERT and UPDATE in the schema {SCHEMA}; to create it, CREATE on the database.",
            )
        case psycopg.OperationalError() if not isinstance(error, errors.DataCorrupted | errors.IndexCorrupted):
            return LedgerUnavailable(
                f"The ledger {place} does not answer ({what}).",
                remedy="Look at the server and ask again; what was paid for is not paid twice.",
            )
        case _:
            return _corrupt(place)


def _unknown(place: str) -> LedgerUnavailable:
    return LedgerUnavailable(
        f"The ledger {place} was lost while it wrote: nobody knows yet whether it did.",
        remedy="Ask again: what was stored is found, and is not paid twice.",
    )


def _corrupt(place: str) -> LedgerCorrupt:
    return LedgerCorrupt(
        f"What lies in the schema {SCHEMA} of {place} is not a ledger, or is damaged.",
        remedy="Restore the newest backup; do not start a new ledger over the same data.",
    )


def _place(url: str) -> str:
    """An address without its password."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error:
        raise LedgerUnavailable(
            "The address of the ledger cannot be read.", allowed="postgresql://user@host:5432/database"
        ) from None
    return f"postgresql://{parts.get('host', '')}/{parts.get('dbname', '')}"


def _is_idle(connection: Connection) -> bool:
    return not connection.closed and connection.info.transaction_status == TransactionStatus.IDLE


def _value(cursor: psycopg.Cursor[tuple[Any, ...]]) -> Any:
    """The one value of a result."""
    row = cursor.fetchone()
    return row[0] if row else None
