# SPDX-License-Identifier: Apache-2.0
"""One site of a study: it compiles each question itself, asks its owner and its ledger, and runs it.

It connects out only. What leaves it are signed messages and masked shares.
"""

import hashlib
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sfumato.config.load import load
from sfumato.errors import (
    InProgress,
    InvalidConfig,
    InvalidDeclaration,
    SfumatoError,
    StudyFailed,
    StudyRefused,
    UnknownName,
    WrongUse,
    shown,
)
from sfumato.federated.answers import Answers, question_of
from sfumato.federated.declaration import Declared, SiteFile, differences, read_site, read_study
from sfumato.federated.encryption import RunKey
from sfumato.federated.joint import Exchange, JointSeries
from sfumato.federated.messages import Body, Message, verified
from sfumato.federated.question import Compiled, Question, compiled
from sfumato.federated.round import Act, Phase, Round, agreed_places
from sfumato.federated.wire import LONGEST, Wire
from sfumato.mechanisms.masks import FreshKey
from sfumato.privacy.event import Json
from sfumato.query.hold import Hold
from sfumato.query.series import OpenSeries
from sfumato.query.session import Session
from sfumato.telemetry.keys import private_key

# Seconds that a step waits for the shares of the others.
STEP = 60.0
_PAUSE = 1.0
_FINISHED = "finished"


@dataclass(slots=True)
class _Work:
    """A run at this site: the question, and the charge that is reserved for it."""

    asked: Compiled
    question: str
    exchange: Exchange
    fresh: FreshKey | None = None
    hold: Hold | None = None
    series: OpenSeries | None = None
    key: RunKey | None = None


