# SPDX-License-Identifier: Apache-2.0
"""Connections taken in turn: never two callers on one, never more than there may be."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from sfumato.errors import LedgerUnavailable
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
