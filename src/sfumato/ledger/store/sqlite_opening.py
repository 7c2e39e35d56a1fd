# SPDX-License-Identifier: Apache-2.0
"""The steps of opening and closing a ledger file in SQLite: checks, and the open mark.

They notice if the file lacks transactions or was replaced while it was open.
"""

import os
from pathlib import Path

import apsw

from sfumato.errors import LedgerUnavailable
from sfumato.ledger.store.base import LOSS
from sfumato.ledger.store.open_mark import (
    Found,
    MarkFile,
    OpenMark,
    closed,
    incomplete,
    opened,
    read_mark,
    shortfall,
)
from sfumato.ledger.store.sqlite_file import require_one_name
from sfumato.noise.entropy import token

_STATE = "SELECT value FROM meta WHERE name = 'opening'"
_PUT = "INSERT OR REPLACE INTO meta VALUES (?, ?)"
_IDENTITY = "SELECT value FROM meta WHERE name = 'identity'"


class Opening:
    """Writes the marks of one opening of a ledger file: the file ``ledger.db.open`` and a row in
    the ledger.

    ``log``: whether a write-ahead log existed before SQLite created one.

    Guarantees:
        a file that was moved or linked takes no charge
    """

    def __init__(self, path: str, connection: apsw.Connection, *, log: bool) -> None:
        self.path = path
        self._connection = connection
        self._log = log
        self._id = token()
        self._mark = MarkFile(path)
        self._inodes: dict[Path, int] = {}

    def shortfall(self, entries: int) -> str:
        """Returns why the ledger file may lack acknowledged transactions; "" if it has all."""
        return shortfall_of(self._connection, self.path, log=self._log, entries=entries)

    def begin(self, entries: int, accepted: str) -> OpenMark:
        """Writes the mark beside the file, then the row in the file, within the opening
        transaction.

        ``accepted`` is a loss that the owner accepted; it is recorded, so that nothing is charged
        before it is in the journal.
        """
        identity, state = _text(self._connection, _IDENTITY), _text(self._connection, _STATE)
        mark = OpenMark(identity, self._id, Path(self.path).stat().st_ino, entries, state)
        self._mark.write(mark)
        self._connection.execute(_PUT, ("opening", opened(self._id)))
        if accepted:
            self._connection.execute(_PUT, (LOSS, accepted))
        return mark

    def begun(self, mark: OpenMark) -> None:
        """Moves the row from the log into the file, after the opening transaction and before any
        charge.
        """
        _, frames, moved = self._connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()[0]
        if frames != moved:
            raise incomplete(self.path, "its log could not be written into it")
        self._mark.write(OpenMark(mark.identity, mark.opening, mark.inode, mark.entries))
        self._inodes = {
            path: path.stat().st_ino for path in (Path(self.path), Path(f"{self.path}-wal"))
        }

    def require_in_place(self) -> None:
        """Refuses a file that is no longer where it was opened.

        Raises:
            LedgerUnavailable: the file or its log was moved, replaced or removed, or has a
                second name.
        """
        for path, inode in self._inodes.items():
            status = _stat(path)
            if status is None or status.st_ino != inode:
                raise LedgerUnavailable(
                    f"{str(path)!r} is not the file that was opened, so nothing more is charged.",
                    remedy="Put the file back where it was, with those beside it. A ledger is "
                    "moved while it is "
                    "closed, or with 'sfumato ledger migrate --to'.",
                )
            require_one_name(str(path), status)

    def acknowledge(self, entries: int) -> None:
        """Writes the number of entries on disk to the mark."""
        self._mark.acknowledge(entries)

    def end(self) -> bool:
        """Marks the file as closed, as the last write.

        Returns whether the mark is on disk and the log is not needed any more.
        """
        if self._is_replaced():
            return False  # SQLite would remove the log of another file
        try:
            self._connection.execute(_PUT, ("opening", closed(self._id)))
        except apsw.Error:
            return False
        self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        return True

    def ended(self) -> None:
        """Removes the file ``ledger.db.open`` after the connection is closed.

        The mark stays if SQLite could not move the log into the file.
        """
        if not Path(f"{self.path}-wal").exists():
            self._mark.remove()

    def _is_replaced(self) -> bool:
        """Whether another file is at the path of this one or of its log."""
        return any(
            (status := _stat(path)) and status.st_ino != inode
            for path, inode in self._inodes.items()
        )


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def shortfall_of(connection: apsw.Connection, path: str, *, log: bool, entries: int) -> str:
    """Returns why a ledger file may lack acknowledged transactions; "" if it has all."""
    identity, state = _text(connection, _IDENTITY), _text(connection, _STATE)
    try:
        mark = read_mark(path)
    except ValueError:
        return "its mark (.open) cannot be read"
    return shortfall(Found(identity, state, Path(path).stat().st_ino, entries, log), mark)


def _text(connection: apsw.Connection, sql: str) -> str:
    row = connection.execute(sql).fetchone()
    return "" if row is None else str(row[0])
