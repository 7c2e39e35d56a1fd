# SPDX-License-Identifier: Apache-2.0
"""Lanes of an engine: so many questions run at once, the others wait."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, TypeVar

from sfumato.engines.stop import ENDLESS, Patience
from sfumato.errors import Cancelled

T = TypeVar("T")

# How often a caller who may stop waiting looks whether it did, in seconds.
_LOOK = 0.02


class Lanes(Generic[T]):
    """What an engine runs questions in, each taken by one caller at a time.

    >>> lanes = Lanes(["first", "second"])
    >>> with lanes.take() as one, lanes.take() as other:
    ...     sorted([one, other])
    ['first', 'second']
    """

    def __init__(self, lanes: Sequence[T]) -> None:
        self.all = tuple(lanes)
        self._free = list(lanes)
        # taken itself: Ctrl-C within a condition's ``__enter__`` would leave it taken for ever
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self.closed = False

    def close(self) -> None:
        """Nobody waits for a lane any more, or is given one."""
        with self._lock:
            self.closed = True
            self._changed.notify_all()

    def wait(self, patience: Patience = ENDLESS) -> None:
        """Returns once a lane is free; it is not taken.

        Raises:
            Cancelled: the caller waits no longer; nothing was charged.
        """
        with self._lock:
            while self.closed or not self._free:
                if self.closed:
                    raise Cancelled(paid=False)
                patience.require()
                self._changed.wait(None if patience.is_endless else _LOOK)

    @contextmanager
    def take(self, patience: Patience = ENDLESS) -> Iterator[T]:
        """A lane of one's own.

        Raises:
            Cancelled: the caller waits no longer; what it asks for is charged already.
        """
        # a caller may be interrupted at any moment: a lane is given back wherever that is
        taken: list[T] = []
        try:
            with self._lock:
                while self.closed or not self._free:
                    if self.closed or patience.is_over:
                        raise Cancelled(paid=True)
                    self._changed.wait(None if patience.is_endless else _LOOK)
                taken.append(self._free.pop())
            yield taken[0]
        finally:
            with self._lock:
                self._free += taken
                self._changed.notify_all()
