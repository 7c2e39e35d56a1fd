# SPDX-License-Identifier: Apache-2.0
"""The pool of an engine's lanes: a fixed number of questions run at once, others wait."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, TypeVar

from sfumato.engines.stop import ENDLESS, Patience
from sfumato.errors import Cancelled

T = TypeVar("T")

# How often a caller that can stop waiting checks whether it should, in seconds.
_LOOK = 0.02


class Lanes(Generic[T]):
    """A pool of an engine's connections (lanes), each used by one question at a time.

    >>> lanes = Lanes(["first", "second"])
    >>> with lanes.take() as one, lanes.take() as other:
    ...     sorted([one, other])
    ['first', 'second']
    """

    def __init__(self, lanes: Sequence[T]) -> None:
        self.all = tuple(lanes)
        self._free = list(lanes)
        # acquired directly: Ctrl-C in a condition's ``__enter__`` would leave it locked for ever
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self.closed = False

    def close(self) -> None:
        """Closes the pool: waiting callers raise ``Cancelled``, and no lane can be taken."""
        with self._lock:
            self.closed = True
            self._changed.notify_all()

    def wait(self, patience: Patience = ENDLESS) -> None:
        """Blocks until a lane is free; does not take it.

        Raises:
            Cancelled: the caller stopped waiting, or the pool was closed; nothing was charged.
        """
        with self._lock:
            while self.closed or not self._free:
                if self.closed:
                    raise Cancelled(paid=False)
                patience.require()
                self._changed.wait(None if patience.is_endless else _LOOK)

    @contextmanager
    def take(self, patience: Patience = ENDLESS) -> Iterator[T]:
        """Takes a lane for the duration of the ``with`` block.

        Raises:
            Cancelled: the caller stopped waiting, or the pool was closed; the question was charged.
        """
        # a caller may be interrupted at any point: the lane is returned in every case
        taken: list[T] = []
        try:
            with self._lock:
                self._require(patience)
                while not self._free:
                    self._changed.wait(None if patience.is_endless else _LOOK)
                    self._require(patience)
                taken.append(self._free.pop())
            yield taken[0]
        finally:
            with self._lock:
                self._free += taken
                self._changed.notify_all()

    def _require(self, patience: Patience) -> None:
        if self.closed or patience.is_over:
            raise Cancelled(paid=True)
