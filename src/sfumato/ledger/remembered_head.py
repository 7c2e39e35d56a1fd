# SPDX-License-Identifier: Apache-2.0
"""Remembers the last entries of each ledger in a folder of the user who charges it.

The head beside a ledger file (``signed_heads``) is restored with the ledger's folder, and all that
a server stores is restored with its disk. This head is kept beside the pins, so that a ledger that
is older as a whole is refused on the machine and account that charged it. It holds numbers and a
hash: no path, name, statement or time.

It is written after the entry is on disk, without a flush. After a power failure it may be older
than the ledger, never newer. There are two slots with checksums, written in turn: a torn one counts
as absent. What cannot be read or written is logged and locks no ledger.
"""

import hashlib
import logging
import os
import threading
import weakref
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from sfumato.ledger.store.base import Rows

_OWNER = logging.getLogger("sfumato.owner")
_TITLE = "sfumato-remembered-head 1"
_DIGITS = 20
# So many ledgers are remembered; those that were charged longest ago are forgotten.
_MOST = 1000


def _checksum(line: str) -> str:
    return hashlib.sha256(line.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class LastEntry:
    """The last entry of a ledger at some time: the entry's number in its chain, and its hash.

    Of two remembered entries, that of the larger ``order`` was remembered later. An entry contains
    the hash of the one before it, and a ledger is a sequence of states, so a ledger that has this
    entry has all that it had then.
    """

    order: int
    seq: int
    hash: str

    def to_bytes(self) -> bytes:
        """Returns the bytes of a slot of the file, of constant length."""
        line = f"{_TITLE} {self.order:0{_DIGITS}d} {self.seq:0{_DIGITS}d} {self.hash}"
        return f"{line} {_checksum(line)}\n".encode()

    @classmethod
    def from_bytes(cls, slot: bytes) -> Self | None:
        """Returns the entry in a slot of the file; None if the slot was not written completely."""
        with suppress(ValueError):
            line, _, checksum = slot.decode().removesuffix("\n").rpartition(" ")
            if checksum == _checksum(line):
                _, _, order, seq, digest = line.split(" ")
                return cls(int(order), int(seq), digest)
        return None

    def is_in(self, rows: Rows) -> bool:
        """Whether a ledger's rows have this entry."""
        entries = (rows.entry(chain, self.seq) for chain in rows.chains())
        return any(entry is not None and entry.hash == self.hash for entry in entries)


_LENGTH = len(LastEntry(0, 0, "0" * 64).to_bytes())


class RememberedHead:
    """A file of this user with the last journal entries seen of a ledger, to detect a rollback.

    The file is found by the ledger's identity. ``shared``: several processes may charge the ledger
    at once, as on a server, and write the same slots. If two do so at the same moment, one of the
    entries may be lost, never made up. Both slots are compared, since the entry that was written
    last need not be the one that was stored last.

    Guarantees:
        a ledger that lacks the remembered entry is noticed
        a remembered head names nobody and no place
        a torn or unreadable head is absent
        a folder that cannot be written changes nothing
        after an accepted loss every copy without its freeze is refused
    """

    def __init__(self, identity: str, *, shared: bool = False) -> None:
        # hashed, since an identity is read from a file that somebody may have edited
        name = hashlib.sha256(identity.encode()).hexdigest()
        self.path = state_folder() / "ledger_heads" / name
        self._shared = shared
        self._turn = threading.Lock()
        self._descriptor = -1
        self._slot = 0
        self._order = 0
        self._is_kept = True

    def entries(self) -> list[LastEntry]:
        """The remembered journal entries (number and hash), the newest first."""
        slots = self._slots()
        entries = [entry for entry in slots if entry is not None]
        if slots and not entries:
            _OWNER.warning("The remembered head %s cannot be read: it is ignored.", self.path)
        return sorted(entries, key=lambda entry: entry.order, reverse=True)

    def missing_from(self, rows: Rows) -> str:
        """Returns a description of the remembered entries that a ledger's rows lack; "" if none."""
        for entry in self.entries():
            if not entry.is_in(rows):
                return (
                    f"entry {entry.seq}, which this user charged on this machine, is not in it: it "
                    "is an older copy, or a copy of it was charged"
                )
        return ""

    def note(self, seq: int, digest: str) -> None:
        """Remembers a journal entry that is on disk, by its number and its hash."""
        with self._turn:
            if not self._is_kept:
                return
            try:
                if self._descriptor < 0:
                    self._open()
                if self._shared:
                    self._find_place()
                last = LastEntry(self._order, seq, digest)
                os.pwrite(self._descriptor, last.to_bytes(), self._slot * _LENGTH)
                self._slot = 1 - self._slot
                self._order += 1
            except OSError as error:
                self._is_kept = False
                _OWNER.info("The head %s is not remembered (%s).", self.path, error.strerror)

    def accept(self, rows: Rows) -> None:
        """Forgets all entries but the freeze by which the owner accepted a loss, which is on disk.

        Any other copy of the ledger lacks this entry, and stays refused. The file is not deleted,
        since other processes may have it open for writing.
        """
        ends = [end for chain in rows.chains() if (end := rows.last_entry(chain))]
        if not ends:
            with suppress(OSError):
                os.truncate(self.path, 0)
        # both slots: neither has what was lost, and at no moment are both empty
        for end in ends[-1:] * 2:
            self.note(end.seq, end.hash)

    def _slots(self) -> list[LastEntry | None]:
        """The entries of the slots that were written; None for one that is torn."""
        try:
            content = self.path.read_bytes()
        except OSError:
            return []
        parts = [content[:_LENGTH], content[_LENGTH:]]
        return [LastEntry.from_bytes(part) for part in parts if part]

    def _open(self) -> None:
        """Opens the file, and creates it and its folder if necessary.

        Raises:
            OSError: there is no folder for it.
        """
        folder = self.path.parent
        if not folder.is_dir():
            # a home that does not exist is not made
            state_folder().parent.parent.parent.stat()
            folder.mkdir(mode=0o700, parents=True)
        if not self.path.exists():
            _make_room(folder)
        self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600)
        weakref.finalize(self, os.close, self._descriptor)
        self._find_place()

    def _find_place(self) -> None:
        """Finds which slot is written next, the older one, and its order."""
        slots = self._slots()
        newest = max(slots, key=lambda entry: entry.order if entry else -1, default=None)
        self._slot = 1 - slots.index(newest) if newest else 0
        self._order = newest.order + 1 if newest else 1


def state_folder() -> Path:
    """Returns the folder of a user's pins and remembered heads.

    It is in XDG_STATE_HOME, by default in ~/.local/state. For a user without a home it is a path
    that cannot exist.
    """
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    try:
        return Path(state).expanduser().absolute() / "sfumato"
    except RuntimeError:
        # this user has no home
        return Path(os.devnull) / "sfumato"


def _make_room(folder: Path) -> None:
    """Forgets the ledgers that were charged longest ago, if too many are remembered."""
    heads = sorted(folder.iterdir(), key=lambda head: head.stat().st_mtime, reverse=True)
    for head in heads[_MOST - 1 :]:
        head.unlink(missing_ok=True)
