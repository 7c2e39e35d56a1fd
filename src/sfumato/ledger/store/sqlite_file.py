# SPDX-License-Identifier: Apache-2.0
"""The file of a ledger: where it lies, who holds it, how a new one comes to be."""

import fcntl
import os
import tempfile
from pathlib import Path

import apsw

from sfumato.errors import LedgerBusy, LedgerCorrupt, LedgerError, LedgerMissing, LedgerReadOnly, LedgerUnavailable
from sfumato.ledger.store import sqlite_schema

# What SQLite lets a log grow to before it checkpoints by itself: 1000 pages with their headers.
_LOG_SIZE = 32 + 1000 * (4096 + 24)


def place_of(path: object) -> str:
    """The one true path of a ledger, whatever links lead to it."""
    if not isinstance(path, str | Path) or not str(path) or "\0" in str(path) or Path(path).is_dir():
        raise LedgerUnavailable(f"No ledger can be kept at {path!r}.", allowed="the path of a file")
    return os.path.realpath(path)


def hold(name: str, path: str, held: list[int], *, create: bool) -> None:
    """Holds a file for one opening, adding the descriptor that holds it.

    SQLite's own POSIX locks are not enough: a process loses them when anything in it opens
    and closes the file, a backup for instance. flock belongs to this descriptor alone.
    """
    if not create and not Path(path).is_file():
        raise LedgerMissing(f"No ledger at {path!r}.", remedy="Check the path.")
    try:
        descriptor = os.open(name, os.O_RDWR | (os.O_CREAT if name != path else 0), 0o600)
    except OSError as error:
        raise unopenable(path, error) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise busy(path) from None
    held.append(descriptor)


def let_go(held: list[int], *, unlock: bool = True) -> None:
    """Lets go of the locks; a fork closes its copies and leaves the locks to its parent."""
    while held:
        descriptor = held.pop()
        if unlock:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def make(path: str) -> None:
    """A new ledger, whole before it has its name; what is left of an old one is no new one."""
    if Path(path).exists() or Path(f"{path}-wal").exists():
        if not Path(path).is_file() or Path(path).stat().st_size == 0:
            raise corrupt(path)
        return
    fresh = ""
    try:
        descriptor, fresh = tempfile.mkstemp(suffix=".new", prefix=f"{Path(path).name}.", dir=Path(path).parent)
        os.close(descriptor)
        connection = apsw.Connection(fresh, flags=apsw.SQLITE_OPEN_READWRITE)
        connection.execute("PRAGMA synchronous = FULL")
        sqlite_schema.create(connection)
        connection.close()
        Path(fresh).replace(path)
        sync_folder(path)
    except OSError as error:
        raise unopenable(path, error) from None
    except apsw.Error as error:
        Path(fresh).unlink(missing_ok=True)
        raise LedgerUnavailable(
            f"No ledger can be kept at {path!r} ({type(error).__name__}).", remedy="Check the disk."
        ) from None


def widen(log: str) -> None:
    """Gives a write-ahead log the length that it grows to between two checkpoints.

    A flush that also has to record a new length takes several times as long. SQLite takes
    what follows its last frame for nothing, whatever is there.
    """
    try:
        with Path(log).open("r+b") as file:
            missing = _LOG_SIZE - file.seek(0, os.SEEK_END)
            if missing > 0:
                file.write(bytes(missing))
                file.flush()
                os.fsync(file.fileno())
    except OSError:
        pass  # a full disk, say: whoever writes will be told


def sync_folder(path: str) -> None:
    """Makes a file's name durable: a new name is a change of its folder."""
    folder = os.open(Path(path).parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def busy(path: str) -> LedgerBusy:
    """Somebody else holds the file."""
    return LedgerBusy(
        f"The ledger {path!r} is in use by another session or process.",
        remedy="Close it there first: one process at a time holds a ledger file. For several processes "
        "or machines keep the ledger in PostgreSQL (ledger='postgresql://...').",
    )


def read_only(path: str) -> LedgerReadOnly:
    """The file or its folder may only be read."""
    return LedgerReadOnly(
        f"The ledger {path!r} cannot be written, so nothing can be charged.",
        remedy="Give this user write access to it.",
    )


def corrupt(path: str) -> LedgerCorrupt:
    """Whatever it is, it is no ledger that can be trusted."""
    return LedgerCorrupt(
        f"The file {path!r} is not a ledger, or is damaged.",
        remedy="Restore the newest backup; do not start a new ledger over the same data.",
    )


def unopenable(path: str, error: OSError) -> LedgerError:
    """What the system says of a file, as ours."""
    if isinstance(error, PermissionError) or error.errno == 30:  # EROFS
        return read_only(path)
    return LedgerUnavailable(f"No ledger can be kept at {path!r} ({error.strerror}).", remedy="Check the folder.")
