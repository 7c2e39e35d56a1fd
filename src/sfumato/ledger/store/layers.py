# SPDX-License-Identifier: Apache-2.0
"""Rows in memory, in three layers: as of the last commit, of the batch, of the unit under way."""

from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Layers(Generic[T]):
    """Rows by id. An upper layer hides the lower ones; None hides a row that is gone.

    ``known`` alone may be read by other threads.

    >>> rows = Layers[str]()
    >>> rows.put("a", "one"); rows.keep_unit(); rows.put("a", None)
    >>> rows.get("a"), list(rows.values())
    (None, [])
    >>> rows.drop_unit(); rows.get("a")
    'one'
    """

    def __init__(self) -> None:
        self.known: dict[str, T] = {}
        self._batch: dict[str, T | None] = {}
        self._unit: dict[str, T | None] = {}

    def __contains__(self, key: str) -> bool:
        """Whether some layer speaks of it, even if to say that it is gone."""
        return key in self._unit or key in self._batch or key in self.known

    def get(self, key: str) -> T | None:
        """The row as the unit sees it."""
        if key in self._unit:
            return self._unit[key]
        if key in self._batch:
            return self._batch[key]
        return self.known.get(key)

    def put(self, key: str, row: T | None) -> None:
        """Changes a row for the unit."""
        self._unit[key] = row

    def values(self) -> Iterator[T]:
        """All rows as the unit sees them, in the order in which they came."""
        return (row for row in (self.known | self._batch | self._unit).values() if row is not None)

    def changed(self) -> list[T]:
        """The rows that the batch and the unit have changed."""
        return [row for row in (self._batch | self._unit).values() if row is not None]

    def keep_unit(self) -> None:
        """The unit ended well: the batch has its rows."""
        for key, row in self._unit.items():
            if row is None and key not in self.known:
                self._batch.pop(key, None)  # it came and went within the batch
            else:
                self._batch[key] = row
        self._unit = {}

    def drop_unit(self) -> None:
        """The unit failed."""
        self._unit = {}

    def commit(self) -> None:
        """The batch is on disk: its rows are the known ones."""
        for key, row in self._batch.items():
            if row is None:
                self.known.pop(key, None)
            else:
                self.known[key] = row
        self._batch = {}

    def undo(self) -> None:
        """Neither the batch nor the unit happened."""
        self._batch = {}
        self._unit = {}
