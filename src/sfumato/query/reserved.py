# SPDX-License-Identifier: Apache-2.0
"""The steps of a reserved event, taken one by one with their noise. Proof: reserved.proof.md.

``charge`` draws the noise before the data is read; the curator takes a step for each call.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import TypeAlias, TypeVar, cast

from sfumato.errors import InvalidDeclaration, WrongUse, shown
from sfumato.exact.values import is_same
from sfumato.noise import Integers
from sfumato.privacy.event import (
    AdditiveNoise,
    Block,
    Composed,
    Design,
    Event,
    Repeated,
    Sampled,
    SharedNoise,
    Stream,
    Thresholded,
)

E = TypeVar("E", bound=Event)
# The steps whose noise can be drawn before the data is read.
_DRAWN = AdditiveNoise | SharedNoise
# The noise of each additive step, in order; for None, and beyond the end, it is drawn later.
Drawn: TypeAlias = Iterable[Integers | None]
# The draw of the noise of one step.
_Draw: TypeAlias = Callable[[], Integers | None]
# More integers than this are not held at once.
_AT_ONCE = 2**20
# So many steps are drawn ahead of the one that is taken.
_AHEAD = 2


def stated(event: Event, cells: object) -> tuple[int | None, ...]:
    """Returns the attribute ``cells`` of a task, checked: at most one size for each additive step
    of its event.

    Raises:
        WrongUse: they are not sizes, or there are more of them than additive steps.
    """
    if not isinstance(cells, Sequence) or isinstance(cells, str | bytes):
        raise _not_sizes(cells)
    sizes = tuple(cells)
    if not all(size is None or (type(size) is int and size >= 0) for size in sizes):
        raise _not_sizes(cells)
    steps = sum(1 for _ in islice(_additive(event), len(sizes)))
    if steps < len(sizes):
        raise WrongUse(
            f"{len(sizes)} sizes of {steps} additive steps.", allowed="at most one a step"
        )
    return sizes


def _not_sizes(cells: object) -> WrongUse:
    """The refusal of ``cells`` that are not a list of sizes."""
    allowed = "for each additive step a whole number >= 0, or None"
    return WrongUse(f"cells={shown(cells)}.", allowed=allowed)


def drawn(event: Event, cells: Sequence[int | None]) -> Drawn:
    """Returns the noise of the additive steps of an event; ``cells`` has the number of integers of
    each.

    If a size is None or is missing at the end of ``cells``, the noise of its step is drawn later,
    inside the charge (RULES 25). If there is much noise, one other thread draws it, two steps ahead
    of the step that is carried out.
    """
    steps = islice(_additive(event), len(cells))
    draws = (partial(_draw, *each) for each in zip(steps, cells, strict=True))
    if sum(size or 0 for size in cells) <= _AT_ONCE:
        return [draw() for draw in draws]
    return _drawn_ahead(draws)


def _draw(step: AdditiveNoise | SharedNoise, size: int | None) -> Integers | None:
    """The noise of one step; none for the size None."""
    return None if size is None else step.noise.sample(size)


def _drawn_ahead(draws: Iterator[_Draw]) -> Iterator[Integers | None]:
    """Calls the draws once each, in order, in a thread that runs ahead; yields their results."""
    worker = ThreadPoolExecutor(1)
    begun = deque(worker.submit(draw) for draw in islice(draws, _AHEAD))
    try:
        # a first step whose noise cannot be drawn ends the charge before anything is carried out
        begun[0].result()
    except BaseException:
        worker.shutdown(wait=False, cancel_futures=True)
        raise

    def results() -> Iterator[Integers | None]:
        try:
            while begun:
                noise = begun.popleft().result()
                begun.extend(worker.submit(draw) for draw in islice(draws, 1))
                yield noise
        finally:
            worker.shutdown(wait=False, cancel_futures=True)

    return results()


class Reserved:
    """The steps of a charged privacy event that a running task has not carried out yet.

    Each step can be taken once, in one public order. The parts of a ``Composed`` are taken in their
    order, except that a ``Thresholded`` comes first, since it selects the groups of the other
    parts. ``noise`` is what ``drawn`` returned: an entry for each additive or stream step, in
    order, None if it is drawn later. After a refusal no step can be taken any more.

    Guarantees:
        only the next step of the reserved event can be taken
        a step of a sample is taken of the sample alone

    >>> from fractions import Fraction
    >>> from sfumato.privacy.event import PureEvent
    >>> one, half = PureEvent(Fraction(1)), PureEvent(Fraction(1, 2))
    >>> steps = Reserved(Composed((one, Repeated(half, 2))))
    >>> steps.take(one) == (one, None), steps.take(half) == steps.take(half) == (half, None)
    (True, True)
    """

    __slots__ = ("_drawn", "_left", "_sampled")

    def __init__(self, event: Event, noise: Drawn = ()) -> None:
        # None marks the end of the steps on a sample
        self._left: list[Event | None] = [plan_of(event)]
        self._drawn = iter(noise)
        self._sampled = False

    def take(self, event: E, *, sampled: bool = False) -> tuple[E, Integers | None]:
        """Removes the next step of the event, which must equal ``event``, and returns it with its
        noise.

        The mechanism is made from the returned step, as it was reserved; the noise is None if it is
        drawn later. ``sampled`` states that the step measures the sample that was entered last.

        Raises:
            InvalidDeclaration: the next step is another one, or none is left.
        """
        step = self._next(lambda part: is_same(event, part), sampled=sampled)
        noise = next(self._drawn, None) if isinstance(step, _DRAWN | Stream) else None
        # what is the same has the same type
        return cast(E, step), noise

    def enter(self, design: Design) -> Design:
        """Removes the next step of the event, which must be a ``Sampled`` of this design, and
        returns the reserved design.

        Its inner steps come next, and all of them must be taken before any other step.

        Raises:
            InvalidDeclaration: the next step is another one, or none is left.
        """

        def wanted(part: Event) -> bool:
            return isinstance(part, Sampled) and is_same(design, part.design)

        step = self._next(wanted, sampled=False)
        assert isinstance(step, Sampled), "only such a step is wanted"
        self._left += [None, step.event]
        self._sampled = True
        return step.design

    def _next(self, wanted: Callable[[Event], bool], *, sampled: bool) -> Event:
        """Takes the next step if it is ``wanted``, else raises and leaves none."""
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


def plan_of(event: Event) -> Event:
    """Returns the event whose steps a task carries out: the inner event of a ``Block``, or the
    event itself.
    """
    if isinstance(event, Block):
        return event.event
    return event


def _parts(step: Composed | Repeated) -> list[Event]:
    """The parts of a composition in the order in which they are taken."""
    if isinstance(step, Composed):
        return sorted(step.events, key=lambda part: not isinstance(part, Thresholded))
    if step.times == 1:
        return [step.event]
    return [step.event, Repeated(step.event, step.times - 1)]


def _additive(event: Event) -> Iterator[AdditiveNoise | SharedNoise]:
    """The additive steps of an event, in order; of a stream, the noise of one of its rows."""
    for step in _leaves(event):
        added = step.noise if isinstance(step, Stream) else step
        if isinstance(added, _DRAWN):
            yield added


def _leaves(event: Event) -> Iterator[Event]:
    """Yields the basic steps of an event (not compositions) in order, with the steps on samples."""
    left = [plan_of(event)]
    while left:
        step = left.pop()
        if isinstance(step, Composed | Repeated):
            left += reversed(_parts(step))
        elif isinstance(step, Sampled):
            left.append(step.event)
        else:
            yield step
