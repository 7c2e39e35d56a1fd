# SPDX-License-Identifier: Apache-2.0
"""Which mechanism, and how the cost is split among the parts of a question."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TypeAlias

from sfumato.accounting.account import account
from sfumato.accounting.budget_gates import NOTHING, Charge, charge_for
from sfumato.accounting.calibrate import split
from sfumato.errors import MissingDeclaration, TargetUnreachable, UnsupportedSql, WrongUse
from sfumato.exact.rational import decimal_text, two_digits
from sfumato.ledger.balance import Balance
from sfumato.mechanisms.additive import AdditiveMechanism, gaussian, laplace
from sfumato.mechanisms.grid import GridQuantiles, concentrated_grid_quantiles, grid_quantiles
from sfumato.mechanisms.threshold import ThresholdMechanism, threshold_gaussian, threshold_geometric
from sfumato.metadata.dataset import Dataset
from sfumato.noise import DiscreteGaussian, DiscreteLaplace, Noise
from sfumato.noise.search import smallest
from sfumato.plan.aggregate import CountUnits, Quantiles, largest
from sfumato.plan.question import Question
from sfumato.plan.stages import Bounded, Part, Raw
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import Composed, Event
from sfumato.query.cost import Cost, cost_of
from sfumato.query.estimate import Released
from sfumato.query.passes.layout import layout_notes
from sfumato.query.pipeline import UNPREPARED, compile_plan
from sfumato.query.price import Price
from sfumato.query.target import Wanted

Mechanism: TypeAlias = AdditiveMechanism | GridQuantiles | ThresholdMechanism

# A solved cost is a multiple of these, so that it reads well and the search is short.
_EPSILON_GRID, _RHO_GRID = Fraction(1, 10**6), Fraction(1, 10**9)
# The steps in which the least cost of an error is looked for, by the norm that its noise takes.
GRIDS = {Norm.L1: _EPSILON_GRID, Norm.L2: _RHO_GRID}
# How many times, in 64ths, an error that cannot be had is enlarged to find one that can.
_FARTHEST = 2**46


@dataclass(frozen=True, slots=True)
class Stored:
    """A part that an earlier answer released, and the charge that paid for it."""

    charge: str
    released: Released


@dataclass(frozen=True, slots=True)
class Planned:
    """A question ready to be charged: a mechanism for every part.

    ``stored``: by its place, what is read from an earlier answer instead (see ``reuse``).
    """

    question: Question
    bounded: Bounded
    mechanisms: tuple[Mechanism, ...]
    notes: tuple[str, ...] = ()
    stored: Mapping[int, Stored] = field(default_factory=dict)

    @property
    def fresh(self) -> "Planned | None":
        """The parts that have to be released and paid for; None where every one is stored."""
        if not self.stored:
            return self
        places = [place for place in range(len(self.mechanisms)) if place not in self.stored]
        mechanisms = tuple(self.mechanisms[place] for place in places)
        return Planned(self.question, self.bounded.only(places), mechanisms) if places else None

    @property
    def events(self) -> tuple[Event, ...]:
        """One event a part."""
        return tuple(
            _event(each, part)
            for each, part in zip(self.mechanisms, self.bounded.parts, strict=True)
        )

    @property
    def event(self) -> Composed:
        """What the whole question does to the data, wherever each part comes from."""
        return Composed(self.events)

    @property
    def charge(self) -> Charge:
        """Its cost in the ledger's integers; what is stored costs nothing."""
        fresh = self.fresh
        return NOTHING if fresh is None else charge_for(account(fresh.event))

    @property
    def cost(self) -> Cost:
        """Its cost, item by item."""
        paid = {place: each.charge for place, each in self.stored.items()}
        return cost_of(self.charge, self.bounded.parts, self.events, paid)


def _event(mechanism: Mechanism, part: Part) -> Event:
    if isinstance(mechanism, GridQuantiles):
        return mechanism.event(part.distance, part.groups)
    if isinstance(mechanism, ThresholdMechanism):
        return mechanism.event(Distance(Norm.LINF, Fraction(1), part.distance.relation))
    return mechanism.event(part.distance)


def plan_for_price(
    question: Question, dataset: Dataset, price: Price, kept: Mapping[str, int] = UNPREPARED
) -> Planned:
    """The plan that a stated epsilon or rho buys: least error for its cost; ``kept`` are the prepared layouts.

    Raises:
        WrongUse: a delta where nothing spends one.
        MissingDeclaration: no delta, where the groups are not public.
    """
    norm = Norm.L1 if price.epsilon is not None else Norm.L2
    raw = _counted(question.raw)
    _require_delta(raw, price)
    bounded = compile_plan(raw, dataset, norm, kept)
    total = price.epsilon if price.epsilon is not None else price.rho
    assert total is not None, "a price without a target has an epsilon or a rho"
    weights = _weights(bounded)
    shares = split(total, weights, norm) if len(weights) > 1 else [total]
    mechanisms = tuple(
        _mechanism(part, bounded, share, price.delta)
        for part, share in zip(bounded.parts, shares, strict=True)
    )
    return Planned(
        question, bounded, mechanisms, (*question.notes, *layout_notes(bounded, dataset, kept))
    )


