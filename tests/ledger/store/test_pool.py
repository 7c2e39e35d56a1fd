# SPDX-License-Identifier: Apache-2.0
"""Connections taken in turn: never two callers on one, never more than there may be."""

import linecache
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import count
from types import FrameType
from typing import Any

import pytest

from sfumato.errors import LedgerUnavailable
from sfumato.ledger.store import pool as module
from sfumato.ledger.store.pool import Pool


class Line:
    """A connection that knows whether it may be used again."""

    def __init__(self) -> None:
        self.sound = True
        self.closed = False
        self.users = 0

    def close(self) -> None:
        self.closed = True


def pool_of(size: int) -> tuple[Pool[Line], list[Line]]:
    """A pool and all that it has opened."""
    opened: list[Line] = []

    def connect() -> Line:
        opened.append(Line())
        return opened[-1]

    return Pool(connect, lambda line: line.sound, size), opened


def test_nothing_is_opened_before_it_is_needed_and_then_it_is_kept() -> None:
    pool, opened = pool_of(3)
    assert opened == []
    for _ in range(3):
        with pool.one():
            pass
    assert len(opened) == 1


def test_no_two_callers_share_a_connection_and_no_more_are_opened_than_there_may_be() -> None:
    pool, opened = pool_of(3)
    together = threading.Barrier(3)
    seen: list[int] = []

    def call(first: bool) -> None:
        with pool.one() as line:
            line.users += 1
            if first:
                together.wait(10)  # three are inside at once
            seen.append(line.users)
            line.users -= 1

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(call, [True] * 3))
        list(threads.map(call, [False] * 200))
    assert (len(opened), set(seen)) == (3, {1})


def test_a_broken_connection_is_closed_and_replaced() -> None:
    pool, opened = pool_of(1)
    with pool.one() as line:
        line.sound = False
    with pool.one():
        pass
    assert [line.closed for line in opened] == [True, False]


def test_idle_connections_can_be_forgotten() -> None:
    pool, opened = pool_of(2)
    with pool.one(), pool.one():
        pool.forget_idle()
        assert not any(line.closed for line in opened)
    pool.forget_idle()
    assert all(line.closed for line in opened)
    with pool.one() as line:
        assert not line.closed


def test_a_connection_that_cannot_be_opened_gives_its_turn_back() -> None:
    pool = Pool[Line](lambda: 1 / 0, lambda _: True, 1)  # type: ignore[arg-type,return-value]
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), pool.one():
            pass
    pool.close()


def test_closing_waits_for_those_inside_and_refuses_those_after() -> None:
    pool, opened = pool_of(1)
    inside, leave = threading.Event(), threading.Event()

    def hold() -> bool:
        with pool.one() as line:
            inside.set()
            leave.wait(10)
            return line.closed

    with ThreadPoolExecutor(2) as threads:
        held = threads.submit(hold)
        inside.wait(10)
        closing = threads.submit(pool.close)
        while not pool._closed:
            pass
        with pytest.raises(LedgerUnavailable, match="closed"), pool.one():
            pass
        leave.set()
        assert held.result(10) is False
        closing.result(10)
    assert opened[0].closed
    pool.close()


class OfSemaphore(Pool[Line]):
    """As it was: with a semaphore, which is Python, and a number of callers."""

    @contextmanager
    def one(self) -> Iterator[Line]:
        with self._turns:
            connection = self._taken() or self._connect()
            try:
                yield connection
            finally:
                self._give_back(connection)

    @property
    def _turns(self) -> threading.Semaphore:
        return self.__dict__.setdefault("turns", threading.Semaphore(self._size))


def interrupted_at(line: int, pool: Pool[Line]) -> bool:
    """Takes a connection with Ctrl-C at the so many-th line that is run for it; False if there is
    no such line.

    The end of a ``with`` is traced as its line once more, and ``try:`` as one; no signal is heard
    at either.
    """
    passed, files = set[tuple[int, int]](), {module.__file__, threading.__file__}

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename not in files | {__file__}:
            return None
        place = id(frame), frame.f_lineno
        is_try = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip() == "try:"
        if (
            event == "line"
            and frame.f_code.co_filename in files
            and place not in passed
            and not is_try
        ):
            passed.add(place)
            if len(passed) == line:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with suppress(KeyboardInterrupt), pool.one():
            sys.settrace(before)
            return False
    finally:
        sys.settrace(before)
    return True


def stuck_after_interrupt(kind: type[Pool[Line]], patience: float) -> int:
    """The first line at which an interruption takes the only place away for ever.

    0 if there is none.
    """
    for line in count(1):
        pool = kind(Line, lambda _: True, 1)
        was_interrupted = interrupted_at(line, pool)

        def use(pool: Pool[Line] = pool) -> None:
            with pool.one():
                pass
            pool.close()

        thread = threading.Thread(target=use, daemon=True)
        thread.start()
        thread.join(patience)
        if thread.is_alive():
            return line
        if not was_interrupted:
            return 0
    raise AssertionError("unreachable")


def test_an_interrupted_caller_leaves_its_place_to_others() -> None:
    assert stuck_after_interrupt(Pool, 10) == 0


def test_a_semaphore_that_an_interruption_leaves_taken_is_noticed() -> None:
    assert stuck_after_interrupt(OfSemaphore, 0.5) > 0
