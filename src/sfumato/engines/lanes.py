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
        self._changed = threading.Condition()

    def wait(self, patience: Patience = ENDLESS) -> None:
        """Returns once a lane is free; it is not taken.

        Raises:
            Cancelled: the caller waits no longer; nothing was charged.
        """
        with self._changed:
            while not self._free:
                patience.require()
                self._changed.wait(None if patience.is_endless else _LOOK)

    @contextmanager
    def take(self, patience: Patience = ENDLESS) -> Iterator[T]:
        """A lane of one's own.

        Raises:
            Cancelled: the caller waits no longer; what it asks for is charged already.
        """
        with self._changed:
            while not self._free:
                if patience.is_over:
                    raise Cancelled(paid=True)
                self._changed.wait(None if patience.is_endless else _LOOK)
            lane = self._free.pop()
        try:
            yield lane
        finally:
            with self._changed:
                self._free.append(lane)
                self._changed.notify_all()
