# SPDX-License-Identifier: Apache-2.0
"""The rows of a ledger in SQLite, for the one thread that reads and writes them.

Rows that every question needs are cached in memory: the accounts, unfinished charges,
unacknowledged failures, and the writes of the current batch. The tables are written when the batch
ends, many rows per statement, because each statement releases the GIL and lets all other threads
run first.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import nsmallest
from operator import attrgetter
from typing import Any

import apsw

from sfumato.ledger.journal import Entry
from sfumato.ledger.store.base import (
    COUNTED,
    EXECUTING,
    FORFEITED,
    RESERVED,
    SUSPENDED,
    UNENDED,
    AccountRow,
    AnswerRow,
    ChargeRow,
    Counts,
    KeyRow,
)
from sfumato.ledger.store.bodies import BodyFiles
from sfumato.ledger.store.rows import CHANGEABLE, CHARGES, PUT_ACCOUNT, PUT_CHARGE, Cell, SqlRows
from sfumato.ledger.store.staged_rows import Layers

_OPEN = (RESERVED, EXECUTING)
_SUSPENDED = f"{CHARGES} WHERE state = '{SUSPENDED}'"
# A power of two; SQLite takes 32,766 values in a statement.
_ROWS_AT_ONCE = 256
# A larger transaction (an import) writes to the tables before it ends, to limit memory.
_WRITES_KEPT = 8192

_fixed = attrgetter(*(name for name in ChargeRow._fields if name not in CHANGEABLE))

Write = tuple[str, tuple[Cell, ...]]


@dataclass(frozen=True, slots=True)
class Failed:
    """The unacknowledged failures of an analyst that count towards a freeze."""

    rows: tuple[ChargeRow, ...] = ()

    def with_row(self, row: ChargeRow) -> "Failed":
        """Returns the failures with the present state of one charge, or without it if it is none."""
        others = tuple(failure for failure in self.rows if failure.id != row.id)
        ended = row.state == FORFEITED and row.reason in COUNTED and not row.acknowledged
        counts = ended or row.failures > 0
        return Failed((*others, row) if counts else others)

    def is_any(self) -> bool:
        """Whether there is any failure."""
        return bool(self.rows)


class SQLiteRows(SqlRows):
    """The transaction methods of ``Rows`` on a SQLite connection, with a cache, for the writer's
    thread.

    ``torn``: part of the current transaction is in the tables already.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        self.held = Layers[AccountRow]()
        self.torn = False
        self._unproven: set[str] = set()
        self._charges = Layers[ChargeRow]()
        self._failed = Layers[Failed]()
        self._answers = Layers[AnswerRow]()
        self._keys = Layers[KeyRow]()
        self._batch: list[Write] = []
        self._transaction: list[Write] = []
        self._tables = Tables(connection)
        self._entries = 0
        # the number and hash of the last entry of the last commit that appended any
        self.last = (0, "")
        self._epoch = time.time_ns() // 10**6 - time.monotonic_ns() // 10**6

    def load(self) -> None:
        """Fills the cache with the rows that transactions look up; partial indexes find them."""
        datasets = [row for row in self._tables.accounts() if not row.parent]
        self._entries = sum(row.seq for row in datasets)
        failed = [row for dataset in datasets for row in self._tables.failures(dataset.id)]
        for row in [*self._tables.overdue(None, -1), *self._tables.suspended()]:
            self._charges.known[row.id] = row
        for row in failed:
            key = _failed_key(row)
            self._failed.known[key] = self._failed.known.get(key, Failed()).with_row(row)

    @property
    def entries_on_disk(self) -> int:
        """The number of journal entries of all datasets on disk, as of the last commit."""
        return self._entries

    def end_transaction(self) -> None:
        """Adds the writes of a successful transaction to the current batch."""
        self._batch += self._transaction
        self._transaction = []
        self.torn = False
        for layers in self._layers:
            layers.keep_transaction()

    def drop_transaction(self) -> None:
        """Drops a failed transaction, none of whose writes were sent to the tables."""
        self._transaction = []
        for layers in self._layers:
            layers.drop_transaction()

    def end_batch(self) -> None:
        """Writes the batch to the tables; an account that changed several times is written once."""
        self._send()
        self._send_accounts()

    def committed(self) -> None:
        """Marks the batch's rows as the cached state, since the batch is on disk."""
        for row in self.held.changed():
            known = self.held.known.get(row.id)
            new = row.seq - (known.seq if known else 0)
            if new:
                self._entries += new
                self.last = (row.seq, row.head)
        self.held.commit(keep=lambda _: True)
        self._charges.commit(keep=_is_unended)
        self._failed.commit(keep=Failed.is_any)
        self._answers.commit(keep=lambda _: False)
        self._keys.commit(keep=lambda _: False)

    def undone(self) -> None:
        """Restores the cached state from before the batch, since the batch was rolled back."""
        self._batch, self._transaction, self.torn = [], [], False
        for layers in self._layers:
            layers.undo()

    def now(self) -> int:
        # a monotonic clock, since the system time may be set back while the ledger is open
        return self._epoch + time.monotonic_ns() // 10**6

    def lock(
        self, ids: Iterable[str], ahead: Callable[[], object] | None = None
    ) -> dict[str, AccountRow]:
        return {
            account_id: row for account_id in ids if (row := self.account(account_id)) is not None
        }

    def account(self, account_id: str) -> AccountRow | None:
        known = self.held.get(account_id)
        if known is None:
            known = self._tables.account(account_id)
            if known is not None:
                self.held.known[account_id] = known
                self._unproven.add(account_id)
        return known

    def movers(self, ids: Sequence[str]) -> tuple[Sequence[str], list[Entry]]:
        asked = [account_id for account_id in ids if account_id in self._unproven]
        entries = [
            self.entry(ids[0], row.moved)
            for account_id in asked
            if (row := self.account(account_id))
        ]
        if ids[0] in asked:
            entries.append(self.last_entry(ids[0]))
        return asked, [entry for entry in entries if entry is not None]

    def accounts(self) -> Iterator[AccountRow]:
        self._send_early()
        return self._tables.accounts()

    def twins(self, folded: str) -> list[str]:
        new = {row.id for row in self.held.changed() if row.folded == folded}
        return sorted(new.union(self._tables.twins(folded)))

    def counts(self) -> Counts:
        self._send_early()
        return super().counts()

    def put_account(self, row: AccountRow) -> None:
        self.held.put(row.id, row)
        # its row was checked against the journal before this change
        self._unproven.discard(row.id)

    def charge(self, charge_id: str) -> ChargeRow | None:
        return self._charges.get(charge_id) or self._tables.charge(charge_id)

    def put_charge(self, row: ChargeRow) -> None:
        known = self._charges.get(row.id)
        if known is not None and _fixed(known) != _fixed(row):
            row = known._replace(**{name: getattr(row, name) for name in CHANGEABLE})
        self._charges.put(row.id, row)
        key = _failed_key(row)
        failed = self._failed.get(key)
        if failed or row.state == FORFEITED or row.failures:
            self._failed.put(key, (failed or Failed()).with_row(row))
        super().put_charge(row)

    def under_way(self, question: str) -> ChargeRow | None:
        return next(
            (
                row
                for row in self._charges.values()
                if row.question == question and row.state in UNENDED
            ),
            None,
        )

    def overdue(self, until: int | None, limit: int, dataset: str | None = None) -> list[ChargeRow]:
        charges = [
            row
            for row in self._charges.values()
            if row.state in _OPEN
            and (until is None or row.lease_until <= until)
            and (dataset is None or row.dataset == dataset)
        ]
        return nsmallest(limit, charges, key=attrgetter("lease_until", "id"))

    def failures(self, dataset: str) -> list[ChargeRow]:
        # read from the tables: only the owner needs them, and there may be many
        return super().failures(dataset)

    def failed(self, dataset: str, analyst: str) -> list[ChargeRow]:
        failed = self._failed.get(f"{dataset}\n{analyst}")
        return sorted(failed.rows, key=attrgetter("chain", "seq")) if failed else []

    def answer(self, question: str) -> AnswerRow | None:
        return self._answers.get(question) or self._tables.answer(question)

    def put_answer(self, row: AnswerRow) -> None:
        self._answers.put(row.question, row)
        super().put_answer(row)

    def keep(self, name: str, body: bytes) -> None:
        self._tables.keep(name, body)

    def _kept(self, name: str, size: int) -> bytes:
        return self._tables._kept(name, size)

    def key(self, account: str, key: str) -> KeyRow | None:
        return self._keys.get(f"{account}\n{key}") or self._tables.key(account, key)

    def put_key(self, row: KeyRow) -> None:
        self._keys.put(f"{row.account}\n{row.key}", row)
        super().put_key(row)

    @property
    def _layers(self) -> tuple[Layers[Any], ...]:
        return self.held, self._charges, self._failed, self._answers, self._keys

    def _send_early(self) -> None:
        """Writes changed accounts to the tables before a scan of them."""
        if self.held.changed():
            self.torn = True
            self._send_accounts()

    def _send_accounts(self) -> None:
        self._tables.write([(PUT_ACCOUNT, row) for row in self.held.changed()])

    def _send(self) -> None:
        writes, self._batch = self._batch, []
        if self._transaction:
            writes, self._transaction, self.torn = writes + self._transaction, [], True
        self._tables.write(writes)
        self._charges.sent(keep=_is_unended)
        self._failed.sent(keep=Failed.is_any)
        self._answers.sent(keep=lambda _: False)
        self._keys.sent(keep=lambda _: False)

    def _run(self, sql: str, values: tuple[Cell, ...] = ()) -> None:
        self._transaction.append((sql, values))
        if len(self._transaction) >= _WRITES_KEPT:
            self._send()

    def _all(self, sql: str, values: tuple[Cell, ...] = ()) -> list[tuple[Any, ...]]:
        self._send()
        return self._tables._all(sql, values)

    def _stream(self, sql: str, values: tuple[Cell, ...] = ()) -> Iterator[tuple[Any, ...]]:
        self._send()
        return self._tables._stream(sql, values)


