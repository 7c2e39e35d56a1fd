# SPDX-License-Identifier: Apache-2.0
"""The front door: a dataset, its budget, its ledger, and questions."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import cast

from sqlglot import exp

from sfumato.engines.base import Engine
from sfumato.engines.stop import ENDLESS, Patience, Stop
from sfumato.errors import SfumatoError, UnknownName, WrongUse, shown
from sfumato.exact.rational import Number
from sfumato.ledger.account_path import UNSTATED, Scope
from sfumato.ledger.request import Request
from sfumato.ledger.spend import Ledger
from sfumato.ledger.verify import Report, verify
from sfumato.metadata.contract import Contract
from sfumato.metadata.dataset import Dataset
from sfumato.plan.question import Question
from sfumato.plan.scalar import Estimate
from sfumato.privacy.budget import Budget
from sfumato.privacy.distance import Norm
from sfumato.privacy.event import Json
from sfumato.query.account import Account
from sfumato.query.answer import Answer
from sfumato.query.asker import Asker
from sfumato.query.charge import persistently
from sfumato.query.choose import Planned, cheapest, plan_for_price, plans_for_target
from sfumato.query.dataframe import Frame, frame
from sfumato.query.diagnose import checks
from sfumato.query.diagnosis import Diagnosis, diagnosis
from sfumato.query.door import Door
from sfumato.query.known import Known, name_of
from sfumato.query.payer import Payer
from sfumato.query.pipeline import UNPREPARED, compile_plan
from sfumato.query.preview import Preview
from sfumato.query.price import Price, Wish, price
from sfumato.query.release import Asked, release
from sfumato.query.reuse import Shelf, reuse
from sfumato.query.subqueries import Alone, First, Foreseen, Paid, Rehearsed, Step, resolved
from sfumato.query.table import parts_from_json
from sfumato.query.target import Reference, typical_size, wanted
from sfumato.query.tasks import Tasks
from sfumato.query.together import Held, require_key, together, wanted_charges
from sfumato.sql.bind import Parameters

# How long a session that closes waits for its questions to end, in seconds.
_CLOSING = 10.0


class Session(Tasks):
    """Questions to one dataset, charged to one account. Also a context manager.

    >>> import sfumato as sf, pyarrow as pa, tempfile
    >>> people = sf.Table(pa.table({"age": [30, 40]}), columns={"age": sf.Integer(0, 120)})
    >>> folder = tempfile.TemporaryDirectory()
    >>> with sf.connect({"people": people}, dataset="tiny", budget=sf.Budget(1),
    ...                 ledger=folder.name + "/ledger.db") as session:
    ...     answer = session.query("SELECT COUNT(*) AS n FROM people", epsilon=0.5)
    ...     session.budget.left
    Fraction(1, 2)
    >>> folder.cleanup()
    """

    def __init__(
        self,
        dataset: Dataset,
        budget: Budget,
        engine: Engine,
        ledger: Ledger,
        *,
        analyst: str,
        purpose: str,
        kept: Mapping[str, int] = UNPREPARED,
        let_go: Callable[[Ledger], object] = Ledger.close,
    ) -> None:
        self._engine = engine
        self._kept = kept
        self._ledger = ledger
        # shared with all that ``asking_as`` makes; None: this one closes nothing
        self._let_go: Callable[[Ledger], object] | None = let_go
        self._door = Door()
        self._shelf, self._known = Shelf(ledger), Known()
        self._limit = budget
        contract = Contract.of(dataset, budget)
        self._asker = Asker(
            dataset.described, contract, analyst, purpose, ledger.past_limits(dataset.name)
        )

    @property
    def dataset(self) -> Dataset:
        """The declarations, and nothing of the data: no table has its source."""
        return self._asker.dataset

    @property
    def budget(self) -> Account:
        """What is spent, and what is left to this asker, from the ledger."""
        standing = self._ledger.standing(*self._path)
        return Account(self._limit, self._ledger.balance(self.dataset.name), standing)

    @property
    def _path(self) -> tuple[str, str, str]:
        """The names of the asker's account."""
        return self.dataset.name, self._asker.purpose, self._asker.analyst

    def asking_as(self, analyst: str, purpose: str = UNSTATED) -> "Session":
        """A session of another asker over the same data and the same ledger, made in no time.

        What it asks is charged to the account of ``analyst`` below ``purpose``. Closing it closes
        nothing; it ends with the session that it was made from.

        Raises:
            WrongUse: a name that is empty, or cannot be stored.
        """
        require_names(analyst=analyst, purpose=purpose)
        Scope(self.dataset.name, purpose, analyst)
        other = copy(self)
        other._asker = replace(self._asker, analyst=analyst, purpose=purpose)
        other._let_go = None
        return other

    def preview(
        self,
        sql: str | exp.Select,
        *,
        parameters: Parameters | None = None,
        epsilon: Number | None = None,
        rho: Number | None = None,
        delta: Number | None = None,
        error: Wish | None = None,
        max_epsilon: Number | None = None,
    ) -> Preview:
        """Cost and expected error of a question, free; the data is not touched."""
        self._door.require_open()
        asked = price(epsilon=epsilon, rho=rho, delta=delta, error=error, max_epsilon=max_epsilon)
        step = resolved(sql, parameters, asked, self.dataset, Foreseen())
        planned = self._planned(step)
        return Preview(planned, step.dataset, self._engine.statement(planned.bounded))

    def query(
        self,
        sql: str | exp.Select,
        *,
        parameters: Parameters | None = None,
        epsilon: Number | None = None,
        rho: Number | None = None,
        delta: Number | None = None,
        error: Wish | None = None,
        max_epsilon: Number | None = None,
        key: str | None = None,
        stop: Stop | None = None,
        time_limit: float | None = None,
    ) -> Answer:
        """The private answer to a question.

        Exactly one of: ``epsilon`` (pure DP, discrete Laplace), ``rho`` (zCDP, discrete
        Gaussian), or ``error`` with ``max_epsilon``: the cheapest cost whose 95% half-width
        is at most ``error`` in every cell, or on average with ``sf.OnAverage(error)``; absolute
        or such as "5%" of a public reference. ``delta`` pays,
        beside ``epsilon`` or ``rho``, for groups that are not public. ``parameters`` are the
        values of ``$1``, ``?`` or ``:name`` in the text.

        The cost is debited before the data is read. The same question at the same price is
        answered from the ledger, the same bytes, at no cost. A sub-query that is an answer of
        its own, and a limit that is ``sf.AUTO``, are charges of their own: the cost is shared
        among them, all are taken together before the first is used, and the notes of the answer
        name them. A ``key`` binds the question to its answer for a caller who may have to ask twice.

        Who asks what somebody else is asking waits for that answer. ``stop`` (``sf.Stop()``) and
        ``time_limit``, in seconds, end the waiting: before the data is read nothing is charged,
        afterwards the question is interrupted and its cost stays spent.

        Raises:
            Refused: the language, a missing declaration or the budget forbids it; free, but for a sub-query
                whose number turns out so large that 62 bits do not hold what is computed of it: that stays paid.
            WrongUse: the price is not one, or the key belongs to another question.
            InvalidSource, InvalidDeclaration: the data has changed and is not as declared any more,
                or a prepared layout is stale; free.
            Cancelled: by ``stop`` or ``time_limit``; ``paid`` says whether the cost stays spent.
            EngineFailed: the cost stays spent.
        """
        self._door.require_open()
        patience = ENDLESS if stop is None and time_limit is None else Patience(stop, time_limit)
        asked = price(epsilon=epsilon, rho=rho, delta=delta, error=error, max_epsilon=max_epsilon)
        name = name_of(sql, parameters, asked, self._asker)
        known = self._known.find(name)
        body = (
            None
            if known is None
            else self._ledger.recall(replace(known, key=key) if key else known)
        )
        if body is not None:
            return Answer(body, recalled=True)
        with self._door.inside():
            resolve = partial(resolved, sql, parameters, asked, self.dataset)
            answer, found = persistently(
                lambda: self._asked_once(resolve, key or "", patience), patience
            )
        if name == name_of(sql, parameters, asked, self._asker):
            # still the same day
            self._known.keep(name, found)
        return answer

    def _asked_once(
        self, resolve: Callable[[First], Step], key: str, patience: Patience
    ) -> tuple[Answer, Asked]:
        """The answer to a question, and what was asked.

        Raises:
            InProgress: what it needs first is being answered for somebody else; nothing was charged.
        """
        first = Rehearsed(self._planned, self._own)
        step = resolve(first)
        if not first.is_needed:
            return self._answered(step, key, patience)
        if first.doubtful:
            self._planned(resolve(Rehearsed(self._planned, self._own, nulls=True)))
        steps = self._foreseen(resolve, [*first.plans, (step, self._planned(step))])
        if key:
            require_key(*steps[-1], key, self._ledger)
        with together(self._ledger, wanted_charges(steps, self._ledger)) as held:
            answered = partial(self._answered, patience=patience, held=held)
            return answered(resolve(Paid(lambda each: answered(each)[0])), key)

    def _foreseen(
        self, resolve: Callable[[First], Step], plans: list[tuple[Step, Planned]]
    ) -> list[tuple[Step, Asked]]:
        """The steps of a question; of those that somebody else has paid for the answers are taken into account."""
        if any(not step.guessed and self._others(step) is not None for step, _ in plans[:-1]):
            # a refusal that depends on such an answer is for those who have paid for it
            with suppress(SfumatoError):
                first = Rehearsed(self._planned, self._own, others=self._others)
                step = resolve(first)
                plans = [*first.plans, (step, self._planned(step))]
        return [
            (step, Asked.of(planned, self._asker.about(step.dataset))) for step, planned in plans
        ]

    def diagnose(
        self,
        sql: str | exp.Select,
        *,
        parameters: Parameters | None = None,
        epsilon: Number | None = None,
        rho: Number | None = None,
    ) -> Diagnosis:
        """How much of the data clipping and bounding touch in a question: the bias beside its intervals.

        Asks how many units have more than a limit allows, which share of the values lies beyond
        the declared bounds, and which share of the rows is in no group: at most two questions,
        which share the price and are charged, stored and answered like any other. The question
        itself is not asked.

        Raises:
            Refused: as ``query``; nothing in the question to diagnose; a sub-query or a
                limit that would have to be answered first. Free.
            EngineFailed: the cost stays spent.
        """
        self._door.require_open()
        asked = price(epsilon=epsilon, rho=rho)
        step = resolved(sql, parameters, asked, self.dataset, Alone())
        norm = Norm.L1 if asked.epsilon is not None else Norm.L2
        found = checks(step.question, compile_plan(step.question.raw, step.dataset, norm))
        share = asked.scaled(Fraction(1, len(found)))
        # a prepared layout holds clipped codes, which cannot tell what was clipped
        ready = [
            Asked.of(plan_for_price(each.question, step.dataset, share), self._asker)
            for each in found
        ]
        with self._door.inside():
            return diagnosis(found, persistently(lambda: self._all_released(ready, share), ENDLESS))

    def _all_released(self, asked: Sequence[Asked], share: Price) -> list[Answer]:
        """The answers to questions that are charged together."""
        new = {(each.question, share): each for each in asked if not self._is_known(each)}
        with together(self._ledger, {name: each.request() for name, each in new.items()}) as held:
            return [
                self._released(
                    each, recalled=self._is_known(each), payer=held.of((each.question, share))
                )
                for each in asked
            ]

    def table(self, name: str) -> Frame:
        """A question about a table without SQL: ``where``, ``join``, ``group_by``, ``agg``, then ``query``."""
        if name not in self.dataset.tables:
            raise UnknownName(f"No table {shown(name)}.", allowed=", ".join(self.dataset.tables))
        return frame(name, self.query, self.preview)

    def verify(self) -> Report:
        """Replays the ledger against everything that it stores."""
        return verify(self._ledger)

    def close(self) -> None:
        """Lets go of the ledger and of the data; what ``asking_as`` made closes nothing.

        Questions under way are interrupted, and what they have paid stays spent.
        """
        if self._let_go is None or not self._door.close():
            return
        try:
            self._door.clear(self._engine.interrupt, _CLOSING)
        finally:
            try:
                self._let_go(self._ledger)
            finally:
                self._engine.close()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return (
            f"Session of {self.dataset.name!r}: {', '.join(self.dataset.tables)}\n{self.budget!r}"
        )

    def _planned(self, step: Step) -> Planned:
        """The plan of a step: the cheapest of those that there are."""
        return self._cheapest([reuse(each, self._shelf) for each in self._asked(step)]).planned

    def _asked(self, step: Step) -> list[Asked]:
        asker = self._asker.about(step.dataset)
        return [Asked.of(plan, asker) for plan in self._plans(step)]

    def _cheapest(self, asked: list[Asked]) -> Asked:
        if len(asked) == 1:
            return asked[0]
        best = cheapest([each.planned for each in asked], self._ledger.balances(*self._path))
        return next(
            replace(each, planned=best) for each in asked if each.planned.bounded is best.bounded
        )

    def _own(self, step: Step) -> Answer | None:
        """The answer of a step, if the asker has paid for it."""
        return self._first(step, self._ledger.own_answer)

    def _others(self, step: Step) -> Answer | None:
        """The answer of a step that the asker would pay for as a share, where it is known which one that is."""
        return None if step.price.target is not None else self._first(step, self._ledger.to_share)

    def _first(self, step: Step, find: Callable[[Request], bytes | None]) -> Answer | None:
        bodies = (find(each.request()) for each in self._asked(step))
        return next((Answer(body) for body in bodies if body is not None), None)

    def _answered(
        self, step: Step, key: str = "", patience: Patience = ENDLESS, held: Held | None = None
    ) -> tuple[Answer, Asked]:
        """The stored answer of a step, charged if it is new, and what was asked, before anything was reused."""
        plans = self._asked(step)
        chosen, recalled = next((each for each in plans if self._is_known(each)), None), True
        if chosen is None:
            chosen = self._cheapest([reuse(each, self._shelf) for each in plans])
            recalled = chosen.planned.fresh is None
        payer = None if held is None else held.of(step.name)
        answer = self._released(chosen, key, recalled=recalled, patience=patience, payer=payer)
        if held is not None:
            held.answered()
        return answer, next(each for each in plans if each.question == chosen.question)

    def _is_known(self, asked: Asked) -> bool:
        return self._ledger.holds(asked.request())

    def _released(
        self,
        asked: Asked,
        key: str = "",
        *,
        recalled: bool,
        patience: Patience = ENDLESS,
        payer: Payer | None = None,
    ) -> Answer:
        """The answer to a planned question; ``recalled``: it was there before."""
        body = release(asked, self._engine, self._ledger, key=key, patience=patience, payer=payer)
        return Answer(body, recalled=recalled)

    def _plans(self, step: Step) -> list[Planned]:
        if step.price.target is None:
            return [plan_for_price(step.question, step.dataset, step.price, self._kept)]
        goal = wanted(
            step.question, step.dataset, step.price.target, self._references(step.question)
        )
        concentrated = all(
            each.gates.rho is not None for each in self._ledger.balances(*self._path)
        )
        return plans_for_target(
            step.question,
            step.dataset,
            step.price,
            goal,
            concentrated=concentrated,
            kept=self._kept,
        )

    def _references(self, question: Question) -> dict[int, Reference]:
        """What the first stored answer to the same statement says of each part."""
        named = [each.statement_key(question) for each in (*self._asker.earlier, self._asker)]
        body = self._ledger.first_answer(named, self._asker.account)
        if body is None:
            return {}
        answer = Answer(body)
        released = cast(dict[str, Json], answer.form["released"])
        found = {}
        for index, part in enumerate(parts_from_json(released["parts"])):
            reads = [
                item.expression
                for item in question.output.items
                if isinstance(item.expression, Estimate)
            ]
            if (
                not any(each.index == index for each in reads)
                or not part.values
                or part.noise is None
            ):
                continue
            points = [abs(part.point(group)) for group in range(len(part.values))]
            sizes = [sum(values) * part.reading.unit for values in part.values]
            mean = sum(points, Fraction(0)) / len(points)
            found[index] = Reference(answer.charge_id[:12], mean, min(sizes), typical_size(sizes))
        return found


def require_names(**names: object) -> None:
    """Refuses names of askers that are none, or cannot be stored."""
    for name, value in names.items():
        if not isinstance(value, str) or not value:
            raise WrongUse(f"{name}={shown(value)}.", allowed="a text that is not empty")
