# SPDX-License-Identifier: Apache-2.0
"""Group commit: one thread runs what many callers hand in, and one flush serves them all.

A caller waits until the batch with its unit is on disk. While the disk works on one batch,
the next gathers: the more callers, the larger the batch, and the flushes stay as many.
"""

import threading
import weakref
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import TypeVar, cast

T = TypeVar("T")

# More in one batch would only make its first callers wait for its last.
_LARGEST_BATCH = 256


class Task:
    """One unit of work, and its end: a result or an error. A future, with one lock and no more."""

    __slots__ = ("_done", "_error", "_value", "dropped", "work", "writes")

    def __init__(self, work: Callable[[], object], *, writes: bool) -> None:
        self.work = work
        self.writes = writes
        # set by a caller who waits no longer: of use only where the unit has not begun
        self.dropped = False
        self._value: object = None
        self._error: BaseException | None = None
        self._done = threading.Lock()
        self._done.acquire()

    def succeed(self, value: object) -> None:
        """Hands the result to the caller."""
        self._value = value
        self._done.release()

    def fail(self, error: BaseException) -> None:
        """Raises an error at the caller."""
        self._error = error
        self._done.release()

    def wait(self) -> object:
        """The result, once there is one."""
        self._done.acquire()
        if self._error is None:
            return self._value
        try:
            raise self._error
        finally:
            self._error = None  # its traceback holds this frame


class Writer:
    """The thread, and the queue before it.

    ``run`` does a batch: it gives every task of it a result or an error. ``end`` is called
    last of all, on that thread. Both must not hold the object that owns this writer, so that
    an owner that is forgotten without ``close`` still lets go of what it held.
    """

    def __init__(self, run: Callable[[Sequence[Task]], None], end: Callable[[], None], owner: object) -> None:
        self._queue: SimpleQueue[Task | None] = SimpleQueue()
        self._thread = threading.Thread(target=_loop, args=(self._queue, run, end), name="sfumato ledger", daemon=True)
        self._thread.start()
        self._closing = weakref.finalize(owner, _stop, self._queue, self._thread)

    @property
    def closed(self) -> bool:
        """Whether it takes no more work."""
        return not self._closing.alive

    def do(self, work: Callable[[], T], *, writes: bool) -> T:
        """Hands a unit in and waits for it; an interrupted caller does not know whether it took effect."""
        task = Task(work, writes=writes)
        self._queue.put(task)
        try:
            return cast(T, task.wait())
        except BaseException:
            task.dropped = True
            raise

    def close(self) -> None:
        """Waits for what was handed in, then for the end."""
        self._closing()

    def abandon(self) -> None:
        """Forgets the thread: in a forked child there is none."""
        self._closing.detach()


def _stop(queue: "SimpleQueue[Task | None]", thread: threading.Thread) -> None:
    queue.put(None)
    if thread is not threading.current_thread():
        thread.join()


def _loop(queue: "SimpleQueue[Task | None]", run: Callable[[Sequence[Task]], None], end: Callable[[], None]) -> None:
    open_ = True
    while open_:
        batch, last = [queue.get()], 1
        try:
            while last < _LARGEST_BATCH:
                batch.append(queue.get_nowait())
                last += 1
        except Empty:
            pass
        open_ = None not in batch
        tasks = [task for task in batch if task is not None and not task.dropped]
        if tasks:
            run(tasks)
        # a caller's result must not live on in this thread while it waits
        del batch, tasks
    end()
