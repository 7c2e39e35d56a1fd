# SPDX-License-Identifier: Apache-2.0
"""A reserved event, taken step by step, and the noise drawn for it. Proof: reserved.proof.md."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TypeAlias

from sfumato.errors import InvalidDeclaration, WrongUse, shown
from sfumato.noise import Integers
from sfumato.privacy.event import (
    AdditiveNoise,
    Composed,
    Design,
    Event,
    Repeated,
    Sampled,
    Thresholded,
)

# The noise of each additive step, in order; None, or the end of it: drawn when the step is taken.
Drawn: TypeAlias = Sequence[Integers | None]


def stated(event: Event, cells: object) -> tuple[int | None, ...]:
    """``cells`` as a task states them.

    Raises:
        WrongUse: they are no sizes, or there are more of them than additive steps.
    """
    sizes = (
        tuple(cells)
        if isinstance(cells, Sequence) and not isinstance(cells, str | bytes)
        else ("",)
    )
    if not all(size is None or (type(size) is int and size >= 0) for size in sizes):
        raise WrongUse(
            f"cells={shown(cells)}.", allowed="for each additive step a whole number >= 0, or None"
        )
    steps = sum(1 for _ in islice(_additive(event), len(sizes)))
    if steps < len(sizes):
        raise WrongUse(
            f"{len(sizes)} sizes of {steps} additive steps.", allowed="at most one a step"
        )
    return sizes


def drawn(event: Event, cells: Sequence[int | None]) -> Drawn:
    """The noise of the additive steps of an event; ``cells``: how many integers each of them releases.

    None, or the end of ``cells``: what is released is chosen inside the charge (RULES 25).
    """
    return [
        None if size is None else each.noise.sample(size)
        for each, size in zip(islice(_additive(event), len(cells)), cells, strict=True)
    ]


class Reserved:
    """The steps of an event, each taken once, in one public order.

    ``Composed`` comes in its order, but what finds the groups (``Thresholded``) comes first: the other
    steps are about these groups. A step may be any part of the event, as a whole.

    Guarantees:
        only the next step of the reserved event can be taken
        a step of a sample is taken of the sample alone

    >>> from fractions import Fraction
    >>> from sfumato.privacy.event import PureEvent
    >>> one, half = PureEvent(Fraction(1)), PureEvent(Fraction(1, 2))
    >>> steps = Reserved(Composed((one, Repeated(half, 2))))
    >>> steps.take(one), steps.take(half), steps.take(half)
    (None, None, None)
    """

    __slots__ = ("_drawn", "_left", "_sampled")

    def __init__(self, event: Event, noise: Drawn = ()) -> None:
        # None: the end of what is done to a sample
        self._left: list[Event | None] = [event]
        self._drawn = deque(noise)
        self._sampled = False

    def take(self, event: Event, *, sampled: bool = False) -> Integers | None:
        """Takes the next step, which has to be ``event``; its noise, if that was drawn before.

        ``sampled``: it is done to the sample that was entered last.

        Raises:
            InvalidDeclaration: it is another one, or there is none left.
        """
        step = self._next(lambda each: each == event, sampled=sampled)
        additive = isinstance(step, AdditiveNoise) and bool(self._drawn)
        return self._drawn.popleft() if additive else None

    def enter(self, design: Design) -> None:
        """Takes the next step, which has to be about a sample of this design: its steps are the next ones.

        All of them have to be taken before any other step.

        Raises:
            InvalidDeclaration: it is another one, or there is none left.
        """
        step = self._next(
            lambda each: isinstance(each, Sampled) and each.design == design, sampled=False
        )
        assert isinstance(step, Sampled), "that is what was looked for"
        self._left += [None, step.event]
        self._sampled = True

    def _next(self, wanted: Callable[[Event], bool], *, sampled: bool) -> Event:
        if self._sampled and not sampled and self._left[-1:] == [None]:
            self._left.pop()
            self._sampled = False
        while self._left and sampled is self._sampled:
            step = self._left.pop()
            if step is not None and wanted(step):
                return step
            if not isinstance(step, Composed | Repeated):
                break
            self._left += reversed(_parts(step))
        self._left.clear()
        raise InvalidDeclaration("A step that is not the next one of the reserved event.")


def _parts(step: Composed | Repeated) -> list[Event]:
    """A composition as its next parts, in the order in which they are taken."""
    if isinstance(step, Repeated):
        return (
            [step.event, Repeated(step.event, step.times - 1)] if step.times > 1 else [step.event]
        )
    return sorted(step.events, key=lambda each: not isinstance(each, Thresholded))


def _additive(event: Event) -> Iterator[AdditiveNoise]:
    """The additive steps of an event, in order."""
    return (each for each in _leaves(event) if isinstance(each, AdditiveNoise))


def _leaves(event: Event) -> Iterator[Event]:
    """The steps of an event that are no compositions, those of samples too, in the order in which they are taken."""
    left = [event]
    while left:
        step = left.pop()
        if isinstance(step, Composed | Repeated):
            left += reversed(_parts(step))
        elif isinstance(step, Sampled):
            left.append(step.event)
        else:
            yield step
