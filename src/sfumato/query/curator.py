# SPDX-License-Identifier: Apache-2.0
"""The curator: holds exact integers while a task runs, and releases only noisy numbers.

``charge.run_task`` passes a ``Curator`` to ``Task.run``; its methods are all that a task can do
with private data. Proof: curator.proof.md.
"""

import logging
import os
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn, TypeAlias, TypeVar, overload

import numpy as np

from sfumato.engines.base import Codes
from sfumato.errors import Cancelled, EngineFailed, InvalidDeclaration
from sfumato.exact.values import copied
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.mechanisms.grid import GridQuantiles
from sfumato.mechanisms.ladder import LadderMechanism
from sfumato.mechanisms.masks import Masks
from sfumato.mechanisms.selection import SelectionMechanism
from sfumato.mechanisms.shares import ShareMechanism
from sfumato.mechanisms.threshold import ThresholdMechanism
from sfumato.noise import SYSTEM, Integers
from sfumato.noise.entropy import below
from sfumato.privacy.distance import Norm
from sfumato.privacy.event import AdditiveNoise, BestOf, Design, Event
from sfumato.query.cells import WeightedLeaves
from sfumato.query.cycle import Cycle, Turning
from sfumato.query.reserved import Reserved
from sfumato.query.statistic import (
    BoundedStatistic,
    GroupedScores,
    LadderStatistic,
    Opened,
    UnitsByKey,
)
from sfumato.query.stream_state import Past, Row
from sfumato.query.ticks import Ticks

T = TypeVar("T")

_OWNER = logging.getLogger("sfumato.owner")
_OWNER.addHandler(logging.NullHandler())
# The reasons of a forfeited charge, as they are stored in the ledger.
ENGINE, CANCELLED = "engine", "cancelled"


# What a run returns: its score, and the bytes of what it has made.
Outcome: TypeAlias = tuple[int, bytes]


class Sample:
    """A handle for a secret sample of the units; only the curator that drew the sample accepts it."""

    __slots__ = ()


class Turn:
    """A handle of a cycle (see ``cycle``); only the curator that began the cycle accepts it."""

    __slots__ = ()


