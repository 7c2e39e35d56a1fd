# SPDX-License-Identifier: Apache-2.0
"""Which mechanism, and how the cost is split among the parts of a question."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sfumato.accounting.account import account
from sfumato.accounting.calibrate import split
from sfumato.accounting.filter import Charge, charge_for
from sfumato.errors import TargetUnreachable
from sfumato.exact.rational import decimal_text
from sfumato.ledger.balance import Balance
from sfumato.mechanisms.additive import AdditiveMechanism, gaussian, laplace
from sfumato.metadata.dataset import Dataset
from sfumato.noise import DiscreteGaussian, DiscreteLaplace, Noise
from sfumato.noise.search import smallest
from sfumato.plan.aggregate import largest
from sfumato.plan.status import Bounded, Part
from sfumato.privacy.distance import Norm
from sfumato.privacy.event import AdditiveNoise, Composed
from sfumato.query.cost import Cost, cost_of
from sfumato.query.pipeline import compile_plan
from sfumato.query.request import Price
from sfumato.query.target import Wanted
from sfumato.sql.lower import Question

CONFIDENCE = Fraction(95, 100)
# A solved cost is a multiple of these, so that it reads well and the search is short.
_EPSILON_GRID, _RHO_GRID = Fraction(1, 10**6), Fraction(1, 10**9)


@dataclass(frozen=True, slots=True)
class Planned:
    """A question ready to be charged: a mechanism for every part."""

    question: Question
    bounded: Bounded
    mechanisms: tuple[AdditiveMechanism, ...]
    notes: tuple[str, ...] = ()

    @property
    def events(self) -> tuple[AdditiveNoise, ...]:
        """One event a part."""
        return tuple(each.event(part.distance) for each, part in zip(self.mechanisms, self.bounded.parts, strict=True))

    @property
    def event(self) -> Composed:
        """What the whole question does to the data."""
        return Composed(self.events)

    @property
    def charge(self) -> Charge:
        """Its cost in the ledger's integers."""
        return charge_for(account(self.event))

    @property
    def cost(self) -> Cost:
        """Its cost, item by item."""
        return cost_of(self.bounded.parts, self.events)


def plan_for_price(question: Question, dataset: Dataset, price: Price) -> Planned:
    """The plan that a stated epsilon or rho buys: least error for its cost."""
    norm = Norm.L1 if price.epsilon is not None else Norm.L2
    bounded = compile_plan(question.raw, dataset, norm)
    total = price.epsilon if price.epsilon is not None else price.rho
    assert total is not None, "a price without a target has an epsilon or a rho"
    shares = split(total, [_weight(part, bounded) for part in bounded.parts], norm)
    return Planned(question, bounded, _mechanisms(bounded, shares))


def plans_for_target(
    question: Question, dataset: Dataset, price: Price, wanted: Wanted, *, concentrated: bool
) -> list[Planned]:
    """One plan a mechanism that meets the wanted error within ``max_epsilon``.

    A Gaussian may cost the rho that max_epsilon itself would be booked as.

    Raises:
        TargetUnreachable: none does.
    """
    assert price.most is not None, "a target comes with max_epsilon"
    plans = []
    for norm, grid, most in ((Norm.L1, _EPSILON_GRID, price.most), (Norm.L2, _RHO_GRID, price.most**2 / 2)):
        if norm is Norm.L2 and not concentrated:
            continue
        bounded = compile_plan(question.raw, dataset, norm)
        reaches = [wanted.reach(index, part, bounded.refinement) for index, part in enumerate(bounded.parts)]
        costs = [_least(part, norm, grid, most, reach) for part, reach in zip(bounded.parts, reaches, strict=True)]
        known = [cost for cost in costs if cost is not None]
        if len(known) == len(costs) and sum(known) <= most:
            plans.append(Planned(question, bounded, _mechanisms(bounded, known), wanted.notes))
    if not plans:
        raise TargetUnreachable(
            f"No mechanism reaches this error with max_epsilon = {decimal_text(price.most)}.",
            remedy="Allow a larger error= or a larger max_epsilon=; sfumato preview shows what an epsilon buys.",
        )
    return plans


def cheapest(plans: Sequence[Planned], balance: Balance) -> Planned:
    """The plan that takes the smallest share of what is left, and says so."""
    shares = [(balance.gates.share(plan.charge, balance.taken), index) for index, plan in enumerate(plans)]
    payable = sorted((share, index) for share, index in shares if share is not None)
    if not payable:
        # the ledger will refuse it, naming what is left
        return plans[0]
    best = plans[payable[0][1]]
    shown = ", ".join(f"{_name(plans[index])} would take {float(share):.2%}" for share, index in payable)
    note = f"{_name(best)} noise chosen as the cheaper: of what is left, {shown}."
    return replace(best, notes=(*best.notes, note, *_closing(best, balance)))


def _closing(plan: Planned, balance: Balance) -> list[str]:
    """What Gaussian noise takes away besides its cost, where it is the first of an account."""
    if plan.bounded.norm is Norm.L1 or balance.taken.epsilon is None:
        return []
    before, after = balance.left.epsilon, balance.gates.left(balance.taken + plan.charge).epsilon
    reach = f"{float(after):.4g} instead of {float(before):.4g}"
    return [f"It closes the pure gate for good: one more question with epsilon= may then cost at most {reach}."]


def _name(plan: Planned) -> str:
    return "Laplace" if plan.bounded.norm is Norm.L1 else "Gaussian"


def _weight(part: Part, bounded: Bounded) -> Fraction:
    """A part's sensitivity over what one full row adds to it (squared for L2)."""
    scale = Fraction(largest(part.aggregate) * bounded.refinement)
    return part.distance.value / (scale if bounded.norm is Norm.L1 else scale * scale)


def _mechanisms(bounded: Bounded, costs: Sequence[Fraction]) -> tuple[AdditiveMechanism, ...]:
    make = laplace if bounded.norm is Norm.L1 else gaussian
    return tuple(make(part.distance, cost) for part, cost in zip(bounded.parts, costs, strict=True))


def _least(part: Part, norm: Norm, grid: Fraction, most: Fraction, reach: int) -> Fraction | None:
    """The least cost on the grid whose noise stays within ``reach`` 95 times in 100."""

    def noise(cost: Fraction) -> Noise:
        if norm is Norm.L1:
            return DiscreteLaplace(part.distance.value / cost)
        return DiscreteGaussian(sigma_squared=part.distance.value / (2 * cost))

    def enough(steps: int) -> bool:
        return steps > 0 and noise(steps * grid).tail(reach).upper <= 1 - CONFIDENCE

    if reach < 0 or most < grid or not enough(int(most / grid)):
        return None
    # never asked beyond ``most``, which is enough
    return grid * smallest(lambda steps: steps >= most / grid or enough(steps), below=1)
