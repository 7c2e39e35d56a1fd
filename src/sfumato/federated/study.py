# SPDX-License-Identifier: Apache-2.0
"""The analyst's side of a study: it proposes questions and reads joint answers; it holds no data."""

import time
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from sfumato.errors import InvalidDeclaration, StudyFailed, StudyRefused, WrongUse
from sfumato.exact.rational import Number
from sfumato.federated.answers import Answers
from sfumato.federated.declaration import Declared, read_study
from sfumato.federated.encryption import RunKey
from sfumato.federated.messages import ANALYST, Message, run_of, verified
from sfumato.federated.question import Compiled, Question, compiled
from sfumato.federated.round import Round
from sfumato.federated.wire import LONGEST, Wire
from sfumato.learning.fit_preview import Preview as FitPreview
from sfumato.learning.recipe import OneRelease, Recipe, Run
from sfumato.noise.entropy import token
from sfumato.privacy.event import Json
from sfumato.query.answer import Answer
from sfumato.query.choose import Planned
from sfumato.query.preview import Preview
from sfumato.telemetry.keys import PrivateKey, private_key

Fitted = TypeVar("Fitted")
# Seconds that a question waits for approvals, by default.
WAIT = 600.0
# Seconds after its approvals that a run may take, and that the coordinator may be away.
_RUN, _AWAY = 3600.0, 60.0


class Study:
    """A study opened by its analyst, who asks questions about the rows of all sites together.

    ``open`` makes it; it is a context manager. ``sites`` has, for each site, its reply to the
    latest question, or when it was heard last.
    """

    def __init__(self, declared: Declared, key: PrivateKey) -> None:
        own = private_key(key)
        wanted = declared.keys[ANALYST].public_numbers()
        if own.public_key().public_numbers() != wanted:
            raise WrongUse("The key is not that of the study's analyst.")
        self.declared = declared
        self._wire = Wire(declared.coordinator, ANALYST, own)
        self._said: dict[str, str] = {}
        self._answers = Answers.of(declared, ANALYST, own)
        self._after, self._reached = 0, time.monotonic()

    def preview(
        self,
        sql: str,
        *,
        rho: Number,
        recipe: Recipe[Any] | None = None,
        label: str | None = None,
    ) -> "StudyPreview":
        """Returns what a question or model would cost each site, and its expected error; costs no
        budget.

        Raises:
            Refused, WrongUse: it cannot be asked of a study, and what to write instead.
        """
        return StudyPreview(self._compiled(Question.of(sql, rho, recipe, label)), self.declared)

    def query(self, sql: str, *, rho: Number, wait_s: float = WAIT) -> Answer:
        """Returns the answer over the rows of all sites together; each site is charged the rho.

        The same question at the same rho returns the same answer at no cost, if a site has sent it
        before or has it stored. If a site refuses or is silent for ``wait_s`` seconds, the others are asked without
        it, as long as ``least`` remain.

        Raises:
            StudyRefused: too few sites take part; nothing is charged.
            StudyFailed: the run broke off; paid at the sites that had executed it.
            Others as ``preview``; nothing is charged.
        """
        answer = self._asked(Question.of(sql, rho), wait_s)
        assert isinstance(answer, Answer), "a statement gives an answer"
        return answer

    def fit(
        self,
        recipe: Recipe[Fitted],
        sql: str,
        *,
        rho: Number,
        label: str | None = None,
        wait_s: float = WAIT,
    ) -> Fitted:
        """Returns a model fitted to the rows of all sites together; each site is charged the rho.

        A run that broke off goes on from the last piece that all sites have stored.

        Raises:
            As ``query``.
        """
        model: Fitted = self._asked(Question.of(sql, rho, recipe, label), wait_s)
        return model

    @property
    def sites(self) -> dict[str, str]:
        """Each site's reply to the latest question, or how long ago it was last in contact, as
        text.
        """
        found = {}
        heard = self._wire.heard()
        for name in self.declared.sites:
            age = heard.get(name)
            there = "never heard" if age is None else f"heard {age:.0f} s ago"
            found[name] = self._said.get(name, there)
        return found

    def close(self) -> None:
        """Closes the connections to the coordinator."""
        self._wire.close()

    def __enter__(self) -> "Study":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _compiled(self, question: Question) -> Compiled:
        return compiled(question, self.declared)

    def _asked(self, question: Question, wait_s: float) -> Any:
        """The answer that a question has; else it is proposed to all sites, and to fewer if some do
        not take part.
        """
        made = self._compiled(question)
        self._new_messages(0)
        sites = list(self.declared.sites)
        while (answered := self._answers.to(made.question)) is None:
            run = self._propose(question, made, sites, wait_s)
            kinds = self._wait(run, made.question, sites, wait_s)
            if kinds is None:
                continue
            away = [name for name in sites if kinds.get(name) in ("refused", "withdrawn")]
            # who was silent, unless somebody refused before the others had time
            away = away or [name for name in sites if name not in kinds]
            away = away or [name for name in sites if kinds[name] == "approved"]
            left = [name for name in sites if name not in away]
            if not self.declared.terms.least <= len(left) < len(sites):
                told = ", ".join(f"{name}: {text}" for name, text in self.sites.items())
                raise StudyRefused(
                    f"The question is not answered ({told}).",
                    allowed=f"{self.declared.terms.least} sites that take part",
                )
            sites = left
        return made.decode(answered.body, answered.run)

    def _propose(
        self,
        question: Question,
        made: Compiled,
        sites: list[str],
        wait_s: float,
    ) -> str:
        """Signs and sends a proposal; returns the id of the run."""
        terms = self.declared.terms
        body: dict[str, Json] = {
            "study": terms.study,
            "roster": terms.roster,
            "question": question.to_json(),
            "form": made.form_hash,
            "event": made.event_hash,
            "sites": list[Json](sites),
            "attempt": token(),
            # the coordinator may be away for a while; the analyst cancels in time
            "until": int(time.time() + wait_s + _AWAY) + 1,
        }
        if self.declared.is_encrypted:
            # also to sites that are away now: they may be asked the same later
            key = RunKey.new(terms.sites)
            body["encryption"] = key.sealed(terms.study, self.declared.keys)
        run = run_of(body)
        self._wire.post(Message("proposed", run, ANALYST, body), _AWAY)
        self._reached = time.monotonic()
        return run

    def _wait(
        self,
        run: str,
        question: str,
        sites: list[str],
        wait_s: float,
    ) -> dict[str, str] | None:
        """What each site said last, if a run ended before it was executed; None: it is answered.

        Raises:
            StudyFailed: it broke off after that.
        """
        self._said = {}
        end, is_cancelled = time.monotonic() + wait_s, False
        seen = Round(run, ANALYST, frozenset(sites), end)
        while not seen.endings:
            left = end - time.monotonic()
            if seen.is_held and left < -_RUN:
                raise StudyFailed("The run has no answer in time.", remedy="Ask again.")
            if left <= 0 and not seen.is_held and not is_cancelled:
                # all sites may have reserved it by now: then it is executed
                self._wire.post(Message("cancelled", run, ANALYST, {}), _AWAY)
                is_cancelled = True
            for message in self._new_messages(
                max(1, min(LONGEST, int(left))) if left > 0 else LONGEST
            ):
                seen = seen.after(message)
                if message.run == run and message.author in sites:
                    why = f": {message.body.get('why', '')}" if message.kind == "refused" else ""
                    self._said[message.author] = message.kind + why
            if self._answers.to(question) is not None:
                return None
        if seen.is_held:
            raise StudyFailed(
                f"The run broke off at {', '.join(seen.endings)}.",
                remedy="Ask again: what is stored is not paid again.",
            )
        if not is_cancelled:
            with suppress(StudyFailed, StudyRefused):
                self._wire.post(Message("cancelled", run, ANALYST, {}))
        return {name: text.partition(":")[0] for name, text in self._said.items()}

    def _new_messages(self, wait: int) -> list[Message]:
        """The messages that came since the last call; waits up to so many seconds for some.

        A coordinator may be away for a while: the run goes on without its reader.
        """
        try:
            lines = self._wire.messages(self._after, wait)
        except StudyFailed:
            if time.monotonic() > self._reached + _AWAY:
                raise
            return []
        self._reached = time.monotonic()
        self._after += len(lines)
        messages = []
        for line in lines:
            with suppress(InvalidDeclaration):
                message = verified(line, self.declared.keys)
                self._answers.hear(message)
                messages.append(message)
        return messages


