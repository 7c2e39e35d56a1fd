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

from sfumato.errors import LedgerUnavailable

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


class _Inbox:
    """The queue before the thread; once closed it takes nothing, so that nobody waits for nobody."""

    def __init__(self) -> None:
        self.queue: SimpleQueue[Task | None] = SimpleQueue()
        self.closed = False
        self._lock = threading.Lock()

    def put(self, task: Task) -> bool:
        """Whether it was taken."""
        with self._lock:
            if not self.closed:
                self.queue.put(task)
            return not self.closed

    def close(self) -> None:
        """Nothing comes after this."""
        with self._lock:
            if not self.closed:
                self.closed = True
                self.queue.put(None)


class Writer:
    """The thread, and the queue before it.

    ``run`` does a batch: it gives every task of it a result or an error. ``end`` is called
    last of all, on that thread. Both must not hold the object that owns this writer, so that
    an owner that is forgotten without ``close`` still lets go of what it held.
    """

    def __init__(self, run: Callable[[Sequence[Task]], None], end: Callable[[], None], owner: object) -> None:
        self._inbox = _Inbox()
        arguments = (self._inbox.queue, run, end)
        self._thread = threading.Thread(target=_loop, args=arguments, name="sfumato ledger", daemon=True)
        self._thread.start()
        self._closing = weakref.finalize(owner, _stop, self._inbox, self._thread)

    @property
    def closed(self) -> bool:
        """Whether it takes no more work."""
        return self._inbox.closed

    def do(self, work: Callable[[], T], *, writes: bool) -> T:
        """Hands a unit in and waits for it; an interrupted caller does not know whether it took effect.

        Raises:
            LedgerUnavailable: the writer was closed.
        """
        task = Task(work, writes=writes)
        if not self._inbox.put(task):
            raise LedgerUnavailable("The session is closed.", remedy="Open another with sf.connect or sf.load.")
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


def _stop(inbox: _Inbox, thread: threading.Thread) -> None:
    inbox.close()
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
