# SPDX-License-Identifier: Apache-2.0
"""Counts the questions in progress, so that closing a session leaves no charge open.

``Session`` enters the ``Door`` for every question; ``Session.close`` closes and clears it.
"""

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from sfumato.errors import LedgerUnavailable

# How often the questions in progress are interrupted, in seconds. Again, because an interrupt
# between two SQL statements has no effect.
_AGAIN = 0.05


class Closing(Protocol):
    """Something open between two questions that must be closed with the session, such as a series."""

    def close(self) -> None:
        """Closes it."""
        ...


class Door:
    """The gate of a session: it counts the questions in progress, and refuses new ones after
    ``close``.

    >>> door = Door()
    >>> with door.inside():
    ...     door.close()
    True
    >>> door.close()
    False
    """

    def __init__(self) -> None:
        self._closed = False
        self._left_open: weakref.WeakSet[Closing] = weakref.WeakSet()
        self._enter_process()

    def _enter_process(self) -> None:
        """Starts counting anew in this process."""
        # use the lock itself: Ctrl-C inside a condition's ``__enter__`` could leave it locked
        self._process = os.getpid()
        self._inside = 0
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)

    def _here(self) -> AbstractContextManager[bool]:
        """The lock of this process; a fork gets a new one, since none of its threads frees the old."""
        if os.getpid() != self._process:
            self._enter_process()
        return self._lock

    def require_open(self) -> None:
        """Raises LedgerUnavailable if the session is closed."""
        if self._closed:
            raise LedgerUnavailable("The session is closed.", remedy="Connect again.")

    @contextmanager
    def inside(self) -> Iterator[None]:
        """A context manager that counts a question as in progress.

        Raises:
            LedgerUnavailable: the session is closed.
        """
        with self._here():
            self.require_open()
            self._inside += 1
        try:
            yield
        finally:
            with self._here():
                self._inside -= 1
                self._changed.notify_all()

    def close(self) -> bool:
        """Refuses all further questions; returns False if the session was closed before."""
        with self._here():
            was_open = not self._closed
            self._closed = True
            return was_open

    def keep(self, opened: Closing) -> None:
        """Registers an object that ``clear`` closes with the session; it may be closed earlier."""
        self._left_open.add(opened)

    def clear(self, interrupt: Callable[[], object], seconds: float) -> None:
        """Interrupts the questions in progress until all have ended, for at most ``seconds``.

        Then closes everything that was registered with ``keep``.
        """
        ends = time.monotonic() + seconds
        with self._here():
            while self._inside and time.monotonic() < ends:
                interrupt()
                self._changed.wait(_AGAIN)
        for opened in list(self._left_open):
            opened.close()
