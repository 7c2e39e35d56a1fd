# SPDX-License-Identifier: Apache-2.0
"""Rows in memory, in three layers: as of the last commit, of the batch, of the unit under way."""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Layers(Generic[T]):
    """Rows by id, none of them falsy; an upper layer hides the lower ones.

    ``known`` alone may be read by other threads.

    >>> rows = Layers[str]()
    >>> rows.put("a", "one"); rows.keep_unit(); rows.put("a", "two")
    >>> rows.get("a"), list(rows.values())
    ('two', ['two'])
    >>> rows.drop_unit(); rows.get("a")
    'one'
    """

    def __init__(self) -> None:
        self.known: dict[str, T] = {}
        self._batch: dict[str, T] = {}
        self._unit: dict[str, T] = {}

    def get(self, key: str) -> T | None:
        """The row as the unit sees it."""
        return self._unit.get(key) or self._batch.get(key) or self.known.get(key)

    def put(self, key: str, row: T) -> None:
        """Changes a row for the unit."""
        self._unit[key] = row

    def values(self) -> Iterator[T]:
        """All rows as the unit sees them, in the order in which they came."""
        return iter((self.known | self._batch | self._unit).values())

    def changed(self) -> list[T]:
        """The rows that the batch and the unit have changed."""
        return list((self._batch | self._unit).values())

    def keep_unit(self) -> None:
        """The unit ended well: the batch has its rows."""
        if self._unit:
            self._batch |= self._unit
            self._unit = {}

    def drop_unit(self) -> None:
        """The unit failed."""
        self._unit = {}

    def sent(self, keep: Callable[[T], bool]) -> None:
        """The tables have the batch and the unit, which can end only together now: a row that is not
        worth keeping is found there, and needs to be here only if it hides a known one."""
        both = self._batch | self._unit
        self._batch = {key: row for key, row in both.items() if keep(row) or key in self.known}
        self._unit = {}

    def commit(self, keep: Callable[[T], bool]) -> None:
        """The batch is on disk: those of its rows that are worth keeping are the known ones."""
        for key, row in self._batch.items():
            if keep(row):
                self.known[key] = row
            else:
                self.known.pop(key, None)
        self._batch = {}

    def undo(self) -> None:
        """Neither the batch nor the unit happened."""
        self._batch = {}
        self._unit = {}
