# SPDX-License-Identifier: Apache-2.0
"""Interrupts the statements of an engine after a timeout, and reports their progress.

Each lane of DuckDB, and the Spark engine, has a ``Watcher``.
"""

import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from sfumato.engines.stop import ENDLESS, Patience

# Called with the fraction that is done, from 0 to 1, in a thread of its own.
Progress: TypeAlias = Callable[[float], object]

_OWNER = logging.getLogger("sfumato.owner")
# How often progress is reported, and an interrupt repeated, in seconds.
TICK = 0.2
AGAIN = 0.05
# How long an idle watcher thread is kept: starting one is expensive for a small question.
STAY = 10.0


class Watch:
    """The progress of one question's SQL statements, and the time by which the last of them must
    have ended.

    ``patience`` is that of the caller; it may end before the owner's ``limit``.
    """

    def __init__(
        self,
        limit: float,
        statements: int = 1,
        patience: Patience = ENDLESS,
    ) -> None:
        self._ends = time.monotonic() + limit
        self._patience = patience
        self._statements = statements
        self._finished = 0
        self._share = 0.0

    @property
    def left(self) -> float:
        """The number of seconds until the question's time limit."""
        return min(self._ends - time.monotonic(), self._patience.left)

    @property
    def is_over(self) -> bool:
        """Whether the time is over; long Python code checks this itself."""
        return self.left <= 0

    @property
    def is_cancelled(self) -> bool:
        """Whether the caller stopped waiting."""
        return self._patience.is_over

    def next(self) -> None:
        """Records that the running SQL statement has ended and the next one begins."""
        self._finished += 1

    def share(self, percent: float) -> float:
        """Returns the progress of the question, from 0 to 1, given that of the running statement in
        percent.

        It never decreases, even if the engine revises its estimate.
        """
        done = (self._finished + percent / 100) / self._statements
        self._share = max(self._share, min(done, 1.0))
        return self._share


class Watcher:
    """Watches the statements of one engine, one question at a time.

    ``interrupt`` ends the running statement; it is called once the statements of a question
    together take longer than ``limit`` seconds. ``percent`` returns how much of the running
    statement is done, negative if unknown. ``told`` receives the progress; if it raises, progress
    of that question is no longer reported, and the statement continues.

    >>> watcher = Watcher(60, lambda: None)
    >>> with watcher.over(2) as watch:
    ...     watch.next()
    """

    def __init__(
        self,
        limit: float,
        interrupt: Callable[[], object],
        *,
        percent: Callable[[], float] = lambda: -1.0,
        told: Progress | None = None,
    ) -> None:
        self._limit = limit
        self._interrupt = interrupt
        self._percent = percent
        self._told = told
        self._lock = threading.Lock()
        self._watched: Watch | None = None
        self._telling = False
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()

    @contextmanager
    def over(self, statements: int = 1, patience: Patience = ENDLESS) -> Iterator[Watch]:
        """Context manager in which the SQL statements of one question are watched; later statements
        are not interrupted.
        """
        watch = Watch(self._limit, statements, patience)
        with self._lock:
            self._watched = watch
            self._telling = self._told is not None
            # a thread that is running checks in time: a later question has a later deadline
            if self._thread is None or not self._thread.is_alive():
                pause = min(self._limit, self._pause)
                arguments = weakref.ref(self), pause, self._wake
                self._thread = threading.Thread(
                    target=_stay,
                    args=arguments,
                    daemon=True,
                )
                self._thread.start()
        try:
            with patience.calling(self._wake.set):
                if not patience.is_endless:
                    # a sleeping thread knows the owner's limit only; it sees an earlier stop now,
                    # and a later one makes this call
                    self._wake.set()
                yield watch
        finally:
            with self._lock:
                self._watched = None

    @property
    def _pause(self) -> float:
        """The longest time between two looks, in seconds."""
        if self._told is None:
            return STAY
        return TICK

    def look(self) -> float | None:
        """Interrupts the running statement if its time is over, else reports progress; returns the
        seconds until the next check, None if nothing runs.
        """
        with self._lock:
            return self._look()

    def _look(self) -> float | None:
        watch = self._watched
        if watch is None:
            self._thread = None
            return None
        if watch.is_over:
            # repeatedly: an interrupt between two statements is lost
            self._interrupt()
            return AGAIN
        if self._telling and self._told is not None:
            self._tell(self._told, watch)
        return max(min(watch.left, self._pause), 0)

    def _tell(self, progress: Progress, watch: Watch) -> None:
        percent = self._percent()
        if percent < 0:
            return
        try:
            progress(watch.share(percent))
        except Exception as failure:  # noqa: BLE001 - a function of the owner
            _OWNER.error("progress= failed: %s", type(failure).__name__)
            self._telling = False


def _stay(
    watcher: "weakref.ref[Watcher]",
    pause: float | None,
    wake: threading.Event,
) -> None:
    """The thread of a watcher: looks until nothing runs.

    Between two looks it has no reference to the engine, which can then be collected.
    """
    while pause is not None:
        wake.wait(pause)
        wake.clear()
        alive = watcher()
        pause = None if alive is None else alive.look()
        del alive