class StudyPreview:
    """The privacy cost of a question to a study at each site, and its expected error.

    ``error`` and ``explain`` are those of a single curator that adds as much noise as all sites
    together.
    """

    def __init__(self, made: Compiled, declared: Declared) -> None:
        self._made = made
        planned = made.planned
        self.cost = made.cost
        self.preview: Preview | FitPreview
        if isinstance(planned, Planned):
            self.preview = Preview(planned, declared.dataset, "")
        elif isinstance(planned, OneRelease | Run):
            sizes = planned.sizes if isinstance(planned, Run) else (planned.releases,)
            self.preview = FitPreview(
                made.cost, sum(sizes), len(sizes), planned.numbers, planned.noise
            )

    def error(self, confidence: Number = 0.95) -> list[dict[str, Json]]:
        """Returns the expected error of each column of a SQL answer, as ``Preview.error`` does.

        Raises:
            WrongUse: the question is a model.
        """
        if isinstance(self.preview, Preview):
            return self.preview.error(confidence)
        raise WrongUse("The error of a model.", remedy="Its preview states the noise of a release.")

    def __repr__(self) -> str:
        lines = repr(self.preview).splitlines()
        kept = [line for line in lines if "nothing was charged" not in line]
        return "\n".join([*kept, f"would cost each site {self.cost}; nothing was charged"])


def open(path: str | Path, *, key: PrivateKey) -> Study:  # noqa: A001
    """Opens a study as its analyst; ``key`` is the analyst's private key.

    Raises:
        InvalidConfig: the study is wrong.
        WrongUse: the key is not that of the analyst.

    >>> open("nowhere.toml", key="nobody.pem")
    Traceback (most recent call last):
    ...
    sfumato.errors.InvalidConfig: No file 'nowhere.toml'...
    """
    return Study(read_study(path), key)