class Tables(SqlRows):
    """The transaction methods (``Rows``) on the tables of a SQLite file, without an unwritten
    batch.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        # a copy in memory is of an older format and has no such files
        self.bodies = BodyFiles(connection.filename)

    def suspended(self) -> list[ChargeRow]:
        """Returns the rows of all suspended charges, which are few."""
        return [ChargeRow._make(row) for row in self._all(_SUSPENDED)]

    def keep(self, name: str, body: bytes) -> None:
        self.bodies.keep(name, body)

    def _kept(self, name: str, size: int) -> bytes:
        return self.bodies.kept(name, size)

    def write(self, writes: list[Write]) -> None:
        """Writes many rows; charges before the answers and parts that refer to them."""
        together: dict[str, list[tuple[Cell, ...]]] = {PUT_CHARGE: []}
        for sql, values in writes:
            together.setdefault(sql, []).append(values)
        for sql, rows in together.items():
            start = 0
            while start < len(rows):
                # powers of two, so that SQLite can cache all compiled statements
                count = min(_ROWS_AT_ONCE, 1 << (len(rows) - start).bit_length() - 1)
                some = rows[start : start + count]
                self._connection.execute(
                    _for_many(sql, count), [cell for row in some for cell in row]
                )
                start += count

    def _run(self, sql: str, values: tuple[Cell, ...] = ()) -> None:
        self._connection.execute(sql, values)

    def _all(self, sql: str, values: tuple[Cell, ...] = ()) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, values).fetchall()

    def _stream(self, sql: str, values: tuple[Cell, ...] = ()) -> Iterator[tuple[Any, ...]]:
        return self._connection.execute(sql, values)


@lru_cache(maxsize=64)
def _for_many(sql: str, count: int) -> str:
    """Returns an INSERT of one row as one of ``count`` rows."""
    head, _, tail = sql.partition("VALUES (")
    row, _, rest = tail.partition(")")
    return f"{head}VALUES {', '.join([f'({row})'] * count)}{rest}"


def _is_unended(row: ChargeRow) -> bool:
    """Whether a charge is cached because it is unfinished."""
    return row.state in UNENDED


def _failed_key(row: ChargeRow) -> str:
    return f"{row.dataset}\n{row.analyst}"
