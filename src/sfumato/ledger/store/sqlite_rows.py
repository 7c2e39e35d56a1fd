# SPDX-License-Identifier: Apache-2.0
"""The rows of a ledger in SQLite, for the one thread that reads and writes them.

What every question asks for is in memory: the accounts, the charges that are under way, the
failures that nobody has acknowledged. What a unit writes waits until it ends, or until it
reads the tables: most units that are refused have then written nothing.
"""

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import apsw

from sfumato.ledger.store.base import EXECUTING, FORFEITED, RESERVED, AccountRow, ChargeRow, Counts
from sfumato.ledger.store.layers import Layers
from sfumato.ledger.store.rows import CHANGEABLE, PUT_ACCOUNT, Cell, SqlRows, account_cells

_OPEN = (RESERVED, EXECUTING)


class SQLiteRows(SqlRows):
    """``Rows`` over one connection. ``torn``: part of the unit under way is in the tables already."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.held = Layers[AccountRow]()
        self.torn = False
        self._live = Layers[ChargeRow]()
        self._ended: dict[str, ChargeRow] = {}
        self._writes: list[tuple[str, tuple[Cell, ...]]] = []
        self._connection = connection
        self._epoch = time.time_ns() // 10**6 - time.monotonic_ns() // 10**6

    def load(self) -> None:
        """Fills the memory from the tables, through their partial indexes."""
        datasets = [row.id for row in super().accounts() if not row.parent]
        failed = [row for dataset in datasets for row in super(SQLiteRows, self).failures(dataset)]
        for row in (*super().overdue(None, -1), *failed):
            self._live.known[row.id] = row

    def end_unit(self) -> None:
        """The unit ended well: what it wrote goes to the tables."""
        self._send()
        self.held.keep_unit()
        self._live.keep_unit()
        self._ended = {}
        self.torn = False

    def drop_unit(self) -> None:
        """The unit failed before anything of it went to the tables."""
        self._forget()
        self.held.drop_unit()
        self._live.drop_unit()

    def send_accounts(self) -> None:
        """Writes the changed accounts, once a batch however many units moved them."""
        for row in self.held.changed():
            self._connection.execute(PUT_ACCOUNT, account_cells(row))

    def committed(self) -> None:
        """The batch is on disk."""
        self.held.commit()
        self._live.commit()

    def undone(self) -> None:
        """The batch is not on disk: memory is as it was before."""
        self._forget()
        self.held.undo()
        self._live.undo()

    def now(self) -> int:
        # the clock on the wall may be set back while the ledger is open; this one cannot
        return self._epoch + time.monotonic_ns() // 10**6

    def lock(self, ids: Iterable[str]) -> dict[str, AccountRow]:
        found = {each: self.account(each) for each in ids}
        return {each: row for each, row in found.items() if row is not None}

    def account(self, account_id: str) -> AccountRow | None:
        if account_id in self.held:
            return self.held.get(account_id)
        row = super().account(account_id)
        if row is not None:
            self.held.known[account_id] = row
        return row

    def accounts(self) -> Iterator[AccountRow]:
        self._send_early()
        return super().accounts()

    def counts(self) -> Counts:
        self._send_early()
        return super().counts()

    def put_account(self, row: AccountRow) -> None:
        self.held.put(row.id, row)

    def charge(self, charge_id: str) -> ChargeRow | None:
        return self._live.get(charge_id) or self._ended.get(charge_id) or super().charge(charge_id)

    def put_charge(self, row: ChargeRow) -> None:
        lives = row.state in _OPEN or (row.state == FORFEITED and not row.acknowledged)
        known = self._live.get(row.id) or self._ended.get(row.id)
        if known is not None:
            changed = {name: getattr(row, name) for name in CHANGEABLE}
            row = replace(known, **changed)
        self._live.put(row.id, row if lives else None)
        if not lives:
            self._ended[row.id] = row
        super().put_charge(row)

    def under_way(self, question: str) -> ChargeRow | None:
        return next((row for row in self._live.values() if row.question == question and row.state in _OPEN), None)

    def overdue(self, until: int | None, limit: int, dataset: str | None = None) -> list[ChargeRow]:
        found = [
            row
            for row in self._live.values()
            if row.state in _OPEN
            and (until is None or row.lease_until <= until)
            and (dataset is None or row.dataset == dataset)
        ]
        return sorted(found, key=lambda row: (row.lease_until, row.id))[:limit]

    def failures(self, dataset: str) -> list[ChargeRow]:
        found = [row for row in self._live.values() if row.state == FORFEITED and row.dataset == dataset]
        return sorted(found, key=lambda row: (row.chain, row.seq))

    def _forget(self) -> None:
        self._writes = []
        self._ended = {}
        self.torn = False

    def _send_early(self) -> None:
        """Before a scan of the accounts: with their changes the tables are the whole truth."""
        if self.held.changed():
            self.torn = True
            self.send_accounts()

    def _send(self) -> None:
        writes, self._writes = self._writes, []
        for sql, values in writes:
            self.torn = True
            self._connection.execute(sql, values)

    def _run(self, sql: str, values: tuple[Cell, ...] = ()) -> None:
        self._writes.append((sql, values))

    def _all(self, sql: str, values: tuple[Cell, ...] = ()) -> list[tuple[Any, ...]]:
        self._send()
        return self._connection.execute(sql, values).fetchall()

    def _stream(self, sql: str, values: tuple[Cell, ...] = ()) -> Iterator[tuple[Any, ...]]:
        self._send()
        return self._connection.execute(sql, values)
