# SPDX-License-Identifier: Apache-2.0
"""Tasks of any kind, asked of a session: all that the rooms above see of ledger and engine."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from sfumato.accounting import order_price
from sfumato.engines.base import Engine
from sfumato.engines.stop import Stop, patience_of
from sfumato.errors import BudgetExceeded, UnknownName, shown
from sfumato.exact.rational import Number
from sfumato.ledger.account_path import scope_of
from sfumato.ledger.balance import Balance
from sfumato.ledger.spend import Ledger
from sfumato.query.allowance import allowance
from sfumato.query.asker import Asker
from sfumato.query.charge import Terms, charged
from sfumato.query.cost import Cost, cost_of_steps
from sfumato.query.door import Door
from sfumato.query.marginal_table import Marginals
from sfumato.query.marginal_target import least_of_left, tasks_for_error
from sfumato.query.marginals import MarginalsTask, marginals_task
from sfumato.query.paid_series import PaidSeries, paid_series, require_paid
from sfumato.query.price import Price, Wish, price
from sfumato.query.series import SERIES, OpenSeries, Series, Worker, is_paid, opened_series
from sfumato.query.task import Stored, Task, require_members, require_task

# The members that a price depends on.
_PRICED = ("event", "kind")


class Tasks:
    """The methods of a session that ask, price and open tasks."""

    _asker: Asker
    _door: Door
    _engine: Engine
    _ledger: Ledger
    _states: Path | None

    def ask(
        self,
        task: Task,
        *,
        key: str | None = None,
        stop: Stop | None = None,
        time_limit: float | None = None,
    ) -> Stored:
        """Answers a task of any kind: it is charged, run and stored once, and then recalled free.

        The cost of the whole event is debited before the data is read, and never refunded. ``key``,
        ``stop`` and ``time_limit`` are as in ``query``.

        Raises:
            Refused: a declaration or the budget forbids it; free.
            WrongUse: the argument is not a task, it has no events, or the key belongs to another
                question; free.
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

    def stored(self, charge_id: str) -> Stored:
        """The answer that this account paid for with a charge; free.

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
            Refused, WrongUse: as in ``ask``; free.
            InProgress: another worker has it open.
            AccountFrozen: the account is frozen.
        """
        self._door.require_open()
        require_members(series, "series", SERIES)
        patience = patience_of(stop, time_limit)
        with self._door.inside():
            return opened_series(series, self._worker, patience)

    def has_series(self, series: Series) -> bool:
        """Whether a series is paid for and nobody has it open, so that opening it is free."""
        self._door.require_open()
        require_members(series, "series", SERIES)
        return is_paid(series, self._worker)

    def paid_series(self, series: Series) -> PaidSeries | None:
        """What this account has paid for a series already; None if nothing. Free."""
        self._door.require_open()
        require_members(series, "series", SERIES)
        return paid_series(series, self._asker, self._ledger)

    def require_paid(self, series: Series, charge: str) -> None:
        """Refuses a series that is not the one that a charge has paid for; free.

        Raises:
            UnknownName: this account has no such charge.
            WrongUse: what differs; or the charge has ended without an answer.
        """
        self._door.require_open()
        require_members(series, "series", SERIES)
        require_paid(series, charge, self._asker, self._ledger)

    @property
    def _worker(self) -> Worker:
        return Worker(self._asker, self._engine, self._ledger, self._door, self._states)

    @property
    def renyi_orders(self) -> frozenset[Fraction]:
        """The Renyi orders of the accounts that pay: a charge without a rho is priced at them."""
        return self._ledger.orders(scope_of(self._asker.account))

    def balances(self) -> list[Balance]:
        """The balances of the accounts that pay for this asker; all must admit a cost."""
        asker = self._asker
        return self._ledger.balances(asker.dataset.name, asker.purpose, asker.analyst)

    def price(self, task: Task | Series) -> Cost:
        """The cost of a task or a series, with one item for each kind of step; free.

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
        """Noisy marginals of one table: the number of rows in each cell of some sets of columns.

        The table is read once. Each unit has one weight for all its rows in all marginals, so that
        the exact marginals are consistent. The marginals share the cost equally.

        ``rho`` buys Gaussian noise, ``epsilon`` Laplace noise, and ``epsilon`` with ``delta`` the
        Gaussian noise of the largest rho that is proved to lie within both. ``error``, in rows,
        with ``max_epsilon`` buys noise that keeps each cell within it in 95% of answers, at the
        smallest share of what is left; ``OnAverage(error)`` bounds the root of the mean squared
        error instead.

        Raises:
            UnknownName, WrongUse, MissingDeclaration: as in ``marginals_task``; free.
            TargetUnreachable: the error costs more than ``max_epsilon``; free.
            Others as in ``ask``.
        """
        self._door.require_open()
        notes: tuple[str, ...] = ()
        if error is not None or max_epsilon is not None:
            asked = price(
                epsilon=epsilon,
                rho=rho,
                delta=delta,
                error=error,
                max_epsilon=max_epsilon,
            )
            task, notes = self._cheapest_marginals(table, cliques, asked)
        else:
            allowed = allowance(epsilon=epsilon, rho=rho, delta=delta)
            task = marginals_task(self._asker.dataset, table, cliques, allowed)
        try:
            stored = self.ask(task, key=key, stop=stop, time_limit=time_limit)
            return Marginals(task, stored, notes)
        except BudgetExceeded as refusal:
            asker = self._asker
            left = self._ledger.standing(asker.dataset.name, asker.purpose, asker.analyst).left.rho
            raise task.allowance.refused(refusal, left) from None

    def _cheapest_marginals(
        self,
        table: str,
        cliques: Sequence[Sequence[str]],
        asked: Price,
    ) -> tuple[MarginalsTask, tuple[str, ...]]:
        """The task with a wanted error that is stored, or takes the least share of what is left."""
        asker, balances = self._asker, self.balances()
        concentrated = all(balance.gates.rho is not None for balance in balances)
        tasks = tasks_for_error(asker.dataset, table, cliques, asked, concentrated=concentrated)

        def is_stored(task: MarginalsTask) -> bool:
            names = asker.names(task.kind, task.form, task.event)
            return self._ledger.holds(asker.request(task.event, names))

        return least_of_left(tasks, balances, is_stored)
