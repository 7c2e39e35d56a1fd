# SPDX-License-Identifier: Apache-2.0
"""Questions under way: each runs in a thread of its own, whoever still waits for it.

What is seen of a job changes at multiples of the quantum only, whether it succeeded or failed. They
are the same for all jobs: with multiples of its own, each further question would tell more closely
when another ended.
"""

import logging
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import contextmanager
from enum import Enum
from typing import Generic, TypeVar

import sfumato as sf
from sfumato.errors import Cancelled
from sfumato.service.credentials import new_id
from sfumato.service.ended import Ended
from sfumato.service.refusals import NotVisible, Stopping, TooMany

T = TypeVar("T")
# More than the questions of a few people: stored answers wait for no slow question.
_THREADS = 64
# Threads that compute at the same time slow each other down: Python runs one at a time.
_STARTING, _START_SECONDS = 4, 0.05
# Finished jobs that are remembered of one person; their answers are in the ledger.
_REMEMBERED = 100
_LOG = logging.getLogger("sfumato.service")


class JobState(Enum):
    """The state of a question in the service, as its analyst sees it; without progress or size."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"


class Job(Generic[T]):
    """A question that runs in the background; its start and end become visible with a delay."""

    def __init__(self, person: str, quantum: float, clock: Callable[[], float]) -> None:
        self.id = new_id()
        self.person = person
        self.stop = sf.Stop()
        self.ended: Future[T] = Future()
        self._quantum = quantum
        self._clock = clock
        self._started = math.inf
        self._finished = math.inf
        # of those who wait; a future would keep those who no longer do
        self._waking: set[Callable[[], None]] = set()
        self.ended.add_done_callback(self._wake)

    def run(self, work: Callable[[sf.Stop], T]) -> None:
        """Runs ``work`` and stores its result, or its error, in the future ``ended``."""
        self._started = self._clock()
        try:
            result = work(self.stop)
        except BaseException as error:  # noqa: BLE001 - whatever it is goes to who waits
            self._finished = self._clock()
            # its frames would keep what they hold for as long as the job is remembered
            error.__context__ = None
            self.ended.set_exception(error.with_traceback(None))
        else:
            self._finished = self._clock()
            self.ended.set_result(result)

    def _wake(self, _: object) -> None:
        for wake in tuple(self._waking):
            wake()

    @contextmanager
    def waking(self, wake: Callable[[], None]) -> Iterator[None]:
        """A context in which the end of the job calls ``wake``; at once if it has ended."""
        self._waking.add(wake)
        try:
            if self.ended.done():
                wake()
            yield
        finally:
            self._waking.discard(wake)

    def leaves(self, moment: float) -> float:
        """Returns when an event at time ``moment`` becomes visible: at a multiple of the quantum.

        A coarse time hides how long the question took.
        """
        return next_multiple(self._quantum, moment)

    @property
    def visible_at(self) -> float:
        """The time from which the end of the job is visible; infinite while it runs."""
        return math.inf if math.isinf(self._finished) else self.leaves(self._finished)

    @property
    def state(self) -> JobState:
        """The state of the job that is visible now."""
        now = self._clock()
        if now < self.visible_at:
            is_started = not math.isinf(self._started) and now >= self.leaves(self._started)
            return JobState.RUNNING if is_started else JobState.WAITING
        error = self.ended.exception()
        if error is None:
            return JobState.DONE
        is_stopped = isinstance(error, Ended) and isinstance(error.error, Cancelled)
        return JobState.STOPPED if is_stopped else JobState.FAILED


def next_multiple(quantum: float, moment: float) -> float:
    """Returns the first multiple of a quantum that is no earlier than a time; without one the time.

    >>> next_multiple(0.5, 7.2), next_multiple(0, 7.2)
    (7.5, 7.2)
    """
    return quantum * math.ceil(moment / quantum) if quantum else moment


class Turns:
    """Lets a few questions begin at a time, the oldest first.

    A question that takes long no longer counts as beginning, so it holds up no other.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        # when each began, by its thread
        self._begun: dict[int, float] = {}

    def __enter__(self) -> None:
        with self._lock:
            while (seconds := self._seconds_to_wait()) > 0:
                self._changed.wait(seconds)
            self._begun[threading.get_ident()] = self._clock()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            del self._begun[threading.get_ident()]
            self._changed.notify()

    def _seconds_to_wait(self) -> float:
        """How long until fewer than ``most`` are beginning; 0 or less if it is so now."""
        if len(self._begun) < self._most:
            return 0
        # of the newest that count, the oldest ends to count first
        oldest = sorted(self._begun.values())[-self._most]
        return oldest + _START_SECONDS - self._clock()


