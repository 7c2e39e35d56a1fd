# SPDX-License-Identifier: Apache-2.0
"""Computes the least cost of marginals with a wanted error, for each noise law.

``Session.marginals`` uses it for ``error=``.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction

from sfumato.accounting.account import account
from sfumato.accounting.budget_gates import charge_for
from sfumato.errors import TargetUnreachable, WrongUse
from sfumato.exact.rational import decimal_text
from sfumato.ledger.balance import Balance
from sfumato.metadata.dataset import Dataset
from sfumato.noise.search import smallest
from sfumato.privacy.distance import Norm
from sfumato.query.allowance import Allowance
from sfumato.query.choose import closing, name_of, share_of_left
from sfumato.query.grouping_levels import GRIDS
from sfumato.query.marginals import MarginalsTask, marginals_task
from sfumato.query.price import Price, Target
from sfumato.query.target import CONFIDENCE


def tasks_for_error(
    dataset: Dataset,
    table: str,
    cliques: Sequence[Sequence[str]],
    price: Price,
    *,
    concentrated: bool,
) -> list[MarginalsTask]:
    """Returns, for each noise law, the cheapest task that keeps the wanted error in each cell.

    Laplace noise may cost ``max_epsilon``, Gaussian noise (only if ``concentrated``) the rho that a
    charge of ``max_epsilon`` costs. The error depends on declarations only.

    Raises:
        TargetUnreachable: every such task costs more.
        WrongUse: the error is relative; no public number states how many rows a cell has.
        Others as ``marginals_task``.
    """
    target = price.target
    most = price.most
    assert target is not None and most is not None, "a target comes with max_epsilon"
    if target.relative:
        raise WrongUse(
            "A relative error of marginals.",
            allowed="a number of rows: error=50",
            remedy="No public number says how many rows a cell has.",
        )
    dearest = [Allowance(Norm.L1, most)]
    if concentrated:
        dearest.append(Allowance(Norm.L2, most**2 / 2))
    tasks = []
    for allowance in dearest:
        if allowance.amount >= GRIDS[allowance.norm]:
            tasks.append(marginals_task(dataset, table, cliques, allowance))
    reached = [_cheapest(task, target) for task in tasks]
    cheap = [task for task in reached if task is not None]
    if not cheap:
        errors = [task.mechanism.error(CONFIDENCE) / task.plan.refinement for task in tasks]
        raise TargetUnreachable(
            f"No noise reaches this error with max_epsilon = {decimal_text(most)}; "
            f"the least is about {min(errors, default=0):.3g} in 95%.",
            remedy="Allow a larger error= or a larger max_epsilon=, "
            "or ask for fewer marginals together.",
        )
    return cheap


def least_of_left(
    tasks: Sequence[MarginalsTask],
    balances: Sequence[Balance],
    is_stored: Callable[[MarginalsTask], bool],
) -> tuple[MarginalsTask, tuple[str, ...]]:
    """Returns the task that is already stored, or the one that takes the smallest share of the
    remaining budget.

    Also returns notes on the choice.
    """
    for task in tasks:
        if is_stored(task):
            return task, ()
    costs = [charge_for(account(task.event)) for task in tasks]
    shares = [(share_of_left(cost, balances), task_index) for task_index, cost in enumerate(costs)]
    payable = sorted((share, task_index) for share, task_index in shares if share is not None)
    if not payable:
        # the ledger refuses it, naming what is left
        return tasks[0], ()
    names = [name_of(task.allowance.norm) for task in tasks]
    shown = ", ".join(
        f"{names[task_index]} would take {float(share):.2%}" for share, task_index in payable
    )
    best = payable[0][1]
    note = f"{names[best]} noise chosen as the cheaper: of what is left, {shown}."
    norm = tasks[best].allowance.norm
    warnings = closing(norm, costs[best], balances)
    return tasks[best], (note, *warnings)


def _cheapest(dearest: MarginalsTask, target: Target) -> MarginalsTask | None:
    """The cheapest task on a grid of costs that meets the error; None if ``dearest`` does not."""
    grid = GRIDS[dearest.allowance.norm]
    reach = int(target.amount * dearest.plan.refinement)
    most = int(dearest.allowance.amount / grid)

    def at(steps: int) -> MarginalsTask:
        return dearest.costing(Allowance(dearest.allowance.norm, steps * grid))

    def enough(steps: int) -> bool:
        noise = at(steps).mechanism.noise
        if target.average:
            return Fraction(noise.variance.upper) <= reach * reach
        return noise.tail(reach).upper <= 1 - CONFIDENCE

    def stops(steps: int) -> bool:
        return steps >= most or (steps > 0 and enough(steps))

    if not enough(most):
        return None
    return at(smallest(stops, below=1))
