# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C ends what runs, however long it does not look for signals."""

import os
import signal
import threading
from contextlib import closing, contextmanager

import pytest

from sfumato.engines.worker import Worker
from tests.contracts.interrupts import heard


class Statement:
    """Runs until the ``after``-th interrupt, deaf to signals, and presses Ctrl-C meanwhile."""

    def __init__(self, presses=1, after=1):
        self.presses, self.after, self.interrupts = presses, after, 0
        self.ended = threading.Event()

    def __call__(self):
        for _ in range(self.presses):
            os.kill(os.getpid(), signal.SIGINT)
        self.ended.wait()
        raise ConnectionError

    def interrupt(self):
        self.interrupts += 1
        if self.interrupts >= self.after:
            self.ended.set()


@contextmanager
def worker_of(statement):
    with heard(), closing(Worker(statement.interrupt)) as worker:
        yield worker


@pytest.mark.parametrize("after", [1, 3])
def test_ctrl_c_interrupts_the_statement_until_it_has_ended(after):
    statement = Statement(after=after)
    with worker_of(statement) as worker, pytest.raises(KeyboardInterrupt):
        worker.run(statement)
    assert statement.ended.is_set()
    assert statement.interrupts >= after


def test_a_second_ctrl_c_leaves_nothing_running():
    statement = Statement(after=2)

    def press():
        statement.interrupt()
        os.kill(os.getpid(), signal.SIGINT)

    with heard(), closing(Worker(press)) as worker, pytest.raises(KeyboardInterrupt):
        worker.run(statement)
    assert statement.ended.is_set()


def test_what_has_not_begun_when_ctrl_c_comes_never_begins():
    begun, gate = [], threading.Event()

    def press():
        os.kill(os.getpid(), signal.SIGINT)

    with heard(), closing(Worker(pytest.fail)) as worker:
        # the thread has something else to do first
        worker._thread.submit(gate.wait)
        worker._thread.submit(begun.append, "before")
        threading.Timer(0.1, press).start()
        with pytest.raises(KeyboardInterrupt):
            worker.run(lambda: begun.append("work"))
        gate.set()
        worker.run(lambda: begun.append("after"))
    assert begun == ["before", "after"]


def test_a_result_and_an_error_are_those_of_the_function():
    with closing(Worker(pytest.fail)) as worker:
        assert worker.run(lambda: 3) == 3
        with pytest.raises(ZeroDivisionError):
            worker.run(lambda: 1 // 0)
        assert worker.run(lambda: 4) == 4


def test_only_the_main_thread_waits_for_another():
    with closing(Worker(pytest.fail)) as worker:
        assert worker.run(threading.get_ident) != threading.get_ident()
        same = []
        other = threading.Thread(
            target=lambda: same.append(worker.run(threading.get_ident) == threading.get_ident())
        )
        other.start()
        other.join()
    assert same == [True]


def test_a_closed_worker_keeps_no_thread():
    before = set(threading.enumerate())
    worker = Worker(pytest.fail)
    worker.run(lambda: None)
    (thread,) = set(threading.enumerate()) - before
    worker.close()
    thread.join(10)
    assert not thread.is_alive()
