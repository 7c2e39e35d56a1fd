# SPDX-License-Identifier: Apache-2.0
"""One lock per question: only one caller at a time computes the answer to a question.

Callers with other questions do not wait.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# The interval at which a waiting caller checks whether it was cancelled, in seconds.
_LOOK = 0.02


class Turns:
    """Locks by name, one for each question that is being answered.

    Guarantees:
        one caller holds a name at a time
        callers with other names do not wait

    >>> turns = Turns()
    >>> with turns.of("one"), turns.of("another"):
    ...     turns.names
    ['another', 'one']
    >>> turns.names
    []
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._locks: dict[str, tuple[threading.Lock, int]] = {}

    @property
    def names(self) -> list[str]:
        """The names of the locks that some thread has or waits for."""
        with self._guard:
            return sorted(self._locks)

    @contextmanager
    def of(self, name: str, waits: Callable[[], None] | None = None) -> Iterator[bool]:
        """Locks a name for a ``with`` block; yields whether the caller had to wait for it.

        ``waits`` is called repeatedly while the caller waits; an exception of it ends the wait.
        """
        with self._guard:
            lock, callers = self._locks.get(name) or (threading.Lock(), 0)
            self._locks[name] = lock, callers + 1
        try:
            _acquire(lock, waits)
            try:
                yield callers > 0
            finally:
                lock.release()
        finally:
            with self._guard:
                lock, callers = self._locks[name]
                if callers > 1:
                    self._locks[name] = lock, callers - 1
                else:
                    del self._locks[name]


def _acquire(lock: threading.Lock, waits: Callable[[], None] | None) -> None:
    if waits is None:
        lock.acquire()
        return
    while not lock.acquire(timeout=_LOOK):
        waits()
