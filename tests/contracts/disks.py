# SPDX-License-Identifier: Apache-2.0
"""A disk under SQLite that a test watches, and whose writes and syncs it can make fail."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import apsw

WRITE, SYNC = "write", "sync"


class WatchedFile(apsw.VFSFile):
    """A file that asks before it writes or syncs."""

    before: Callable[[str], None]

    def xWrite(self, data: bytes, offset: int) -> None:
        self.before(WRITE)
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        self.before(SYNC)
        super().xSync(flags)


class WatchedDisk(apsw.VFS):
    """The disk of every connection that is opened from now on.

    ``before`` may raise an ``apsw.Error``.
    """

    def __init__(self, before: Callable[[str], None]) -> None:
        self._before = before
        self._real = apsw.vfs_names()[0]
        super().__init__("watched", self._real, makedefault=True)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> WatchedFile:
        opened = WatchedFile(self._real, name, flags)
        opened.before = self._before
        return opened


class Trouble:
    """A fault that a test switches on: the next operations of a kind fail, or only so many of them
    pass.
    """

    def __init__(self) -> None:
        self._error: type[apsw.Error] | None = None
        self._where, self._spared = "", 0
        self.hits = 0

    def begin(self, error: type[apsw.Error], where: str, *, spared: int = 0) -> None:
        """From now on; the first ``spared`` operations still pass."""
        self._error, self._where, self._spared, self.hits = error, where, spared, 0

    def end(self) -> None:
        """The disk is sound again."""
        self._error = None

    def __call__(self, where: str) -> None:
        if self._error is None or where != self._where:
            return
        if self._spared:
            self._spared -= 1
            return
        self.hits += 1
        raise self._error("the disk of this test")


@contextmanager
def troubled() -> Iterator[Trouble]:
    """A disk that fails when it is told to."""
    trouble = Trouble()
    disk = WatchedDisk(trouble)
    try:
        yield trouble
    finally:
        disk.unregister()
