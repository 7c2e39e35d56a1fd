# SPDX-License-Identifier: Apache-2.0
"""Locks by name."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from sfumato.ledger.turns import Turns


def overlap(turns: Turns, first: str, second: str) -> bool:
    """Whether a second caller comes in while the first holds its name."""
    told, inside = threading.Event(), []

    def come() -> None:
        with turns.of(second, told.set):
            inside.append(True)
            told.set()

    with turns.of(first):
        thread = threading.Thread(target=come)
        thread.start()
        assert told.wait(10)
        came_in = bool(inside)
    thread.join()
    assert inside
    return came_in


class Unlocked(Turns):
    """Lets everybody in."""

    @contextmanager
    def of(self, name: str, waits: Callable[[], None] | None = None) -> Iterator[bool]:
        yield False


class OneLock(Turns):
    """One lock for all questions."""

    @contextmanager
    def of(self, name: str, waits: Callable[[], None] | None = None) -> Iterator[bool]:
        with super().of("all", waits) as waited:
            yield waited


def test_one_caller_holds_a_name_at_a_time() -> None:
    assert not overlap(Turns(), "q", "q")
    assert overlap(Unlocked(), "q", "q")


def test_callers_with_other_names_do_not_wait() -> None:
    assert overlap(Turns(), "q", "r")
    assert not overlap(OneLock(), "q", "r")


def test_a_name_is_forgotten_once_nobody_holds_it() -> None:
    turns = Turns()
    with pytest.raises(ValueError), turns.of("q"):
        assert turns.names == ["q"]
        raise ValueError
    assert turns.names == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_what_is_raised_while_waiting_ends_the_wait(error: type[BaseException]) -> None:
    turns, asked = Turns(), []

    def waits() -> None:
        asked.append(1)
        if len(asked) == 2:
            raise error

    with turns.of("q"):
        with pytest.raises(error), turns.of("q", waits):
            pytest.fail("somebody else holds it")
        assert turns.names == ["q"]
    assert turns.names == []
    with turns.of("q", waits):
        pass


def test_a_caller_is_told_whether_it_waited() -> None:
    turns, found = Turns(), []

    def come() -> None:
        with turns.of("q", waiting.set) as waited:
            found.append(waited)

    waiting = threading.Event()
    with turns.of("q") as waited:
        thread = threading.Thread(target=come)
        thread.start()
        assert waiting.wait(10)
        found.append(waited)
    thread.join()
    assert found == [False, True]
