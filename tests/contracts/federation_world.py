# SPDX-License-Identifier: Apache-2.0
"""A study in one process without sockets: its own clock, and one party at a time.

The code of sites, analyst, wire and coordinator is the real one; a request is a call. A party runs
until it waits, then the next one runs; if all wait, the clock goes on. The coordinator may die at
any event, and is built again from its folder. A ledger is what a run needs of it.
"""

import threading
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from sfumato.errors import InProgress, StudyFailed
from sfumato.federated import coordinator, site, study, wire
from sfumato.federated.answers import Answers
from sfumato.federated.coordinator import Coordinator
from sfumato.federated.declaration import Declared, SiteFile, read_study
from sfumato.federated.joint import JointSeries, JointTask
from sfumato.federated.question import Question
from sfumato.federated.site import Site
from sfumato.federated.study import Study
from sfumato.telemetry.keys import private_key
from tests.contracts.federation_kills import STORED

# The seconds of one request.
_REQUEST = 0.001
# The time at which a world begins.
BEGAN = 1_000_000.0


class Death(BaseException):
    """The end of a coordinator or a site."""


class Party:
    """A thread that runs when it is its turn; ``owner`` is the site whose thread it is."""

    def __init__(self, world: "World", work: Callable[[], object], owner: str = "") -> None:
        self.turn, self.seen, self.until = threading.Semaphore(0), -1, 0.0
        self.owner, self.is_dead, self.over = owner, False, False
        self.failure: BaseException | None = None

        def run() -> None:
            self.turn.acquire()
            try:
                # who dies before its first turn does nothing
                if not self.is_dead:
                    work()
            except BaseException as failure:
                self.failure = failure
            self.over = True
            world.main.release()

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()
        world.parties[self._thread] = self


