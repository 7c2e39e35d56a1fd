# SPDX-License-Identifier: Apache-2.0
"""Steps of a reserved event: each once, in one public order, with the noise that was drawn for
it.
"""

from collections import deque
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.accounting.account import account
from sfumato.errors import InvalidDeclaration
from sfumato.noise import DiscreteLaplace
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import (
    AdditiveNoise,
    Composed,
    Event,
    FixedSample,
    PoissonSample,
    PureEvent,
    Repeated,
    Sampled,
    Thresholded,
)
from sfumato.query import reserved
from sfumato.query.reserved import Reserved, drawn

ONE, TWO = PureEvent(Fraction(1)), PureEvent(Fraction(2))
NOISE = AdditiveNoise(DiscreteLaplace(3), Distance(Norm.L1, Fraction(1)))
KEYS = Thresholded(AdditiveNoise(DiscreteLaplace(1), Distance(Norm.LINF, Fraction(1)), 1), 9, 1)


def test_only_the_next_step_of_the_reserved_event_can_be_taken() -> None:
    steps = Reserved(Composed((ONE, Repeated(TWO, 2))))
    steps.take(ONE)
    steps.take(TWO)
    steps.take(TWO)
    for step in (ONE, TWO):
        with pytest.raises(InvalidDeclaration):
            steps.take(step)


@pytest.mark.parametrize("asked", [TWO, Composed((ONE,)), PureEvent(Fraction(1, 2)), NOISE])
def test_another_step_is_refused(asked: Event) -> None:
    with pytest.raises(InvalidDeclaration):
        Reserved(Composed((ONE, TWO))).take(asked)


def test_a_refused_step_ends_what_is_left() -> None:
    steps = Reserved(Composed((ONE,)))
    with pytest.raises(InvalidDeclaration):
        steps.take(TWO)
    with pytest.raises(InvalidDeclaration):
        steps.take(ONE)


def test_a_part_may_be_taken_as_a_whole() -> None:
    inner = Composed((Repeated(ONE, 3), TWO))
    steps = Reserved(Composed((inner, ONE)))
    steps.take(inner)
    steps.take(ONE)


def test_what_finds_the_groups_comes_first() -> None:
    steps = Reserved(Composed((ONE, KEYS)))
    steps.take(KEYS)
    steps.take(ONE)


def test_noise_belongs_to_the_additive_steps_in_their_order() -> None:
    event = Composed((ONE, NOISE, Repeated(NOISE, 2), KEYS, NOISE))
    noise = drawn(event, [4, None, 2])
    assert [None if each is None else len(each) for each in noise] == [4, None, 2]
    steps = Reserved(event, noise)
    assert (steps.take(KEYS)[1], steps.take(ONE)[1]) == (None, None)
    assert [steps.take(NOISE)[1] is each for each in noise] == [True] * 3
    assert steps.take(NOISE)[1] is None


def taken_ahead(monkeypatch: pytest.MonkeyPatch, steps: int) -> tuple[list[int], list[int]]:
    """What each step is given if draws are numbered, and how many were begun by then."""
    begun: list[int] = []

    def sample(law: object, shape: int) -> np.ndarray:
        begun.append(shape)
        return np.array([len(begun)])

    monkeypatch.setattr(DiscreteLaplace, "sample", sample)
    monkeypatch.setattr(reserved, "_AT_ONCE", 5)
    noise = drawn(Repeated(NOISE, steps + 1), [1] * steps)
    left, given, ahead = Reserved(Repeated(NOISE, steps + 1), noise), [], []
    for _ in range(steps):
        _, found = left.take(NOISE)
        assert found is not None
        given.append(int(found[0]))
        ahead.append(len(begun) - len(given))
    return given, ahead


def test_each_step_is_given_its_own_noise_of_a_thread_that_runs_ahead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given, ahead = taken_ahead(monkeypatch, 40)
    assert given == list(range(1, 41))
    assert max(ahead) <= 2


class Again(deque):
    """A queue from which nothing is taken away until it is full."""

    def popleft(self) -> object:
        return super().popleft() if len(self) > 2 else self[0]


class Last(deque):
    """A queue that gives the last first."""

    def popleft(self) -> object:
        return self.pop()


@pytest.mark.parametrize("queue", [Again, Last])
def test_noise_that_is_given_twice_or_to_another_step_is_noticed(
    monkeypatch: pytest.MonkeyPatch, queue: type
) -> None:
    monkeypatch.setattr(reserved, "deque", queue)
    given, _ = taken_ahead(monkeypatch, 6)
    assert given != list(range(1, 7))