def _counted(raw: Raw) -> Raw:
    """Where groups are not public, the number of units in each decides which are shown."""
    if not raw.is_open or CountUnits() in raw.aggregates:
        return raw
    return replace(raw, aggregates=(*raw.aggregates, CountUnits()))


def _require_delta(raw: Raw, price: Price) -> None:
    if raw.is_open and price.delta is None:
        names = ", ".join(key.value.name for key in raw.keys if key.codes is None)
        raise MissingDeclaration(
            f"GROUP BY {names}: which values occur is itself private, and showing those of many units spends delta.",
            allowed='delta="1e-7" beside epsilon= or rho=, from a budget with delta',
            remedy="Or declare the values: sf.Category('value', ...); then nothing is hidden and no delta is spent.",
        )
    if price.delta is not None and not raw.is_open:
        raise WrongUse(
            "Nothing in this question spends delta.",
            remedy="Leave delta= out; the account's delta is in its budget.",
        )


def _weights(bounded: Bounded) -> list[Fraction]:
    """What each part weighs in the split of the cost."""
    weights = [_weight(part, bounded) for part in bounded.parts]
    if bounded.tracked.raw.is_open and len(weights) > 1:
        # half for the keys: a key that is not shown answers nothing
        place = bounded.tracked.raw.aggregates.index(CountUnits())
        power = Fraction(3, 2) if bounded.norm is Norm.L1 else 2
        others = sum(
            float(each) ** float(1 / power) for index, each in enumerate(weights) if index != place
        )
        weights[place] = Fraction(others ** float(power)).limit_denominator(10**6)
    return weights


def _weight(part: Part, bounded: Bounded) -> Fraction:
    """A part's sensitivity over what one full row adds to it (squared for L2)."""
    scale = Fraction(largest(part.aggregate) * bounded.refinement)
    value = part.distance.value
    if isinstance(part.aggregate, Quantiles):
        value = value * part.groups * len(part.aggregate.levels)
        return value / scale if bounded.norm is Norm.L1 else (value / scale) ** 2 / part.groups
    return value / (scale if bounded.norm is Norm.L1 else scale * scale)


def _mechanism(part: Part, bounded: Bounded, cost: Fraction, delta: Fraction | None) -> Mechanism:
    """The mechanism of a part for its share of the cost."""
    pure = bounded.norm is Norm.L1
    if isinstance(part.aggregate, Quantiles):
        make = grid_quantiles if pure else concentrated_grid_quantiles
        return make(part.distance, part.groups, cost, part.aggregate.levels)
    if isinstance(part.aggregate, CountUnits) and bounded.tracked.raw.is_open:
        assert delta is not None, "required before"
        show = threshold_geometric if pure else threshold_gaussian
        return show(part.groups, cost, delta, part.distance.relation)
    return laplace(part.distance, cost) if pure else gaussian(part.distance, cost)


def plans_for_target(
    question: Question,
    dataset: Dataset,
    price: Price,
    wanted: Wanted,
    *,
    concentrated: bool,
    kept: Mapping[str, int] = UNPREPARED,
) -> list[Planned]:
    """One plan a mechanism that meets the wanted error within ``max_epsilon``.

    A Gaussian may cost the rho that max_epsilon itself would be booked as.

    Raises:
        TargetUnreachable: none does.
        UnsupportedSql: a question whose error is not one of additive noise.
    """
    assert price.most is not None, "a target comes with max_epsilon"
    if question.raw.is_open or any(isinstance(each, Quantiles) for each in question.raw.aggregates):
        raise UnsupportedSql(
            "error= of quantiles, or of groups that are not public.",
            remedy="Ask with epsilon= or rho=; sfumato preview shows the error that it buys.",
        )
    norms = (Norm.L1, Norm.L2) if concentrated else (Norm.L1,)
    candidates = [compile_plan(question.raw, dataset, norm, kept) for norm in norms]
    plans = []
    for bounded in candidates:
        costs = _costs(bounded, wanted, price.most)
        if costs is not None:
            mechanisms = tuple(
                _mechanism(part, bounded, cost, None)
                for part, cost in zip(bounded.parts, costs, strict=True)
            )
            notes = (*question.notes, *wanted.notes, *layout_notes(bounded, dataset, kept))
            plans.append(Planned(question, bounded, mechanisms, notes))
    if not plans:
        raise _unreachable(candidates, wanted, price)
    return plans


