# SPDX-License-Identifier: Apache-2.0
"""Copies a ledger file, as of one moment, while another process writes to it.

SQLite's own backup needs the lock that the process with the ledger holds permanently. The two files
of a database in WAL mode can be copied without it. The file is copied first, then the whole log:
every page that a checkpoint has moved into the file meanwhile is in the log too, and SQLite uses
the log up to its last complete commit. Only if the log was restarted in between can a page be
missing; then its header has other salts, and the copy is repeated.

Source: sqlite.org, "WAL-mode File Format", sections 2 and 4.
"""

import os
import shutil
from contextlib import ExitStack
from pathlib import Path

import apsw

from sfumato.errors import LedgerBusy, LedgerCorrupt, LedgerMissing, LedgerUnavailable, shown

_ATTEMPTS = 100
_HEADER = 32


def hot_copy(ledger: str, target: str) -> None:
    """Writes a file of mode 0600 with the content of the ledger at some moment after the call.

    The copy is marked as open, so that it is not mistaken for the ledger itself.

    Guarantees:
        a copy holds every charge that had returned before it was begun

    Raises:
        LedgerMissing: there is no file. LedgerBusy: its log was restarted at every attempt.
        LedgerUnavailable: the file cannot be read, or the copy cannot be written.
        LedgerCorrupt: SQLite finds damage in the copy.
    """
    if not Path(ledger).is_file():
        raise LedgerMissing(f"No ledger at {shown(ledger)}.", remedy="Check the path.")
    try:
        for _ in range(_ATTEMPTS):
            before = _state(ledger)
            _copy(ledger, target)
            _copy(f"{ledger}-wal", f"{target}-wal")
            if _state(ledger) == before:
                return _merge(ledger, target)
    except OSError as error:
        raise LedgerUnavailable(
            f"{shown(target)} cannot be written, or {shown(ledger)} not be read ({error.strerror})."
        ) from None
    raise LedgerBusy(
        f"The ledger {shown(ledger)} changes too quickly to be copied.", remedy="Try again."
    )


def _state(ledger: str) -> tuple[int, bytes]:
    """The identity of the file, and the header of its log."""
    log = Path(f"{ledger}-wal")
    try:
        with log.open("rb") as file:
            header = file.read(_HEADER)
    except FileNotFoundError:
        header = b""
    return Path(ledger).stat().st_ino, header


def _copy(source: str, target: str) -> None:
    """Copies a file, or its absence."""
    Path(target).unlink(missing_ok=True)
    with ExitStack() as open_files:
        try:
            file = open_files.enter_context(Path(source).open("rb"))
        except FileNotFoundError:
            return
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        shutil.copyfileobj(file, open_files.enter_context(os.fdopen(descriptor, "wb")), 1 << 20)


def _merge(ledger: str, target: str) -> None:
    """Moves the copied log into the copied file, and checks it for damage."""
    try:
        connection = apsw.Connection(target, flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA journal_mode = DELETE").fetchall()
            problems = connection.execute("PRAGMA integrity_check(1)").fetchall()
        finally:
            connection.close()
    except apsw.Error as error:
        raise LedgerCorrupt(
            f"The ledger {shown(ledger)} cannot be copied ({type(error).__name__})."
        ) from None
    if problems != [("ok",)] or Path(f"{target}-wal").exists():
        raise LedgerCorrupt(f"The ledger {shown(ledger)} is damaged, and so is the copy.")
