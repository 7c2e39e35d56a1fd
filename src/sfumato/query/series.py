# SPDX-License-Identifier: Apache-2.0
"""Series: tasks that answer in pieces and are paid in full when they are opened.

``Session.open_series`` opens one; streams of synopses are series. The guarantee rests on the order
of the steps: reserve the whole cost (durable); then for each piece, begin its place (durable), draw
the noise, read, append the bytes (durable), return them. Proof: series.proof.md.
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Protocol, TypeAlias

from sfumato.engines.base import Engine
from sfumato.engines.stop import Patience, Stop, patience_of
from sfumato.errors import (
    Cancelled,
    EngineFailed,
    InProgress,
    LedgerError,
    LedgerUnavailable,
    Refused,
    WrongUse,
    shown,
)
from sfumato.exact.values import copied, is_same
from sfumato.ledger.heartbeat import Heartbeat
from sfumato.ledger.journal import canonical_json
from sfumato.ledger.request import Request
from sfumato.ledger.spend import Ledger
from sfumato.noise.entropy import token
from sfumato.privacy.event import Block, Composed, Event, Repeated, Stream
from sfumato.query.asker import Asker
from sfumato.query.charge import opened_plan, run_task
from sfumato.query.curator import CANCELLED, Curator
from sfumato.query.door import Door
from sfumato.query.payer import Payer, abandon
from sfumato.query.reserved import Reserved, drawn, plan_of, stated
from sfumato.query.statistic import Opened
from sfumato.query.stream_state import Past
from sfumato.query.task import Stored, Task, named, require_task, sized

# The events of a series: a part for each piece, or a stream.
SeriesEvent: TypeAlias = Composed | Repeated | Block | Stream
# The fence of the first worker of a charge.
_FIRST = 1


class Series(Protocol):
    """The interface of a question that is answered in pieces; ``Session.open_series`` opens it.

    ``kind``, ``line`` and ``form`` are as in ``Task``. ``event`` is the event of all pieces
    together. It is a ``Composed`` or ``Repeated``, or a ``Block`` of one, whose parts in order are
    the events of the pieces; or it is a ``Stream``, which is the event of every piece and is paid
    once.
    """

    @property
    def kind(self) -> str: ...

    @property
    def line(self) -> str: ...

    @property
    def form(self) -> str: ...

    @property
    def event(self) -> SeriesEvent: ...

    def piece(self, place: int, earlier: Mapping[int, bytes]) -> Task:
        """Returns the task that computes a piece; places are counted from 1.

        Its event is the part of the series' event at this place. ``earlier`` has the stored pieces
        by place, on which a piece may depend. A place that was begun and not stored is lost, and is
        not in it.
        """
        ...


# The members of a series.
SERIES = ("event", "form", "kind", "line", "piece")


@dataclass(frozen=True, slots=True)
class Worker:
    """The resources by which a session computes the pieces of a series: asker, engine, ledger and
    folders.

    ``door`` refuses a piece once the session is closed. ``states`` is the folder of the secret
    states of streams; None: no stream can be opened.
    """

    asker: Asker
    engine: Engine
    ledger: Ledger
    door: Door
    states: Path | None = None

    def past(self, event: Event, charge: str, stored: int, place: int) -> Past | None:
        """Returns the secret state of a stream before a piece; None for a series that is no stream.

        Raises:
            WrongUse: the session has no folder for it.
        """
        if not isinstance(event, Stream):
            return None
        if self.states is None:
            raise WrongUse(
                "A stream has a secret state, and there is no folder for it.",
                remedy='sf.connect(..., states="folder"); states = "folder" in sfumato.toml',
            )
        return Past(self.states, charge, stored, place)


@dataclass(slots=True)
class _Begun:
    """The progress of a charge: the worker's fence (0: no worker), and the last place begun."""

    charge: str
    fence: int = 0
    begun: int = 0


