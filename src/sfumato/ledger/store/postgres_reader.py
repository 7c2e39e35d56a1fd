# SPDX-License-Identifier: Apache-2.0
"""Opens a ledger on a PostgreSQL server for reading; a role with SELECT is enough.

A standby can be read too. What is read may not be flushed yet and so be lost with the server; a
caller that charges never sees such a row.
"""

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import count
from typing import Any, NoReturn, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict

from sfumato.errors import LedgerBusy, LedgerMissing, LedgerReadOnly
from sfumato.ledger.store.base import AccountRow, Rows
from sfumato.ledger.store.bodies import Packed
from sfumato.ledger.store.format import FORMAT, too_new
from sfumato.ledger.store.postgres import missing_guards, size_of
from sfumato.ledger.store.postgres_errors import corrupt, place_of, typed
from sfumato.ledger.store.postgres_rows import CHUNKS, Connection, placed
from sfumato.ledger.store.postgres_schema import PATH, SCHEMA, has_tables
from sfumato.ledger.store.rows import Cell, SqlRows

T = TypeVar("T")

_PAGE = 1000


class PostgresReader:
    """A read-only ledger in the schema ``sfumato`` of a PostgreSQL database, over one connection.

    Guarantees:
        a role that may only select is enough

    Raises:
        LedgerBusy, LedgerCorrupt, LedgerMissing, LedgerReadOnly, LedgerTooNew, LedgerUnavailable.
    """

    exclusive = False
    read_only = True

    def __init__(self, url: str) -> None:
        self.place = place_of(url)
        self._process = os.getpid()
        self._turn = threading.Lock()
        settings: dict[str, Any] = {"application_name": "sfumato", "connect_timeout": 10}
        settings |= conninfo_to_dict(url)
        with typed(self.place):
            self._connection: Connection = psycopg.connect(
                **settings,
                autocommit=True,
                cursor_factory=psycopg.RawCursor,
                prepare_threshold=None,
            )
        try:
            self.identity = self._prepared()
        except BaseException:
            self._connection.close()
            raise

    def write(self, transaction: Callable[[Rows], T]) -> T:
        raise self._opened_to_read()

    def pack(self, body: bytes, size: int) -> Packed:
        raise self._opened_to_read()

    def _opened_to_read(self) -> LedgerReadOnly:
        return LedgerReadOnly(
            f"The ledger {self.place} was opened to be read.",
            remedy="Open it without read_only=True.",
        )

    def read(self, transaction: Callable[[Rows], T]) -> T:
        return self._apart(lambda: transaction(ReadRows(self._connection)))

    def peek(self, account_id: str) -> AccountRow | None:
        return self.read(lambda rows: rows.account(account_id))

    def remember(self, listener: Callable[[int, str], None]) -> None:
        """Does nothing; a reader adds no entries."""

    def damage(self, *, pages: bool = True) -> list[str]:
        return self._apart(lambda: missing_guards(self._connection))

    def size(self) -> int:
        return self._apart(lambda: size_of(self._connection))

    def checkpoint(self) -> None:
        """Does nothing."""

    def close(self) -> None:
        if os.getpid() == self._process:
            self._connection.close()

    def _apart(self, work: Callable[[], T]) -> T:
        """Runs work over one state of the database."""
        if os.getpid() != self._process:
            raise LedgerBusy(
                f"The ledger {self.place} was opened by another process, and this is a fork of it.",
                remedy="Open it in each process, after the fork.",
            )
        with self._turn, typed(self.place):
            try:
                self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                self._connection.execute("SELECT set_config('search_path', $1, true)", (PATH,))
                return work()
            finally:
                with suppress(psycopg.Error):
                    self._connection.execute("ROLLBACK")

    def _prepared(self) -> str:
        """The ledger's identity, if its format is the current one."""

        def look() -> dict[str, str]:
            if not has_tables(self._connection):
                raise LedgerMissing(
                    f"No ledger in {self.place}.",
                    remedy="Check the address; the first question makes one.",
                )
            return dict(
                self._connection.execute(f"SELECT name, value FROM {SCHEMA}.meta").fetchall()
            )

        about = self._apart(look)
        try:
            version, identity = int(about["version"]), about["identity"]
        except (KeyError, ValueError):
            raise corrupt(self.place) from None
        if version > FORMAT:
            raise too_new(self.place, version)
        if version < FORMAT:
            raise LedgerReadOnly(
                f"The ledger {self.place} has the older format {version}, and was opened to be "
                "read.",
                remedy="The owner runs: sfumato ledger migrate",
            )
        return identity


class ReadRows(SqlRows):
    """``Rows`` in a read-only transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._streams = count()

    def now(self) -> int:
        return time.time_ns() // 10**6

    def lock(self, ids: Iterable[str], ahead: Callable[[], object] | None = None) -> NoReturn:
        raise LedgerReadOnly("The ledger was opened to be read.")

    def _run(self, sql: str, values: tuple[Cell, ...] = ()) -> None:
        raise LedgerReadOnly("The ledger was opened to be read.")

    def keep(self, name: str, body: bytes) -> None:
        raise LedgerReadOnly("The ledger was opened to be read.")

    def _kept(self, name: str, size: int) -> bytes:
        return b"".join(bytes(row[0]) for row in self._stream(CHUNKS, (name,)))

    def _all(self, sql: str, values: tuple[Cell, ...] = ()) -> list[tuple[Any, ...]]:
        return self._connection.execute(placed(sql), values).fetchall()

    def _stream(self, sql: str, values: tuple[Cell, ...] = ()) -> Iterator[tuple[Any, ...]]:
        name = f"stream{next(self._streams)}"
        self._connection.execute(placed(f"DECLARE {name} NO SCROLL CURSOR FOR {sql}"), values)
        while page := self._connection.execute(f"FETCH {_PAGE} FROM {name}").fetchall():
            yield from page
