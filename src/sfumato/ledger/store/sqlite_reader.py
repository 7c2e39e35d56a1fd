# SPDX-License-Identifier: Apache-2.0
"""Opens a ledger in a SQLite file for reading: nothing in or beside the file is changed or created.

Works on files, folders and media without write access. While it is open nobody can charge: writers
get an error that the file is in use; other readers are admitted.
"""

import fcntl
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NoReturn, TypeVar
from urllib.parse import quote

import apsw

from sfumato.errors import LedgerMissing, LedgerReadOnly
from sfumato.ledger.store import sqlite_schema
from sfumato.ledger.store.base import AccountRow, Rows
from sfumato.ledger.store.bodies import Packed
from sfumato.ledger.store.format import FORMAT, too_new
from sfumato.ledger.store.open_mark import forgotten
from sfumato.ledger.store.sqlite import translated
from sfumato.ledger.store.sqlite_file import (
    busy,
    corrupt,
    is_log,
    let_go,
    place_of,
    size_of,
    unopenable,
)
from sfumato.ledger.store.sqlite_opening import shortfall_of
from sfumato.ledger.store.sqlite_rows import Tables

T = TypeVar("T")


class SQLiteReader:
    """A ledger file opened read-only; one of an older format is upgraded in memory.

    Guarantees:
        nothing is written beside or in the file
        what a crash left in the log is read too

    Raises:
        LedgerBusy, LedgerCorrupt, LedgerMissing, LedgerTooNew, LedgerUnavailable.
    """

    exclusive = True
    read_only = True

    def __init__(self, path: str | Path) -> None:
        self.place = place_of(path)
        self._process = os.getpid()
        self._locks: list[int] = []
        self._turn = threading.Lock()
        # releases the lock of a reader that was not closed; a fork only closes its copy
        weakref.finalize(self, let_go, self._locks, unlock=False)
        _share(self.place, self._locks)
        self._log = is_log(f"{self.place}-wal")
        try:
            self._connection = _opened(self.place)
            self._rows = ReadRows(self._connection)
            self.identity = self._apart(
                lambda: _value(self._connection, "SELECT value FROM meta WHERE name = 'identity'")
            )
        except apsw.Error as error:
            let_go(self._locks)
            raise translated(error, self.place) from None
        except BaseException:
            let_go(self._locks)
            raise

    def write(self, transaction: Callable[[Rows], T]) -> T:
        """Raises ``LedgerReadOnly``."""
        raise _opened_to_read(self.place)

    def read(self, transaction: Callable[[Rows], T]) -> T:
        """Runs a read-only transaction; one at a time."""
        return self._apart(lambda: transaction(self._rows))

    def pack(self, body: bytes, size: int) -> Packed:
        """Raises ``LedgerReadOnly``."""
        raise _opened_to_read(self.place)

    def peek(self, account_id: str) -> AccountRow | None:
        """Returns the row of an account, or None if there is none."""
        return self.read(lambda rows: rows.account(account_id))

    def remember(self, listener: Callable[[int, str], None]) -> None:
        """Does nothing; a reader adds no entries."""

    def damage(self, *, pages: bool = True) -> list[str]:
        """Returns descriptions of the damage that SQLite finds in pages, indexes and log.

        Reads can run meanwhile.
        """
        return forgotten(self._apart(self._shortfall)) + (self._broken() if pages else [])

    def _broken(self) -> list[str]:
        """Checks pages over a separate connection, unless the ledger is a copy in memory."""
        if self._connection.filename == "":
            return self._apart(lambda: _damaged_pages(self._connection))
        try:
            connection = _opened(self.place)
            try:
                return _damaged_pages(connection)
            finally:
                connection.close()
        except apsw.Error as error:
            raise translated(error, self.place) from None

    def size(self) -> int:
        """The size of the ledger file and its write-ahead log in bytes."""
        return size_of(self.place)

    def checkpoint(self) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Closes the file, so that writers can open it again."""
        with self._turn:
            if self._locks:
                self._connection.close()
                let_go(self._locks, unlock=os.getpid() == self._process)

    def _shortfall(self) -> str:
        entries = sum(row.seq for row in self._rows.accounts() if not row.parent)
        return shortfall_of(self._connection, self.place, log=self._log, entries=entries)

    def _apart(self, work: Callable[[], T]) -> T:
        with self._turn:
            try:
                return work()
            except apsw.Error as error:
                raise translated(error, self.place) from None


class ReadRows(Tables):
    """``Rows`` of tables that nobody changes."""

    def now(self) -> int:
        return time.time_ns() // 10**6

    def lock(self, ids: Iterable[str], ahead: Callable[[], object] | None = None) -> NoReturn:
        raise LedgerReadOnly("The ledger was opened to be read.")


def _opened_to_read(place: str) -> LedgerReadOnly:
    """The error for a write to a ledger that is open for reading."""
    return LedgerReadOnly(
        f"The ledger {place!r} was opened to be read.", remedy="Open it without read_only=True."
    )


def _share(path: str, descriptors: list[int]) -> None:
    """Locks out writers of any process, and admits readers."""
    if not Path(path).is_file():
        raise LedgerMissing(
            f"No ledger at {path!r}.", remedy="Check the path; the first question makes one."
        )
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError as error:
        raise unopenable(path, error) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise busy(path) from None
    descriptors.append(descriptor)


def _opened(path: str) -> apsw.Connection:
    """A connection that reads the file, and the log if there is one."""
    if Path(f"{path}-wal").exists():
        # without SQLite's own locks, which need write access; flock protects the file instead
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY, vfs="unix-none")
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        # keeps the index of the log in memory instead of a file
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    else:
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        connection = apsw.Connection(f"file:{quote(path)}?immutable=1", flags=flags)
    application, version = (
        int(_value(connection, f"PRAGMA {pragma}")) for pragma in ("application_id", "user_version")
    )
    if application != sqlite_schema.APPLICATION:
        raise corrupt(path)
    if version > FORMAT:
        raise too_new(repr(path), version)
    return connection if version == FORMAT else _brought_forward(connection, path, version)


def _brought_forward(old: apsw.Connection, path: str, version: int) -> apsw.Connection:
    """An upgraded copy in memory."""
    memory = apsw.Connection(":memory:")
    with memory.backup("main", old, "main") as copying:
        copying.step()
    old.close()
    try:
        with memory:
            sqlite_schema.upgrade(memory, version)
    except (ValueError, LookupError, TypeError):
        raise corrupt(path) from None
    return memory


def _damaged_pages(connection: apsw.Connection) -> list[str]:
    problems = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(10)")]
    return [] if problems == ["ok"] else problems


def _value(connection: apsw.Connection, sql: str) -> str:
    """The single value of a result."""
    row = connection.execute(sql).fetchone()
    if row is None:
        raise apsw.CorruptError("no row")
    return str(row[0])
