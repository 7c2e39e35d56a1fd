# SPDX-License-Identifier: Apache-2.0
"""``plan`` and ``measure``: the entry points for a synopsis of one or several columns."""

from typing import TypeVar

from sfumato.errors import WrongUse, shown
from sfumato.exact.rational import Number
from sfumato.metadata.dataset import Dataset
from sfumato.query.allowance import Allowance, allowance
from sfumato.query.cost import Cost
from sfumato.query.session import Session
from sfumato.synopsis.cell_query import resolved
from sfumato.synopsis.column import Plan, Synopsis, plan_column
from sfumato.synopsis.least_cost import Worst, cheapest, most_allowed
from sfumato.synopsis.one_table import require_one_table
from sfumato.synopsis.tables import Tables, TablesPlan, plan_tables
from sfumato.synopsis.wanted import Wanted

T = TypeVar("T")


def plan(
    dataset: Dataset,
    table: str,
    wanted: Wanted,
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
    error: Number | Worst | None = None,
    max_epsilon: Number | None = None,
    max_rho: Number | None = None,
) -> Plan | TablesPlan:
    """Compares the strategies for a workload at a cost, from declarations alone; planning is not charged.

    Instead of a cost, ``error`` may be given: the root of the mean squared error in rows (or
    ``Worst(x)``: the standard error of every query), with ``max_epsilon`` or ``max_rho`` as the
    largest allowed cost. The plan then has the least cost that reaches the error.

    Raises:
        TargetUnreachable: the most that it may cost is not enough.
        UnknownName, MissingDeclaration, WrongUse: as ``session.marginals``; a workload without
            queries, or too large.

    >>> import sfumato as sf
    >>> from sfumato.synopsis.wanted import marginals
    >>> columns = {"age": sf.Integer(0, 99), "sex": sf.Category("F", "M")}
    >>> survey = Dataset("survey", {"people": sf.Table("people.csv", columns=columns)})
    >>> plan(survey, "people", marginals(["age", "sex"], up_to=2), rho="0.01").candidates[0].name
    'marginals'
    """
    if not isinstance(wanted, Wanted):
        raise WrongUse(
            f"A workload {shown(wanted)}.",
            allowed="ranges, prefixes, cells, marginals, queries, and their sums",
        )
    require_one_table(table)
    if error is None:
        if max_epsilon is not None or max_rho is not None:
            raise WrongUse("max_epsilon= or max_rho= without an error=.")
        return _planned(dataset, table, wanted, allowance(epsilon=epsilon, rho=rho, delta=delta))
    if (epsilon, rho, delta) != (None, None, None):
        raise WrongUse("error= with a cost.", allowed="error= with max_epsilon= or max_rho=")
    most = most_allowed(max_epsilon, max_rho)
    return cheapest(_planned(dataset, table, wanted, most), error)


def _planned(dataset: Dataset, table: str, wanted: Wanted, allowed: Allowance) -> Plan | TablesPlan:
    """Returns the plan at a cost."""
    if wanted.single is not None:
        axis, kind = wanted.single
        return plan_column(dataset, table, axis, kind, allowed)
    whole = resolved(wanted, dataset, table)
    if not whole.names:
        raise WrongUse(
            "A workload that tells no column apart.",
            allowed="ranges, prefixes, cells, marginals, or statements with tests or groups",
            remedy="A count of all rows alone is cheapest with session.query.",
        )
    return plan_tables(dataset, table, whole, allowed)


def measure(
    session: Session,
    table: str,
    wanted: Wanted,
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
    error: Number | Worst | None = None,
    max_epsilon: Number | None = None,
    max_rho: Number | None = None,
    strategy: str | None = None,
) -> Synopsis | Tables:
    """Measures the best strategy for a workload, charged once; all answers cost no budget.

    The cost, or the wanted error, is that of ``plan``. ``strategy`` names another one of
    ``plan(...).candidates``. One column gives a ``Synopsis``, several give ``Tables``.

    Raises:
        As ``plan`` and ``Session.ask``.

    >>> import sfumato as sf, pyarrow as pa, tempfile
    >>> people = sf.Table(pa.table({"age": [30, 40, 40]}), columns={"age": sf.Integer(0, 63)})
    >>> folder = tempfile.TemporaryDirectory()
    >>> with sf.connect({"people": people}, dataset="tiny", budget=sf.Budget(10**5),
    ...                 ledger=folder.name + "/l.db") as session:
    ...     found = measure(session, "people", sf.synopsis.ranges("age"), epsilon=50_000)
    >>> round(found.answer("age BETWEEN 35 AND 45").value)
    2
    >>> folder.cleanup()
    """
    planned = plan(
        session.dataset,
        table,
        wanted,
        epsilon=epsilon,
        rho=rho,
        delta=delta,
        error=error,
        max_epsilon=max_epsilon,
        max_rho=max_rho,
    )
    return measured(session, planned, strategy)


def measured(
    session: Session, planned: Plan | TablesPlan, strategy: str | None = None
) -> Synopsis | Tables:
    """Measures a strategy of a plan, by default the best, in one charge; returns the synopsis."""
    if isinstance(planned, Plan):
        task = planned.task
        if strategy is not None:
            task = planned.of(_named(strategy, {one.name: one for one in planned.candidates}))
        return Synopsis(planned, task, session.dataset, session.ask(task))
    grid_task = planned.task
    if strategy is not None:
        grid_task = planned.of(_named(strategy, {one.name: one for one in planned.candidates}))
    return Tables(planned, grid_task, session.dataset, session.ask(grid_task))


def cost_of_strategy(
    session: Session, planned: Plan | TablesPlan, strategy: str | None = None
) -> Cost:
    """What ``measured`` would charge for a strategy of a plan; costs no budget."""
    if strategy is None:
        return session.price(planned.task)
    if isinstance(planned, Plan):
        of_column = {one.name: one for one in planned.candidates}
        return session.price(planned.of(_named(strategy, of_column)))
    of_tables = {one.name: one for one in planned.candidates}
    return session.price(planned.of(_named(strategy, of_tables)))


def _named(strategy: str, named: dict[str, T]) -> T:
    if strategy not in named:
        raise WrongUse(f"strategy={shown(strategy)}.", allowed=", ".join(named))
    return named[strategy]
