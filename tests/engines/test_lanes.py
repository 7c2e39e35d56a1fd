# SPDX-License-Identifier: Apache-2.0
"""So many questions at once, and no more."""

import threading

import pytest

from sfumato.engines.lanes import Lanes
from sfumato.engines.stop import Patience, Stop
from sfumato.errors import Cancelled


def most_at_once(lanes: Lanes[int], callers: int) -> int:
    """How many hold a lane at a time, of callers who come together and each wait for the others a
    moment.
    """
    inside, most, guard = 0, 0, threading.Lock()
    company = threading.Barrier(len(lanes.all))

    def come() -> None:
        nonlocal inside, most
        with lanes.take():
            with guard:
                inside += 1
                most = max(most, inside)
            company.wait(10)
            with guard:
                inside -= 1

    threads = [threading.Thread(target=come) for _ in range(callers)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return most


@pytest.mark.parametrize("count", [1, 2, 3])
def test_each_lane_is_held_by_one_caller_and_all_are_used(count: int) -> None:
    assert most_at_once(Lanes(range(count)), 4 * count) == count


def test_two_callers_never_have_the_same_lane() -> None:
    lanes = Lanes(["a", "b"])
    with lanes.take() as one, lanes.take() as other:
        assert {one, other} == {"a", "b"}


def test_who_waits_for_a_free_lane_holds_none() -> None:
    lanes = Lanes(["a"])
    lanes.wait()
    with lanes.take():
        with pytest.raises(Cancelled) as cancelled:
            lanes.wait(Patience(seconds=0.01))
        assert not cancelled.value.paid
        waiter = threading.Thread(target=lanes.wait)
        waiter.start()
    waiter.join(10)
    assert not waiter.is_alive()
    with lanes.take() as lane:
        assert lane == "a"


def test_a_caller_who_waits_no_longer_gets_no_lane() -> None:
    lanes, stop = Lanes(["a"]), Stop()
    with lanes.take():
        timer = threading.Timer(0.02, stop.stop)
        timer.start()
        with pytest.raises(Cancelled) as cancelled, lanes.take(Patience(stop)):
            pytest.fail("it is taken")
        timer.join()
    assert cancelled.value.paid
    with lanes.take():
        pass


def test_a_lane_is_given_back_after_a_failure() -> None:
    lanes = Lanes(["a"])
    with pytest.raises(ValueError), lanes.take():
        raise ValueError
    with lanes.take() as lane:
        assert lane == "a"


def test_closed_lanes_are_given_to_nobody_and_nobody_waits_for_them() -> None:
    lanes = Lanes(["a"])
    lanes.close()
    with pytest.raises(Cancelled), lanes.take():
        pytest.fail("it is taken")
    with pytest.raises(Cancelled) as cancelled:
        lanes.wait()
    assert not cancelled.value.paid


def test_a_lane_is_given_back_by_a_caller_interrupted_as_it_gets_it() -> None:
    lanes = Lanes(["a"])

    honest = lanes._lock

    class Interrupting:
        """Ctrl-C as the lock is let go, with a lane taken."""

        def __enter__(self) -> None:
            honest.acquire()

        def __exit__(self, *values: object) -> None:
            honest.release()
            lanes._lock = honest
            raise KeyboardInterrupt

    lanes._lock = Interrupting()
    with pytest.raises(KeyboardInterrupt), lanes.take():
        pytest.fail("it is interrupted")
    assert lanes._free == ["a"]
