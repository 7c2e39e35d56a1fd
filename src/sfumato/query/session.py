# SPDX-License-Identifier: Apache-2.0
"""The session: asks questions about a dataset and charges them to an account."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path

from sqlglot import exp

from sfumato.engines.base import Engine
from sfumato.engines.stop import ENDLESS, Patience, Stop, patience_of
from sfumato.errors import SfumatoError, WrongUse, shown
from sfumato.exact.rational import Number
from sfumato.ledger.account_path import UNSTATED, Scope
from sfumato.ledger.request import Request
from sfumato.ledger.spend import Ledger
from sfumato.metadata.clip import Values, require_values
from sfumato.metadata.contract import Contract
from sfumato.metadata.dataset import Dataset
from sfumato.plan.question import Question
from sfumato.privacy.budget import Budget
from sfumato.privacy.distance import Norm
from sfumato.query.account import Account
from sfumato.query.advise import Advice, advice
from sfumato.query.advise import Asked as AskedAdvice
from sfumato.query.answer import Answer
from sfumato.query.asker import Asker
from sfumato.query.auto_clip import learning
from sfumato.query.charge import persistently
from sfumato.query.choose import Planned, cheapest, plan_for_price, plans_for_target
from sfumato.query.diagnose import checks
from sfumato.query.diagnosis import Diagnosis, diagnosis
from sfumato.query.door import Door
from sfumato.query.known import Known, name_of
from sfumato.query.payer import Payer
from sfumato.query.pipeline import UNPREPARED, compile_plan
from sfumato.query.preview import Preview
from sfumato.query.price import Price, Wish, cost_alone, price
from sfumato.query.release import Asked, release
from sfumato.query.reuse import Shelf, reuse
from sfumato.query.shown import Shown
from sfumato.query.subqueries import Rehearsal, Resolver, Step, previewed, refused
from sfumato.query.target import references, wanted
from sfumato.query.together import Held, require_key, together, wanted_charges
from sfumato.sql.bind import Parameters

# How long ``close`` waits for questions in progress, in seconds.
_CLOSING = 10.0


class Session(Shown):
    """A session over one dataset, which charges questions to one account. A context manager.

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
        states: Path | None = None,
        is_owners: bool = False,
    ) -> None:
        self._is_owners = is_owners
        self._engine = engine
        self._kept = kept
        self._states = states
        self._ledger = ledger
        # None for a session that ``asking_as`` made: it closes nothing
        self._let_go: Callable[[Ledger], object] | None = let_go
        self._door = Door()
        self._shelf = Shelf(ledger)
        self._known = Known()
        self._limit = budget
        contract = Contract.of(dataset, budget)
        self._asker = Asker(
            dataset.described, contract, analyst, purpose, ledger.past_limits(dataset.name)
        )

    @property
    def dataset(self) -> Dataset:
        """The declarations, without the sources of the tables."""
        return self._asker.dataset

    @property
    def budget(self) -> Account:
        """What is spent of the budget and what is left to this asker, from the ledger."""
        standing = self._ledger.standing(*self._path)
        return Account(self._limit, self._ledger.balance(self.dataset.name), standing)

    @property
    def _path(self) -> tuple[str, str, str]:
        """The names on the path to the asker's account."""
        return self.dataset.name, self._asker.purpose, self._asker.analyst

    def asking_as(self, analyst: str, purpose: str = UNSTATED) -> "Session":
        """A session of another asker over the same open data and ledger.

        Its questions are charged to the account of ``analyst`` below ``purpose``. Closing it has
        no effect; it ends with the session that it was made from.

        Raises:
            WrongUse: a name is empty, or cannot be stored.
        """
        require_names(analyst=analyst, purpose=purpose)
        Scope(self.dataset.name, purpose, analyst)
        other = copy(self)
        other._asker = replace(self._asker, analyst=analyst, purpose=purpose)
        other._let_go = None
        other._is_owners = False
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
        interval: bool = False,
        values: Values = Values.TABLE,
    ) -> Preview:
        """The cost and the expected error of a question, for free and without reading the data."""
        self._door.require_open()
        asked = price(epsilon=epsilon, rho=rho, delta=delta, error=error, max_epsilon=max_epsilon)
        asked = asked.buying(interval=interval)
        question = Resolver(sql, parameters, asked, self.dataset, require_values(values))
        step = question.resolve(previewed)
        plan = self._planned(step)
        return Preview(plan, step.dataset, plan.statement(self._engine.statement), self.balances)

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
        interval: bool = False,
        values: Values = Values.TABLE,
        key: str | None = None,
        stop: Stop | None = None,
        time_limit: float | None = None,
    ) -> Answer:
        """The private answer to a question.

        State exactly one of: ``epsilon`` (pure DP, discrete Laplace noise), ``rho`` (zCDP,
        discrete Gaussian noise), or ``error`` with ``max_epsilon``. An error buys the lowest cost
        whose 95% half-width is at most ``error`` in every cell, or on average over the cells with
        ``sf.OnAverage(error)``; it is a number, or a percentage of a public number such as "5%".
        ``delta``, beside ``epsilon`` or ``rho``, pays for groups that are not public; with
        ``interval``, a part of the cost buys an interval of each quantile.
        ``parameters`` are the values of ``$1``, ``?`` or ``:name`` in the statement.

        Sums, means and variances of a column with a clip have a second column, of the clipped
        values; ``values=sf.Clipped`` asks for that one alone, at the whole cost.

        The cost is debited before the data is read. The same question at the same price returns
        the same stored bytes for free. A scalar sub-query and a limit that is ``sf.AUTO`` are
        charges of their own: they share the cost, all are reserved together before the first is
        used, and the notes of the answer name them. ``key`` is an idempotency key: it binds the
        question to its answer for a caller who may have to ask twice.

        A question that another caller is asking is not asked twice: this call waits for that
        answer. ``stop`` (``sf.Stop()``) and ``time_limit``, in seconds, end the wait: before the
        data is read nothing is charged; after that the question is interrupted and its cost stays
        spent.

        Raises:
            Refused: the language, a missing declaration or the budget forbids the question; free.
                Only if the answer of a sub-query is so large that computing with it exceeds 62
                bits, the sub-query stays paid.
            WrongUse: the price is invalid, or the key belongs to another question.
            InvalidSource, InvalidDeclaration: the data has changed and is not as declared any
                more, or a prepared layout is stale; free.
            Cancelled: ``stop`` or ``time_limit`` ended it; ``paid`` says whether the cost is spent.
            EngineFailed: the engine failed; the cost stays spent.
        """
        self._door.require_open()
        patience = patience_of(stop, time_limit)
        asked = price(epsilon=epsilon, rho=rho, delta=delta, error=error, max_epsilon=max_epsilon)
        asked = asked.buying(interval=interval)
        require_values(values)
        naming = partial(name_of, sql, parameters, asked, self._asker, values)
        name = naming()
        known = self._known.find(name)
        if known is not None:
            body = self._ledger.recall(replace(known, key=key) if key else known)
            if body is not None:
                return Answer(body, recalled=True)
        with self._door.inside():
            question = Resolver(sql, parameters, asked, self.dataset, values)
            answer, as_asked = persistently(
                lambda: self._asked_once(question, key or "", patience), patience
            )
        if name == naming():
            # still the same day
            self._known.keep(name, as_asked)
        return answer

    def _asked_once(
        self,
        question: Resolver,
        key: str,
        patience: Patience,
    ) -> tuple[Answer, Asked]:
        """Answers a question and its sub-queries; also returns the question as it was asked.

        If the asker has paid for all sub-queries and limits, or there is none, they are resolved
        once; otherwise with placeholders first, and again with the answers.

        Raises:
            InProgress: another caller is asking one of its sub-queries; nothing was charged.
        """
        rehearsal = Rehearsal(self._planned, self._own)
        step = question.resolve(rehearsal)
        if not question.guesses:
            return self._answered(step, key, patience)
        if question.doubtful:
            without = Rehearsal(self._planned, self._own)
            self._planned(question.resolve(without, nulls=True))
        steps = self._foreseen(question, [*rehearsal.plans, (step, self._planned(step))])
        if key:
            require_key(*steps[-1], key, self._ledger)
        with together(self._ledger, wanted_charges(steps, self._ledger)) as held:
            answered = partial(self._answered, patience=patience, held=held)

            def answer(step: Step) -> Answer:
                stored = self._at_any_price(step)
                if stored is not None:
                    return stored
                paid, _ = answered(step)
                # another caller may have been first: all use the same one from now on
                return self._at_any_price(step) or paid

            return answered(question.resolve(answer), key)

    def _foreseen(
        self, question: Resolver, plans: list[tuple[Step, Planned]]
    ) -> list[tuple[Step, Asked]]:
        """The steps of a question with their keys.

        If other askers have paid for some of the steps, their answers replace placeholders.
        """
        if any(not step.guessed and self._others(step) is not None for step, _ in plans[:-1]):
            # a refusal that depends on an answer is shown only to askers who paid for that answer
            with suppress(SfumatoError):
                rehearsal = Rehearsal(self._planned, self._own, self._others)
                step = question.resolve(rehearsal)
                plans = [*rehearsal.plans, (step, self._planned(step))]
        steps = []
        for step, planned in plans:
            asker = self._asker.about(step.dataset)
            steps.append((step, Asked.of(planned, asker)))
        return steps

    def diagnose(
        self,
        sql: str | exp.Select,
        *,
        parameters: Parameters | None = None,
        epsilon: Number | None = None,
        rho: Number | None = None,
    ) -> Diagnosis:
        """Estimates privately how much of the data clipping and bounding change in a question.

        Asks how many units exceed a limit, which share of the values lies beyond the declared
        bounds, and which share of the rows is in no group. These are at most two questions, which
        share the price and are charged and stored like any other. The question itself is not
        asked.

        Raises:
            Refused: as ``query``; or there is nothing to diagnose, or a sub-query or a limit would
                have to be answered first. Free.
            EngineFailed: the engine failed; the cost stays spent.
        """
        self._door.require_open()
        asked = cost_alone(epsilon=epsilon, rho=rho)
        step = Resolver(sql, parameters, asked, self.dataset, None).resolve(refused)
        norm = Norm.L1 if asked.epsilon is not None else Norm.L2
        parts = checks(step.question, compile_plan(step.question.raw, step.dataset, norm))
        share = asked.shared(Fraction(1, len(parts)))
        ready = []
        for check in parts:
            # without prepared layouts: they hold clipped codes, so nothing shows what was clipped
            planned = plan_for_price(check.question, step.dataset, share)
            ready.append(Asked.of(planned, self._asker))
        with self._door.inside():
            answers = persistently(lambda: self._all_released(ready, share), ENDLESS)
            return diagnosis(parts, answers)

    def _all_released(self, asked: Sequence[Asked], share: Price) -> list[Answer]:
        """The answers of questions that are charged together."""
        new = {}
        for question in asked:
            if not self._is_known(question):
                new[question.question, share] = question.request()
        answers = []
        with together(self._ledger, new) as held:
            for question in asked:
                payer = held.of((question.question, share))
                recalled = self._is_known(question)
                answers.append(self._released(question, recalled=recalled, payer=payer))
        return answers

    def advise(
        self,
        sql: str | exp.Select,
        *,
        parameters: Parameters | None = None,
        epsilon: Number | None = None,
        rho: Number | None = None,
        delta: Number | None = None,
        rows: int | None = None,
        beyond: Number | None = None,
    ) -> Advice:
        """What other clips, costs and groupings would do to the noise of a question; free.

        ``rows`` is the number of rows of a group (default: the declared size over the groups).
        ``beyond`` is an epsilon that is charged once for each column: how many units lie beyond
        each clip. A later ``sf.AUTO`` uses the same answer.

        Raises:
            Refused: as ``preview``, or the budget forbids ``beyond``.
        """
        self._door.require_open()
        asked = cost_alone(epsilon=epsilon, rho=rho, delta=delta)
        count = None if beyond is None else partial(self._sizes, price(epsilon=beyond))
        question = AskedAdvice(sql, parameters, asked, self.dataset, plan_for_price, count, rows)
        return advice(question)

    def _sizes(self, cost: Price, table: str, column: str) -> Answer:
        """The charged count of the units of a table by the size of their values of a column."""
        step = Step(learning(table, column, self.dataset), self.dataset, cost, at_any_price=True)
        stored = self._at_any_price(step)
        if stored is not None:
            return stored
        with self._door.inside():
            answer, _ = persistently(lambda: self._answered(step), ENDLESS)
        return answer

    def close(self) -> None:
        """Closes the ledger and the data. A session that ``asking_as`` made closes nothing.

        Questions in progress are interrupted, and their cost stays spent.
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
        title = f"Session of {self.dataset.name!r}: {', '.join(self.dataset.tables)}"
        return "\n".join([title, *self.dataset.notices, repr(self.budget)])

    def _planned(self, step: Step) -> Planned:
        """The plan of a step: the cheapest of its candidates."""
        return self._cheapest(self._asked(step)).planned

    def _asked(self, step: Step) -> list[Asked]:
        """The candidate plans of a step, with their keys."""
        asker = self._asker.about(step.dataset)
        return [Asked.of(plan, asker) for plan in self._plans(step)]

    def _cheapest(self, asked: list[Asked], *, reusing: bool = True) -> Asked:
        """The cheapest of the candidates; ``reusing``: after the reuse of stored parts."""
        candidates = [reuse(one, self._shelf) for one in asked] if reusing else asked
        if len(candidates) == 1:
            return candidates[0]
        plans = [candidate.planned for candidate in candidates]
        best = cheapest(plans, self._ledger.balances(*self._path))
        (chosen,) = [each for each in candidates if each.planned.bounded is best.bounded]
        return replace(chosen, planned=best)

    def _own(self, step: Step) -> Answer | None:
        """The answer of a step, if the asker has paid for it."""
        return self._at_any_price(step) or self._first(step, self._ledger.own_answer)

    def _at_any_price(self, step: Step) -> Answer | None:
        """The first answer of the account to a step that may have been asked at another price."""
        return self._stored(step.question) if step.at_any_price else None

    def _stored(self, question: Question) -> Answer | None:
        """The first stored answer of the account to a statement, at whatever price."""
        askers = (*self._asker.earlier, self._asker)
        keys = [asker.statement_key(question) for asker in askers]
        body = self._ledger.first_answer(keys, self._asker.account)
        return None if body is None else Answer(body)

    def _others(self, step: Step) -> Answer | None:
        """An answer of a step that the asker may share for its price; None for a wanted error."""
        if step.price.target is not None:
            return None
        return self._first(step, self._ledger.to_share)

    def _first(self, step: Step, find: Callable[[Request], bytes | None]) -> Answer | None:
        """The first stored answer among the candidates of a step."""
        for candidate in self._asked(step):
            body = find(candidate.request())
            if body is not None:
                return Answer(body)
        return None

    def _answered(
        self,
        step: Step,
        key: str = "",
        patience: Patience = ENDLESS,
        held: Held | None = None,
    ) -> tuple[Answer, Asked]:
        """Answers a step, which is charged unless it is stored.

        Also returns the question as it was asked, before the reuse of stored parts.
        """
        candidates = self._asked(step)
        known = next((one for one in candidates if self._is_known(one)), None)
        chosen = self._cheapest(candidates) if known is None else known
        recalled = known is not None or chosen.planned.fresh is None
        payer = None if held is None else held.of(step.name)
        answer = self._released(chosen, key, recalled=recalled, patience=patience, payer=payer)
        if held is not None:
            held.answered()
        asked = next(one for one in candidates if one.question == chosen.question)
        return answer, asked

    def _is_known(self, asked: Asked) -> bool:
        """Whether the ledger has an answer for this asker."""
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
        """Releases a planned question; ``recalled`` if its answer is stored already."""
        body = release(asked, self._engine, self._ledger, key=key, patience=patience, payer=payer)
        return Answer(body, recalled=recalled)

    def _plans(self, step: Step) -> list[Planned]:
        """The candidate plans of a step: one for a price, one for each noise law for an error."""
        question = step.question
        dataset = step.dataset
        price = step.price
        if price.target is None:
            collects = self._engine.collects_codes
            return [plan_for_price(question, dataset, price, self._kept, collects_codes=collects)]
        earlier = self._stored(question)
        goal = wanted(question, dataset, price.target, references(question, earlier))
        balances = self._ledger.balances(*self._path)
        concentrated = all(balance.gates.rho is not None for balance in balances)
        return plans_for_target(
            question, dataset, price, goal, concentrated=concentrated, kept=self._kept
        )


def require_names(**names: object) -> None:
    """Raises WrongUse for a name of an asker that is empty or not a string."""
    for name, value in names.items():
        if not isinstance(value, str) or not value:
            raise WrongUse(f"{name}={shown(value)}.", allowed="a text that is not empty")
