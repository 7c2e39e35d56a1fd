# SPDX-License-Identifier: Apache-2.0
"""Someone beside a running statement: it is ended when it takes too long, and the owner is told how far it is."""

import logging
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TypeAlias

# Told the share that is done, from 0 to 1, from a thread of its own.
Progress: TypeAlias = Callable[[float], object]

_OWNER = logging.getLogger("sfumato.owner")
# How often the owner is told, and how often what does not end is interrupted.
TICK, AGAIN = 0.2, 0.05


class Watch:
    """Statements under way, one after the other: a context manager.

    ``interrupt`` ends the one that runs once all together take longer than ``limit`` seconds;
    ``percent`` says how much of it is done (less than 0: not known). What ``told`` raises ends the
    telling, never the statement.

    >>> with Watch(60, lambda: None) as watch:
    ...     watch.next()
    """

    def __init__(
        self,
        limit: float,
        interrupt: Callable[[], object],
        *,
        percent: Callable[[], float] = lambda: -1.0,
        told: Progress | None = None,
        statements: int = 1,
    ) -> None:
        self._interrupt = interrupt
        self._percent, self._told = percent, told
        self._statements, self._finished, self._share = statements, 0, 0.0
        self._ends = time.monotonic() + limit
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def is_over(self) -> bool:
        """Whether the time is: what is no statement looks for itself."""
        return time.monotonic() >= self._ends

    def next(self) -> None:
        """A statement has ended."""
        self._finished += 1

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._done.wait(self._pause()):
            if self.is_over:
                # again and again: one that falls between two statements is lost
                self._interrupt()
            elif self._told is not None:
                self._tell(self._told)

    def _pause(self) -> float:
        left = self._ends - time.monotonic()
        if left <= 0:
            return AGAIN
        return left if self._told is None else min(left, TICK)

    def _tell(self, told: Progress) -> None:
        finished, percent = self._finished, self._percent()
        if percent < 0:
            return
        # an engine that thinks again what there is to do must not go backwards
        self._share = max(self._share, min((finished + percent / 100) / self._statements, 1.0))
        try:
            told(self._share)
        except Exception as failure:  # noqa: BLE001 - a function of the owner
            _OWNER.error("progress= failed: %s", type(failure).__name__)
            self._told = None