class Site:
    """A participant of a study, which answers with its own rows and charges its own ledger.

    Guarantees:
        a site executes only what it has compiled itself
        a run is begun once, also after a crash

    Raises:
        InvalidConfig: a file is wrong, or the site is not of the study, or its key is another one.
    """

    def __init__(self, path: str | Path, *, step: float = STEP) -> None:
        self.file = read_site(path)
        self.study = read_study(self.file.study)
        key = private_key(self.file.key)
        public = self.study.site_keys.get(self.file.site)
        if public is None or public.public_numbers() != key.public_key().public_numbers():
            raise InvalidConfig(
                f"site = {shown(self.file.site)} with another key than the study's.",
                allowed=", ".join(self.study.sites),
            )
        self._key, self._step = key, step
        self._wire = Wire(self.study.coordinator, self.file.site, key)
        self._owner = load(self.file.data)
        self._session = self._owner.asking_as(self.study.name, "study")
        self._rounds: dict[str, Round] = {}
        self._work: dict[str, _Work] = {}
        self._answers = Answers.of(self.study, self.file.site, key)
        self._lock = threading.RLock()
        self._threads: list[threading.Thread] = []

    @property
    def session(self) -> Session:
        """The open session over the site's own rows."""
        return self._session

    @property
    def rounds(self) -> dict[str, Round]:
        """The state of each run of the study that this site knows, by the run's id."""
        with self._lock:
            return dict(self._rounds)

    def differences(self) -> tuple[str, ...]:
        """Returns a line for each declaration of the study that this site states differently."""
        return differences(self.study.dataset, self._session.dataset)

    def serve(
        self,
        stop: threading.Event,
        told: Callable[[str], object] = str,
        longest: int = LONGEST,
    ) -> None:
        """Takes part in runs of the study until ``stop``; calls ``told`` with lines to show the
        owner.

        ``longest`` is how many seconds a request waits for messages.
        """
        after = 0
        try:
            while not stop.is_set():
                wait = 1 if self._waits() else longest
                try:
                    lines = self._wire.messages(after, wait)
                except StudyFailed:
                    stop.wait(_PAUSE)
                    continue
                after += len(lines)
                for line in lines:
                    with suppress(InvalidDeclaration):
                        message = verified(line, self.study.keys)
                        self._hear(message, told)
                        # after each message: all sites hold questions in the same order
                        self._advance(message.run, told)
                for run in self.rounds:
                    self._advance(run, told)
            for thread in self._threads:
                thread.join(self._step)
        finally:
            for work in self._work.values():
                _let_go(work)

    def close(self) -> None:
        """Closes the site's session and its connections to the coordinator."""
        self._wire.close()
        self._owner.close()

    def __enter__(self) -> "Site":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _waits(self) -> bool:
        """Whether a run has not ended here."""
        return any(known.phase is not Phase.ENDED for known in self.rounds.values())

    def _hear(self, message: Message, told: Callable[[str], object]) -> None:
        """Takes note of a message; a proposal begins a round."""
        run = message.run
        self._answers.hear(message)
        with self._lock:
            if run in self._rounds:
                self._rounds[run] = self._rounds[run].after(message)
                return
        if message.kind != "proposed":
            return
        until, sites = message.body.get("until"), message.body.get("sites")
        if type(until) is not int or not isinstance(sites, list) or self.file.site not in sites:
            return
        begun_before = self._mark(run).exists()
        if time.time() >= until and not begun_before:
            return
        named = frozenset(str(name) for name in sites)
        begun = Round(run, self.file.site, named, until)
        if begun_before:
            # in an earlier life, with a key that is gone: the others may wait for its share
            if self._mark(run).read_text() != _FINISHED:
                self._say(run, "withdrawn")
                self._mark(run).write_text(_FINISHED)
            begun = begun.ended()
        else:
            try:
                exchange = Exchange(run)
                own = self._own(message.body, named, exchange)
                work = _Work(own, question_of(message.body), exchange, key=self._run_key(message))
                self._work[run] = work
            except SfumatoError as refusal:
                told(f"{run[:12]}: refused: {refusal.problem}")
                self._say(run, "refused", {"why": refusal.problem})
                begun = begun.ended()
            else:
                told(f"{run[:12]}: {self._told(message.body)}")
        with self._lock:
            self._rounds[run] = begun

    def _told(self, proposal: Body) -> str:
        """A proposal in words, for the owner."""
        question = Question.from_json(proposal["question"])
        what = f"{question.model} of " if question.model else ""
        by_hand = "; approve it by its id" if self.file.by_hand else ""
        return f"rho {question.rho}: {what}{question.sql}{by_hand}"

    def _own(self, proposal: Body, sites: frozenset[str], exchange: Exchange) -> Compiled:
        """The question of a proposal, compiled here.

        Raises:
            Refused, WrongUse: it is another one than is proposed, or this site declares otherwise.
        """
        terms = self.study.terms
        if proposal.get("study") != terms.study or proposal.get("roster") != terms.roster:
            raise WrongUse("A proposal of another study.toml.", allowed="the same file everywhere")
        if not sites <= set(self.study.sites) or len(sites) < terms.least:
            raise WrongUse(f"A run of {len(sites)} sites.", allowed=f"{terms.least} or more")
        apart = self.differences()
        if apart:
            raise WrongUse(f"{self.file.site} declares otherwise: {'; '.join(apart)}.")
        own = compiled(Question.from_json(proposal.get("question")), self.study, exchange)
        if proposal.get("form") != own.form_hash or proposal.get("event") != own.event_hash:
            raise WrongUse(
                "The question compiles to something else here.",
                allowed="the same version of sfumato, and the same day where it names the date",
            )
        return own

    def _run_key(self, proposal: Message) -> RunKey | None:
        """The key of a run; None where shares travel as they are."""
        if not self.study.is_encrypted:
            return None
        terms, form = self.study.terms, proposal.body.get("encryption")
        return RunKey.opened(form, terms.study, self.file.site, self._key, terms.sites)

    def _advance(self, run: str, told: Callable[[str], object]) -> None:
        """Does what is next in a run."""
        with self._lock:
            if run not in self._rounds:
                return
            self._rounds[run], act = self._rounds[run].next(
                time.time(), permitted=self._is_approved(run)
            )
        if act is Act.APPROVE:
            self._say(run, "approved")
        elif act is Act.HOLD:
            self._hold(run, told)
        elif act is Act.EXECUTE:
            thread = threading.Thread(target=self._execute, args=(run, told), daemon=True)
            self._threads.append(thread)
            thread.start()
        elif act in (Act.VOID, Act.WITHDRAW):
            if act is Act.WITHDRAW:
                self._say(run, "withdrawn")
            told(f"{run[:12]}: ended before it was executed; nothing was charged")
            self._end(run)

    def _hold(self, run: str, told: Callable[[str], object]) -> None:
        """Reserves the cost, and says so with a fresh key; or sends the answer that is stored."""
        work = self._work[run]
        joint = work.asked.asked
        answered = self._answers.to(work.question)
        if answered is not None:
            self._answer(run, answered.body)
            return
        self._mark(run).touch()
        try:
            work.hold = hold = self._session.hold(joint)
            if not hold.charge and isinstance(joint, JointSeries):
                work.series = hold.open()
                stored = work.series.earlier
                # where the last piece is lost, all sites agree first on which is the answer
                if work.series.places in stored:
                    self._answer(run, stored[work.series.places])
                    return
            elif not hold.charge:
                self._answer(run, hold.ask().body)
                return
        except InProgress:
            # an earlier run of the question goes on here: its answer will be this run's too
            _let_go(work)
            with self._lock:
                self._rounds[run] = self._rounds[run].postponed()
            return
        except SfumatoError as refusal:
            told(f"{run[:12]}: refused: {refusal.problem}")
            # what is left of a budget is nobody else's
            self._say(run, "refused", {"why": f"{self.file.site} refuses."})
            self._end(run)
            return
        work.fresh = FreshKey(self.file.site, self._key, bytes.fromhex(run))
        body: dict[str, Json] = {
            "key": work.fresh.public.hex(),
            "signature": work.fresh.signature.hex(),
        }
        if work.series is not None:
            body["begun"] = work.series.places - work.series.left
            body["stored"] = {
                str(place): hashlib.sha256(piece).hexdigest()
                for place, piece in work.series.earlier.items()
            }
        self._say(run, "ready", body)

    def _execute(self, run: str, told: Callable[[str], object]) -> None:
        """Runs the question: from here on what is drawn is paid."""
        work, ready = self._work[run], self._rounds[run].ready
        try:
            body = self._carried_out(run, work, ready)
        except SfumatoError as failure:
            told(f"{run[:12]}: broke off: {failure.problem}")
            self._say(run, "failed")
            self._end(run)
        else:
            told(f"{run[:12]}: answered")
            self._answer(run, body)
        finally:
            self._wire.leave()

    def _carried_out(self, run: str, work: _Work, ready: Mapping[str, Body]) -> bytes:
        """The joint answer."""
        assert work.fresh is not None and work.hold is not None, "it was held before"
        exchange = work.exchange
        fresh = {
            name: (_bytes(body, "key"), _bytes(body, "signature")) for name, body in ready.items()
        }
        exchange.masks = work.fresh.masks(self.study.site_keys, fresh)
        exchange.send = lambda step, share: self._exchanged(run, work.key, step, share)
        if not isinstance(work.asked.asked, JointSeries):
            return work.hold.ask().body
        series = work.series = work.series or work.hold.open()
        with series:
            exchange.agreed, exchange.begun = agreed_places(ready)
            if exchange.begun > series.places - series.left:
                # lost at one site is lost at all
                series.skip(exchange.begun)
            while series.left:
                series.next()
            common = {
                place: body
                for place, body in series.earlier.items()
                if place in exchange.agreed or place > exchange.begun
            }
        if not common:
            raise StudyFailed("Every piece of the run is lost; it is paid.")
        return common[max(common)]

    def _exchanged(self, run: str, key: RunKey | None, step: int, share: bytes) -> bytes:
        """The sum of the shares of all sites in a step."""
        body = share if key is None else key.encrypt(share)
        added = self._wire.exchanged(run, step, body, time.monotonic() + self._step)
        total = added if key is None else key.decrypt(added, len(share))
        if len(total) != len(share):
            raise StudyFailed("A step of the run has no sum.", remedy="Ask again: another run.")
        return total

    def _answer(self, run: str, body: bytes) -> None:
        """Sends a stored answer."""
        key = self._work[run].key
        body = body if key is None else key.encrypt_answer(body)
        self._say(run, "answered", {"answer": b64encode(body).decode()})
        self._end(run)

    def _end(self, run: str) -> None:
        with self._lock:
            self._rounds[run] = self._rounds[run].ended()
        _let_go(self._work[run])
        if self._mark(run).exists():
            self._mark(run).write_text(_FINISHED)

    def _say(self, run: str, kind: str, body: Body | None = None) -> None:
        """Sends a message; the run ends by its time if the coordinator is away."""
        with suppress(StudyFailed, StudyRefused):
            self._wire.post(Message(kind, run, self.file.site, body or {}))

    def _is_approved(self, run: str) -> bool:
        """Whether the owner approves a run: by hand, or whatever the ledger admits."""
        return not self.file.by_hand or approval(self.file, run).exists()

    def _mark(self, run: str) -> Path:
        """The file that says that a run was begun here, and whether it was finished."""
        self.file.folder.mkdir(exist_ok=True)
        return self.file.folder / f"{run}.begun"


