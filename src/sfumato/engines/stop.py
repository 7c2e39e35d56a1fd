# SPDX-License-Identifier: Apache-2.0
"""How long a caller waits for an answer: until a ``Stop`` from another thread, or a timeout.

The session makes a ``Patience`` of ``stop=`` and ``time_limit=`` and passes it to the engine.
"""

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sfumato.errors import Cancelled, WrongUse, shown


class Stop:
    """Stops questions from another thread: pass it to ``session.query(..., stop=)``, then call
    ``stop``.

    A question that has not begun to read the data then costs nothing; one that reads it is
    interrupted, and its cost stays spent. A ``Stop`` cannot be reset.

    >>> stop = Stop()
    >>> stop.stop()
    >>> stop.is_stopped
    True
    """

    __slots__ = ("_calls", "_event", "_lock")

    def __init__(self) -> None:
        self._event = threading.Event()
        # re-entrant: a signal handler may stop a question of its own thread
        self._lock = threading.RLock()
        self._calls: list[Callable[[], object]] = []

    @property
    def is_stopped(self) -> bool:
        """Whether ``stop`` was called."""
        return self._event.is_set()

    def stop(self) -> None:
        """Stops every question that this object was passed to, now and later."""
        self._event.set()
        with self._lock:
            calls = list(self._calls)
        for call in calls:
            call()

    def wait(self, seconds: float | None) -> bool:
        """Blocks until it is stopped, or for ``seconds`` at most; returns whether it is stopped."""
        return self._event.wait(seconds)

    @contextmanager
    def calling(self, call: Callable[[], object]) -> Iterator[None]:
        """Context manager in which ``stop`` also calls the function ``call``, which should
        interrupt the running work.
        """
        with self._lock:
            self._calls.append(call)
        try:
            yield
        finally:
            with self._lock:
                self._calls.remove(call)

    def __repr__(self) -> str:
        return f"Stop({'stopped' if self.is_stopped else 'not stopped'})"


def is_duration(seconds: object) -> bool:
    """Whether a value is a number of seconds above 0.

    >>> is_duration(0.5), is_duration(0), is_duration(True)
    (True, False, False)
    """
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return False
    return 0 < seconds < 1e9


class Patience:
    """How long a caller waits for an answer: until ``stop`` is called, or ``seconds`` have passed.

    Raises:
        WrongUse: ``stop`` is no ``Stop``, or ``seconds`` is no number above 0.

    >>> Patience(seconds=60).is_over
    False
    """

    __slots__ = ("_ends", "_stop")

    def __init__(self, stop: Stop | None = None, seconds: float | None = None) -> None:
        if stop is not None and not isinstance(stop, Stop):
            raise WrongUse(f"stop={type(stop).__name__}.", allowed="sf.Stop()")
        if seconds is not None and not is_duration(seconds):
            raise WrongUse(f"time_limit={shown(seconds)}.", allowed="seconds, more than 0")
        self._stop = stop
        self._ends = math.inf if seconds is None else time.monotonic() + seconds

    @property
    def left(self) -> float:
        """The number of seconds until the timeout."""
        if self._stop is not None and self._stop.is_stopped:
            return 0.0
        return self._ends - time.monotonic()

    @property
    def is_over(self) -> bool:
        """Whether the caller stopped waiting."""
        return self.left <= 0

    @property
    def is_endless(self) -> bool:
        """Whether the caller waits for ever."""
        return self._stop is None and self._ends == math.inf

    def require(self) -> None:
        """Raises an error if the caller stopped waiting; for use before anything is charged.

        Raises:
            Cancelled: the caller stopped waiting; nothing was charged.
        """
        if self.is_over:
            raise Cancelled(paid=False)

    def pause(self, seconds: float) -> None:
        """Sleeps for a number of seconds, or until the caller stops waiting.

        Raises:
            Cancelled: the caller stopped waiting; nothing was charged.
        """
        seconds = max(min(seconds, self.left), 0)
        if self._stop is None:
            time.sleep(seconds)
        else:
            self._stop.wait(seconds)
        self.require()

    @contextmanager
    def calling(self, call: Callable[[], object]) -> Iterator[None]:
        """Context manager in which a stop calls the function ``call`` at once, to interrupt the
        running work; a timeout does not call it.
        """
        if self._stop is None:
            yield
            return
        with self._stop.calling(call):
            yield


# The patience of a caller that waits for ever.
ENDLESS = Patience()


def patience_of(stop: Stop | None, time_limit: float | None) -> Patience:
    """Returns the ``Patience`` of a question's arguments ``stop`` and ``time_limit``, in seconds.

    ``ENDLESS`` if both are None. Raises as ``Patience`` does.

    >>> patience_of(None, None) is ENDLESS
    True
    """
    if stop is None and time_limit is None:
        return ENDLESS
    return Patience(stop, time_limit)
