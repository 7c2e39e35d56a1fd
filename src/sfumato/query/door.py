# SPDX-License-Identifier: Apache-2.0
"""Who is inside a session, so that it can close without leaving a charge open."""

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from sfumato.errors import LedgerUnavailable

# How often those inside are interrupted, in seconds: one that falls between two statements is lost.
_AGAIN = 0.05


class Closing(Protocol):
    """What is left open between two questions."""

    def close(self) -> None:
        """Ends it."""
        ...


class Door:
    """Counts the questions under way; once closed it lets in no other.

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
        # taken itself: Ctrl-C within a condition's ``__enter__`` would leave it taken for ever
        self._process, self._inside, self._lock = os.getpid(), 0, threading.RLock()
        self._changed = threading.Condition(self._lock)

    def _here(self) -> AbstractContextManager[bool]:
        """The lock; in a fork nobody is inside, and whoever held the lock is not there to let go of it."""
        if os.getpid() != self._process:
            self._enter_process()
        return self._lock

    def require_open(self) -> None:
        """Refuses once it is closed (LedgerUnavailable)."""
        if self._closed:
            raise LedgerUnavailable("The session is closed.", remedy="Connect again.")

    @contextmanager
    def inside(self) -> Iterator[None]:
        """While it lasts, a question is under way.

        Raises:
            LedgerUnavailable: it is closed.
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
        """Lets in nobody any more; whether it was open."""
        with self._here():
            was_open, self._closed = not self._closed, True
            return was_open

    def keep(self, opened: Closing) -> None:
        """Closes something that is open between two questions, at the latest when the door is cleared."""
        self._left_open.add(opened)

    def clear(self, interrupt: Callable[[], object], seconds: float) -> None:
        """Interrupts those inside until all have left, for so many seconds at most, and closes what they left open."""
        ends = time.monotonic() + seconds
        with self._here():
            while self._inside and time.monotonic() < ends:
                interrupt()
                self._changed.wait(_AGAIN)
        for each in list(self._left_open):
            each.close()
