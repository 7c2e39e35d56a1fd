# SPDX-License-Identifier: Apache-2.0
"""The durable memory of a client: it records a report before the report is sent.

If the store is lost or damaged, only reports are lost: the client is silent until the next epoch.
"""

import fcntl
import os
from pathlib import Path
from typing import Protocol

from sfumato.errors import WrongUse


class Store(Protocol):
    """The interface of the durable memory of a device's client, which stores a few bytes.

    >>> store: Store = MemoryStore()
    >>> store.load() is None
    True
    """

    def load(self) -> bytes | None:
        """Returns the bytes that were saved last; None if nothing was saved."""
        ...

    def save(self, state: bytes) -> None:
        """Stores the bytes; when this returns, they survive a crash."""
        ...


class MemoryStore:
    """A client's memory that ends with the process, for tests and simulations.

    >>> store = MemoryStore()
    >>> store.save(b"state")
    >>> store.load()
    b'state'
    """

    def __init__(self) -> None:
        self._state: bytes | None = None

    def load(self) -> bytes | None:
        """Returns the bytes that were saved last."""
        return self._state

    def save(self, state: bytes) -> None:
        """Stores the bytes in memory."""
        self._state = state


class FileStore:
    """A client's memory in a file that only its user can read; one process at a time.

    Each save writes a new file, flushes it to disk, and then renames it over the old one.

    Raises:
        WrongUse: another client uses the file, or it cannot be written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = FileStore(folder + "/emoji")
    ...     store.save(b"state")
    ...     store.close()
    ...     FileStore(folder + "/emoji").load()
    b'state'
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._next = self._path.with_name(self._path.name + ".next")
        try:
            lock = os.open(f"{self._path}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError:
            raise WrongUse(
                "The store of a client cannot be written.", allowed="a file in a folder that exists"
            ) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise WrongUse(
                "Another client uses this store.",
                remedy="Two clients with one secret would answer twice: keep one of them.",
            ) from None
        self._lock: int | None = lock

    def load(self) -> bytes | None:
        """Returns the bytes that were saved last; None if there is no readable file."""
        try:
            return self._path.read_bytes()
        except OSError:
            return None

    def save(self, state: bytes) -> None:
        """Replaces the file; the bytes are on disk when this returns."""
        file = os.open(self._next, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        try:
            os.write(file, state)
            os.fsync(file)
        finally:
            os.close(file)
        self._next.replace(self._path)
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def close(self) -> None:
        """Releases the file, so that another client can use it."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
