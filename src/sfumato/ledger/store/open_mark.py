# SPDX-License-Identifier: Apache-2.0
"""The open mark: detects that a ledger file has lost acknowledged transactions.

While a ledger is open, its newest entries are in the write-ahead log and not yet in the file.
Therefore the file says that it is open (the row ``opening`` of ``meta``, written into the file
itself before the first charge), and ``ledger.db.open`` beside it says which opening that is, the
inode of the file, and the number of acknowledged entries. The next opening compares the three. The
number of entries is written after each commit without a flush: after a power failure it may be too
small, never too large.

A crash between any two of these writes leaves a state that the next opening accepts:

1. the mark, with the state of the file before it (``after``); 2. the row ``open ...``, in the log,
then in the file; 3. the mark without ``after``; charges follow; 4. the row ``closed ...``; 5. no
log, 6. no mark.
"""

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sfumato.errors import LedgerIncomplete

WAY_OUT = (
    "sfumato ledger recover --accept-loss, which freezes the datasets until the owner has decided."
)
WAY_OUT_ON_SERVER = (
    "sfumato ledger accept-server --accept-loss, which freezes the datasets until the owner has "
    "decided."
)
# The state of a file that ``backup`` wrote: only ``restore`` makes a ledger of it.
BACKUP = "backup"
_FORGOTTEN = "it may have forgotten what was spent: "
_IS_BACKUP = "it is a backup, and 'sfumato ledger restore' makes a ledger of it"
_TITLE = "sfumato-open-mark 1"
_DIGITS = 20


@dataclass(frozen=True, slots=True)
class OpenMark:
    """The content of the file ``ledger.db.open``, which marks a ledger file as open.

    ``opening`` is the id of this opening, ``entries`` the number of acknowledged entries. ``after``
    is the state of the ledger file before the opening; None once the file itself has the new state.
    """

    identity: str
    opening: str
    inode: int
    entries: int
    after: str | None = None

    def to_bytes(self) -> bytes:
        """Returns the file's content as bytes of constant length; the number of entries comes
        last.
        """
        about = {
            "ledger": self.identity,
            "opening": self.opening,
            "inode": self.inode,
            "after": self.after,
        }
        return f"{_TITLE}\n{json.dumps(about)}\n{self.entries:0{_DIGITS}d}\n".encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> "OpenMark":
        """Parses the content of the file.

        Raises:
            ValueError, LookupError, TypeError: the bytes are no mark.
        """
        title, about, entries = content.decode().splitlines()
        form = json.loads(about)
        if title != _TITLE or len(entries) != _DIGITS:
            raise ValueError("not an open mark")
        after = form["after"]
        return cls(
            str(form["ledger"]),
            str(form["opening"]),
            int(form["inode"]),
            int(entries),
            None if after is None else str(after),
        )


@dataclass(frozen=True, slots=True)
class Found:
    """The state of a ledger file when it is opened, to compare with its mark (``OpenMark``).

    ``state`` is the row ``opening`` of the file, "" if there is none; ``log`` says whether there is
    a write-ahead log.
    """

    identity: str
    state: str
    inode: int
    entries: int
    log: bool


def mark_path(ledger: str) -> Path:
    """The path of the mark of a ledger file."""
    return Path(f"{ledger}.open")


def read_mark(ledger: str) -> OpenMark | None:
    """Returns the content of ``ledger.db.open`` beside a ledger file; None if there is none.

    Raises:
        ValueError: the file holds no mark.
    """
    try:
        return OpenMark.from_bytes(mark_path(ledger).read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, LookupError, TypeError, RecursionError) as error:
        raise ValueError("no open mark") from error


def shortfall(file: Found, mark: OpenMark | None) -> str:
    """Returns why a ledger file may lack acknowledged transactions; "" if it has all.

    Compares the ``file`` with the ``mark`` beside it.

    Guarantees:
        a file that was open needs its log and its mark
        a backup is refused, whatever lies beside it
        an older file or log than the mark knows of is refused
        a crash at any step of opening and closing is accepted
    """
    if file.state == BACKUP:
        return _IS_BACKUP
    is_open = file.state.startswith("open ")
    if mark is None:
        return "it was open, and its mark (.open) is missing" if is_open else ""
    if mark.identity != file.identity:
        return "the mark (.open) beside it is of another ledger"
    accepted = {opened(mark.opening), closed(mark.opening)}
    if file.state not in accepted | {mark.after}:
        return "it is a copy from before it was last opened"
    if is_open and not file.log:
        return "it was open, and its write-ahead log (-wal) is missing"
    if is_open and mark.inode != file.inode:
        return "it was open, and this is a copy of it"
    if file.entries < mark.entries:
        return f"{mark.entries} entries were acknowledged, and it holds {file.entries}"
    return ""


def opened(opening: str) -> str:
    """Returns the string that marks a ledger file as open; ``opening`` is this opening's id."""
    return f"open {opening}"


def closed(opening: str) -> str:
    """Returns the string that marks a ledger file as closed in order after this opening.

    ``opening`` is the id of the opening that ended.
    """
    return f"closed {opening}"


def forgotten(why: str) -> list[str]:
    """Returns a description of lost entries as a list of at most one problem, for ``Store.damage``.

    ``why`` says what is missing; the list is empty if ``why`` is "".
    """
    return [f"{_FORGOTTEN}{why}"] if why else []


def shortfall_in(problem: str) -> str:
    """Returns the description of lost entries in a problem that ``forgotten`` wrote; "" for others."""
    return problem.partition(_FORGOTTEN)[2]


def incomplete(ledger: str, why: str) -> LedgerIncomplete:
    """Returns the error for a ledger file that may lack spending, with the reason ``why``."""
    if why == _IS_BACKUP:
        return LedgerIncomplete(
            f"The ledger {ledger!r} may have forgotten what was spent: {why}.",
            remedy="Name the place of the ledger in sfumato.toml, and: sfumato ledger restore "
            f"{ledger} --head FILE, with "
            "the newest head that was kept elsewhere.",
        )
    return LedgerIncomplete(
        f"The ledger {ledger!r} may have forgotten what was spent: {why}.",
        remedy="Put the newest files back together: the ledger, and beside it those ending in "
        "'-wal', "
        f"'.open' and '.head'. If they are lost: {WAY_OUT}",
    )


class MarkFile:
    """Reads and writes ``ledger.db.open`` beside an open ledger file, to detect lost transactions."""

    def __init__(self, ledger: str) -> None:
        self._path = mark_path(ledger)
        self._descriptor = -1
        self._offset = 0

    def write(self, mark: OpenMark) -> None:
        """Writes the file ``ledger.db.open`` durably."""
        content = mark.to_bytes()
        fresh = f"{self._path}.new"
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.write(descriptor, content)
            os.fsync(descriptor)
            Path(fresh).replace(self._path)
            sync_folder(self._path)
        except BaseException:
            os.close(descriptor)
            raise
        self._close()
        self._descriptor, self._offset = descriptor, len(content) - _DIGITS - 1

    def acknowledge(self, entries: int) -> None:
        """Writes the number of durable journal entries to the file, without a flush.

        Raises:
            OSError: the disk refuses it.
        """
        os.pwrite(self._descriptor, f"{entries:0{_DIGITS}d}".encode(), self._offset)

    def remove(self) -> None:
        """Removes the file ``ledger.db.open`` of a closed ledger."""
        self._close()
        with suppress(OSError):
            self._path.unlink()

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def sync_folder(path: str | Path) -> None:
    """Syncs a folder, which makes the names of new files in it durable."""
    folder = os.open(Path(path).parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