class World:
    """The parties of a study, their clock, and a coordinator that dies at an event.

    ``fatal`` counts the events of the coordinator from 1; 0: it never dies. It is away for
    ``away`` seconds.
    """

    def __init__(
        self,
        declared: Declared,
        keys: Mapping[str, ec.EllipticCurvePrivateKey],
        folder: Path,
        fatal: int = 0,
        away: float = 1.0,
    ) -> None:
        self.declared, self.keys = declared, keys
        self.folder = folder
        self.fatal, self.away = fatal, away
        self.now, self.changes, self.events = BEGAN, 0, 0
        self.main = threading.Semaphore(0)
        self.parties: dict[threading.Thread, Party] = {}
        self.stopped = False
        # a site that dies, and at which of its events
        self.mortal, self.fatal_request, self.requests = "", 0, 0
        self.lives = 0
        self.back = self.now
        self.coordinator: Coordinator | None = None

    def replace_time(self, patch: pytest.MonkeyPatch) -> None:
        """From now on all parties live in this world."""
        clock = SimpleNamespace(time=self.time, monotonic=self.time, sleep=self.wait)
        for module in (site, study, wire):
            patch.setattr(module, "time", clock)
        thread = lambda target, args, daemon: SimpleNamespace(  # noqa: E731
            start=lambda: Party(
                self, lambda: target(*args), self.parties[threading.current_thread()].owner
            ),
            join=lambda seconds: None,
        )
        patch.setattr(site, "threading", SimpleNamespace(Thread=thread))
        patch.setattr(wire.Wire, "_once", lambda own, *request: self.answered(own._name, *request))
        patch.setattr(coordinator.os, "fsync", lambda number: None)
        # fewer tries cost less
        patch.setattr(wire, "_PAUSE", 4.0)
        for name in STORED:
            patch.setattr(Coordinator, name, self._mortal(getattr(Coordinator, name)))

    def _mortal(self, step: Callable[..., Any]) -> Callable[..., Any]:
        def mortal(*given: Any) -> Any:
            self._event()
            found = step(*given)
            self._event()
            return found

        return mortal

    def _event(self) -> None:
        self.events += 1
        if self.events == self.fatal:
            raise Death

    def time(self) -> float:
        """The time of this world."""
        return self.now

    def wait(self, seconds: float, *, anything: bool = False) -> None:
        """The party waits for so many seconds, or for anything that happens."""
        own = self.parties[threading.current_thread()]
        own.until, own.seen = self.now + seconds, self.changes if anything else -1
        self.main.release()
        own.turn.acquire()
        if own.is_dead:
            raise Death

    def answered(self, caller: str, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        """The answer to a request of a party, which waits for it."""
        self._request_of(caller)
        found = self._answered(caller, method, path, body)
        self._request_of(caller)
        return found

    def _request_of(self, caller: str) -> None:
        """Before and after each request a site may die."""
        if caller != self.mortal or self.parties[threading.current_thread()].is_dead:
            return
        self.requests += 1
        if self.requests == self.fatal_request:
            for party in self.parties.values():
                if party.owner == caller:
                    party.is_dead, party.until = True, self.now
            Party(self, lambda: (self.wait(self.away), self.begin(caller)))
            raise Death

    def begin(self, name: str) -> None:
        """A site serves from now on."""
        raise NotImplementedError

    def _answered(self, caller: str, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        self.wait(_REQUEST)
        parts = path.strip("/").split("/")
        end = self.now
        if parts[0] in ("messages", "sums") and method == "GET":
            parts[-1], end = "0", self.now + int(parts[-1])
        while True:
            server, life = self._server(), self.lives
            try:
                status, made = finished(server._answered(method, parts, caller, body))
            except Death:
                self.coordinator, self.back = None, self.now + self.away
                self.lives += 1
                self.changes += 1
                raise ConnectionResetError from None
            if method == "POST":
                self.changes += 1
            if status != 204 or self.now >= end:
                return status, made
            self.wait(end - self.now, anything=True)
            if life != self.lives:
                raise ConnectionResetError

    def _server(self) -> Coordinator:
        if self.coordinator is None:
            if self.now < self.back:
                raise ConnectionRefusedError
            fatal, self.fatal = self.fatal, 0
            # its own events at its start are none of a request
            events = self.events
            self.coordinator = Coordinator(self.declared, self.folder / "rounds", self.time)
            self.fatal, self.events = fatal, events
        return self.coordinator

    def run(self, work: Callable[[], Any]) -> Any:
        """Lets a party work until it has ended, with all others; returns what it returned."""
        made: list[Any] = []
        party = Party(self, lambda: made.append(work()))
        while not party.over:
            self._step()
        if party.failure is not None:
            raise party.failure
        return made[0]

    def stop(self) -> None:
        """Ends all parties."""
        self.stopped = True
        while any(not party.over for party in self.parties.values()):
            self._step()

    def is_set(self) -> bool:
        """Whether the sites have to end."""
        return self.stopped

    def _step(self) -> None:
        waiting = [party for party in self.parties.values() if not party.over]
        able = [
            party for party in waiting if party.until <= self.now or 0 <= party.seen < self.changes
        ]
        if not able:
            self.now = min(party.until for party in waiting)
            return
        # who has waited longest
        first = min(able, key=lambda party: party.until)
        first.until = self.now
        first.turn.release()
        self.main.acquire()


def finished(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """The value of a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("a request that waits")


class Book:
    """What a run needs of a session and its ledger: one question in pieces, and what it has cost.

    ``drawn`` has the steps whose noise was drawn, by run; ``number`` is what a share has in it.
    """

    def __init__(self, places: int, number: int) -> None:
        self.places, self.number = places, number
        self.left, self.earlier, self.state = places, dict[int, bytes](), "none"
        self.paid = 0
        self.loses = False
        self.drawn: list[tuple[str, int]] = []
        # who has reserved the cost or is executing
        self.worker: Handle | None = None

    def hold(self, asked: Any) -> "Handle":
        """As ``Session.hold``."""
        self.require_free()
        handle = Handle(self, asked.exchange)
        if self.state == "none":
            self.state, self.worker, handle.charge = "reserved", handle, "charge"
            self.paid += 1
        return handle

    def require_free(self) -> None:
        """Refuses while somebody has the question."""
        if self.state in ("reserved", "executing"):
            raise InProgress("The question is being answered.")

    def store(self, number: int) -> None:
        """An answer is stored, and was paid."""
        self.earlier, self.left, self.state = {1: np.array([number]).tobytes()}, 0, "complete"
        self.paid = 1

    def skip(self, places: int) -> None:
        """Places up to this one are lost."""
        self.left = self.places - places
        if not self.left:
            self.state = "complete"


class Handle:
    """A hold of a book, and the open series that it becomes."""

    def __init__(self, book: Book, exchange: Any) -> None:
        self.book, self.exchange, self.charge = book, exchange, ""
        self.places, self.earlier = book.places, book.earlier

    @property
    def left(self) -> int:
        """As ``OpenSeries.left``."""
        return self.book.left

    def open(self) -> "Handle":
        """As ``Hold.open``."""
        if self.book.worker is not self:
            self.book.require_free()
        if self.book.state != "complete":
            self.book.state, self.book.worker = "executing", self
        return self

    def ask(self) -> Any:
        """As ``Hold.ask``; a task that fails is paid, and paid again when it is asked again."""
        book = self.book
        if book.state != "complete":
            book.state = "executing"
            try:
                self.next()
            except BaseException:
                book.state, book.left = "none", 1
                raise
        return SimpleNamespace(body=book.earlier[1])

    def next(self) -> None:
        """As ``OpenSeries.next``."""
        book = self.book
        place = book.places - book.left + 1
        book.left -= 1
        book.drawn.append((self.exchange.run, place))
        share = self.exchange.masks.masked(place, np.array([book.number], np.int64))
        total = self.exchange.send(place, share)
        if book.loses:
            raise StudyFailed("The sum is lost.")
        book.earlier[place] = total
        if not book.left:
            book.state = "complete"

    def skip(self, places: int) -> None:
        """As ``OpenSeries.skip``."""
        self.book.skip(places)

    def close(self) -> None:
        """As ``Hold.close`` and ``OpenSeries.close``."""
        book = self.book
        if book.worker is not self:
            return
        if book.state == "reserved":
            book.state, book.paid = "none", book.paid - 1
        if book.state == "executing":
            book.state = "suspended"

    def __enter__(self) -> "Handle":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class Life(World):
    """A world with an analyst and sites that serve; a question in several pieces is a model."""

    def __init__(
        self,
        patch: pytest.MonkeyPatch,
        declared: Declared,
        keys: Mapping[str, ec.EllipticCurvePrivateKey],
        folder: Path,
        *,
        places: int = 1,
        fatal: int = 0,
        away: float = 1.0,
        away_at_first: str = "",
    ) -> None:
        super().__init__(declared, keys, folder, fatal, away)
        self.replace_time(patch)
        self.books: dict[str, Book] = {}
        kind = JointTask if places == 1 else JointSeries
        compiled = SimpleNamespace(
            form_hash="f",
            event_hash="e",
            question="f e",
            decode=lambda body, run: int(np.frombuffer(body, "<i8")[0]),
        )
        patch.setattr(study.Study, "_compiled", lambda own, question: compiled)

        def own(which: Site, body: Any, sites: Any, exchange: Any) -> Any:
            asked = kind.__new__(kind)
            object.__setattr__(asked, "exchange", exchange)
            return SimpleNamespace(asked=asked)

        patch.setattr(Site, "_own", own)
        for number, name in enumerate(declared.sites):
            self.books[name] = Book(places, 10**number)
            if name != away_at_first:
                self.begin(name)
        self.analyst = Study(declared, keys["analyst"])

    def ask(self, wait_s: float = 10.0) -> int:
        """The answer to the one question."""
        question = Question.of("SELECT COUNT(*) AS n FROM patients", "0.1")
        return int(self.run(lambda: self.analyst._asked(question, wait_s)))

    def begin(self, name: str) -> None:
        """A site serves from now on, with its book and its files."""
        served = Site.__new__(Site)
        served.study = self.declared
        key = self.keys[name]
        folder = self.folder / name
        served.file = SiteFile(Path("s"), name, Path("k"), Path("d"), by_hand=False, folder=folder)
        served._key, served._step = key, site.STEP
        served._wire = wire.Wire("http://127.0.0.1:1", name, key)
        served._session = self.books[name]
        served._rounds, served._work = {}, {}
        served._answers = Answers.of(self.declared, name, key)
        served._lock, served._threads = threading.RLock(), []
        Party(self, lambda: served.serve(self, str), name)


def study_of(folder: Path) -> tuple[Declared, dict[str, ec.EllipticCurvePrivateKey]]:
    """The study of a folder, and the private keys of its parties."""
    declared = read_study(folder / "study.toml")
    return declared, {name: private_key(folder / f"{name}.pem") for name in declared.keys}
