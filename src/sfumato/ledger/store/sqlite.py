# SPDX-License-Identifier: Apache-2.0
"""SQLite through apsw: WAL, synchronous=FULL, one exclusive connection.

apsw brings its own SQLite; the one of the standard library may have the WAL-reset bug
(3.7.0 to 3.51.2).
"""

import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar, cast

import apsw

from sfumato.errors import LedgerBusy, LedgerCorrupt, LedgerError, LedgerReadOnly, LedgerTooNew, LedgerUnavailable
from sfumato.ledger.journal import Entry
from sfumato.ledger.store.base import FORFEITED, AccountRow, AnswerRow, ChargeRow

SCHEMA_VERSION = 1
_APPLICATION = 0x5F0A70  # "sfumato", so that another program's database is told apart
_SCHEMA = """
CREATE TABLE journal (seq INTEGER PRIMARY KEY, at TEXT NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL,
    previous TEXT NOT NULL, hash TEXT NOT NULL) STRICT;
CREATE TABLE account (dataset TEXT PRIMARY KEY, contract TEXT NOT NULL, gates TEXT NOT NULL, spent TEXT NOT NULL) STRICT;
CREATE TABLE charge (id TEXT PRIMARY KEY, dataset TEXT NOT NULL REFERENCES account, analyst TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('reserved', 'executing', 'committed', 'forfeited', 'voided')),
    question TEXT NOT NULL, statement TEXT NOT NULL, cost TEXT NOT NULL, event TEXT NOT NULL,
    reason TEXT NOT NULL, acknowledged INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE INDEX charge_state ON charge (state);
CREATE TABLE answer (question TEXT PRIMARY KEY, statement TEXT NOT NULL, charge TEXT NOT NULL REFERENCES charge,
    body BLOB NOT NULL) STRICT;
CREATE INDEX answer_statement ON answer (statement);
PRAGMA user_version = 1;
"""
_CHARGE = "id, dataset, analyst, state, question, statement, cost, event, reason, acknowledged"

# Connections that a fork may not close.
_ABANDONED: list[apsw.Connection] = []

Cell: TypeAlias = int | str | bytes
P = ParamSpec("P")
T = TypeVar("T")


