# SPDX-License-Identifier: Apache-2.0
"""Group commit: one thread runs the transactions of many callers, and one flush serves them all.

A caller waits until the batch with its transaction is on disk. While one batch is flushed, the next
one collects; the more callers, the larger the batch, at the same number of flushes. Callers that
were just served often return soon with their next step, so the next batch waits for them for up to
half the time of the last one, at most 10 ms (PostgreSQL's manual, 30.5, advises half a flush for
``commit_delay``); otherwise callers would be served in two halves, with a flush each. A single
caller never waits.
"""

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import TypeVar, cast

from sfumato.errors import LedgerUnavailable

T = TypeVar("T")

# The largest batch; in a larger one the first callers would only wait for the last.
_LARGEST_BATCH = 256
# The longest time, in seconds, that a batch waits for callers of the last batch to return.
_LONGEST_WAIT = 0.01


class Task:
    """A transaction submitted to the writing thread, and its result or error (a light future)."""

    __slots__ = ("_done", "_error", "_value", "dropped", "ended", "work", "writes")

    def __init__(self, work: Callable[[], object], *, writes: bool) -> None:
        self.work = work
        self.writes = writes
        # set by a caller that stopped waiting; has an effect only before the transaction has begun
        self.dropped = False
        # whether it has its result or error
        self.ended = False
        self._value: object = None
        self._error: BaseException | None = None
        self._done = threading.Lock()
        self._done.acquire()

    def succeed(self, value: object) -> None:
        """Sets the transaction's result."""
        self._value, self.ended = value, True
        self._done.release()

    def fail(self, error: BaseException) -> None:
        """Sets the error that ``wait`` raises in the caller."""
        self._error, self.ended = error, True
        self._done.release()

    def wait(self) -> object:
        """Waits for the transaction and returns its result, or raises its error."""
        self._done.acquire()
        if self._error is None:
            return self._value
        try:
            raise self._error
        finally:
            self._error = None  # its traceback holds this frame


class _Inbox:
    """The queue of the thread. Once closed it accepts nothing, so that no caller waits for ever."""

    def __init__(self) -> None:
        self.closed = False
        self._tasks: list[Task] = []
        self._enough = 1
        # Reentrant, since the garbage collector may finalize the owner while the lock is held.
        # Acquired directly and not through the condition, whose ``__enter__`` is Python code:
        # Ctrl-C within it would leave the lock held for ever.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)

    def put(self, task: Task) -> bool:
        """Adds a task; False if the queue is closed."""
        with self._lock:
            if not self.closed:
                self._tasks.append(task)
                if self._is_enough():
                    self._changed.notify()
            return not self.closed

    def close(self) -> None:
        """Closes the queue."""
        with self._lock:
            self.closed = True
            self._changed.notify()

    def take(self, returning: int, patience: float) -> list[Task]:
        """The next batch: all waiting tasks; waits up to ``patience`` seconds for ``returning``
        more. Empty at the end.
        """
        with self._lock:
            # at least one, since an empty batch ends the thread
            self._enough = max(1, min(len(self._tasks) + returning, _LARGEST_BATCH))
            if self._enough > 1:
                self._changed.wait_for(self._is_enough, patience)
                self._enough = 1
            self._changed.wait_for(self._is_enough)
            batch, self._tasks = self._tasks[:_LARGEST_BATCH], self._tasks[_LARGEST_BATCH:]
            return batch

    def _is_enough(self) -> bool:
        return self.closed or len(self._tasks) >= self._enough


class Writer:
    """The thread that runs a store's transactions: all that wait together, as one durable batch.

    ``run`` executes a batch: it gives every task a result or an error. ``end`` is called last, on
    the thread. Neither may refer to the object that owns this writer, so that an owner that is
    garbage collected without ``close`` still releases its resources.
    """

    def __init__(
        self, run: Callable[[Sequence[Task]], None], end: Callable[[], None], owner: object
    ) -> None:
        self._inbox = _Inbox()
        arguments = (self._inbox, run, end)
        self._thread = threading.Thread(
            target=_loop, args=arguments, name="sfumato ledger", daemon=True
        )
        self._thread.start()
        self._closing = weakref.finalize(owner, _stop, self._inbox, self._thread)

    @property
    def closed(self) -> bool:
        """Whether the thread refuses new transactions."""
        return self._inbox.closed

    def do(self, work: Callable[[], T], *, writes: bool) -> T:
        """Submits a transaction and waits for its result; if interrupted, its outcome is unknown.

        Raises:
            LedgerUnavailable: the writer was closed.
        """
        task = Task(work, writes=writes)
        if not self._inbox.put(task):
            raise _closed()
        try:
            return cast(T, task.wait())
        except BaseException:
            task.dropped = True
            raise

    def close(self) -> None:
        """Waits for the submitted transactions and the final ``end``, and stops the thread."""
        self._closing()

    def abandon(self) -> None:
        """Forgets the thread, in a forked child, where it does not exist."""
        self._closing.detach()


def _stop(inbox: _Inbox, thread: threading.Thread) -> None:
    inbox.close()
    if thread is not threading.current_thread():
        thread.join()


def _loop(inbox: _Inbox, run: Callable[[Sequence[Task]], None], end: Callable[[], None]) -> None:
    """Runs batches until the queue is closed; however it ends, no caller keeps waiting."""
    try:
        _serve(inbox, run)
    finally:
        inbox.close()
        while rest := inbox.take(0, 0):
            _fail(rest)
        end()


def _serve(inbox: _Inbox, run: Callable[[Sequence[Task]], None]) -> None:
    returning, patience = 1, 0.0
    while batch := inbox.take(returning, patience):
        begun = time.perf_counter()
        tasks = [task for task in batch if not task.dropped]
        try:
            if tasks:
                run(tasks)
        finally:
            _fail(batch)
        returning, patience = len(tasks), _patience(time.perf_counter() - begun)
        # so that this thread keeps no reference to a caller's result while it waits
        del batch, tasks


def _fail(tasks: Sequence[Task]) -> None:
    """Fails the tasks that have neither a result nor an error."""
    for task in tasks:
        if not task.ended:
            task.fail(_closed())


def _closed() -> LedgerUnavailable:
    return LedgerUnavailable(
        "The session is closed.", remedy="Open another with sf.connect or sf.load."
    )


def _patience(took: float) -> float:
    """Returns how long a batch waits for the callers of the last batch, which took ``took``
    seconds.
    """
    return min(took / 2, _LONGEST_WAIT)
