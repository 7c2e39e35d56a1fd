# SPDX-License-Identifier: Apache-2.0
"""The rows of a ledger in PostgreSQL, within one transaction and through a pipeline.

Writes are queued until the next read or the end of the transaction, and are then sent as one
statement. What will be read under locks is requested together with them: the server runs each read
after it has the locks, with its own snapshot (READ COMMITTED), so an account is locked for one
round trip however much is read. Each batch ends with a Sync, since only after one does the server
time its client out.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import count
from typing import Any, TypeAlias

import psycopg

from sfumato.ledger.journal import Entry
from sfumato.ledger.store.base import AccountRow, PartRow
from sfumato.ledger.store.rows import ACCOUNTS, PUT_ACCOUNT, PUT_PART, Cell, SqlRows

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]
Cursor: TypeAlias = psycopg.Cursor[tuple[Any, ...]]

CLOCK = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
_PAGE = 1000
CHUNKS = "SELECT data FROM chunk WHERE name = ? ORDER BY number"
_PUT_CHUNK = "INSERT INTO chunk (name, number, data) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
# With the number of the table of entries, which stays while an account is locked.
_LOCK = (
    ACCOUNTS.replace(" FROM", ", '/' || 'journal'::regclass::oid::text FROM", 1)
    + " WHERE id = ANY(?) ORDER BY id FOR UPDATE"
)
# In bytes.
_CHUNK = 4 << 20


class PostgresRows(SqlRows):
    """The transaction methods of ``Rows`` on a PostgreSQL connection, inside a begun transaction.

    ``sync`` ends a batch of the pipeline and waits for the replies; ``now`` returns the time of the
    transaction.
    """

    def __init__(
        self, connection: Connection, sync: Callable[[], object], now: Callable[[], int]
    ) -> None:
        self._connection = connection
        self._sync = sync
        self._asking = connection.cursor()
        self._telling = connection.cursor()
        self._moment = now
        self._now = 0
        self._streams = count()
        self._writes: dict[str, tuple[Cell, ...]] = {}
        self._accounts: dict[str, AccountRow] = {}
        self._looks_ahead = False
        self._ahead: dict[tuple[str, tuple[Cell, ...]], Cursor] = {}
        # the end of ``TABLES`` as read under the locks; "" if nothing was locked
        self.tables = ""
        # the ends of chains: as read under the locks, and after this transaction
        self.found: dict[str, tuple[int, str]] = {}
        self.ends: dict[str, tuple[int, str]] = {}

    def now(self) -> int:
        self._now = self._now or self._moment()
        return self._now

    def lock(
        self, ids: Iterable[str], ahead: Callable[[], object] | None = None
    ) -> dict[str, AccountRow]:
        account_ids = sorted(set(ids))
        locked = self._locked(account_ids, ahead)
        missing = [account_id for account_id in account_ids if account_id not in locked]
        if missing:
            for account_id in missing:
                self._all("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", (account_id,))
            locked = self._locked(account_ids)
        return locked

    def put_account(self, row: AccountRow) -> None:
        earlier = self._accounts.get(row.id)
        self._accounts[row.id] = row._replace(parent=earlier.parent) if earlier else row

    def append(self, entry: Entry) -> None:
        self.ends[entry.chain] = (entry.seq, entry.hash)
        super().append(entry)

    def put_parts(self, rows: Sequence[PartRow]) -> None:
        # one statement for all rows, since a pipeline can hold each statement once
        if rows:
            _, _, one = PUT_PART.partition(" VALUES ")
            self._run(
                PUT_PART + f", {one}" * (len(rows) - 1), tuple(cell for row in rows for cell in row)
            )

    def keep(self, name: str, body: bytes) -> None:
        view = memoryview(body)
        for number, start in enumerate(range(0, len(body), _CHUNK)):
            self._run(_PUT_CHUNK, (name, number, bytes(view[start : start + _CHUNK])))

    def _kept(self, name: str, size: int) -> bytes:
        return b"".join(bytes(row[0]) for row in self._all(CHUNKS, (name,)))

    def send(self) -> None:
        """Sends the queued writes as one statement.

        They are to different tables or accounts, so their order does not matter.
        """
        writes = list(self._writes.items())
        writes += [(PUT_ACCOUNT, row) for row in self._accounts.values()]
        self._writes, self._accounts = {}, {}
        if not writes:
            return
        self._ahead = {}
        *others, sql = (sql for sql, _ in writes)
        if others:
            heads = ", ".join(f"write{number} AS ({one})" for number, one in enumerate(others))
            sql = f"WITH {heads} {sql}"
        values = tuple(value for _, values in writes for value in values)
        self._telling.execute(placed(sql), values)

    def _locked(
        self, ids: list[str], ahead: Callable[[], object] | None = None
    ) -> dict[str, AccountRow]:
        self.send()
        self._ahead = {}
        rows = self._asking.execute(placed(_LOCK), (ids,))
        if ahead is not None:
            self._looks_ahead = True
            try:
                ahead()
            finally:
                self._looks_ahead = False
        self._sync()
        accounts: dict[str, AccountRow] = {}
        for *values, self.tables in rows.fetchall():
            accounts[values[0]] = AccountRow._make(values)
        for row in accounts.values():
            if row.seq and row.id not in self.ends:
                self.found.setdefault(row.id, (row.seq, row.head))
        return accounts

    def _run(self, sql: str, values: tuple[Cell, ...] = ()) -> None:
        if sql in self._writes:
            self.send()
        self._writes[sql] = values

    def _all(self, sql: str, values: tuple[Cell, ...] = ()) -> list[tuple[Any, ...]]:
        if self._looks_ahead:
            self._ahead[sql, values] = self._connection.cursor().execute(placed(sql), values)
            return []
        self.send()
        reply = self._ahead.pop((sql, values), None)
        return reply.fetchall() if reply else self._fetched(sql, values)

    def _stream(self, sql: str, values: tuple[Cell, ...] = ()) -> Iterator[tuple[Any, ...]]:
        self.send()
        name = f"stream{next(self._streams)}"
        self._telling.execute(
            placed(f"DECLARE {name} NO SCROLL CURSOR FOR {sql}"), values, prepare=False
        )
        fetch = f"FETCH {_PAGE} FROM {name}"
        while page := self._fetched(fetch, prepare=False):
            yield from page

    def _fetched(
        self, sql: str, values: tuple[Cell, ...] = (), *, prepare: bool | None = None
    ) -> list[tuple[Any, ...]]:
        """Sends a query and waits for the result."""
        asked = self._asking.execute(placed(sql), values, prepare=prepare)
        self._sync()
        return asked.fetchall()


@lru_cache(maxsize=256)
def placed(sql: str) -> str:
    """Returns a SQL statement with each ``?`` replaced by $1, $2, ..., the placeholders of
    PostgreSQL.

    psycopg then need not parse it. A statement has no question mark that is not a placeholder.
    """
    first, *rest = sql.split("?")
    return first + "".join(f"${number}{text}" for number, text in enumerate(rest, start=1))
