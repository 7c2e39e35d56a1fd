# SPDX-License-Identifier: Apache-2.0
"""How long a caller waits for an answer: until it stops the question, or a time is over."""

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sfumato.errors import Cancelled, WrongUse, shown


class Stop:
    """Ends questions from another thread: hand it to ``session.query(..., stop=)``, then call ``stop``.

    A question that has not begun to read the data costs nothing then; one that reads it is
    interrupted, and its cost stays spent. Once stopped, it stays so.

    >>> stop = Stop()
    >>> stop.stop()
    >>> stop.is_stopped
    True
    """

    __slots__ = ("_calls", "_event", "_lock")

    def __init__(self) -> None:
        self._event = threading.Event()
        # it can be taken twice: a signal's handler may stop what its own thread is asking
        self._lock = threading.RLock()
        self._calls: list[Callable[[], object]] = []

    @property
    def is_stopped(self) -> bool:
        """Whether ``stop`` was called."""
        return self._event.is_set()

    def stop(self) -> None:
        """Ends every question that was handed this, now and later."""
        self._event.set()
        with self._lock:
            calls = list(self._calls)
        for call in calls:
            call()

    def wait(self, seconds: float | None) -> bool:
        """Waits until it is stopped, at most so long; whether it is."""
        return self._event.wait(seconds)

    @contextmanager
    def calling(self, call: Callable[[], object]) -> Iterator[None]:
        """While it lasts, ``stop`` makes this call."""
        with self._lock:
            self._calls.append(call)
        try:
            yield
        finally:
            with self._lock:
                self._calls.remove(call)

    def __repr__(self) -> str:
        return f"Stop({'stopped' if self.is_stopped else 'not stopped'})"


class Patience:
    """How long one question is waited for: until ``stop``, and at most so many seconds from now.

    Raises:
        WrongUse: no ``Stop``, or no number of seconds above 0.

    >>> Patience(seconds=60).is_over
    False
    """

    __slots__ = ("_ends", "_stop")

    def __init__(self, stop: Stop | None = None, seconds: float | None = None) -> None:
        if stop is not None and not isinstance(stop, Stop):
            raise WrongUse(f"stop={type(stop).__name__}.", allowed="sf.Stop()")
        if seconds is not None and (
            isinstance(seconds, bool)
            or not isinstance(seconds, int | float)
            or not 0 < seconds < 1e9
        ):
            raise WrongUse(f"time_limit={shown(seconds)}.", allowed="seconds, more than 0")
        self._stop = stop
        self._ends = math.inf if seconds is None else time.monotonic() + seconds

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return (
            0.0
            if self._stop is not None and self._stop.is_stopped
            else self._ends - time.monotonic()
        )

    @property
    def is_over(self) -> bool:
        """Whether the caller waits no longer."""
        return self.left <= 0

    @property
    def is_endless(self) -> bool:
        """Whether nothing can end it."""
        return self._stop is None and self._ends == math.inf

    def require(self) -> None:
        """Refuses to go on for a caller who waits no longer, where nothing was charged.

        Raises:
            Cancelled: the caller does not.
        """
        if self.is_over:
            raise Cancelled(paid=False)

    def pause(self, seconds: float) -> None:
        """Waits so long, or until the caller waits no longer.

        Raises:
            Cancelled: the caller does not; nothing was charged.
        """
        seconds = max(min(seconds, self.left), 0)
        if self._stop is None:
            time.sleep(seconds)
        else:
            self._stop.wait(seconds)
        self.require()

    @contextmanager
    def calling(self, call: Callable[[], object]) -> Iterator[None]:
        """While it lasts, a stop makes this call at once; the end of the time does not."""
        if self._stop is None:
            yield
            return
        with self._stop.calling(call):
            yield


# Of a caller who waits whatever happens.
ENDLESS = Patience()
