# SPDX-License-Identifier: Apache-2.0
"""Who alone holds exact integers while a task runs, and gives out none. Proof: curator.proof.md."""

import logging
import os
import threading
from collections.abc import Callable
from typing import NoReturn, TypeVar, overload

import numpy as np

from sfumato.engines.base import Codes
from sfumato.errors import Cancelled, EngineFailed, InvalidDeclaration
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.mechanisms.grid import GridQuantiles
from sfumato.mechanisms.selection import SelectionMechanism
from sfumato.mechanisms.threshold import ThresholdMechanism
from sfumato.noise import Integers
from sfumato.plan.aggregate import Quantiles, width
from sfumato.privacy.distance import Norm
from sfumato.privacy.event import Design
from sfumato.query.cells import Cells, Units
from sfumato.query.reserved import Reserved
from sfumato.query.statistic import BoundedStatistic, Opened

T = TypeVar("T")

_OWNER = logging.getLogger("sfumato.owner")
_OWNER.addHandler(logging.NullHandler())
# Why a charge is forfeited, as the ledger keeps it.
ENGINE, CANCELLED = "engine", "cancelled"


class Sample:
    """A secret sample of the units, to be measured by the curator that drew it; it says nothing of itself."""

    __slots__ = ()


class Curator:
    """What a task is handed while it runs: noisy answers, each the next step of the reserved event.

    Every call works out the event of its mechanism on its statistic. If that is not the next step
    of what was reserved, or if anything else fails, the call raises one constant message, no later
    call is answered, and the charge is forfeited, whatever the task does about it.

    Guarantees:
        a call that is not the next step of the reserved event is not answered
        a failure inside tells nothing and ends the run
        an interrupt carries nothing that was read
        a curator that has ended answers nothing
        a step under way is not answered once the run has ended
        a forked process is not answered
        only the mechanisms of sfumato release anything
        scores count as monotone only where the statistic says so

    Raises:
        EngineFailed: of every call that fails.
    """

    __slots__ = (
        "_ended",
        "_failed",
        "_lock",
        "_opened",
        "_process",
        "_reserved",
        "_sample",
        "charge",
    )

    def __init__(self, charge: str, reserved: Reserved, opened: Opened) -> None:
        self.charge = charge
        self._reserved, self._opened = reserved, opened
        self._failed, self._ended = "", False
        self._lock, self._process = threading.RLock(), os.getpid()
        self._sample: tuple[Sample, Opened] | None = None

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
        """The integers of a statistic plus noise; ``of``: the statistic of the sample that was drawn last."""

        def step() -> Integers | tuple[int, ...]:
            _require(mechanism, AdditiveMechanism)
            opened = self._opened_for(of)
            event = mechanism.event(statistic.distance(mechanism.norm))
            noise = self._reserved.take(event, sampled=of is not None)
            exact = statistic.exact(opened)
            if isinstance(exact, np.ndarray):
                return mechanism.release_many(exact, noise)
            return mechanism.release(exact, None if noise is None else noise.tolist())

        return self._carried_out(step)

    def select(
        self,
        scored: BoundedStatistic[Integers] | BoundedStatistic[list[int]],
        mechanism: SelectionMechanism,
    ) -> int:
        """The index of a candidate whose score is high."""

        def step() -> int:
            _require(mechanism, SelectionMechanism)
            if mechanism.monotone and not scored.is_monotone:
                raise InvalidDeclaration("Scores that are not proved to move in one direction.")
            self._reserved.take(mechanism.event(scored.distance(Norm.LINF)))
            return mechanism.release(scored.exact(self._opened))

        return self._carried_out(step)

    def quantiles(self, leaves: Cells, mechanism: GridQuantiles) -> tuple[tuple[int, ...], ...]:
        """For each group the leaf of each level."""

        def step() -> tuple[tuple[int, ...], ...]:
            _require(mechanism, GridQuantiles)
            part = leaves.part
            if not isinstance(part.aggregate, Quantiles):
                raise InvalidDeclaration("Quantiles of what has no leaves.")
            self._reserved.take(mechanism.event(leaves.distance(Norm.LINF), part.groups))
            exact, size = leaves.exact(self._opened), width(part.aggregate)
            return tuple(
                mechanism.release(exact[start : start + size])
                for start in range(0, len(exact), size)
            )

        return self._carried_out(step)

    def threshold(self, counted: Units, mechanism: ThresholdMechanism) -> dict[Codes, int]:
        """The groups with many units, each with its noisy number of units."""

        def step() -> dict[Codes, int]:
            _require(mechanism, ThresholdMechanism)
            if mechanism.keys < counted.groups:
                raise InvalidDeclaration(f"A threshold for {mechanism.keys} groups a unit.")
            self._reserved.take(mechanism.event(counted.distance(Norm.LINF)))
            exact = counted.exact(self._opened)
            return (
                mechanism.release_many(*exact)
                if isinstance(exact, tuple)
                else mechanism.release(exact)
            )

        return self._carried_out(step)

    def sample(self, design: Design) -> Sample:
        """A secret random sample of the units whose rows are open, drawn anew, for ``measure``.

        The next step of the reserved event has to be a ``Sampled`` of this design. What that is about is
        measured of the sample, all of it, before anything else.
        """

        def step() -> Sample:
            self._reserved.enter(design)
            self._sample = (Sample(), self._opened.sample(design))
            return self._sample[0]

        return self._carried_out(step)

    def end(self) -> str:
        """Answers nothing from now on; why the charge has to be forfeited, or an empty string.

        Waits for a step that another thread is in; its result is discarded.
        """
        self._ended = True
        with self._lock:
            failed, self._failed, self._sample = self._failed, self._failed or ENGINE, None
        return failed

    def _opened_for(self, of: Sample | None) -> Opened:
        """The data, or the sample of it that was drawn last."""
        if of is None:
            return self._opened
        if self._sample is None or of is not self._sample[0]:
            raise InvalidDeclaration("A sample that is not the last one of this curator.")
        return self._sample[1]

    def _carried_out(self, step: Callable[[], T]) -> T:
        """What a step gives; whatever it raises is one constant message, and the last answer."""
        answers: list[T] = []
        # a forked child has a copy of the steps: each would be taken once here and once there
        if os.getpid() == self._process:
            with self._lock:
                if not (self._failed or self._ended):
                    self._take(step, answers)
        if not answers:
            # outside that handler: the text of an error, and what its traceback holds, may be private
            raise EngineFailed()
        return answers[0]

    def _take(self, step: Callable[[], T], answers: list[T]) -> None:
        """Adds what a step gives to ``answers``, unless it fails or the run has ended meanwhile."""
        # an interrupt is a failure too
        self._failed = ENGINE
        try:
            found = step()
            if not self._ended:
                answers.append(found)
                self._failed = ""
        except Exception as failure:
            self._failed = CANCELLED if isinstance(failure, Cancelled) else ENGINE
            # an engine that fails has told the owner
            if not isinstance(failure, Cancelled | EngineFailed):
                _OWNER.error("a step of charge %s failed: %s", self.charge, type(failure).__name__)
        except BaseException as interrupt:
            # the frames in which it came hold what was read, and a crash report writes down their variables
            interrupt.__context__ = None
            raise interrupt.with_traceback(None) from None

    def __repr__(self) -> str:
        return "Curator()"

    def __reduce__(self) -> NoReturn:
        raise TypeError("exact integers are not pickled")


def _require(mechanism: object, kind: type) -> None:
    """Refuses what only looks like a mechanism: a subclass could release what it is handed."""
    if type(mechanism) is not kind:
        raise InvalidDeclaration(
            f"A mechanism of kind {type(mechanism).__name__}.", allowed=kind.__name__
        )