class OpenSeries:
    """A series (a question answered in pieces) whose whole cost is paid; iterating computes the
    remaining pieces.

    ``charge`` is the id of the charge, ``earlier`` has the stored pieces by place. ``close``, or
    the end of a ``with`` block, suspends the charge until the series is opened again. After the
    last place the charge is complete.

    Guarantees:
        a place is begun before its noise is drawn and its data read
        a piece is stored before it is returned
        a piece that does what was not reserved for it is refused free
    """

    def __init__(
        self,
        series: Series,
        event: Event,
        worker: Worker,
        begun: _Begun,
    ) -> None:
        # the event is read once, so that what was charged is what is run
        self._series = series
        self._event = event
        self._worker = worker
        self._begun = begun
        self._lock = threading.Lock()
        self.charge = begun.charge
        self.places = places_of(event)
        self.earlier = dict(_stored(worker.ledger, begun.charge))

    @property
    def left(self) -> int:
        """The number of pieces that can still be computed; 0 if the series is closed or complete."""
        if self._begun.fence:
            return self.places - self._begun.begun
        return 0

    def next(self, *, stop: Stop | None = None, time_limit: float | None = None) -> Stored:
        """Returns the answer of the next piece, which it computes; ``stop`` and ``time_limit`` are
        as in ``Session.query``.

        Raises:
            WrongUse: no piece is left, or the event of the piece is not the one reserved for its
                place; nothing is lost.
            LeaseExpired: it was idle for longer than the ledger's lease; open it again.
            Cancelled, EngineFailed: the place is lost, and the charge is suspended.
        """
        patience = patience_of(stop, time_limit)
        with self._worker.door.inside(), self._lock:
            if not self.left:
                raise WrongUse(
                    "No piece is left, or the series was closed.", remedy="Open the series again."
                )
            place = self._begun.begun + 1
            task = self._series.piece(place, MappingProxyType(self.earlier))
            part = part_of(self._event, place)
            require_task(task)
            # each property is read once, before the place is begun
            past = self._past(place)
            if past is not None:
                past.require()
            cells_and_size = stated(part, task.cells), sized(task.size)
            if not is_same(task.event, part):
                raise WrongUse(
                    f"Piece {place} does not do what was reserved for it.",
                    allowed="the event of its place",
                )
            opened = opened_plan(task, self._worker.asker, self._worker.engine, patience)
            try:
                body, failed = self._carried_out(task, cells_and_size, place, opened)
            except BaseException:
                abandon(self._worker.ledger, self.charge, self._leave())
                raise
        if body is None:
            raise Cancelled(paid=True) if failed == CANCELLED else EngineFailed()
        return Stored(body, self.charge)

    def _carried_out(
        self,
        task: Task,
        cells_and_size: tuple[tuple[int | None, ...], int | None],
        place: int,
        opened: Opened,
    ) -> tuple[bytes | None, str]:
        """Runs a piece: begin, draw, run, append, in this order.

        ``cells_and_size`` are the cells and the size that the task has stated.
        """
        ledger = self._worker.ledger
        charge = self.charge
        fence = self._begun.fence
        (cells, size), part = cells_and_size, part_of(self._event, place)
        ledger.begin(charge, place, fence=fence)
        self._begun.begun = place
        curator = Curator(charge, Reserved(part, drawn(part, cells)), opened, self._past(place))
        with Heartbeat(ledger, charge, fence=fence):
            body, failed = run_task(task, size, curator, opened)
        if body is None:
            ledger.suspend(charge, fence=self._leave(), reason=failed)
            return None, failed
        ledger.append(charge, place, body, fence=fence, size=size)
        self.earlier[place] = body
        if place == self.places:
            self._complete()
        return body, ""

    def _complete(self) -> None:
        """Commits the charge after its last place."""
        summary = _summary(self._series.kind, self.places)
        self._worker.ledger.commit(self.charge, summary, fence=self._begun.fence)
        self._leave()
        past = self._past(self.places)
        if past is not None:
            past.remove()

    def _past(self, place: int) -> Past | None:
        """The secret state of a stream after the stored pieces; None for any other series."""
        stored = next(reversed(self.earlier), 0)
        return self._worker.past(self._event, self.charge, stored, place)

    def skip(self, places: int) -> None:
        """Gives up the next pieces, up to the one numbered ``places``: they are lost, as if a
        worker had died.

        Raises:
            WrongUse: no such place is left.
            LeaseExpired: as ``next``.
        """
        with self._worker.door.inside(), self._lock:
            last = self.places - self.left
            if type(places) is not int or not last < places <= self.places:
                raise WrongUse(f"skip({shown(places)}).", allowed=f"{last + 1} to {self.places}")
            fence = self._begun.fence
            self._worker.ledger.begin(self.charge, places, fence=fence)
            self._begun.begun = places
            if places == self.places:
                self._complete()

    def close(self) -> None:
        """Suspends the charge; opening the series again resumes it."""
        if not self._lock.acquire(timeout=1):
            return
        try:
            fence = self._leave()
            if fence:
                # if this fails, the charge is suspended when its lease ends
                with suppress(LedgerError):
                    self._worker.ledger.suspend(self.charge, fence=fence)
        finally:
            self._lock.release()

    def _leave(self) -> int:
        """Gives up the charge; returns the fence that this worker had."""
        fence, self._begun.fence = self._begun.fence, 0
        return fence

    def __iter__(self) -> Iterator[Stored]:
        while self.left:
            yield self.next()

    def __enter__(self) -> "OpenSeries":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"OpenSeries(charge {self.charge}, {self.left} of {self.places} places left)"


