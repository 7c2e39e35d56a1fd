# SPDX-License-Identifier: Apache-2.0
"""SQLite through apsw: WAL, synchronous=FULL, one exclusive connection, used by one thread.

apsw includes its own SQLite; that of the standard library may have the WAL-reset bug (3.7.0 to
3.51.2). Transactions that callers submit during a flush are committed together (``group_commit``).
"""

import ctypes
import os
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import apsw

from sfumato.errors import LedgerBusy, LedgerError, LedgerUnavailable, shown
from sfumato.ledger.store import sqlite_schema
from sfumato.ledger.store.base import AccountRow, Rows
from sfumato.ledger.store.bodies import BodyFiles, Packed, pack
from sfumato.ledger.store.format import FORMAT, too_new
from sfumato.ledger.store.group_commit import Task, Writer
from sfumato.ledger.store.open_mark import forgotten, incomplete
from sfumato.ledger.store.sqlite_file import (
    busy,
    clear_unfinished,
    corrupt,
    hold,
    is_log,
    let_go,
    make,
    place_of,
    read_only,
    require_one_place,
    size_of,
    unopenable,
    widen,
)
from sfumato.ledger.store.sqlite_opening import Opening
from sfumato.ledger.store.sqlite_rows import SQLiteRows

T = TypeVar("T")


class SQLite:
    """A ledger in one file of mode 0600, held by one process at a time.

    A file that may lack acknowledged transactions is refused (``open_mark``); ``accept_loss`` opens
    it all the same, and ``shortfall`` then has the reason.

    Raises:
        LedgerBusy, LedgerCorrupt, LedgerIncomplete, LedgerReadOnly, LedgerTooNew,
        LedgerUnavailable.
    """

    def __init__(self, path: str | Path, *, create: bool = True, accept_loss: bool = False) -> None:
        self.place = place_of(path)
        self.exclusive, self.read_only = True, False
        self._process = os.getpid()
        self._locks: list[int] = []
        try:
            hold(f"{self.place}.lock", self.place, self._locks, create=create)
            if create:
                make(self.place)
            # locks the file itself too: a hard link has another name and shares this lock
            hold(self.place, self.place, self._locks, create=False)
            require_one_place(self.place)
            clear_unfinished(self.place)
            BodyFiles(self.place).clear_unfinished()
            has_log = is_log(f"{self.place}-wal")
            self._connection = _opened(self.place)
        except BaseException:
            let_go(self._locks)
            raise
        self._batches = _Batches(
            self._connection, Opening(self.place, self._connection, log=has_log)
        )
        try:
            self.identity = self._batches.prepare(accept_loss=accept_loss)
        except BaseException:
            self._connection.close()
            let_go(self._locks)
            raise
        self._writer = Writer(self._batches.run, _Ending(self._batches, self._locks), self)
        _OPEN.add(self)

    def write(self, transaction: Callable[[Rows], T]) -> T:
        """Runs a transaction in the next batch; it is on disk when this returns."""
        self._require_here()
        rows = self._batches.rows
        return self._writer.do(lambda: transaction(rows), writes=True)

    def read(self, transaction: Callable[[Rows], T]) -> T:
        """Runs a read-only transaction between two batches."""
        self._require_here()
        rows = self._batches.rows
        return self._writer.do(lambda: transaction(rows), writes=False)

    def pack(self, body: bytes, size: int) -> Packed:
        """Compresses a body, or writes it to a file, on the caller's thread."""
        self._require_here()
        return pack(body, size, BodyFiles(self.place).keep)

    @property
    def shortfall(self) -> str:
        """The reason why a file opened with ``accept_loss`` may lack transactions; "" if it has
        all.
        """
        return self._batches.shortfall

    def remember(self, listener: Callable[[int, str], None]) -> None:
        """Registers a listener, which is called on the writer's thread."""
        self._batches.listener = listener

    def peek(self, account_id: str) -> AccountRow | None:
        """Returns an account's row from the cache, as of the last batch of transactions."""
        self._require_here()
        known = None if self._writer.closed else self._batches.rows.held.known.get(account_id)
        return known if known is not None else self.read(lambda rows: rows.account(account_id))

    def damage(self, *, pages: bool = True) -> list[str]:
        """Returns descriptions of the damage that SQLite finds in pages, indexes and log."""
        return forgotten(self.shortfall) + (self._apart(self._broken) if pages else [])

    def _broken(self) -> list[str]:
        problems = [str(row[0]) for row in self._connection.execute("PRAGMA integrity_check(10)")]
        return [] if problems == ["ok"] else problems

    def size(self) -> int:
        """The size of the ledger file and its write-ahead log in bytes."""
        return size_of(self.place)

    def checkpoint(self) -> None:
        """Moves the write-ahead log into the file."""
        self._apart(lambda: self._connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchall())

    def close(self) -> None:
        """Ends the thread, the connection and the locks; in a forked child, only its copies of the
        locks.
        """
        if os.getpid() == self._process:
            self._writer.close()
        else:
            self.abandon()

    def abandon(self) -> None:
        """For a forked child: releases its copies without touching the parent's files."""
        if self._locks:
            self._writer.abandon()
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))
            let_go(self._locks, unlock=False)

    def _apart(self, work: Callable[[], T]) -> T:
        self._require_here()
        return self._writer.do(work, writes=False)

    def _require_here(self) -> None:
        """Refuses use in a forked child."""
        if os.getpid() != self._process:
            raise LedgerBusy(
                f"The ledger {shown(self.place)} belongs to the process that opened it, and this "
                "is a fork of it.",
                remedy="Open a session in one process only, after the fork.",
            )