class Curator:
    """The only access of a running task to private data: each call releases a statistic through a
    mechanism, as the next step of the event that was charged.

    Every call computes the event of its mechanism on its statistic, and this must be the next step
    of the reserved event. If it is not, or if anything else fails, the call raises one constant
    message, no later call is answered, and the charge is forfeited, whatever the task does then.
    The curator reads a copy of the statistic and uses the mechanism of the reserved step, so the
    task cannot change either.

    Guarantees:
        a call that is not the next step of the reserved event is not answered
        a failure inside tells nothing and ends the run
        an interrupt carries nothing that was read
        a curator that has ended answers nothing
        a step under way is not answered once the run has ended
        a forked process is not answered
        only the mechanisms of sfumato release anything
        scores count as monotone only where the statistic says so
        the best of several runs is all that leaves them
        a share leaves masked and noisy

    Raises:
        EngineFailed: any call that fails raises this and nothing else.
    """

    __slots__ = (
        "_ended",
        "_failed",
        "_lock",
        "_opened",
        "_past",
        "_process",
        "_reserved",
        "_sample",
        "_turn",
        "charge",
    )

    def __init__(
        self,
        charge: str,
        reserved: Reserved,
        opened: Opened,
        past: Past | None = None,
    ) -> None:
        self.charge = charge
        self._past = past
        self._reserved = reserved
        self._opened = opened
        self._failed = ""
        self._ended = False
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._sample: tuple[Sample, Opened] | None = None
        self._turn: tuple[Turn, Turning] | None = None

    @overload
    def measure(
        self,
        statistic: BoundedStatistic[Integers],
        mechanism: AdditiveMechanism,
        *,
        of: Sample | None = None,
    ) -> Integers: ...
    @overload
    def measure(
        self,
        statistic: BoundedStatistic[list[int]],
        mechanism: AdditiveMechanism,
        *,
        of: Sample | None = None,
    ) -> tuple[int, ...]: ...
    def measure(
        self,
        statistic: BoundedStatistic[Integers] | BoundedStatistic[list[int]],
        mechanism: AdditiveMechanism,
        *,
        of: Sample | None = None,
    ) -> Integers | tuple[int, ...]:
        """Adds noise to the integers of a statistic and returns the noisy integers.

        ``of`` is a sample of units to measure instead of all units; it must be the last sample
        drawn.
        """

        def step() -> Integers | tuple[int, ...]:
            _require(mechanism, AdditiveMechanism)
            opened = self._opened_for(of)
            own = self._opened.own(statistic)
            event = mechanism.event(copied(own.distance(mechanism.norm)))
            reserved, noise = self._reserved.take(event, sampled=of is not None)
            exact = own.exact(opened)
            if isinstance(exact, np.ndarray):
                return _mechanism_of(reserved).release_many(exact, noise)
            return _mechanism_of(reserved).release(exact, None if noise is None else noise.tolist())

        return self._carried_out(step)

    def share(
        self,
        statistic: BoundedStatistic[Integers] | BoundedStatistic[list[int]],
        mechanism: ShareMechanism,
        masks: Masks,
        step: int,
    ) -> bytes:
        """Returns one party's share of a federated sum: the exact integers of a statistic, a share
        of the noise, and the masks of ``step``.
        """

        def made() -> bytes:
            _require(mechanism, ShareMechanism)
            _require(masks, Masks)
            own, sharing = self._opened.own(statistic), copied(mechanism)
            reserved, noise = self._reserved.take(sharing.event(copied(own.distance(Norm.L2))))
            if noise is None:
                noise = reserved.noise.sample(reserved.cells)
            return sharing.release(own.exact(self._opened), noise, masks, step)

        return self._carried_out(made)

    def select(
        self,
        scored: BoundedStatistic[Integers] | BoundedStatistic[list[int]],
        mechanism: SelectionMechanism,
    ) -> int:
        """Returns the index of a candidate with a high score, selected privately."""

        def step() -> int:
            own = self._opened.own(scored)
            return self._take_selection(own, mechanism).release(own.exact(self._opened))

        return self._carried_out(step)

    def select_each(
        self,
        scored: GroupedScores,
        mechanism: SelectionMechanism,
    ) -> tuple[int, ...]:
        """Returns the index of a candidate with a high score in each group, selected privately in
        one step.
        """

        def step() -> tuple[int, ...]:
            if not isinstance(scored, GroupedScores):
                raise InvalidDeclaration("Scores of one group.", allowed="GroupedScores")
            own = self._opened.own(scored)
            return self._take_selection(own, mechanism).release_each(own.exact(self._opened))

        return self._carried_out(step)

    def ladder(self, statistic: LadderStatistic, mechanism: LadderMechanism) -> int:
        """Returns a noisy integer near that of a statistic, released by the ladder mechanism."""

        def step() -> int:
            _require(mechanism, LadderMechanism)
            if not isinstance(statistic, LadderStatistic):
                raise InvalidDeclaration("No ladder.", allowed="a LadderStatistic")
            own = self._opened.own(statistic)
            event = mechanism.event(copied(own.rung_distance()))
            reserved, _ = self._reserved.take(event)
            return LadderMechanism(reserved.rate).release(*own.exact(self._opened))

        return self._carried_out(step)

    def quantiles(
        self, leaves: WeightedLeaves, mechanism: GridQuantiles
    ) -> tuple[tuple[int, ...], ...]:
        """Selects a leaf (candidate value) for each quantile level in each group; returns their
        numbers.

        If the mechanism has interval ends, leaves for them follow.
        """

        def step() -> tuple[tuple[int, ...], ...]:
            _require(mechanism, GridQuantiles)
            own, selecting = self._opened.own(leaves), copied(mechanism)
            part = own.part
            self._reserved.take(selecting.event(copied(own.distance(Norm.LINF)), part.groups))
            exact = own.exact(self._opened)
            return tuple(selecting.release(*group, part.aggregate.width) for group in exact)

        return self._carried_out(step)

    def threshold(self, counted: UnitsByKey, mechanism: ThresholdMechanism) -> dict[Codes, int]:
        """Returns the keys whose noisy number of units passes the threshold, with that number."""

        def step() -> dict[Codes, int]:
            _require(mechanism, ThresholdMechanism)
            if not isinstance(counted, UnitsByKey):
                raise InvalidDeclaration("A threshold on what counts no units.")
            own = self._opened.own(counted)
            reserved, _ = self._reserved.take(mechanism.event(copied(own.distance(Norm.LINF))))
            showing = ThresholdMechanism(reserved.additive.noise, reserved.threshold, reserved.keys)
            if showing.keys < own.groups:
                raise InvalidDeclaration(f"A threshold for {showing.keys} groups a unit.")
            exact = own.exact(self._opened)
            if isinstance(exact, tuple):
                return showing.release_many(*exact)
            return showing.release(exact)

        return self._carried_out(step)

    def tick(self, ticks: Ticks, mechanism: AdditiveMechanism) -> dict[int, Row]:
        """Releases the noisy row of this tick of a stream; the key of the result is its place.

        If earlier rows were drawn but not stored, it returns those and draws nothing.
        """

        def step() -> dict[int, Row]:
            _require(mechanism, AdditiveMechanism)
            _require(ticks, Ticks)
            if self._past is None:
                raise InvalidDeclaration("A tick of what is no stream.")
            own = self._opened.own(ticks)
            reserved, noise = self._reserved.take(own.event(mechanism))
            return own.drawn(self._opened, self._past, _mechanism_of(reserved.noise), noise)

        return self._carried_out(step)

    def sample(self, design: Design) -> Sample:
        """Draws a new secret random sample of the units, for ``measure``.

        The next step of the reserved event must be a ``Sampled`` of this design. All of its inner
        steps must be measured on the sample before any other step.
        """

        def step() -> Sample:
            reserved = self._reserved.enter(design)
            self._sample = (Sample(), self._opened.sample(reserved))
            return self._sample[0]

        return self._carried_out(step)

    def turn(
        self,
        cycle: Cycle,
        mechanism: AdditiveMechanism,
    ) -> Turn:
        """Returns a handle of a cycle that has begun: a stream of sums over random batches of
        units.

        The next step of the reserved event must be the ``Stream`` of this cycle. The exact sums are
        kept for this run only: no other run continues with them.
        """

        def step() -> Turn:
            _require(mechanism, AdditiveMechanism)
            _require(cycle, Cycle)
            if self._past is not None:
                raise InvalidDeclaration("A cycle in a stream of ticks, which is paid once.")
            own = copied(cycle)
            reserved, noise = self._reserved.take(own.event(mechanism))
            turning = Turning(own, _mechanism_of(reserved.noise), self._opened, noise)
            self._turn = (Turn(), turning)
            return self._turn[0]

        return self._carried_out(step)

    def row(
        self,
        turn: Turn,
        statistic: BoundedStatistic[Integers],
    ) -> Integers:
        """Releases the next noisy row of a cycle, from ``statistic`` over the batch in turn.

        ``turn`` must be the handle of the cycle that was begun last.
        """

        def step() -> Integers:
            if self._turn is None or turn is not self._turn[0]:
                raise InvalidDeclaration("A cycle that is not the last one of this curator.")
            return self._turn[1].next(self._opened.own(statistic))

        return self._carried_out(step)

    def best(
        self,
        event: BestOf,
        run: Callable[[int, "Curator"], Outcome],
    ) -> tuple[int, Outcome]:
        """Returns the outcome of the best of a random, secret number of runs, and the index of its
        event.

        Each run does a random one of the events of ``event``: ``run`` is called with the index of
        that event and a curator that answers its steps. ``run`` must return a function of what that
        curator has released, and must keep nothing of it. A problem in released values must be an
        outcome too, for example one with the lowest score: if ``run`` raises, or a step of it
        fails, the whole charge fails. The best outcome has the highest score; ties go to the
        highest index, then to the last bytes in order.
        """

        def step() -> tuple[int, Outcome]:
            _require(event, BestOf)
            reserved, _ = self._reserved.take(event)
            found: list[tuple[int, int, bytes]] = []
            for _ in range(reserved.law.sample_one()):
                place = below(len(reserved.events), SYSTEM)
                score, body = self._outcome(reserved.events[place], partial(run, place))
                found = [max([*found, (score, place, body)])]
            score, place, body = found[0]
            return place, (score, body)

        return self._carried_out(step)

    def end(self) -> str:
        """Ends the run; returns why the charge must be forfeited, or an empty string.

        No call is answered from now on. A step that is running in another thread is awaited, and
        its result is discarded.
        """
        self._ended = True
        with self._lock:
            failed, self._failed = self._failed, self._failed or ENGINE
            self._sample = self._turn = None
        return failed

    def _outcome(
        self,
        event: Event,
        run: Callable[["Curator"], Outcome],
    ) -> Outcome:
        """Calls ``run`` with a new curator for the steps of ``event``, which ends with the run."""
        inner = Curator(self.charge, Reserved(event), self._opened)
        try:
            score, body = run(inner)
        finally:
            failed = inner.end()
            if failed == CANCELLED:
                raise Cancelled(paid=True)
        if failed or type(score) is not int or type(body) is not bytes:
            raise InvalidDeclaration("A run that failed.")
        return score, body

    def _take_selection(
        self,
        scored: BoundedStatistic[Any],
        mechanism: SelectionMechanism,
    ) -> SelectionMechanism:
        """Takes the step of a selection, and returns its mechanism."""
        _require(mechanism, SelectionMechanism)
        event = mechanism.event(copied(scored.distance(Norm.LINF)))
        reserved, _ = self._reserved.take(event)
        if reserved.monotone and not scored.is_monotone:
            raise InvalidDeclaration("Scores that are not proved to move in one direction.")
        return SelectionMechanism(reserved.rule, reserved.rate, monotone=reserved.monotone)

    def _opened_for(self, of: Sample | None) -> Opened:
        """The data to measure: of all units, or of the last sample drawn if ``of`` is that sample."""
        if of is None:
            return self._opened
        if self._sample is None or of is not self._sample[0]:
            raise InvalidDeclaration("A sample that is not the last one of this curator.")
        return self._sample[1]

    def _carried_out(self, step: Callable[[], T]) -> T:
        """Runs a step and returns its result; any error ends the run with one constant message."""
        answers: list[T] = []
        # a forked child has a copy of the reserved steps and could take each a second time
        if os.getpid() == self._process:
            with self._lock:
                if not (self._failed or self._ended):
                    self._take(step, answers)
        if not answers:
            # outside the handler: the text and the traceback of an error may hold private values
            raise EngineFailed()
        return answers[0]

    def _take(self, step: Callable[[], T], answers: list[T]) -> None:
        """Appends the result of a step to ``answers``, unless it fails or the run has ended."""
        # an interrupt is a failure too
        self._failed = ENGINE
        try:
            answer = step()
            if not self._ended:
                answers.append(answer)
                self._failed = ""
        except Exception as failure:
            self._failed = CANCELLED if isinstance(failure, Cancelled) else ENGINE
            # an engine that fails has written to the owner's log itself
            if not isinstance(failure, Cancelled | EngineFailed):
                _OWNER.error("a step of charge %s failed: %s", self.charge, type(failure).__name__)
        except BaseException as interrupt:
            # the frames of the traceback hold exact integers, which a crash report would write down
            interrupt.__context__ = None
            raise interrupt.with_traceback(None) from None

    def __repr__(self) -> str:
        return "Curator()"

    def __reduce__(self) -> NoReturn:
        raise TypeError("exact integers are not pickled")


def _require(mechanism: object, kind: type) -> None:
    """Raises unless the mechanism is exactly of this class: a subclass could release anything."""
    if type(mechanism) is not kind:
        raise InvalidDeclaration(
            f"A mechanism of kind {type(mechanism).__name__}.", allowed=kind.__name__
        )


def _mechanism_of(reserved: object) -> AdditiveMechanism:
    """The mechanism of a reserved step that adds noise."""
    if not isinstance(reserved, AdditiveNoise):
        raise InvalidDeclaration("Noise that no mechanism adds.")
    return AdditiveMechanism(reserved.noise, reserved.cells)