def opened_series(
    series: Series,
    worker: Worker,
    patience: Patience,
    payer: Payer | None = None,
) -> OpenSeries:
    """Returns an open series: with a new charge, or the charge that it has if it was suspended or
    is complete.

    ``payer`` pays for a new charge instead of the ledger.

    Guarantees:
        the whole cost is debited before the first piece
        a suspended series is resumed and not paid again

    Raises:
        InProgress: another worker has it open.
        Others as ``charged``; nothing was charged.
    """
    event = copied(series.event)
    asker = worker.asker
    ledger = worker.ledger
    places = places_of(event)
    request = request_of(series, event, asker)
    if ledger.recall(request) is not None:
        return OpenSeries(series, event, worker, _Begun(ledger.charge_of(request)))
    begun = _resumed(ledger, request)
    if begun is None:
        # whatever can fail without the data fails here, while it is free
        opened_plan(series.piece(1, {}), asker, worker.engine, patience)
        worker.past(event, "", 0, 1)
        begun = _started(ledger, request, places, payer or ledger)
    if begun.begun == 0:
        # nothing was drawn: from now on a state that is missing is lost
        past = worker.past(event, begun.charge, 0, 1)
        if past is not None:
            past.create()
    if begun.begun == places:
        # the last place was begun and not stored: it is lost
        ledger.commit(begun.charge, _summary(series.kind, places), fence=begun.fence)
        begun.fence = 0
    opened = OpenSeries(series, event, worker, begun)
    worker.door.keep(opened)
    return opened


def is_paid(series: Series, worker: Worker) -> bool:
    """Returns whether opening the series is free: its charge is complete or suspended."""
    request = request_of(series, series.event, worker.asker)
    if worker.ledger.recall(request) is not None:
        return True
    return bool(worker.ledger.suspended(request.question))


def request_of(series: Series, event: SeriesEvent, asker: Asker) -> Request:
    """Returns the request by which the ledger charges a series."""
    # a series is never shared: its pieces are read by the id of the charge that paid for them
    names = replace(asker.names(*named(series), event), shared="")
    return asker.request(event, names, line=series.line)


def places_of(event: Event) -> int:
    """Returns the number of pieces of a series with this privacy event.

    Raises:
        WrongUse: the event is not a composition.
    """
    if isinstance(event, Stream):
        return event.steps
    plan = plan_of(event)
    if isinstance(plan, Repeated):
        return plan.times
    if isinstance(plan, Composed) and plan.events:
        return len(plan.events)
    raise WrongUse(
        f"A series of {type(event).__name__}.",
        allowed="Composed, with a part a piece, Repeated, or Stream",
    )


def part_of(event: Event, place: int) -> Event:
    """Returns the event of the piece at a place."""
    if isinstance(event, Stream):
        return event
    plan = plan_of(event)
    if isinstance(plan, Composed):
        return plan.events[place - 1]
    assert isinstance(plan, Repeated), "places_of refuses everything else"
    return plan.event


def _started(ledger: Ledger, request: Request, places: int, payer: Payer) -> _Begun:
    """Reserves and starts a new charge, or resumes the suspended one that the ledger reports."""
    charge = token()
    try:
        charge = payer.reserve(request, charge)
        return _Begun(charge, ledger.start(charge, places))
    except LedgerUnavailable:
        # the lease of another worker may have ended: close its charge, and resume it
        ledger.sweep()
        begun = _resumed(ledger, request)
        if begun is None:
            abandon(ledger, charge, _FIRST)
            raise
        return begun
    except BaseException as failure:
        # a refusal reserved nothing
        if not isinstance(failure, Refused | WrongUse | InProgress):
            abandon(ledger, charge, _FIRST)
        raise


def _resumed(ledger: Ledger, request: Request) -> _Begun | None:
    """Resumes the suspended charge of a series; None if there is none."""
    charge = ledger.suspended(request.question)
    if not charge:
        return None
    pieces = ledger.resume(charge)
    return _Begun(charge, pieces.fence, pieces.begun)


def _stored(ledger: Ledger, charge: str) -> Iterator[tuple[int, bytes]]:
    """The stored pieces of a charge with their places, in order."""
    last = 0
    while pieces := ledger.instalments(charge, after=last):
        yield from pieces
        last, _ = pieces[-1]


def _summary(kind: str, places: int) -> bytes:
    """The bytes that are stored as the answer of a complete series."""
    return canonical_json({"kind": kind, "places": places}).encode()
