# SPDX-License-Identifier: Apache-2.0
"""Someone beside the statements of an engine: ended when they take too long, and the owner is told how far they are."""

import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from sfumato.engines.stop import ENDLESS, Patience

# Told the share that is done, from 0 to 1, from a thread of its own.
Progress: TypeAlias = Callable[[float], object]

_OWNER = logging.getLogger("sfumato.owner")
# How often the owner is told, and how often what does not end is interrupted.
TICK, AGAIN = 0.2, 0.05
# How long whoever watches stays, at most, where nothing runs any more: to start a thread is dear to a small question.
STAY = 10.0


class Watch:
    """Statements under way, one after the other, and when all together have to have ended.

    ``patience`` is the caller's, who may wait for less long than the owner's ``limit``.
    """

    def __init__(self, limit: float, statements: int = 1, patience: Patience = ENDLESS) -> None:
        self._ends, self._patience = time.monotonic() + limit, patience
        self._statements, self._finished, self._share = statements, 0, 0.0

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return min(self._ends - time.monotonic(), self._patience.left)

    @property
    def is_over(self) -> bool:
        """Whether the time is: what is no statement looks for itself."""
        return self.left <= 0

    @property
    def is_cancelled(self) -> bool:
        """Whether it is the caller who waits no longer."""
        return self._patience.is_over

    def next(self) -> None:
        """A statement has ended."""
        self._finished += 1

    def share(self, percent: float) -> float:
        """What is done of all, where so much is done of the one that runs.

        An engine that thinks again what there is to do must not go backwards.
        """
        self._share = max(
            self._share, min((self._finished + percent / 100) / self._statements, 1.0)
        )
        return self._share


class Watcher:
    """Watches the statements of one engine, those of one question at a time.

    ``interrupt`` ends the statement that runs once those of a question together take longer than
    ``limit`` seconds; ``percent`` says how much of it is done (less than 0: not known). What
    ``told`` raises ends the telling of that question, never the statement.

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
        self._limit, self._interrupt = limit, interrupt
        self._percent, self._told = percent, told
        self._lock = threading.Lock()
        self._watched: Watch | None = None
        self._telling = False
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()

    @contextmanager
    def over(self, statements: int = 1, patience: Patience = ENDLESS) -> Iterator[Watch]:
        """While it lasts, the statements inside are watched; afterwards nothing is interrupted or told."""
        watch = Watch(self._limit, statements, patience)
        with self._lock:
            self._watched, self._telling = watch, self._told is not None
            # whoever is there looks again in time: a question that comes later has to end later
            if self._thread is None or not self._thread.is_alive():
                pause = min(self._limit, STAY if self._told is None else TICK)
                rest = weakref.ref(self), pause, self._wake
                self._thread = threading.Thread(target=_stay, args=rest, daemon=True)
                self._thread.start()
        try:
            with patience.calling(self._wake.set):
                if not patience.is_endless:
                    # who sleeps knows of the owner's limit only; a stop before this is seen now, one after it calls
                    self._wake.set()
                yield watch
        finally:
            with self._lock:
                self._watched = None

    def look(self) -> float | None:
        """Does what there is to do, and says in how many seconds to look again; None: nobody has to."""
        with self._lock:
            return self._look()

    def _look(self) -> float | None:
        watch = self._watched
        if watch is None:
            self._thread = None
            return None
        if watch.is_over:
            # again and again: one that falls between two statements is lost
            self._interrupt()
            return AGAIN
        if self._telling and self._told is not None:
            self._tell(self._told, watch)
        return max(min(watch.left, STAY if self._told is None else TICK), 0)

    def _tell(self, told: Progress, watch: Watch) -> None:
        percent = self._percent()
        if percent < 0:
            return
        try:
            told(watch.share(percent))
        except Exception as failure:  # noqa: BLE001 - a function of the owner
            _OWNER.error("progress= failed: %s", type(failure).__name__)
            self._telling = False


def _stay(watcher: "weakref.ref[Watcher]", pause: float | None, wake: threading.Event) -> None:
    """Looks as often as there is something to see; between looks it holds nothing of the engine, which may go."""
    while pause is not None:
        wake.wait(pause)
        wake.clear()
        found = watcher()
        pause = None if found is None else found.look()
        del found
