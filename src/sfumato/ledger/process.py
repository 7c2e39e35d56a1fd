# SPDX-License-Identifier: Apache-2.0
"""The ledger files that this process has open, each once for all its sessions.

A file belongs to one process, and within it to one ``Ledger``. Another session on the same file
shares it; the last one closes it. Each session opens a server by itself.
"""

import os
import threading
from pathlib import Path

from sfumato.errors import WrongUse, shown
from sfumato.ledger.signed_heads import Key
from sfumato.ledger.spend import Ledger
from sfumato.ledger.waiting import open_when_free, require_free
from sfumato.metadata.server import SERVERS

# The open ledgers by process, device and inode: a fork has its own, and two names of a file share
# one.
_GUARD = threading.Lock()
_OPEN: dict[tuple[int, int, int], tuple[Ledger, int, Key]] = {}


def _after_fork() -> None:
    """Replaces the lock in a child process, where the thread that held it does not exist."""
    global _GUARD
    _GUARD = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def wait_for(place: str | Path, wait: float) -> None:
    """Waits until no other process has a ledger file open; does not lock it.

    Raises:
        LedgerBusy: the file is still open after ``wait`` seconds.
    """
    if isinstance(place, str) and place.startswith(SERVERS):
        return
    with _GUARD:
        is_open = _name(place) in _OPEN
    if not is_open:
        open_when_free(place, wait, lambda: require_free(place))


def borrow(place: str | Path, key: Key = None, *, wait: float = 0) -> Ledger:
    """Returns the ledger at a place, one object for all sessions of this process; creates it if
    needed.

    ``key`` signs its heads (``Ledger.open``); later borrowers may give the same key or none.
    ``wait`` is how many seconds to wait for another process to close the file.

    Raises:
        LedgerError: the ledger cannot be opened, for example because another process, or other code
            of this one, has it open.
        WrongUse: another session of this process has opened it with another key.
    """
    if isinstance(place, str) and place.startswith(SERVERS):
        return Ledger.open(place, key=key)
    return open_when_free(place, wait, lambda: _borrow(place, key))


def _borrow(place: str | Path, key: Key) -> Ledger:
    """``borrow`` of a file that is free or open here."""
    with _GUARD:
        name = _name(place)
        if name in _OPEN:
            ledger, count, open_key = _OPEN[name]
            if key is not None and _named(key) != _named(open_key):
                raise WrongUse(
                    f"ledger_key={shown(key)}: this process has the ledger open with another key.",
                    remedy="Name the same key in every session, or close the others first.",
                )
            _OPEN[name] = ledger, count + 1, open_key
            return ledger
        ledger = Ledger.open(place, key=key)
        name = _name(place)
        if name is not None:
            _OPEN[name] = ledger, 1, key
        return ledger


def give_back(ledger: Ledger) -> None:
    """Ends one session's use of a ledger from ``borrow``; the last such call closes the ledger."""
    with _GUARD:
        name = next((file for file, (other, _, _) in _OPEN.items() if other is ledger), None)
        count = 1 if name is None else _OPEN[name][1]
        if name is not None and count > 1:
            _OPEN[name] = ledger, count - 1, _OPEN[name][2]
            return
        if name is not None:
            del _OPEN[name]
        ledger.close()


def _named(key: Key) -> object:
    """Returns a key in comparable form: all names of one file give the same."""
    return Path(key).absolute() if isinstance(key, str | Path) else key


def _name(place: str | Path) -> tuple[int, int, int] | None:
    try:
        status = Path(place).stat()
    except (OSError, ValueError):
        return None
    return os.getpid(), status.st_dev, status.st_ino
