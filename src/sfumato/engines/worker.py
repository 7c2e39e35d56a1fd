# SPDX-License-Identifier: Apache-2.0
"""A thread that runs the statements of a lane, so that the caller's thread can receive Ctrl-C.

DuckDB checks for signals between two of its tasks, and a task can take minutes. Python raises
``KeyboardInterrupt`` in the main thread at once if that thread only waits.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import TypeVar

from sfumato.engines.time_limit import AGAIN

T = TypeVar("T")


class Worker:
    """A thread that runs one function at a time for a waiting caller; ``interrupt`` must make a
    running function end.

    The caller's thread only waits, so that it can receive Ctrl-C.

    >>> Worker(lambda: None).run(lambda: 3)
    3
    """

    __slots__ = ("_interrupt", "_thread")

    def __init__(self, interrupt: Callable[[], object]) -> None:
        self._interrupt = interrupt
        # its thread starts with the first function, and ends with the last reference to it
        self._thread = ThreadPoolExecutor(1, "sfumato")

    def run(self, work: Callable[[], T]) -> T:
        """Runs ``work`` and returns its result, or raises its error.

        Called in the main thread, it waits for the worker thread. Any other thread runs ``work``
        itself, since only the main thread receives signals. ``work`` has always ended when this
        returns.
        """
        if threading.current_thread() is not threading.main_thread():
            return work()
        future: Future[T] = Future()
        try:
            self._thread.submit(_carry_out, future, work)
            return future.result()
        finally:
            self._end(future)

    def _end(self, future: "Future[T]") -> None:
        # what has not begun, since Ctrl-C came first, never does
        while not (future.cancel() or future.done()):
            # a second Ctrl-C waits for the end like the first
            with suppress(KeyboardInterrupt):
                # repeatedly: an interrupt before the statement begins is lost
                self._interrupt()
                wait([future], AGAIN)

    def close(self) -> None:
        """Ends the worker thread."""
        self._thread.shutdown(wait=False)


def _carry_out(future: "Future[T]", work: Callable[[], T]) -> None:
    if future.set_running_or_notify_cancel():
        try:
            future.set_result(work())
        except BaseException as failure:  # noqa: BLE001 - the waiting thread raises it
            future.set_exception(failure)
