# SPDX-License-Identifier: Apache-2.0
"""The session: asks questions about a dataset and charges them to an account.

It is the user's API: ``connect`` opens it, and each method delegates to the module of its kind of
question (``statements`` for SQL, ``charge`` for tasks, ``series``, ``publication``).
"""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sqlglot import exp

from sfumato.accounting import order_price
from sfumato.engines.base import Engine
from sfumato.engines.scratch import Scratch
from sfumato.engines.stop import ENDLESS, Patience, Stop, patience_of
from sfumato.errors import BudgetExceeded, Refused, UnknownName, WrongUse, shown
from sfumato.exact.rational import Number
from sfumato.ledger.account_path import UNSTATED, Scope, scope_of
from sfumato.ledger.balance import Balance
from sfumato.ledger.spend import Ledger
from sfumato.ledger.verify import Report, verify
from sfumato.metadata.clip import Values, require_values
from sfumato.metadata.contract import Contract
from sfumato.metadata.dataset import Dataset
from sfumato.privacy.budget import Budget
from sfumato.privacy.distance import Norm
from sfumato.query.account import Account
from sfumato.query.advise import Advice, advice
from sfumato.query.advise import Asked as AskedAdvice
from sfumato.query.allowance import allowance
from sfumato.query.answer import Answer
from sfumato.query.asker import Asker
from sfumato.query.auto_clip import learning
from sfumato.query.charge import Terms, charged, persistently
from sfumato.query.choose import plan_for_price
from sfumato.query.cost import Cost, cost_of_steps
from sfumato.query.data_check import DataCheck, check_data, require_owners
from sfumato.query.dataframe import Frame, frame
from sfumato.query.diagnose import checks
from sfumato.query.diagnosis import Diagnosis, diagnosis
from sfumato.query.door import Door
from sfumato.query.dummy import dummy_rows
from sfumato.query.hold import Hold, held
from sfumato.query.instead import outer_or_refusal
from sfumato.query.known import Known, name_of
from sfumato.query.marginal_table import Marginals
from sfumato.query.marginal_target import least_of_left, tasks_for_error
from sfumato.query.marginals import MarginalsTask, marginals_task
from sfumato.query.outer import Outer
from sfumato.query.outer_preview import OuterPreview
from sfumato.query.paid_series import PaidSeries, paid_series, require_paid
from sfumato.query.pipeline import UNPREPARED, compile_plan
from sfumato.query.preview import Preview
from sfumato.query.price import Price, Wish, cost_alone, price
from sfumato.query.publication import (
    UNSIZED,
    UNWEIGHTED,
    Line,
    Publication,
    Split,
    named,
    planned_lines,
)
from sfumato.query.release import Asked
from sfumato.query.reuse import Shelf
from sfumato.query.series import SERIES, OpenSeries, Series, Worker, is_paid, opened_series
from sfumato.query.statements import Statements
from sfumato.query.subqueries import (
    NotOneQuestion,
    Policy,
    Resolver,
    Step,
    previewed,
    refused,
    unanswered,
)
from sfumato.query.task import Stored, Task, require_members, require_task
from sfumato.show.render import html_table
from sfumato.sql.bind import Parameters

if TYPE_CHECKING:
    import pyarrow

# The members that a price depends on.
_PRICED = ("event", "kind")
# How long ``close`` waits for questions in progress, in seconds.
_CLOSING = 10.0


