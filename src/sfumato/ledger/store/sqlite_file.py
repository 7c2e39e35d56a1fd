# SPDX-License-Identifier: Apache-2.0
"""The file of a ledger: its path, its lock, and how a new one is created."""

import fcntl
import os
import re
import tempfile
from contextlib import suppress
from pathlib import Path

import apsw

from sfumato.errors import (
    LedgerBusy,
    LedgerCorrupt,
    LedgerError,
    LedgerMissing,
    LedgerReadOnly,
    LedgerUnavailable,
    shown,
)
from sfumato.ledger.store import sqlite_schema
from sfumato.ledger.store.open_mark import incomplete, sync_folder

# The size at which SQLite checkpoints a log: 1000 pages with their headers.
_LOG_HEADER = 32
_LOG_SIZE = _LOG_HEADER + 1000 * (4096 + 24)
# Suffixes of files that only a ledger creates.
_LEFT = ("-wal", ".open", ".head")
_MOUNTS = "/proc/self/mountinfo"
_OCTAL = re.compile(r"\\([0-7]{3})")


def place_of(path: object) -> str:
    """Returns the canonical path of a ledger, with symbolic links resolved.

    Raises:
        LedgerUnavailable: the path is no string or Path, is empty, or is that of a folder.
    """
    if (
        not isinstance(path, str | Path)
        or not str(path)
        or "\0" in str(path)
        or Path(path).is_dir()
    ):
        raise LedgerUnavailable(
            f"No ledger can be kept at {shown(path)}.", allowed="the path of a file"
        )
    return os.path.realpath(path)


def hold(name: str, path: str, held: list[int], *, create: bool) -> None:
    """Locks a ledger file for this process, and appends the file descriptor of the lock to
    ``held``.

    SQLite's own POSIX locks are not enough: a process loses them when anything in it opens and
    closes the file, for instance a backup. A flock belongs to its descriptor alone.
    """
    if not create and not Path(path).is_file():
        raise LedgerMissing(f"No ledger at {shown(path)}.", remedy="Check the path.")
    try:
        descriptor = os.open(name, os.O_RDWR | (os.O_CREAT if name != path else 0), 0o600)
    except OSError as error:
        raise unopenable(path, error) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise busy(path) from None
    if name != path:
        # says since when the ledger is open (``waiting``)
        os.utime(descriptor)
    held.append(descriptor)


def let_go(held: list[int], *, unlock: bool = True) -> None:
    """Releases locks by closing their file descriptors.

    A forked child closes its copies with ``unlock`` False, which leaves the locks to its parent.
    """
    while held:
        descriptor = held.pop()
        if unlock:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def make(path: str) -> None:
    """Creates a new ledger file under a temporary name, then renames it.

    Refuses if files of an old ledger are left at this path.
    """
    if Path(path).exists():
        if not Path(path).is_file() or Path(path).stat().st_size == 0:
            raise corrupt(path)
        return
    left = next((f"{path}{end}" for end in _LEFT if Path(f"{path}{end}").exists()), None)
    if left is not None:
        raise incomplete(path, f"it is missing, and {Path(left).name!r} says that it was there")
    fresh = ""
    try:
        descriptor, fresh = tempfile.mkstemp(
            suffix=".new", prefix=f"{Path(path).name}.", dir=Path(path).parent
        )
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
            f"No ledger can be kept at {shown(path)} ({type(error).__name__}).",
            remedy="Check the disk.",
        ) from None


def clear_unfinished(path: str) -> None:
    """Removes temporary files left by a crash; requires the lock of the ledger."""
    for file in Path(path).parent.iterdir():
        if file.name.startswith(f"{Path(path).name}.") and file.suffix == ".new":
            with suppress(OSError):
                file.unlink()


def is_log(path: str) -> bool:
    """Whether a ledger file has a write-ahead log; asked before SQLite creates an empty one."""
    try:
        return Path(path).stat().st_size >= _LOG_HEADER
    except OSError:
        return False


def require_one_place(path: str, mounts: str = _MOUNTS) -> None:
    """Raises an error for a ledger file that can be reached by two paths.

    SQLite's log would lie beside only one of them.

    Raises:
        LedgerUnavailable: the file has several hard links, or is mounted by itself, not its folder.
    """
    status = Path(path).stat()
    require_one_name(path, status)
    if status.st_dev != Path(path).parent.stat().st_dev or path in _mount_points(mounts):
        raise LedgerUnavailable(
            f"The file {path!r} is mounted by itself, so its log and its mark would lie elsewhere.",
            remedy="Mount the folder that holds the ledger, not the file.",
        )


def require_one_name(path: str, status: os.stat_result) -> None:
    """Refuses a file with several hard links: each name would have its own log.

    Raises:
        LedgerUnavailable: the file has several hard links.
    """
    if status.st_nlink > 1:
        raise LedgerUnavailable(
            f"{path!r} has {status.st_nlink} names (hard links), so nothing is charged.",
            remedy="Remove all but one; copy the closed file for a backup. A symbolic link is no "
            "second name.",
        )


def _mount_points(table: str) -> set[str]:
    """The mount points of the system; empty if unknown."""
    try:
        lines = Path(table).read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return set()
    # spaces and the like are written as octal numbers (proc(5))
    return {_OCTAL.sub(lambda octal: chr(int(octal[1], 8)), line.split(" ")[4]) for line in lines}


def widen(log: str) -> None:
    """Extends a write-ahead log to the length that it reaches between two checkpoints.

    A flush that also changes the length of a file takes several times as long. SQLite ignores what
    follows the last frame.
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


def busy(path: str) -> LedgerBusy:
    """Returns the error for a file that another process has locked."""
    return LedgerBusy(
        f"The ledger {shown(path)} is in use by another session or process.",
        remedy="Close it there first: one process at a time holds a ledger file. For several "
        "processes "
        "or machines keep the ledger in PostgreSQL (ledger='postgresql://...').",
    )


def read_only(path: str) -> LedgerReadOnly:
    """Returns the error for a file or folder that cannot be written."""
    return LedgerReadOnly(
        f"The ledger {shown(path)} cannot be written, so nothing can be charged.",
        remedy="Give this user write access to it.",
    )


def corrupt(path: str) -> LedgerCorrupt:
    """Returns the error for a file that is no ledger, or whose content is not consistent."""
    return LedgerCorrupt(
        f"The file {shown(path)} is not a ledger, or is damaged.",
        remedy="Restore the newest backup; do not start a new ledger over the same data.",
    )


def unopenable(path: str, error: OSError) -> LedgerError:
    """Returns the ledger's error for an error of the operating system."""
    if isinstance(error, PermissionError) or error.errno == 30:  # EROFS
        return read_only(path)
    return LedgerUnavailable(
        f"No ledger can be kept at {shown(path)} ({error.strerror}).", remedy="Check the folder."
    )


def size_of(path: str) -> int:
    """Returns the number of bytes of a ledger file and its log."""
    files = (Path(path), Path(f"{path}-wal"))
    return sum(file.stat().st_size for file in files if file.exists())
