# SPDX-License-Identifier: Apache-2.0
"""Who is inside, and that a door closes once."""

import threading

import pytest

from sfumato.errors import LedgerUnavailable
from sfumato.query.door import Door


def test_a_closed_door_lets_nobody_in_and_closes_once() -> None:
    door = Door()
    assert [door.close(), door.close()] == [True, False]
    with pytest.raises(LedgerUnavailable), door.inside():
        pytest.fail("it is closed")


def test_those_inside_are_interrupted_until_they_leave() -> None:
    door, inside, leave, calls = Door(), threading.Event(), threading.Event(), []

    def stay() -> None:
        with door.inside():
            inside.set()
            leave.wait(10)

    def interrupt() -> None:
        calls.append(1)
        if len(calls) == 2:
            leave.set()

    thread = threading.Thread(target=stay, daemon=True)
    thread.start()
    assert inside.wait(10)
    door.clear(interrupt, 10)
    assert len(calls) >= 2
    thread.join(10)


def test_who_never_leaves_is_not_waited_for_for_ever() -> None:
    door = Door()
    with door.inside():
        door.clear(lambda: None, 0.01)


@pytest.mark.parametrize("held", [False, True])
def test_a_fork_waits_for_nobody(held: bool) -> None:
    door = Door()
    with door.inside():
        if held:
            # another thread of the parent may hold the lock as it forks
            door._lock = threading.Lock()
            door._lock.acquire()
        door._process -= 1
        assert door.close()
        door.clear(lambda: pytest.fail("there is nobody to interrupt"), 10)
