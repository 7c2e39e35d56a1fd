# SPDX-License-Identifier: Apache-2.0
"""Marginals with a wanted error: the least cost that keeps it, for each law of noise."""

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
from sfumato.query.choose import GRIDS, closing, name_of, share_of_left
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
    """For each law the cheapest task whose error in each cell is at most the wanted one.

    Laplace noise costs at most ``max_epsilon``, Gaussian noise (``concentrated``) at most the rho that this would
    be booked as. The error follows from declarations alone.

    Raises:
        TargetUnreachable: none costs so little.
        WrongUse: a relative error: nothing public says how many rows a cell has.
        Others as ``marginals_task``.
    """
    target, most = price.target, price.most
    assert target is not None and most is not None, (
        "asked of a target, which comes with max_epsilon"
    )
    if target.relative:
        raise WrongUse(
            "A relative error of marginals.",
            allowed="a number of rows: error=50",
            remedy="No public number says how many rows a cell has.",
        )
    dearest = [Allowance(Norm.L1, most)]
    if concentrated:
        dearest.append(Allowance(Norm.L2, most**2 / 2))
    found = [
        marginals_task(dataset, table, cliques, each)
        for each in dearest
        if each.amount >= GRIDS[each.norm]
    ]
    reached = [task for each in found if (task := _cheapest(each, target)) is not None]
    if not reached:
        least = min(
            (each.mechanism.error(CONFIDENCE) / each.plan.refinement for each in found), default=0
        )
        raise TargetUnreachable(
            f"No noise reaches this error with max_epsilon = {decimal_text(most)}; the least is about {least:.3g} in 95%.",
            remedy="Allow a larger error= or a larger max_epsilon=, or ask for fewer marginals together.",
        )
    return reached


def least_of_left(
    tasks: Sequence[MarginalsTask],
    balances: Sequence[Balance],
    is_stored: Callable[[MarginalsTask], bool],
) -> tuple[MarginalsTask, tuple[str, ...]]:
    """The task that is stored, else the one that takes the smallest share of what is left; and what to say of it."""
    for each in tasks:
        if is_stored(each):
            return each, ()
    costs = [charge_for(account(each.event)) for each in tasks]
    shares = [(share_of_left(each, balances), place) for place, each in enumerate(costs)]
    payable = sorted((share, place) for share, place in shares if share is not None)
    if not payable:
        # the ledger refuses it, naming what is left
        return tasks[0], ()
    names = [name_of(each.allowance.norm) for each in tasks]
    shown = ", ".join(f"{names[place]} would take {float(share):.2%}" for share, place in payable)
    best = payable[0][1]
    note = f"{names[best]} noise chosen as the cheaper: of what is left, {shown}."
    return tasks[best], (note, *closing(tasks[best].allowance.norm, costs[best], balances))


def _cheapest(dearest: MarginalsTask, target: Target) -> MarginalsTask | None:
    """The task with the least cost on a grid that meets the error; None where the dearest does not."""
    grid, reach = GRIDS[dearest.allowance.norm], int(target.amount * dearest.plan.refinement)
    most = int(dearest.allowance.amount / grid)

    def at(steps: int) -> MarginalsTask:
        return dearest.costing(Allowance(dearest.allowance.norm, steps * grid))

    def enough(steps: int) -> bool:
        noise = at(steps).mechanism.noise
        if target.average:
            return Fraction(noise.variance.upper) <= reach * reach
        return noise.tail(reach).upper <= 1 - CONFIDENCE

    if not enough(most):
        return None
    return at(smallest(lambda steps: steps >= most or (steps > 0 and enough(steps)), below=1))