class Jobs:
    """The background questions of the service, in memory only; answers are stored in the ledger.

    Guarantees:
        a person has a bounded number of questions under way
        an end is seen at a multiple of the quantum only
        an end makes no room before it is seen
    """

    def __init__(
        self, *, waiting: int, quantum: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._waiting = waiting
        self._quantum = quantum
        self._clock = clock
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(_THREADS, "question")
        self._turns = Turns(_STARTING)
        self._under_way: dict[str, set[Job[object]]] = {}
        # of each person, when the ends of other questions become visible
        self._ending: dict[str, list[float]] = {}
        self._shown: dict[str, OrderedDict[str, Job[object]]] = {}
        self._closed = False

    def admit(self, person: str, work: Callable[[sf.Stop], T]) -> Job[T]:
        """Starts ``work`` in a thread as a question of this person; returns the job.

        Raises:
            Stopping: the service is stopping.
            TooMany: the person has as many under way as one may.
        """
        job: Job[T] = Job(person, self._quantum, self._clock)
        with self._lock:
            if self._closed:
                raise Stopping
            # an end that is not visible yet makes no room: the room would tell of it
            if self._count(person) >= self._waiting:
                raise TooMany(f"You have {self._waiting} questions under way.")
            self._under_way.setdefault(person, set()).add(job)  # type: ignore[arg-type]
        self._threads.submit(self._run, job, work)
        return job

    def _run(self, job: Job[T], work: Callable[[sf.Stop], T]) -> None:
        with self._turns:
            job.run(work)
        with self._lock:
            own = self._under_way[job.person]
            own.discard(job)
            if not own:
                del self._under_way[job.person]
            self._ending.setdefault(job.person, []).append(job.visible_at)

    def _count(self, person: str) -> int:
        """How many questions of a person are under way, as the person sees it."""
        now = self._clock()
        ending = [visible for visible in self._ending.pop(person, ()) if visible > now]
        if ending:
            self._ending[person] = ending
        return len(self._under_way.get(person, ())) + len(ending)

    def seconds_to_read(self, person: str) -> float:
        """Returns how long what a person reads has to wait: to a multiple of the quantum, if a
        question of the person is under way; budget and answers tell of its end too.
        """
        with self._lock:
            if not self._quantum or not self._count(person):
                return 0
        now = self._clock()
        return next_multiple(self._quantum, now) - now

    def show(self, job: Job[T]) -> None:
        """Makes a job available to ``find``, by its id; only a person's newest jobs remain so."""
        with self._lock:
            own = self._shown.setdefault(job.person, OrderedDict())
            own[job.id] = job  # type: ignore[assignment]
            while len(own) > _REMEMBERED:
                own.popitem(last=False)

    def find(self, person: str, job_id: str) -> Job[object]:
        """Returns a person's job by its id.

        Raises:
            NotVisible: this person has no such job, whoever else has.
        """
        with self._lock:
            job = self._shown.get(person, OrderedDict()).get(job_id)
        if job is None:
            raise NotVisible
        return job

    def close(self) -> None:
        """Refuses all further questions."""
        with self._lock:
            self._closed = True

    def drain(self, seconds: float) -> None:
        """Waits up to ``seconds`` for running questions, then stops the rest and waits for them.

        A stopped question that had begun to read stays paid.
        """
        self.close()
        for patience, stops in ((seconds, False), (10.0, True)):
            with self._lock:
                left = [job for own in self._under_way.values() for job in own]
            if stops and left:
                _LOG.info("stopping %d questions", len(left))
                for job in left:
                    job.stop.stop()
            wait_for([job.ended for job in left], timeout=patience)
        self._threads.shutdown(wait=False, cancel_futures=True)
