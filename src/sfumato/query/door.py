# SPDX-License-Identifier: Apache-2.0
"""Who is inside a session, so that it can close without leaving a charge open."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sfumato.errors import LedgerUnavailable

# How often those inside are interrupted, in seconds: one that falls between two statements is lost.
_AGAIN = 0.05


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
        self._closed, self._inside = False, 0
        self._changed = threading.Condition()

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
        with self._changed:
            self.require_open()
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    def close(self) -> bool:
        """Lets in nobody any more; whether it was open."""
        with self._changed:
            was_open, self._closed = not self._closed, True
            return was_open

    def clear(self, interrupt: Callable[[], object], seconds: float) -> None:
        """Interrupts those inside until all have left, for so many seconds at most."""
        ends = time.monotonic() + seconds
        with self._changed:
            while self._inside and time.monotonic() < ends:
                interrupt()
                self._changed.wait(_AGAIN)