def approve(file: SiteFile, study: Declared, run: str) -> str:
    """Records the owner's approval of a run, given by the first digits of its id; returns the id.

    Raises:
        UnknownName: there is no such run at the coordinator, or several.
    """
    messages = _messages(file, study)
    runs = {each.run for each in messages if each.kind == "proposed" and each.run.startswith(run)}
    if len(runs) != 1 or not run:
        raise UnknownName(
            f"No single run {shown(run)}.", allowed="the first digits of the id of a run"
        )
    (whole,) = runs
    file.folder.mkdir(exist_ok=True)
    approval(file, whole).touch()
    return whole


def runs_of(file: SiteFile, study: Declared) -> list[str]:
    """Returns a line of text for each run of a study: its question, and each site's latest
    message.
    """
    lines: dict[str, str] = {}
    said: dict[str, dict[str, str]] = {}
    for message in _messages(file, study):
        if message.kind == "proposed":
            with suppress(InvalidDeclaration):
                question = Question.from_json(message.body.get("question"))
                lines[message.run] = f"rho {question.rho}: {question.sql}"
        else:
            said.setdefault(message.run, {})[message.author] = message.kind
    return [
        f"{run[:12]}  {line}  "
        + ", ".join(f"{name} {kind}" for name, kind in sorted(said.get(run, {}).items()))
        for run, line in lines.items()
    ]


def _messages(file: SiteFile, study: Declared) -> list[Message]:
    """All messages that the coordinator has."""
    wire = Wire(study.coordinator, file.site, private_key(file.key))
    try:
        lines = wire.messages(0, 0)
    finally:
        wire.close()
    messages = []
    for line in lines:
        with suppress(InvalidDeclaration):
            messages.append(verified(line, study.keys))
    return messages


def approval(file: SiteFile, run: str) -> Path:
    """The file that says that the owner approves a run."""
    return file.folder / f"{run}.approved"


def _let_go(work: _Work) -> None:
    """Voids the reserved charges, and suspends the open series."""
    with suppress(SfumatoError):
        if work.series is not None:
            work.series.close()
        if work.hold is not None:
            work.hold.close()


def _bytes(body: Body, key: str) -> bytes:
    """Bytes of a message, empty where there are none, which no check takes."""
    value = body.get(key)
    with suppress(ValueError):
        return bytes.fromhex(value) if isinstance(value, str) else b""
    return b""