def _costs(bounded: Bounded, wanted: Wanted, max_epsilon: Fraction) -> list[Fraction] | None:
    """What each part costs at least to meet its error; None where all of them cost too much."""
    pure = bounded.norm is Norm.L1
    grid, most = (_EPSILON_GRID, max_epsilon) if pure else (_RHO_GRID, max_epsilon**2 / 2)
    costs = []
    for index, part in enumerate(bounded.parts):
        cost = _least(
            part,
            bounded.norm,
            grid,
            most,
            _within(wanted, wanted.reach(index, part, bounded.refinement)),
        )
        if cost is None:
            return None
        costs.append(cost)
    return costs if sum(costs) <= most else None


def _within(wanted: Wanted, reach: int) -> Callable[[Noise], bool]:
    return lambda noise: reach >= 0 and wanted.meets(noise, reach)


def _unreachable(candidates: Sequence[Bounded], wanted: Wanted, price: Price) -> TargetUnreachable:
    """The refusal of an error, with the smallest one that max_epsilon buys, to two digits."""
    most, target = price.most, price.target
    assert most is not None and target is not None, "asked of a target"

    def buys(steps: int) -> bool:
        times = wanted.times(Fraction(steps, 64))
        return any(_costs(bounded, times, most) is not None for bounded in candidates)

    smallest_one = ""
    if most >= _EPSILON_GRID * len(wanted.amounts) and buys(_FARTHEST):
        factor = Fraction(smallest(lambda steps: steps > 0 and buys(steps), below=64), 64)
        shown = two_digits(target.amount * factor * (100 if target.relative else 1))
        smallest_one = (
            f" The smallest that it buys is about {shown}{'%' if target.relative else ''}."
        )
    return TargetUnreachable(
        f"No mechanism reaches this error with max_epsilon = {decimal_text(most)}.{smallest_one}",
        remedy="Allow a larger error= or a larger max_epsilon=; sfumato preview shows what an epsilon buys.",
    )


def cheapest(plans: Sequence[Planned], balances: Sequence[Balance]) -> Planned:
    """The plan that takes the smallest share of what is left, and says so.

    Of several ``balances``, all of which have to admit it, the one counts of which it takes the largest.
    """
    free = [plan for plan in plans if plan.fresh is None]
    if free:
        return free[0]
    shares = [(share_of_left(plan.charge, balances), index) for index, plan in enumerate(plans)]
    payable = sorted((share, index) for share, index in shares if share is not None)
    if not payable:
        # the ledger will refuse it, naming what is left
        return plans[0]
    best = plans[payable[0][1]]
    shown = ", ".join(
        f"{_name(plans[index])} would take {float(share):.2%}" for share, index in payable
    )
    note = f"{_name(best)} noise chosen as the cheaper: of what is left, {shown}."
    return replace(
        best, notes=(*best.notes, note, *closing(best.bounded.norm, best.charge, balances))
    )


def share_of_left(charge: Charge, balances: Sequence[Balance]) -> Fraction | None:
    """The largest part of what is left that a charge would take of a balance; None where one does not admit it."""
    shares = [balance.gates.share(charge, balance.taken) for balance in balances]
    known = [share for share in shares if share is not None]
    return max(known) if len(known) == len(shares) else None


def closing(norm: Norm, charge: Charge, balances: Sequence[Balance]) -> list[str]:
    """What Gaussian noise takes away besides its cost, where it is the first of an account."""
    if norm is Norm.L1 or all(each.taken.epsilon is None for each in balances):
        return []
    before = min(each.left.epsilon for each in balances)
    after = min(each.gates.left(each.taken + charge).epsilon for each in balances)
    reach = f"{float(after):.4g} instead of {float(before):.4g}"
    return [
        f"It closes the pure gate for good: one more question with epsilon= may then cost at most {reach}."
    ]


def _name(plan: Planned) -> str:
    return name_of(plan.bounded.norm)


def name_of(norm: Norm) -> str:
    """The noise of a norm, in words."""
    return "Laplace" if norm is Norm.L1 else "Gaussian"


def _least(
    part: Part, norm: Norm, grid: Fraction, most: Fraction, meets: Callable[[Noise], bool]
) -> Fraction | None:
    """The least cost on the grid whose noise meets the error."""

    def noise(cost: Fraction) -> Noise:
        if norm is Norm.L1:
            return DiscreteLaplace(part.distance.value / cost)
        return DiscreteGaussian(sigma_squared=part.distance.value / (2 * cost))

    def enough(steps: int) -> bool:
        return steps > 0 and meets(noise(steps * grid))

    if most < grid or not enough(int(most / grid)):
        return None
    # never asked beyond ``most``, which is enough
    return grid * smallest(lambda steps: steps >= most / grid or enough(steps), below=1)