class Session:
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
        self._states = states
        self._ledger = ledger
        # None for a session that ``asking_as`` made: it closes nothing
        self._let_go: Callable[[Ledger], object] | None = let_go
        self._door = Door()
        self._known = Known()
        self._limit = budget
        contract = Contract.of(dataset, budget)
        asker = Asker(
            dataset.described, contract, analyst, purpose, ledger.past_limits(dataset.name)
        )
        self._statements = Statements(asker, engine, ledger, kept, Shelf(ledger))
        self._scratch = Scratch({n: table for n, table in dataset.tables.items() if table.public})

    @property
    def _asker(self) -> Asker:
        """The asker whose account pays."""
        return self._statements.asker

    @property
    def dataset(self) -> Dataset:
        """The declarations, without the sources of the tables."""
        return self._asker.dataset

    @property
    def budget(self) -> Account:
        """What the budget's account has spent and has left for this asker, from the ledger."""
        standing = self._ledger.standing(*self._asker.path)
        return Account(self._limit, self._ledger.balance(self.dataset.name), standing)

    def asking_as(self, analyst: str, purpose: str = UNSTATED) -> "Session":
        """Returns a session of another asker over the same open data and ledger.

        Its questions are charged to the account of ``analyst`` below ``purpose``. Closing it has
        no effect; it ends with the session that it was made from.

        Raises:
            WrongUse: a name is empty, or cannot be stored.
        """
        require_names(analyst=analyst, purpose=purpose)
        Scope(self.dataset.name, purpose, analyst)
        other = copy(self)
        asker = replace(self._asker, analyst=analyst, purpose=purpose)
        other._statements = replace(self._statements, asker=asker)
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
    ) -> Preview | OuterPreview:
        """Returns the cost and expected error of a question; reads no data and costs no budget."""
        self._door.require_open()
        asked = price(
            epsilon=epsilon, rho=rho, delta=delta, error=error, max_epsilon=max_epsilon
        ).buying(interval=interval)
        question = Resolver(sql, parameters, asked, self.dataset, require_values(values))
        try:
            step = question.rehearse(previewed)
        except NotOneQuestion as several:
            outer = self._outer(question, previewed, several.refusal)
            previews = []
            for step in outer.steps:
                plan = self._statements.planned(step)
                bounded = plan.statement(self._engine.statement)
                previews.append(Preview(plan, step.dataset, bounded))
            return OuterPreview(outer.columns, tuple(previews), outer.statement, self.balances)
        plan = self._statements.planned(step)
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

        The cost is debited before the data is read. The same question at the same price returns the
        same stored bytes at no cost. A scalar sub-query and a limit that is ``sf.AUTO`` are charges
        of their own: they share the cost, all are reserved together before the first is used, and
        the notes of the answer name them. ``key`` is an idempotency key: it binds the question to
        its answer for a caller who may have to ask twice.

        A question that another caller is asking is not asked twice: this call waits for that
        answer. ``stop`` (``sf.Stop()``) and ``time_limit``, in seconds, end the wait: before the
        data is read nothing is charged; after that the question is interrupted and its cost stays
        spent.

        Raises:
            Refused: the language, a missing declaration or the budget forbids the question; nothing
                is charged. Only if the answer of a sub-query is so large that computing with it
                exceeds 62 bits, the sub-query stays paid.
            WrongUse: the price is invalid, or the key belongs to another question.
            InvalidSource, InvalidDeclaration: the data has changed and is not as declared any more,
                or a prepared layout is stale; nothing is charged.
            Cancelled: ``stop`` or ``time_limit`` ended it; ``paid`` says whether the cost is spent.
            EngineFailed: the engine failed; the cost stays spent.
        """
        self._door.require_open()
        patience = patience_of(stop, time_limit)
        stated_price = price(
            epsilon=epsilon, rho=rho, delta=delta, error=error, max_epsilon=max_epsilon
        ).buying(interval=interval)
        require_values(values)
        naming = partial(name_of, sql, parameters, stated_price, self._asker, values)
        name = naming()
        known = self._known.find(name)
        if known is not None:
            body = self._ledger.recall(replace(known, key=key) if key else known)
            if body is not None:
                return Answer(body, recalled=True)
        with self._door.inside():
            planned = self._known.outer(name)
            if planned is not None:
                return self._answer_outer(planned, key, patience)
            question = Resolver(sql, parameters, stated_price, self.dataset, values)
            try:
                answer, as_asked = persistently(
                    lambda: self._statements.answer(question, key or "", patience), patience
                )
            except NotOneQuestion as several:
                outer = self._outer(question, unanswered, several.refusal)
                if name == naming():
                    self._known.keep_outer(name, outer)
                return self._answer_outer(outer, key, patience)
        if name == naming():
            # still the same day
            self._known.keep(name, as_asked)
        return answer

    def _answer_outer(self, outer: Outer, key: str | None, patience: Patience) -> Answer:
        """Answers SQL over private answers."""
        return persistently(
            lambda: outer.answer(self._statements, self._scratch, patience, key or ""), patience
        )

    def _outer(self, question: Resolver, policy: Policy, refusal: Refused) -> Outer:
        """Plans SQL over private answers; raises the refusal of the whole if it is none."""
        return outer_or_refusal(question, self._statements, self._scratch, policy, refusal)

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
        diagnosis_checks = checks(
            step.question, compile_plan(step.question.raw, step.dataset, norm)
        )
        share = asked.shared(Fraction(1, len(diagnosis_checks)))
        ready = []
        for check in diagnosis_checks:
            # without prepared layouts: they hold clipped codes, so nothing shows what was clipped
            planned = plan_for_price(check.question, step.dataset, share)
            ready.append(Asked.of(planned, self._asker))
        with self._door.inside():
            answers = persistently(lambda: self._statements.answer_together(ready, share), ENDLESS)
            return diagnosis(diagnosis_checks, answers)

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
        """The expected error of a question under other clips, costs and groupings; costs no budget.

        ``rows`` is the number of rows of a group (default: the declared size over the groups).
        ``beyond`` is an epsilon that is charged once for each column, to learn how many units lie
        beyond each clip. A later ``sf.AUTO`` uses the same answer.

        Raises:
            Refused: as ``preview``, or the budget forbids ``beyond``.
        """
        self._door.require_open()
        asked = cost_alone(epsilon=epsilon, rho=rho, delta=delta)
        count = None if beyond is None else partial(self._sizes, price(epsilon=beyond))
        question = AskedAdvice(sql, parameters, asked, self.dataset, plan_for_price, count, rows)
        return advice(question)

    def _sizes(self, cost: Price, table: str, column: str) -> Answer:
        """Asks, for a charge, how many units of a table have values of each size in a column."""
        step = Step(learning(table, column, self.dataset), self.dataset, cost, at_any_price=True)
        stored = self._statements.answer_at_any_price(step)
        if stored is not None:
            return stored
        with self._door.inside():
            answer, _ = persistently(lambda: self._statements.answer_step(step), ENDLESS)
        return answer

    def plan(
        self,
        questions: Mapping[str, str] | Sequence[str],
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        delta: Number | None = None,
        error: Wish | None = None,
        max_epsilon: Number | None = None,
        weights: Mapping[str, Number] = UNWEIGHTED,
        sizes: Mapping[str, int] = UNSIZED,
    ) -> Publication:
        """Plans questions that are published together; only ``run`` of the result is charged.

        ``epsilon`` or ``rho``, and ``delta``, are the cost of all questions together. It is split
        by ``weights`` (1 by default). A part that several questions need is paid once, by the
        question that wants it most exactly. With ``sizes``, the cost is split so that the largest
        relative error is about the same in all questions: ``sizes`` has, for each question, the
        number of rows of the smallest groups that should still have a useful estimate. ``error``
        with ``max_epsilon`` is as in ``query``, for each question. Questions without names are
        called "1", "2", ...

        Raises:
            Refused, WrongUse: as ``preview``, for the first question that cannot be asked.
        """
        self._door.require_open()
        asked = price(epsilon=epsilon, rho=rho, delta=delta, error=error, max_epsilon=max_epsilon)
        split = Split(weights, sizes)
        lines, turns = planned_lines(named(questions), asked, split, self._statements.draft)
        return Publication(lines, turns, self, self._is_answered)

    def _is_answered(self, line: Line) -> bool:
        """Whether this asker has paid for a question and for everything that it needs."""
        self._door.require_open()
        return self._statements.draft(line.statement, line.price).stored

    def ask(
        self,
        task: Task,
        *,
        key: str | None = None,
        stop: Stop | None = None,
        time_limit: float | None = None,
    ) -> Stored:
        """Answers a task of any kind: it is charged, run and stored once, then recalled at no cost.

        The cost of the whole event is debited before the data is read, and never refunded. ``key``,
        ``stop`` and ``time_limit`` are as in ``query``.

        Raises:
            Refused: a declaration or the budget forbids it; nothing is charged.
            WrongUse: the argument is not a task, it has no events, or the key belongs to another
                question; nothing is charged.
            Cancelled: ``stop`` or ``time_limit`` ended it; ``paid`` says whether the cost is spent.
            EngineFailed: the task or the engine failed, or the task made a call that it had not
                reserved; the cost stays spent.
        """
        self._door.require_open()
        require_task(task)
        patience = patience_of(stop, time_limit)
        with self._door.inside():
            terms = Terms(key or "", patience)
            stored = charged(task, self._asker, self._engine, self._ledger, terms)
            if not stored.recalled:
                return stored
            names = self._asker.names(task.kind, task.form, task.event)
            request = self._asker.request(task.event, names)
            return replace(stored, charge=self._ledger.charge_of(request))

    def hold(
        self,
        asked: Task | Series,
        *,
        stop: Stop | None = None,
        time_limit: float | None = None,
    ) -> Hold:
        """Reserves the whole cost of a task or a series, and draws and reads nothing yet.

        ``ask`` of the hold goes on with a task, ``open`` with a series; leaving its ``with`` block
        before voids the charge.

        Raises:
            Refused, WrongUse: as in ``ask`` and ``open_series``; nothing is charged.
            InProgress: another caller is asking it.
        """
        self._door.require_open()
        patience = patience_of(stop, time_limit)
        with self._door.inside():
            return held(asked, self._worker, patience)

    def stored(self, charge_id: str) -> Stored:
        """Returns the answer that this account paid for with a charge; costs no budget.

        Raises:
            UnknownName: this account has no such charge with an answer.
            AccountFrozen: the account is frozen.
        """
        self._door.require_open()
        path = scope_of(self._asker.account)
        body = self._ledger.answer_of(charge_id, path) if isinstance(charge_id, str) else None
        if body is None:
            raise UnknownName(
                f"No answer of the charge {shown(charge_id)}.",
                allowed="the whole id of a charge that this account has paid",
                remedy="sfumato ledger log lists them.",
            )
        return Stored(body, charge_id, recalled=True)

    def open_series(
        self,
        series: Series,
        *,
        stop: Stop | None = None,
        time_limit: float | None = None,
    ) -> OpenSeries:
        """Opens a question that is answered in pieces; the whole cost is debited now.

        A series that was opened before is not paid again: it has its stored pieces, and continues
        after the last place that was begun. A place whose worker died, or whose piece failed, is
        lost and never drawn again.

        Raises:
            Refused, WrongUse: as in ``ask``; nothing is charged.
            InProgress: another worker has it open.
            AccountFrozen: the account is frozen.
        """
        self._door.require_open()
        require_members(series, "series", SERIES)
        patience = patience_of(stop, time_limit)
        with self._door.inside():
            return opened_series(series, self._worker, patience)

    def has_series(self, series: Series) -> bool:
        """Returns whether opening a series costs nothing now: it is paid for, and no worker has it
        open.
        """
        self._door.require_open()
        require_members(series, "series", SERIES)
        return is_paid(series, self._worker)

    def paid_series(self, series: Series) -> PaidSeries | None:
        """Returns the charge and the progress of a series that this account has paid for; None if
        it has not. Free.
        """
        self._door.require_open()
        require_members(series, "series", SERIES)
        return paid_series(series, self._asker, self._ledger)

    def require_paid(self, series: Series, charge: str) -> None:
        """Raises unless a charge has paid for exactly this series; costs no budget.

        Raises:
            UnknownName: this account has no such charge.
            WrongUse: the charge paid for something else (the error says what differs), or has ended
                without an answer.
        """
        self._door.require_open()
        require_members(series, "series", SERIES)
        require_paid(series, charge, self._asker, self._ledger)

    @property
    def _worker(self) -> Worker:
        return Worker(self._asker, self._engine, self._ledger, self._door, self._states)

    @property
    def renyi_orders(self) -> frozenset[Fraction]:
        """The Renyi orders of the paying accounts, at which they price a charge without a rho."""
        return self._ledger.orders(scope_of(self._asker.account))

    def balances(self) -> list[Balance]:
        """The balances of all accounts that pay for this asker; each of them must admit a cost."""
        return self._ledger.balances(*self._asker.path)

    def price(self, task: Task | Series) -> Cost:
        """Returns the cost of a task or a series, with one item for each kind of step; costs no
        budget.

        Raises:
            InvalidNumber: the event has no known cost.
        """
        self._door.require_open()
        require_members(task, "task", _PRICED)
        return cost_of_steps(
            order_price.price(task.event, self.renyi_orders), task.kind, task.event
        )

    def marginals(
        self,
        table: str,
        cliques: Sequence[Sequence[str]],
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        delta: Number | None = None,
        error: Wish | None = None,
        max_epsilon: Number | None = None,
        key: str | None = None,
        stop: Stop | None = None,
        time_limit: float | None = None,
    ) -> Marginals:
        """Releases noisy marginals of one table: counts of rows in each cell of sets of columns.

        The table is read once. Each unit has one weight for all its rows in all marginals, so that
        the exact marginals are consistent. The marginals share the cost equally.

        ``rho`` buys Gaussian noise, ``epsilon`` Laplace noise, and ``epsilon`` with ``delta`` the
        Gaussian noise of the largest rho that is proved to lie within both. ``error``, in rows,
        with ``max_epsilon`` buys noise that is within this error in each cell in 95% of answers, at
        the smallest share of what is left; ``OnAverage(error)`` bounds the root of the mean squared
        error instead.

        Raises:
            UnknownName, WrongUse, MissingDeclaration: as in ``marginals_task``; nothing is charged.
            TargetUnreachable: the error costs more than ``max_epsilon``; nothing is charged.
            Others as in ``ask``.
        """
        task, notes = self.plan_marginals(
            table,
            cliques,
            epsilon=epsilon,
            rho=rho,
            delta=delta,
            error=error,
            max_epsilon=max_epsilon,
        )
        try:
            stored = self.ask(task, key=key, stop=stop, time_limit=time_limit)
            return Marginals(task, stored, notes)
        except BudgetExceeded as refusal:
            left = self._ledger.standing(*self._asker.path).left.rho
            raise task.allowance.refused(refusal, left) from None

    def plan_marginals(
        self,
        table: str,
        cliques: Sequence[Sequence[str]],
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        delta: Number | None = None,
        error: Wish | None = None,
        max_epsilon: Number | None = None,
    ) -> tuple[MarginalsTask, tuple[str, ...]]:
        """Returns the task that ``marginals`` asks with these arguments, with notes on its noise;
        free.

        Raises:
            As ``marginals``, but for what an account can pay.
        """
        self._door.require_open()
        if error is not None or max_epsilon is not None:
            stated_price = price(
                epsilon=epsilon,
                rho=rho,
                delta=delta,
                error=error,
                max_epsilon=max_epsilon,
            )
            return self._cheapest_marginals(table, cliques, stated_price)
        allowed = allowance(epsilon=epsilon, rho=rho, delta=delta)
        return marginals_task(self._asker.dataset, table, cliques, allowed), ()

    def _cheapest_marginals(
        self,
        table: str,
        cliques: Sequence[Sequence[str]],
        stated_price: Price,
    ) -> tuple[MarginalsTask, tuple[str, ...]]:
        """The task that meets a wanted error: a stored one, or else the cheapest for the account."""
        asker, balances = self._asker, self.balances()
        concentrated = all(balance.gates.rho is not None for balance in balances)
        tasks = tasks_for_error(
            asker.dataset, table, cliques, stated_price, concentrated=concentrated
        )

        def is_stored(task: MarginalsTask) -> bool:
            names = asker.names(task.kind, task.form, task.event)
            return self._ledger.holds(asker.request(task.event, names))

        return least_of_left(tasks, balances, is_stored)

    def dummy(self, table: str, *, rows: int = 100, seed: int = 0) -> "pyarrow.Table":
        """Made-up rows of a table to try a question on, from the declarations alone; free.

        Raises:
            UnknownName, WrongUse: no such table; ``rows`` or ``seed`` is no whole number, or there
                would be more than a million values.
        """
        return dummy_rows(self.dataset, table, rows, seed)

    def check_data(self, *, report: Callable[[str], None] | None = None) -> DataCheck:
        """Counts how all of the data is read, for its owner; the counts are **not private**.

        Nothing is charged or stored. ``report`` is called with a line before each column.

        Raises:
            WrongUse: not the owner's own session (``require_owners``); or Spark reads the data.
            InvalidSource: a column cannot be read to its end.
        """
        self._door.require_open()
        require_owners(is_owners=self._is_owners)
        with self._door.inside():
            return check_data(self._engine, self._asker.dataset, report)

    def verify(self) -> Report:
        """Replays the ledger's journal and compares it with every stored row."""
        return verify(self._ledger)

    def table(self, name: str) -> Frame:
        """Begins a question without SQL: ``where``, ``join``, ``group_by``, ``agg``, ``query``."""
        tables = self.dataset.tables
        if name not in tables:
            raise UnknownName(f"No table {shown(name)}.", allowed=", ".join(tables))
        columns = tuple((each, tuple(table.columns)) for each, table in tables.items())
        return frame(name, self.query, self.preview, columns)

    def __getitem__(self, name: str) -> Frame:
        """``table(name)``; a notebook offers the names of tables after ``session["``."""
        return self.table(name)

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.dataset.tables)

    def _repr_html_(self) -> str:
        rows = []
        for name, table in self.dataset.tables.items():
            for label, kind in table.columns.items():
                rows.append([name, label, repr(kind)])
        declared = html_table(["table", "column", "declared as"], rows)
        return f"{declared}{self.budget._repr_html_()}"

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
                self._scratch.close()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        title = f"Session of {self.dataset.name!r}: {', '.join(self.dataset.tables)}"
        return "\n".join([title, *self.dataset.notices, repr(self.budget)])


def require_names(**names: object) -> None:
    """Raises WrongUse if the name of an analyst or purpose is empty or not a string."""
    for name, value in names.items():
        if not isinstance(value, str) or not value:
            raise WrongUse(f"{name}={shown(value)}.", allowed="a text that is not empty")
