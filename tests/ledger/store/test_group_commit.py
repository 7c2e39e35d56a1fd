# SPDX-License-Identifier: Apache-2.0
"""The thread that commits for everybody: order, batches, errors, the end."""

import gc
import threading
import weakref
from collections.abc import Callable, Sequence

import pytest

import sfumato.ledger.store.group_commit as module
from sfumato.errors import LedgerUnavailable
from sfumato.ledger.store.group_commit import Task, Writer


class Owner:
    """What a writer belongs to."""


class Recorder:
    """Runs batches and remembers their sizes; can be held up."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.threads: set[int] = set()
        self.ended = threading.Event()
        self.gate = threading.Event()
        self.gate.set()
        self.handed = threading.Event()

    def run(self, tasks: Sequence[Task]) -> None:
        self.handed.set()
        self.gate.wait()
        self.batches.append(len(tasks))
        self.threads.add(threading.get_ident())
        for task in tasks:
            try:
                task.succeed(task.work())
            except Exception as error:
                task.fail(error)


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


def together(count: int, work: Callable[[int], object]) -> list[object]:
    """What so many threads got."""
    found: list[object] = [None] * count

    def one(number: int) -> None:
        found[number] = work(number)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_each_caller_gets_its_own_result_from_one_thread(recorder: Recorder) -> None:
    owner = Owner()
    writer = Writer(recorder.run, recorder.ended.set, owner)
    assert together(20, lambda number: writer.do(lambda: number * number, writes=True)) == [
        n * n for n in range(20)
    ]
    assert len(recorder.threads) == 1
    assert threading.get_ident() not in recorder.threads
    writer.close()


def test_what_gathers_while_a_batch_runs_is_the_next_batch(recorder: Recorder) -> None:
    owner = Owner()
    writer = Writer(recorder.run, recorder.ended.set, owner)
    recorder.gate.clear()
    handed = threading.Semaphore(0)

    def one(number: int) -> object:
        handed.release()
        return writer.do(lambda: number, writes=True)

    releaser = threading.Thread(
        target=lambda: ([handed.acquire() for _ in range(300)], recorder.gate.set())
    )
    releaser.start()
    together(300, one)
    releaser.join()
    assert sum(recorder.batches) == 300
    assert max(recorder.batches) > 1
    assert max(recorder.batches) <= 256
    writer.close()


def test_an_error_goes_to_its_caller_alone(recorder: Recorder) -> None:
    owner = Owner()
    writer = Writer(recorder.run, recorder.ended.set, owner)

    def work(number: int) -> object:
        try:
            return writer.do(lambda: 1 // (number % 2), writes=True)
        except ZeroDivisionError:
            return "error"

    assert together(6, work) == ["error", 1] * 3
    writer.close()


def test_closing_waits_for_what_was_handed_in_and_twice_is_once(recorder: Recorder) -> None:
    owner = Owner()
    writer = Writer(recorder.run, recorder.ended.set, owner)
    done: list[int] = []
    recorder.gate.clear()
    handed = threading.Event()
    recorder.handed = handed
    caller = threading.Thread(target=lambda: writer.do(lambda: done.append(1), writes=True))
    caller.start()
    handed.wait()
    closers = [threading.Thread(target=writer.close) for _ in range(2)]
    for closer in closers:
        closer.start()
    recorder.gate.set()
    for thread in (caller, *closers):
        thread.join()
    writer.close()
    assert (done, recorder.ended.is_set(), writer.closed) == ([1], True, True)


def test_an_owner_that_is_forgotten_ends_its_thread(recorder: Recorder) -> None:
    owner = Owner()
    writer = Writer(recorder.run, recorder.ended.set, owner)
    writer.do(lambda: None, writes=True)
    thread = weakref.ref(writer._thread)
    del owner, writer
    gc.collect()
    assert recorder.ended.wait(10)
    found = thread()
    if found is not None:
        found.join(10)
        assert not found.is_alive()


class Interrupted(BaseException):
    """What Ctrl-C raises where a caller waits."""


def test_a_caller_that_is_interrupted_takes_back_what_had_not_begun(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = Owner()
    writer = Writer(recorder.run, recorder.ended.set, owner)
    recorder.gate.clear()
    first = threading.Thread(target=lambda: writer.do(lambda: None, writes=True))
    first.start()
    done: list[int] = []

    def interrupt(self: Task) -> object:
        raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr(Task, "wait", interrupt)
        with pytest.raises(Interrupted):
            writer.do(lambda: done.append(1), writes=True)
    recorder.gate.set()
    first.join()
    writer.close()
    assert done == []


def held_up(writer: Writer, recorder: Recorder) -> threading.Thread:
    """A caller in whose batch the thread is held until the gate opens."""
    recorder.gate.clear()
    first = threading.Thread(target=lambda: writer.do(lambda: None, writes=True), daemon=True)
    first.start()
    assert recorder.handed.wait(10)
    return first


def drop_one(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller who is interrupted before its transaction has begun."""

    def interrupt(self: Task) -> object:
        raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr(Task, "wait", interrupt)
        with pytest.raises(Interrupted):
            writer.do(lambda: None, writes=True)


