# SPDX-License-Identifier: Apache-2.0
"""The SQLite file of people, tokens, invitations, requests and the trail; mode 0600.

Several processes may have it open: ``sfumato user`` works beside a running service. Budgets are not
in it: they are in the ledger alone.
"""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

import apsw

from sfumato.service.refusals import StateFailed

Row: TypeAlias = tuple[Any, ...]
_BUSY = 10_000
_FORMAT = 1
_SCHEMA = """
CREATE TABLE people (
    name TEXT PRIMARY KEY, folded TEXT NOT NULL UNIQUE, role TEXT NOT NULL,
    password TEXT NOT NULL DEFAULT '', disabled INTEGER NOT NULL DEFAULT 0, since INTEGER NOT NULL
) STRICT;
CREATE TABLE tokens (
    digest TEXT PRIMARY KEY, id TEXT NOT NULL UNIQUE, person TEXT NOT NULL REFERENCES people(name),
    expires INTEGER NOT NULL, read_only INTEGER NOT NULL, since INTEGER NOT NULL
) STRICT;
CREATE INDEX tokens_of ON tokens (person);
CREATE TABLE invitations (
    digest TEXT PRIMARY KEY, person TEXT NOT NULL, expires INTEGER NOT NULL
) STRICT;
CREATE TABLE requests (
    id TEXT PRIMARY KEY, at INTEGER NOT NULL, dataset TEXT NOT NULL, purpose TEXT NOT NULL,
    person TEXT NOT NULL, wanted TEXT NOT NULL, before TEXT NOT NULL, reason TEXT NOT NULL,
    state TEXT NOT NULL, decided_by TEXT NOT NULL DEFAULT '', note TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX requests_of ON requests (person, state);
CREATE TABLE trail (
    seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL, who TEXT NOT NULL,
    about TEXT NOT NULL, hash TEXT NOT NULL
) STRICT;
"""


class State:
    """The service's SQLite file of people, tokens, requests and audit trail; thread-safe.

    Raises:
        StateFailed: it cannot be opened, or was written by a newer version.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     state = State(Path(folder) / "service.db")
    ...     print(state.rows("SELECT COUNT(*) FROM people"))
    ...     state.close()
    [(0,)]
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._is_changing = False
        try:
            # SQLite gives its log the mode of the file
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            path.chmod(0o600)
            self._connection = apsw.Connection(str(path))
            self._connection.set_busy_timeout(_BUSY)
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=FULL")
        except (OSError, apsw.Error) as error:
            raise _failed(error) from None
        with self.changing():
            version = self.rows("PRAGMA user_version")[0][0]
            if version == 0:
                self._connection.execute(_SCHEMA)
                self._connection.execute(f"PRAGMA user_version={_FORMAT}")
            elif version != _FORMAT:
                raise StateFailed("The state was written by a newer version of the service.")

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        """Runs one SQL statement on the state file and returns its rows."""
        with self._lock:
            try:
                # the values are those that SQLite takes
                return list(self._connection.execute(sql, tuple(values)))
            except apsw.Error as error:
                raise _failed(error) from None

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Runs the block as a transaction: durable at its end, or undone if it raises."""
        with self._lock:
            if self._is_changing:
                yield
                return
            self.rows("BEGIN IMMEDIATE")
            self._is_changing = True
            try:
                yield
                self.rows("COMMIT")
            except BaseException:
                # a full disk may have ended it already
                with suppress(apsw.Error):
                    self._connection.execute("ROLLBACK")
                raise
            finally:
                self._is_changing = False

    def close(self) -> None:
        """Closes the state file."""
        with self._lock:
            self._connection.close()


def _failed(error: Exception) -> StateFailed:
    """The error of the service for one of the disk, without its text."""
    return StateFailed(
        f"The file of people and tokens cannot be used ({type(error).__name__}).",
        remedy="The operator looks at the disk.",
    )