def _typed(method: Callable[Concatenate["SQLite", P], T]) -> Callable[Concatenate["SQLite", P], T]:
    """SQLite's errors as ours."""

    @wraps(method)
    def call(self: "SQLite", *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(self, *args, **kwargs)
        except apsw.Error as error:
            raise _translate(error, self.path) from None

    return cast(Callable[Concatenate["SQLite", P], T], call)


class SQLite:
    """A ledger in one file, held by one process at a time; mode 0600.

    Raises:
        LedgerBusy, LedgerCorrupt, LedgerReadOnly, LedgerTooNew, LedgerUnavailable.
    """

    def __init__(self, path: str | Path, *, create: bool = True) -> None:
        self.path = _place(path)
        self._process = os.getpid()
        if not create and not Path(self.path).is_file():
            raise LedgerUnavailable(f"No ledger at {self.path!r}.", remedy="Check the path.")
        self._locks = [_exclusive(f"{self.path}.lock", self.path)]
        try:
            if create:
                _create(self.path)
            # the file itself too: a hard link to it has another name and the same lock
            self._locks.append(_exclusive(self.path, self.path))
            self._connection = self._open()
        except BaseException:
            self._unlock()
            raise
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    @_typed
    def _open(self) -> apsw.Connection:
        return apsw.Connection(self.path, flags=apsw.SQLITE_OPEN_READWRITE)

    @_typed
    def _prepare(self) -> None:
        self._run("PRAGMA locking_mode = EXCLUSIVE")
        version, application = self._number("PRAGMA user_version"), self._number("PRAGMA application_id")
        if application != _APPLICATION:
            raise _corrupt(self.path)
        if version > SCHEMA_VERSION:
            raise LedgerTooNew(
                f"The ledger {self.path!r} has format {version}; this version reads up to {SCHEMA_VERSION}.",
                remedy="Use the newer sfumato that wrote it. Nothing was changed.",
            )
        self._run("PRAGMA journal_mode = WAL")
        self._run("PRAGMA synchronous = FULL")
        self._run("PRAGMA foreign_keys = ON")
        with self._transaction():
            pass  # takes the lock for good, and finds out whether the file can be written

    def transaction(self) -> AbstractContextManager[None]:
        """All or nothing; on disk when it ends."""
        return self._transaction()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            connection = self._here()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                connection.execute("COMMIT")
            except BaseException:
                # a full disk has rolled it back already
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        except apsw.Error as error:
            raise _translate(error, self.path) from None

    @_typed
    def last_entry(self) -> Entry | None:
        row = self._one("SELECT * FROM journal ORDER BY seq DESC LIMIT 1")
        return Entry(*row) if row else None

    @_typed
    def append(self, entry: Entry) -> None:
        values = (entry.seq, entry.at, entry.kind, entry.body, entry.previous, entry.hash)
        self._run("INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?)", values)

    def entries(self) -> Iterator[Entry]:
        return (Entry(*row) for row in self._all("SELECT * FROM journal ORDER BY seq"))

    @_typed
    def account(self, dataset: str) -> AccountRow | None:
        row = self._one("SELECT dataset, contract, gates, spent FROM account WHERE dataset = ?", (dataset,))
        return AccountRow(*row) if row else None

    def accounts(self) -> list[AccountRow]:
        return [
            AccountRow(*row)
            for row in self._all("SELECT dataset, contract, gates, spent FROM account ORDER BY dataset")
        ]

    @_typed
    def put_account(self, row: AccountRow) -> None:
        self._run(
            "INSERT INTO account VALUES (?, ?, ?, ?) ON CONFLICT (dataset) DO UPDATE SET spent = excluded.spent",
            (row.dataset, row.contract, row.gates, row.spent),
        )

    @_typed
    def charge(self, charge_id: str) -> ChargeRow | None:
        row = self._one(f"SELECT {_CHARGE} FROM charge WHERE id = ?", (charge_id,))
        return ChargeRow(*row) if row else None

    def charges(self, *states: str) -> Iterator[ChargeRow]:
        where = f"WHERE state IN ({', '.join('?' * len(states))})" if states else ""
        return (ChargeRow(*row) for row in self._all(f"SELECT {_CHARGE} FROM charge {where} ORDER BY rowid", states))

    @_typed
    def put_charge(self, row: ChargeRow) -> None:
        values = (
            row.id,
            row.dataset,
            row.analyst,
            row.state,
            row.question,
            row.statement,
            row.cost,
            row.event,
            row.reason,
            row.acknowledged,
        )
        self._run(
            f"INSERT INTO charge ({_CHARGE}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (id) DO UPDATE SET state = excluded.state, reason = excluded.reason",
            values,
        )

    @_typed
    def failures(self, dataset: str, analyst: str) -> int:
        return self._number(
            "SELECT count(*) FROM charge WHERE dataset = ? AND analyst = ? AND state = ? AND NOT acknowledged "
            "AND reason IN ('engine', 'crash')",
            (dataset, analyst, FORFEITED),
        )

    @_typed
    def acknowledge(self, dataset: str) -> int:
        self._run(
            "UPDATE charge SET acknowledged = 1 WHERE dataset = ? AND state = ? AND NOT acknowledged",
            (dataset, FORFEITED),
        )
        return int(self._connection.changes())

    @_typed
    def answer(self, question: str) -> bytes | None:
        row = self._one("SELECT body FROM answer WHERE question = ?", (question,))
        return bytes(row[0]) if row else None

    @_typed
    def first_answer(self, statement: str) -> bytes | None:
        row = self._one("SELECT body FROM answer WHERE statement = ? ORDER BY rowid LIMIT 1", (statement,))
        return bytes(row[0]) if row else None

    def answers(self) -> Iterator[AnswerRow]:
        return (
            AnswerRow(row[0], row[1], row[2], bytes(row[3]))
            for row in self._all("SELECT charge, question, statement, body FROM answer ORDER BY rowid")
        )

    @_typed
    def put_answer(self, row: ChargeRow, body: bytes) -> None:
        self._run("INSERT INTO answer VALUES (?, ?, ?, ?)", (row.question, row.statement, row.id, body))

    def damage(self) -> list[str]:
        found = [str(row[0]) for row in self._all("PRAGMA integrity_check(10)")]
        return [] if found == ["ok"] else found

    @_typed
    def checkpoint(self) -> None:
        self._run("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        if os.getpid() == self._process:
            self._connection.close()
        else:
            # SQLite would take the owner's files for its own and remove them
            _ABANDONED.append(self._connection)
        self._unlock()

    def _unlock(self) -> None:
        """Lets go of the locks, after the connection; a fork only of its copies of them."""
        while self._locks:
            descriptor = self._locks.pop()
            if os.getpid() == self._process:
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)

    def _here(self) -> apsw.Connection:
        """The connection, in the process that opened it: a fork has no ledger."""
        if os.getpid() != self._process:
            raise LedgerBusy(
                f"The ledger {self.path!r} belongs to the process that opened it, and this is a fork of it.",
                remedy="Open a session in one process only, after the fork.",
            )
        return self._connection

    def _run(self, sql: str, values: tuple[Cell, ...] = ()) -> None:
        self._here().execute(sql, values)

    def _one(self, sql: str, values: tuple[Cell, ...] = ()) -> tuple[Any, ...] | None:
        return self._here().execute(sql, values).fetchone()

    def _number(self, sql: str, values: tuple[Cell, ...] = ()) -> int:
        row = self._one(sql, values)
        return int(str(row[0])) if row else 0

    def _all(self, sql: str, values: tuple[Cell, ...] = ()) -> Iterator[tuple[Any, ...]]:
        try:
            yield from self._here().execute(sql, values)
        except apsw.Error as error:
            raise _translate(error, self.path) from None


def _translate(error: apsw.Error, path: str) -> LedgerError:
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return _busy(path)
        case apsw.ConnectionClosedError():
            return LedgerUnavailable("The session is closed.", remedy="Open another with sf.connect or sf.load.")
        case apsw.ReadOnlyError() | apsw.PermissionsError() | apsw.AuthError():
            return _read_only(path)
        case apsw.CantOpenError() | apsw.FullError() | apsw.IOError():
            return LedgerUnavailable(
                f"The ledger {path!r} cannot be written ({type(error).__name__}).", remedy="Check the disk."
            )
        case _:
            return _corrupt(path)


def _place(path: object) -> str:
    """The one true path of a ledger, whatever links lead to it."""
    if not isinstance(path, str | Path) or not str(path) or "\0" in str(path) or Path(path).is_dir():
        raise LedgerUnavailable(f"No ledger can be kept at {path!r}.", allowed="the path of a file")
    return os.path.realpath(path)


def _exclusive(name: str, path: str) -> int:
    """Holds a file for one opening; the descriptor that holds it.

    SQLite's own POSIX locks are not enough: a process loses them when anything in it opens
    and closes the file, a backup for instance. flock belongs to this descriptor alone.
    """
    try:
        descriptor = os.open(name, os.O_RDWR | (os.O_CREAT if name != path else 0), 0o600)
    except OSError as error:
        raise _unopenable(path, error) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise _busy(path) from None
    return descriptor


def _create(path: str) -> None:
    """A new ledger, whole before it has its name; what is left of an old one is no new one."""
    if Path(path).exists() or Path(f"{path}-wal").exists():
        if not Path(path).is_file() or Path(path).stat().st_size == 0:
            raise _corrupt(path)
        return
    fresh = ""
    try:
        descriptor, fresh = tempfile.mkstemp(suffix=".new", prefix=f"{Path(path).name}.", dir=Path(path).parent)
        os.close(descriptor)
        connection = apsw.Connection(fresh, flags=apsw.SQLITE_OPEN_READWRITE)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"BEGIN; {_SCHEMA} PRAGMA application_id = {_APPLICATION}; COMMIT")
        connection.close()
        Path(fresh).replace(path)
    except OSError as error:
        raise _unopenable(path, error) from None
    except apsw.Error as error:
        Path(fresh).unlink(missing_ok=True)
        raise _translate(error, path) from None


def _busy(path: str) -> LedgerBusy:
    return LedgerBusy(
        f"The ledger {path!r} is in use by another session or process.",
        remedy="Close it there first: one process at a time holds a ledger file.",
    )


def _unopenable(path: str, error: OSError) -> LedgerError:
    if isinstance(error, PermissionError) or error.errno == 30:  # EROFS
        return _read_only(path)
    return LedgerUnavailable(f"No ledger can be kept at {path!r} ({error.strerror}).", remedy="Check the folder.")


def _read_only(path: str) -> LedgerReadOnly:
    return LedgerReadOnly(
        f"The ledger {path!r} cannot be written, so nothing can be charged.",
        remedy="Give this user write access to it.",
    )


def _corrupt(path: str) -> LedgerCorrupt:
    return LedgerCorrupt(
        f"The file {path!r} is not a ledger, or is damaged.",
        remedy="Restore the newest backup; do not start a new ledger over the same data.",
    )
