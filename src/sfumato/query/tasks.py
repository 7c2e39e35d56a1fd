# SPDX-License-Identifier: Apache-2.0
"""Tasks of any kind, asked of a session: all that the rooms above see of ledger and engine."""

from collections.abc import Sequence
from dataclasses import replace

from sfumato.accounting.account import account
from sfumato.accounting.budget_gates import charge_for
from sfumato.engines.base import Engine
from sfumato.engines.stop import ENDLESS, Patience, Stop
from sfumato.errors import BudgetExceeded
from sfumato.exact.rational import Number
from sfumato.ledger.spend import Ledger
from sfumato.query.allowance import allowance
from sfumato.query.asker import Asker
from sfumato.query.charge import Terms, charged
from sfumato.query.cost import Cost, cost_of_steps
from sfumato.query.door import Door
from sfumato.query.marginal_table import Marginals
from sfumato.query.marginal_target import least_of_left, tasks_for_error
from sfumato.query.marginals import MarginalsTask, marginals_task
from sfumato.query.price import Price, Wish, price
from sfumato.query.series import SERIES, OpenSeries, Series, Worker, opened_series
from sfumato.query.task import Stored, Task, require_members, require_task


class Tasks:
    """What a session does with tasks."""

    _asker: Asker
    _door: Door
    _engine: Engine
    _ledger: Ledger

    def ask(
        self,
        task: Task,
        *,
        key: str | None = None,
        stop: Stop | None = None,
        time_limit: float | None = None,
    ) -> Stored:
        """The stored answer to a task of any kind: charged, run and stored once, then read again for free.

        The cost of the whole event is debited before the data is read, and nothing of it is given back. ``key``,
        ``stop`` and ``time_limit`` are as in ``query``.

        Raises:
            Refused: a declaration or the budget forbids it; free.
            WrongUse: what is no task, a task without events, or a key that belongs to another question; free.
            Cancelled: by ``stop`` or ``time_limit``; ``paid`` says whether the cost stays spent.
            EngineFailed: the task or the engine failed, or the task asked for what it had not reserved; the
                cost stays spent.
        """
        self._door.require_open()
        require_task(task)
        patience = ENDLESS if stop is None and time_limit is None else Patience(stop, time_limit)
        with self._door.inside():
            stored = charged(
                task, self._asker, self._engine, self._ledger, Terms(key or "", patience)
            )
            if not stored.recalled:
                return stored
            asked = self._asker.request(
                task.event, self._asker.names(task.kind, task.form, task.event)
            )
            return replace(stored, charge=self._ledger.charge_of(asked))

    def open_series(
        self, series: Series, *, stop: Stop | None = None, time_limit: float | None = None
    ) -> OpenSeries:
        """Opens a question that is answered in pieces: the whole cost is debited now, and nothing given back.

        A series that was opened before is not paid again: its stored pieces are there, and it goes on behind the
        last place that was begun. A place whose worker died, or whose piece failed, is lost and never drawn again.

        Raises:
            Refused, WrongUse: as ``ask``; free.
            InProgress: another worker has it open.
            AccountFrozen: the account is frozen.
        """
        self._door.require_open()
        require_members(series, "series", SERIES)
        patience = ENDLESS if stop is None and time_limit is None else Patience(stop, time_limit)
        with self._door.inside():
            return opened_series(
                series, Worker(self._asker, self._engine, self._ledger, self._door), patience
            )

    def price(self, task: Task) -> Cost:
        """What a task costs, item by item; free.

        Raises:
            InvalidNumber: an event that nothing can be said of.
        """
        self._door.require_open()
        require_task(task)
        return cost_of_steps(charge_for(account(task.event)), task.kind, task.event)

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
        """Noisy marginals of one table: how many rows are in each cell of some sets of columns.

        The table is read once. Each unit has one weight for all its rows in all marginals, so that they are
        of one table; they share the cost equally. ``rho`` buys Gaussian noise, ``epsilon`` Laplace noise,
        ``epsilon`` with ``delta`` the Gaussian noise of the largest rho that is proved to lie within both.
        ``error``, in rows, with ``max_epsilon`` buys the noise that keeps each cell within it in 95% of
        answers, at the smallest share of what is left; ``OnAverage(error)`` bounds the root of the mean squared error.

        Raises:
            UnknownName, WrongUse, MissingDeclaration: as ``marginals_task``; free.
            TargetUnreachable: the error costs more than ``max_epsilon``; free.
            Others as ``ask``.
        """
        self._door.require_open()
        notes: tuple[str, ...] = ()
        if error is not None or max_epsilon is not None:
            asked = price(
                epsilon=epsilon, rho=rho, delta=delta, error=error, max_epsilon=max_epsilon
            )
            task, notes = self._cheapest_marginals(table, cliques, asked)
        else:
            allowed = allowance(epsilon=epsilon, rho=rho, delta=delta)
            task = marginals_task(self._asker.dataset, table, cliques, allowed)
        try:
            return Marginals(task, self.ask(task, key=key, stop=stop, time_limit=time_limit), notes)
        except BudgetExceeded as refusal:
            asker = self._asker
            left = self._ledger.standing(asker.dataset.name, asker.purpose, asker.analyst).left.rho
            raise task.allowance.refused(refusal, left) from None

    def _cheapest_marginals(
        self, table: str, cliques: Sequence[Sequence[str]], asked: Price
    ) -> tuple[MarginalsTask, tuple[str, ...]]:
        """The marginals with a wanted error that take the smallest share of what is left, or are stored."""
        asker = self._asker
        balances = self._ledger.balances(asker.dataset.name, asker.purpose, asker.analyst)
        concentrated = all(each.gates.rho is not None for each in balances)
        tasks = tasks_for_error(asker.dataset, table, cliques, asked, concentrated=concentrated)

        def is_stored(task: MarginalsTask) -> bool:
            return self._ledger.holds(
                asker.request(task.event, asker.names(task.kind, task.form, task.event))
            )

        return least_of_left(tasks, balances, is_stored)
