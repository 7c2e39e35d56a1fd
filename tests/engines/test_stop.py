# SPDX-License-Identifier: Apache-2.0
"""How long a caller waits."""

import threading
import time

import pytest

from sfumato.engines.stop import ENDLESS, Patience, Stop
from sfumato.errors import Cancelled, WrongUse


def test_a_stop_stays_stopped_and_calls_those_who_listen() -> None:
    stop, called = Stop(), []
    with stop.calling(lambda: called.append(1)):
        assert not stop.is_stopped
        stop.stop()
        stop.stop()
    stop.stop()
    assert (stop.is_stopped, called) == (True, [1, 1])
    assert repr(stop) == "Stop(stopped)"


def test_patience_ends_with_its_stop() -> None:
    stop = Stop()
    patience = Patience(stop, 60)
    assert not patience.is_over
    patience.require()
    stop.stop()
    assert (patience.is_over, patience.left) == (True, 0.0)
    with pytest.raises(Cancelled) as cancelled:
        patience.require()
    assert not cancelled.value.paid


def test_patience_ends_with_its_time() -> None:
    patience = Patience(seconds=0.01)
    time.sleep(0.02)
    assert patience.is_over


def test_a_pause_ends_with_the_stop_and_not_before_its_time() -> None:
    began = time.monotonic()
    Patience(seconds=60).pause(0.02)
    assert time.monotonic() - began >= 0.02
    stop = Stop()
    timer = threading.Timer(0.02, stop.stop)
    timer.start()
    began = time.monotonic()
    with pytest.raises(Cancelled):
        Patience(stop).pause(60)
    assert time.monotonic() - began < 30
    timer.join()


def test_a_pause_is_no_longer_than_the_time() -> None:
    began = time.monotonic()
    with pytest.raises(Cancelled):
        Patience(seconds=0.01).pause(60)
    assert time.monotonic() - began < 30


def test_only_patience_without_an_end_is_endless() -> None:
    assert ENDLESS.is_endless
    assert not Patience(Stop()).is_endless
    assert not Patience(seconds=1).is_endless
    assert not ENDLESS.is_over


@pytest.mark.parametrize("seconds", [0, -1, "1", True, float("nan"), float("inf")], ids=repr)
def test_a_time_limit_is_a_number_of_seconds(seconds: object) -> None:
    with pytest.raises(WrongUse, match="time_limit"):
        Patience(seconds=seconds)


def test_only_a_stop_stops() -> None:
    with pytest.raises(WrongUse, match=r"sf\.Stop"):
        Patience(stop=threading.Event())


def test_a_stop_from_a_signal_of_the_thread_that_asks_is_no_deadlock() -> None:
    stop = Stop()

    def ask() -> None:
        # a signal comes while its thread begins to listen
        with stop._lock:
            stop.stop()

    asker = threading.Thread(target=ask, daemon=True)
    asker.start()
    asker.join(5)
    assert not asker.is_alive()