def test_a_batch_of_interrupted_callers_alone_does_not_end_the_thread(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = Owner()
    writer = Writer(recorder.run, recorder.ended.set, owner)
    first = held_up(writer, recorder)
    drop_one(writer, monkeypatch)
    recorder.gate.set()
    first.join(10)
    # long enough for the thread to have looked at the batch of nobody
    assert not recorder.ended.wait(0.2)
    found: list[object] = []
    other = threading.Thread(
        target=lambda: found.append(writer.do(lambda: 7, writes=True)), daemon=True
    )
    other.start()
    other.join(10)
    assert found == [7]
    writer.close()


class Broken(BaseException):
    """What a batch must never raise."""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_whatever_ends_the_thread_leaves_nobody_waiting(recorder: Recorder) -> None:
    owner = Owner()

    def run(tasks: Sequence[Task]) -> None:
        recorder.run(tasks[:1])
        raise Broken

    writer = Writer(run, recorder.ended.set, owner)
    recorder.gate.clear()
    ends: list[object] = []

    def ask() -> None:
        try:
            ends.append(writer.do(lambda: "done", writes=True))
        except LedgerUnavailable:
            ends.append("refused")

    callers = [threading.Thread(target=ask, daemon=True) for _ in range(4)]
    callers[0].start()
    assert recorder.handed.wait(10)
    for each in callers[1:]:
        each.start()
    recorder.gate.set()
    for each in callers:
        each.join(10)
    assert sorted(map(str, ends)) == ["done", "refused", "refused", "refused"]
    assert recorder.ended.wait(10) and writer.closed
    with pytest.raises(LedgerUnavailable):
        writer.do(lambda: None, writes=True)


def test_nobody_waits_at_a_closed_door(recorder: Recorder) -> None:
    owner = Owner()
    writer = Writer(recorder.run, recorder.ended.set, owner)
    let_in = threading.Barrier(9)

    def knock(number: int) -> object:
        writer.do(lambda: number, writes=True)
        let_in.wait()
        try:
            while True:
                writer.do(lambda: number, writes=True)
        except LedgerUnavailable:
            return "refused"

    closer = threading.Thread(target=lambda: (let_in.wait(), writer.close()))
    closer.start()
    assert together(8, knock) == ["refused"] * 8
    closer.join()


def served(recorder: Recorder, monkeypatch: pytest.MonkeyPatch, patience: float) -> list[int]:
    """The sizes of the batches of eight callers who always come back, until ten batches were of all
    eight.
    """
    monkeypatch.setattr(module, "_patience", lambda took: patience)
    owner, enough = Owner(), threading.Event()

    def run(tasks: Sequence[Task]) -> None:
        recorder.run(tasks)
        if len(recorder.batches) == 100_000 or recorder.batches[-10:] == [8] * 10:
            enough.set()

    writer = Writer(run, recorder.ended.set, owner)

    def again(number: int) -> object:
        try:
            while not enough.is_set():
                writer.do(lambda: number, writes=True)
        except LedgerUnavailable:
            return "refused"
        return "enough"

    closer = threading.Thread(target=lambda: (enough.wait(), writer.close()))
    closer.start()
    together(8, again)
    closer.join()
    return recorder.batches


def test_those_who_are_answered_together_are_served_together_again(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = served(recorder, monkeypatch, 1e6)
    growing = sizes[: sizes.index(8) + 10]
    assert growing == sorted(growing)


def test_nobody_is_waited_for_where_one_asks_alone(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_patience", lambda took: 1e6)
    owner = Owner()
    writer = Writer(recorder.run, recorder.ended.set, owner)
    assert [writer.do(lambda number=number: number, writes=True) for number in range(5)] == list(
        range(5)
    )
    assert recorder.batches == [1] * 5
    writer.close()


def test_who_does_not_come_back_is_not_waited_for_long(recorder: Recorder) -> None:
    owner = Owner()
    writer = Writer(recorder.run, recorder.ended.set, owner)
    together(8, lambda number: writer.do(lambda: number, writes=True))
    assert writer.do(lambda: "one", writes=True) == "one"
    writer.close()


def test_the_wait_is_half_as_long_as_a_flush_and_never_long() -> None:
    assert module._patience(0.004) == 0.002
    assert module._patience(60) == 0.01


def test_an_owner_may_come_to_its_end_under_the_lock_of_the_queue() -> None:
    inbox = module._Inbox()
    with inbox._changed:
        inbox.close()
    assert inbox.take(5, 1e6) == []
