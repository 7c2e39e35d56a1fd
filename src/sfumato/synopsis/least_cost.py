# SPDX-License-Identifier: Apache-2.0
"""Finds the least cost with which a synopsis reaches a requested error, from declarations alone."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

from sfumato.errors import TargetUnreachable, WrongUse
from sfumato.exact.rational import Number, decimal_text, positive, to_fraction
from sfumato.noise.search import smallest
from sfumato.privacy.distance import Norm
from sfumato.query.allowance import Allowance, allowance
from sfumato.show.render import number
from sfumato.synopsis.column import Plan
from sfumato.synopsis.tables import TablesPlan

AnyPlan: TypeAlias = Plan | TablesPlan
# Costs are multiples of these, so that the least one is a short decimal.
_GRIDS = {Norm.L1: Fraction(1, 10**6), Norm.L2: Fraction(1, 10**9)}


@dataclass(frozen=True, slots=True)
class Worst:
    """A requested standard error that every query must meet: ``error=Worst(20)``.

    A plain number instead is the root of the mean squared error over all queries, as plans print
    it.

    >>> Worst(20).error
    20
    """

    error: Number


def most_allowed(max_epsilon: Number | None, max_rho: Number | None) -> Allowance:
    """Returns the largest cost that a requested error may have, from ``max_epsilon`` or
    ``max_rho``.

    It decides the kind of noise: Laplace for an epsilon, Gaussian for a rho.

    Raises:
        WrongUse: not exactly one of both.

    >>> most_allowed(None, "0.5").norm
    <Norm.L2: 'L2'>
    """
    if (max_epsilon is None) == (max_rho is None):
        raise WrongUse(
            "error= needs the most that it may cost.", allowed="max_epsilon= or max_rho="
        )
    return allowance(epsilon=max_epsilon, rho=max_rho)


def cheapest(dearest: AnyPlan, error: Number | Worst) -> AnyPlan:
    """Returns the plan of least cost, at most that of the plan ``dearest``, whose best strategy
    reaches an error.

    The cost is the least multiple of 1e-6 for an epsilon, and of 1e-9 for a rho.

    Raises:
        TargetUnreachable: it is above the cost of ``dearest``.
        InvalidNumber: an error that is not positive.
    """
    is_worst = isinstance(error, Worst)
    stated = error.error if isinstance(error, Worst) else error
    wanted = float(positive("error", to_fraction("error", stated)))
    allowed = dearest.allowance
    grid = _GRIDS[allowed.norm]

    def at(steps: int) -> AnyPlan:
        return replace(dearest, allowance=replace(allowed, amount=steps * grid))

    def reached(plan: AnyPlan) -> float:
        return plan.worst() if is_worst else plan.error()

    most = int(allowed.amount / grid)
    least = reached(dearest)
    if not most or least > wanted or reached(at(most)) > wanted:
        kind = "epsilon" if allowed.norm is Norm.L1 else "rho"
        raise TargetUnreachable(
            f"No strategy has this error at {kind} = {decimal_text(allowed.amount)}; "
            f"the least is +- {number(least)}.",
            remedy=f"Allow a larger error= or max_{kind}=, or ask for fewer queries together.",
        )
    return at(smallest(lambda steps: steps > 0 and reached(at(steps)) <= wanted, below=1))