class _Batches:
    """Runs batches on the writer's thread. ``shortfall``: why the file may lack transactions."""

    def __init__(self, connection: apsw.Connection, opening: Opening) -> None:
        self.rows = SQLiteRows(connection)
        self.shortfall = ""
        self._connection = connection
        self._opening = opening
        self._path = opening.path
        self._lost = False
        self.listener: Callable[[int, str], None] | None = None

    def prepare(self, *, accept_loss: bool) -> str:
        """Checks and upgrades the file, and locks it permanently; returns its identity."""
        try:
            return self._prepare(accept_loss=accept_loss)
        except apsw.Error as error:
            raise translated(error, self._path) from None
        except OSError as error:
            raise unopenable(self._path, error) from None

    def _prepare(self, *, accept_loss: bool) -> str:
        run = self._connection.execute
        run("PRAGMA locking_mode = EXCLUSIVE")
        version = self._version()
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = FULL")
        run("PRAGMA cache_size = -65536")
        run(
            "BEGIN IMMEDIATE"
        )  # takes the lock for good, and finds out whether the file can be written
        try:
            if version < FORMAT:
                sqlite_schema.upgrade(self._connection, version)
            self.rows.load()
            self.shortfall = self._opening.shortfall(self.rows.entries_on_disk)
            if self.shortfall and not accept_loss:
                raise incomplete(self._path, self.shortfall)
            mark = self._opening.begin(self.rows.entries_on_disk, self.shortfall)
            run("COMMIT")
            self._opening.begun(mark)
        except BaseException as error:
            self._undo()
            if isinstance(error, ValueError | LookupError | TypeError):
                raise corrupt(self._path) from None
            raise
        run("PRAGMA foreign_keys = ON")
        widen(f"{self._path}-wal")
        return self._text("SELECT value FROM meta WHERE name = 'identity'")

    def _version(self) -> int:
        """The format of the file, which must be a ledger."""
        version, application = (
            self._text("PRAGMA user_version"),
            self._text("PRAGMA application_id"),
        )
        if int(application) != sqlite_schema.APPLICATION:
            raise corrupt(self._path)
        if int(version) > FORMAT:
            raise too_new(repr(self._path), int(version))
        return int(version)

    def end(self) -> None:
        """Marks the file as closed.

        After an I/O error it does not, and leaves the log and the mark.
        """
        well = not self._lost and self._opening.end()
        self._connection.close()
        if well:
            self._opening.ended()

    def _text(self, sql: str) -> str:
        row = self._connection.execute(sql).fetchone()
        if row is None:
            raise corrupt(self._path)
        return str(row[0])

    def run(self, tasks: Sequence[Task]) -> None:
        """Runs reads first, since they need no flush."""
        for task in tasks:
            if not task.writes:
                try:
                    task.succeed(task.work())
                except BaseException as error:
                    task.fail(self._typed(error))
                self.rows.drop_transaction()
        writing = [task for task in tasks if task.writes]
        if writing:
            self._write(writing)

    def _write(self, tasks: Sequence[Task]) -> None:
        """Commits tasks in one transaction with one flush.

        If that fails as a whole, each task is run alone.
        """
        try:
            outcomes = self._together(tasks)
        except BaseException as error:
            self._undo()
            if len(tasks) > 1 and not self._lost:
                for task in tasks:
                    self._write([task])
            else:
                for task in tasks:
                    task.fail(self._typed(error))
            return
        for task, (value, failure) in zip(tasks, outcomes, strict=True):
            if failure is None:
                task.succeed(value)
            else:
                task.fail(failure)

    def _together(self, tasks: Sequence[Task]) -> list[tuple[object, BaseException | None]]:
        """Runs tasks in one transaction.

        Returns the results of those that are on disk, and the errors of those that wrote nothing.
        """
        if self._lost:
            raise LedgerUnavailable(
                f"The ledger {shown(self._path)} could not be flushed to its disk, so nothing "
                "more is charged.",
                remedy="Check the disk, then close and open the ledger again: what was kept is "
                "found there.",
            )
        self._opening.require_in_place()
        before = self.rows.entries_on_disk
        self._connection.execute("BEGIN IMMEDIATE")
        outcomes = [self._transaction(task) for task in tasks]
        self.rows.end_batch()
        self._commit()
        self.rows.committed()
        self._acknowledge()
        if self.listener is not None and self.rows.entries_on_disk != before:
            self.listener(*self.rows.last)
        return outcomes

    def _acknowledge(self) -> None:
        """Writes the number of entries to the mark, before callers get their results."""
        try:
            self._opening.acknowledge(self.rows.entries_on_disk)
        except OSError:
            self._lost = (
                True  # this batch is on disk; no other begins under a mark that stands still
            )

    def _transaction(self, task: Task) -> tuple[object, BaseException | None]:
        try:
            value = task.work()
            self.rows.end_transaction()
        except BaseException as error:
            if self.rows.torn or isinstance(error, apsw.Error):
                raise  # it has to be undone, and only the whole batch can be
            self.rows.drop_transaction()
            return None, error
        return value, None

    def _commit(self) -> None:
        try:
            self._connection.execute("COMMIT")
        except apsw.FullError:
            raise
        except apsw.Error:
            # after a failed fsync the kernel may mark lost pages as clean: only reopening the file
            # shows what was written
            self._lost = True
            raise

    def _undo(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        self.rows.undone()

    def _typed(self, error: BaseException) -> BaseException:
        return translated(error, self._path) if isinstance(error, apsw.Error) else error


class _Ending:
    """Closes the connection, then releases the file: the last step of the writer."""

    def __init__(self, batches: "_Batches", locks: list[int]) -> None:
        self._batches = batches
        self._locks = locks

    def __call__(self) -> None:
        try:
            self._batches.end()
        finally:
            let_go(self._locks)


# All open stores of this process; a fork closes its copies.
_OPEN: "weakref.WeakSet[SQLite]" = weakref.WeakSet()


def _abandon_all() -> None:
    for store in list(_OPEN):
        store.abandon()


os.register_at_fork(after_in_child=_abandon_all)


def _opened(path: str) -> apsw.Connection:
    try:
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
        # the log must stay unchanged until the file is marked as closed
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        return connection
    except apsw.Error as error:
        raise translated(error, path) from None


def translated(error: apsw.Error, path: str) -> LedgerError:
    """Returns the ledger's error for an error of SQLite."""
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return busy(path)
        case apsw.ReadOnlyError() | apsw.PermissionsError() | apsw.AuthError():
            return read_only(path)
        case apsw.CantOpenError() | apsw.FullError() | apsw.IOError() | apsw.NoMemError():
            return LedgerUnavailable(
                f"The ledger {shown(path)} cannot be written ({type(error).__name__}).",
                remedy="Check the disk.",
            )
        case _:
            return corrupt(path)
