# SPDX-License-Identifier: Apache-2.0
"""Waits for a ledger file that another process has open, and says which process that is."""

import fcntl
import logging
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from sfumato.errors import LedgerBusy, WrongUse, shown
from sfumato.metadata.server import is_address

T = TypeVar("T")

_OWNER = logging.getLogger("sfumato.owner")
# How long sessions and commands wait by default, and between two attempts, in seconds.
WAIT = 30.0
_PAUSE = 0.1
_LOCKS = Path("/proc/locks")


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that has a ledger file open; 0 if unknown. ``since`` is when it opened it."""

    process: int = 0
    since: str = ""

    def __str__(self) -> str:
        process = f"process {self.process}" if self.process else "another process"
        return f"{process}, since {self.since}" if self.since else process


def require_wait(wait: object) -> float:
    """Returns a waiting time in seconds, after checking it.

    Raises:
        WrongUse: the argument is no number of seconds.
    """
    if (
        not isinstance(wait, int | float)
        or isinstance(wait, bool)
        or not (math.isfinite(wait) and wait >= 0)
    ):
        raise WrongUse(f"wait={shown(wait)}.", allowed="seconds, from 0 on")
    return float(wait)


def open_when_free(place: str | Path, wait: float, open_it: Callable[[], T]) -> T:
    """Returns ``open_it()``, repeated for up to ``wait`` seconds while another process has the file
    open.

    No lock is held between two calls. A file that this process itself has open is not waited for.

    Raises:
        LedgerBusy: the file is still open; the error names the process.
    """
    ends = time.monotonic() + wait
    is_told = False
    while True:
        try:
            return open_it()
        except LedgerBusy as busy:
            holder = find_holder(place)
            remaining = ends - time.monotonic()
            if remaining <= 0 or holder.process == os.getpid() or is_address(place):
                raise _named(busy, place, holder) from None
        if not is_told:
            _OWNER.warning("waiting up to %.0f s for a ledger that %s has open", remaining, holder)
            is_told = True
        time.sleep(min(_PAUSE, remaining))


def require_free(place: str | Path) -> None:
    """Refuses a ledger file that another process has open; does not lock it.

    Raises:
        LedgerBusy: another process has the file open.
    """
    try:
        descriptor = os.open(place, os.O_RDONLY)
    except (OSError, ValueError):
        return  # whoever opens it is told
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise LedgerBusy(f"The ledger {shown(place)} is in use by another process.") from None
    finally:
        os.close(descriptor)


def find_holder(place: str | Path) -> Holder:
    """Returns the process that has a ledger file open, as far as the operating system tells."""
    try:
        # without the device, which layered file systems state otherwise here and there
        inode = f":{Path(place).stat().st_ino}"
        lines = [line.split() for line in _LOCKS.read_text().splitlines()]
    except (OSError, ValueError):
        return Holder()
    # number, FLOCK, ADVISORY, WRITE, process, device and inode, start, end
    locks = [
        line for line in lines if len(line) > 5 and line[1] == "FLOCK" and line[5].endswith(inode)
    ]
    if not locks:
        return Holder()
    process = int(locks[0][4])
    return Holder(max(process, 0), _opened_at(place) if locks[0][3] == "WRITE" else "")


def _opened_at(place: str | Path) -> str:
    """When the process that may write opened the file: it touches the lock then."""
    try:
        touched = Path(f"{os.path.realpath(place)}.lock").stat().st_mtime
    except OSError:
        return ""
    return datetime.fromtimestamp(touched, UTC).isoformat(timespec="seconds")


def _named(busy: LedgerBusy, place: str | Path, holder: Holder) -> LedgerBusy:
    """The error with the process that holds the file."""
    if not holder.process:
        return busy
    return LedgerBusy(
        f"The ledger {shown(place)} is in use by {holder}.",
        remedy="Close it there first, or wait longer (wait=, --wait): one process at a time holds "
        "a ledger file. For several processes or machines keep the ledger in PostgreSQL "
        "(ledger='postgresql://...').",
    )
