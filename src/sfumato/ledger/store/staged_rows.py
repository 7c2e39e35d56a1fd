# SPDX-License-Identifier: Apache-2.0
"""Rows in memory in three layers: the last commit, the batch, and the current transaction."""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Layers(Generic[T]):
    """Rows by id, none of them falsy; an upper layer hides the lower ones.

    Other threads may read only ``known``.

    >>> rows = Layers[str]()
    >>> rows.put("a", "one"); rows.keep_transaction(); rows.put("a", "two")
    >>> rows.get("a"), list(rows.values())
    ('two', ['two'])
    >>> rows.drop_transaction(); rows.get("a")
    'one'
    """

    def __init__(self) -> None:
        self.known: dict[str, T] = {}
        self._batch: dict[str, T] = {}
        self._transaction: dict[str, T] = {}

    def get(self, key: str) -> T | None:
        """The row as the current transaction sees it."""
        return self._transaction.get(key) or self._batch.get(key) or self.known.get(key)

    def put(self, key: str, row: T) -> None:
        """Changes a row in the current transaction."""
        self._transaction[key] = row

    def values(self) -> Iterator[T]:
        """All rows as the current transaction sees them, in insertion order."""
        return iter((self.known | self._batch | self._transaction).values())

    def changed(self) -> list[T]:
        """The rows changed by the batch and the current transaction."""
        return list((self._batch | self._transaction).values())

    def keep_transaction(self) -> None:
        """Ends a successful transaction: the batch gets its rows."""
        if self._transaction:
            self._batch |= self._transaction
            self._transaction = {}

    def drop_transaction(self) -> None:
        """Drops a failed transaction."""
        self._transaction = {}

    def sent(self, keep: Callable[[T], bool]) -> None:
        """Records that batch and transaction are in the tables, and can now only end together.

        A row that need not be cached is read from the tables, and kept here only if it shadows a
        committed row.
        """
        both = self._batch | self._transaction
        self._batch = {key: row for key, row in both.items() if keep(row) or key in self.known}
        self._transaction = {}

    def commit(self, keep: Callable[[T], bool]) -> None:
        """Ends the batch, which is on disk: its rows that are worth caching become the known
        ones.
        """
        for key, row in self._batch.items():
            if keep(row):
                self.known[key] = row
            else:
                self.known.pop(key, None)
        self._batch = {}

    def undo(self) -> None:
        """Drops the batch and the transaction."""
        self._batch = {}
        self._transaction = {}