def test_a_draw_that_fails_in_the_thread_fails_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def sample(law: object, shape: int) -> np.ndarray:
        raise MemoryError

    monkeypatch.setattr(DiscreteLaplace, "sample", sample)
    monkeypatch.setattr(reserved, "_AT_ONCE", 0)
    with pytest.raises(MemoryError):
        Reserved(Repeated(NOISE, 2), drawn(Repeated(NOISE, 2), [1, 1])).take(NOISE)


def test_more_cells_than_additive_steps_are_refused() -> None:
    with pytest.raises(ValueError):
        drawn(Composed((NOISE, ONE)), [1, 1])


EVENTS = st.recursive(
    st.sampled_from([ONE, TWO, KEYS, NOISE]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda each: Composed(tuple(each))),
        st.builds(Repeated, inner, st.integers(1, 3)),
    ),
    max_leaves=6,
)


@given(EVENTS, st.lists(st.sampled_from([ONE, TWO, KEYS, NOISE]), max_size=8))
def test_what_is_taken_never_costs_more_than_what_was_reserved(
    event: Event, wanted: list[Event]
) -> None:
    steps, taken = Reserved(event), []
    for each in wanted:
        try:
            steps.take(each)
        except InvalidDeclaration:
            break
        taken.append(each)
    whole = account(event) if event != Composed(()) else None
    cost = account(Composed(tuple(taken)))
    assert not taken or (whole is not None and cost.rho <= whole.rho and cost.delta <= whole.delta)
    if taken and whole is not None and whole.epsilon is not None:
        assert cost.epsilon is not None and cost.epsilon <= whole.epsilon


# --- samples -----------------------------------------------------------------------------------

HALF = PoissonSample(Fraction(1, 2))


def test_a_step_of_a_sample_is_taken_of_the_sample_alone() -> None:
    event = Composed((ONE, Repeated(Sampled(HALF, Composed((ONE, TWO))), 2), ONE))
    steps = Reserved(event)
    steps.take(ONE)
    for _ in range(2):
        steps.enter(HALF)
        steps.take(ONE, sampled=True)
        steps.take(TWO, sampled=True)
    steps.take(ONE)
    for sampled in (False, True):
        with pytest.raises(InvalidDeclaration):
            steps.take(ONE, sampled=sampled)


WRONG_ORDERS = {
    "a step of the sample of all units": [("enter", HALF), ("take", ONE)],
    "a step of all units of the sample": [
        ("enter", HALF),
        ("sampled", ONE),
        ("sampled", TWO),
        ("sampled", ONE),
    ],
    "without a sample": [("sampled", ONE)],
    "another design": [("enter", PoissonSample(Fraction(1, 3)))],
    "a design of the other relation": [("enter", FixedSample(1, 2))],
    "a sample in a sample": [("enter", HALF), ("enter", HALF)],
    "a sample left early": [("enter", HALF), ("sampled", ONE), ("take", ONE)],
    "a sample twice": [("enter", HALF), ("sampled", ONE), ("sampled", TWO), ("enter", HALF)],
    "the steps of a sample in another order": [("enter", HALF), ("sampled", TWO)],
    "a step left out before it": [("take", TWO), ("enter", HALF)],
}


@pytest.mark.parametrize("name", WRONG_ORDERS)
def test_other_orders_are_refused_and_end_it(name: str) -> None:
    steps = Reserved(Composed((Sampled(HALF, Composed((ONE, TWO))), ONE, ONE)))
    *before, (what, last) = WRONG_ORDERS[name]

    def go(what: str, given: object) -> None:
        steps.enter(given) if what == "enter" else steps.take(given, sampled=what == "sampled")

    with pytest.raises(InvalidDeclaration):
        for each in [*before, (what, last)]:
            go(*each)
    for sampled in (False, True):
        with pytest.raises(InvalidDeclaration):
            steps.take(ONE, sampled=sampled)


def test_the_noise_of_a_sample_is_drawn_before_too() -> None:
    other = AdditiveNoise(DiscreteLaplace(50), Distance(Norm.L1, Fraction(1)))
    event = Composed((NOISE, Repeated(Sampled(HALF, other), 2), NOISE))
    noise = drawn(event, [1, 2, 3, 4])
    assert [len(each) for each in noise] == [1, 2, 3, 4]
    steps = Reserved(event, noise)
    assert steps.take(NOISE)[1] is noise[0]
    for place in (1, 2):
        steps.enter(HALF)
        assert steps.take(other, sampled=True)[1] is noise[place]
    assert steps.take(NOISE)[1] is noise[3]
