# SPDX-License-Identifier: Apache-2.0
"""A cache of rows in three layers: the last commit, the batch, and the current transaction.

``sqlite_rows`` uses it: a failed transaction, or a batch that is rolled back, drops its layer.
"""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Layers(Generic[T]):
    """A cache of rows by id in three layers: committed, current batch, and current transaction.

    An upper layer hides the lower ones. No row may be falsy.

    Other threads may read only ``known``, the layer of the last commit.

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
        """Returns the row with an id as the current transaction sees it; None if there is none."""
        return self._transaction.get(key) or self._batch.get(key) or self.known.get(key)

    def put(self, key: str, row: T) -> None:
        """Inserts or replaces a row in the current transaction."""
        self._transaction[key] = row

    def values(self) -> Iterator[T]:
        """Returns all rows as the current transaction sees them, in insertion order."""
        return iter((self.known | self._batch | self._transaction).values())

    def changed(self) -> list[T]:
        """Returns the rows changed by the current batch and the current transaction."""
        return list((self._batch | self._transaction).values())

    def keep_transaction(self) -> None:
        """Ends a successful transaction: moves its rows into the batch."""
        if self._transaction:
            self._batch |= self._transaction
            self._transaction = {}

    def drop_transaction(self) -> None:
        """Discards the writes of a failed transaction."""
        self._transaction = {}

    def sent(self, keep: Callable[[T], bool]) -> None:
        """Records that the rows of batch and transaction were written to the tables, not yet
        committed.

        From then on both can only be committed or undone together. Rows for which ``keep`` is false
        are dropped, since they can be read from the tables, unless they hide a committed row.
        """
        both = self._batch | self._transaction
        self._batch = {key: row for key, row in both.items() if keep(row) or key in self.known}
        self._transaction = {}

    def commit(self, keep: Callable[[T], bool]) -> None:
        """Ends the durable batch: its rows for which ``keep`` is true join the committed layer."""
        for key, row in self._batch.items():
            if keep(row):
                self.known[key] = row
            else:
                self.known.pop(key, None)
        self._batch = {}

    def undo(self) -> None:
        """Discards the writes of the batch and of the current transaction."""
        self._batch = {}
        self._transaction = {}
