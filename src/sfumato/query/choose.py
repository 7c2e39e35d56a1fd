# SPDX-License-Identifier: Apache-2.0
"""Chooses the mechanism of each part of a question, and splits the cost among the parts.

``statements`` calls ``plan_for_price`` for a stated cost, or ``plans_for_target`` and ``cheapest``
for a wanted error. The result, a ``Planned``, is what is priced, explained and charged.
"""

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
from sfumato.noise.search import smallest
from sfumato.plan.aggregate import CountUnits, Quantiles
from sfumato.plan.levels import Level, Levels
from sfumato.plan.question import Question
from sfumato.plan.stages import Bounded, Part, Raw
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import Composed, Event
from sfumato.query.cost import Cost, cost_of
from sfumato.query.estimate import Released
from sfumato.query.grouping_levels import (
    EPSILON_GRID,
    Grouping,
    LevelCost,
    copies_of,
    level_name,
    size_of,
)
from sfumato.query.passes.layout import layout_notes
from sfumato.query.pipeline import UNPREPARED, compile_plan
from sfumato.query.price import Price, Target
from sfumato.query.quantile_leaves import with_leaves
from sfumato.query.target import Wanted

Mechanism: TypeAlias = AdditiveMechanism | GridQuantiles | ThresholdMechanism

# What a twin of clipped values takes where its clip is close to the range: it makes the noise of
# the part of the table's own values less than a tenth wider.
SMALL_SHARE = {Norm.L1: Fraction(1, 12), Norm.L2: Fraction(1, 6)}
_LARGEST_SHARE = Fraction(1, 4)
# The largest factor, in 64ths, by which an unreachable error is enlarged to suggest another one.
_FARTHEST = 2**46


@dataclass(frozen=True, slots=True)
class Stored:
    """A noisy aggregate in an earlier answer, and the id of the charge that paid for it."""

    charge: str
    released: Released


@dataclass(frozen=True, slots=True)
class Planned:
    """A question with its bounded plan and a mechanism for each part: ready to be charged.

    ``stored`` maps the index of a part to its earlier release, which is reused (see ``reuse``).
    ``levels`` is not empty if grouping sets are measured separately.
    """

    question: Question
    bounded: Bounded
    mechanisms: tuple[Mechanism, ...]
    notes: tuple[str, ...] = ()
    stored: Mapping[int, Stored] = field(default_factory=dict)
    levels: tuple[Level, ...] = ()

    def statement(self, of_question: Callable[[Bounded], str]) -> str:
        """Returns the SQL of the question for people to read; ``of_question`` renders a bounded
        plan.
        """
        return ";\n".join(of_question(bounded) for bounded in self.questions)

    @property
    def questions(self) -> tuple[Bounded, ...]:
        """The bounded plan of each level; without levels, the one plan of the question."""
        return tuple(level.bounded for level in self.levels) or (self.bounded,)

    @property
    def sources(self) -> tuple[tuple[Bounded, int], ...]:
        """For each aggregate of the question, the bounded plan with it and its index there."""
        pairs = []
        for bounded in self.questions:
            pairs += [(bounded, place) for place in range(len(bounded.parts))]
        return tuple(pairs)

    @property
    def parts(self) -> tuple[Part, ...]:
        """All aggregates of the question; if it is measured as levels, level by level."""
        return tuple(bounded.parts[place] for bounded, place in self.sources)

    @property
    def plan(self) -> Bounded | Levels:
        """The plan that the engine runs: a bounded plan, or the levels of a question with grouping
        sets.
        """
        return Levels(self.levels) if self.levels else self.bounded

    @property
    def stores_parts(self) -> bool:
        """Whether the stored answer contains its aggregates as released, so that other questions
        can reuse them.

        It does not if its rows are sums of parts, as for grouping sets that are not measured as
        levels.
        """
        return bool(self.levels) or not self.question.output.sets

    @property
    def fresh(self) -> "Planned | None":
        """The plan of the aggregates that no earlier answer released; None if there are none."""
        if not self.stored:
            return self
        places = [place for place in range(len(self.mechanisms)) if place not in self.stored]
        return self.only(places) if places else None

    def only(self, places: Sequence[int]) -> "Planned":
        """Returns the plan reduced to the aggregates at these indices."""
        mechanisms = tuple(self.mechanisms[place] for place in places)
        if not self.levels:
            return Planned(self.question, self.bounded.only(places), mechanisms)
        levels = []
        for level in self.levels:
            parts = range(len(level.bounded.parts))
            start = len(parts) * self.levels.index(level)
            new = [place for place in parts if start + place in places]
            if new:
                levels.append(replace(level, bounded=level.bounded.only(new)))
        return Planned(self.question, self.bounded, mechanisms, levels=tuple(levels))

    @property
    def events(self) -> tuple[Event, ...]:
        """The privacy event of each aggregate."""
        pairs = zip(self.mechanisms, self.parts, strict=True)
        return tuple(_event(mechanism, part) for mechanism, part in pairs)

    @property
    def event(self) -> Composed:
        """The privacy event of the whole question, also of the parts that earlier answers released."""
        return Composed(self.events)

    @property
    def charge(self) -> Charge:
        """The cost of the question in the ledger's integers; reused aggregates cost nothing."""
        fresh = self.fresh
        if fresh is None:
            return NOTHING
        return charge_for(account(fresh.event))

    @property
    def cost(self) -> Cost:
        """The cost with one item for each part."""
        paid = {place: part.charge for place, part in self.stored.items()}
        cost = cost_of(self.charge, self.parts, self.events, paid)
        if not self.levels:
            return cost
        items = []
        names = [level_name(self.question, level.keys) for level in self.levels]
        count = len(cost.items) // len(names)
        for place, item in enumerate(cost.items):
            items.append({**item, "release": f"{item['release']}, {names[place // count]}"})
        return replace(cost, items=tuple(items))

    def measured(self, place: int) -> "Measured":
        """Returns how the grouping set at index ``place`` is measured."""
        count = len(self.question.raw.aggregates)
        sizes = [size_of(key) for key in self.question.raw.keys]
        every = range(len(sizes))
        for start, level in enumerate(self.levels):
            if place in level.sets:
                mechanisms = self.mechanisms[start * count : (start + 1) * count]
                copies = copies_of(level.keys, self.question.output.sets[place], sizes)
                return Measured(level.bounded, mechanisms, copies)
        sets = self.question.output.sets
        copies = copies_of(every, sets[place], sizes) if sets else 1
        return Measured(self.bounded, self.mechanisms, copies)


@dataclass(frozen=True, slots=True)
class Measured:
    """The plan and the mechanisms by which one grouping set (of ROLLUP, CUBE) is measured.

    The plan may have finer groups than the set: a group of the set is then the sum of ``copies``
    groups of the plan.
    """

    bounded: Bounded
    mechanisms: tuple[Mechanism, ...]
    copies: int = 1


def _event(mechanism: Mechanism, part: Part) -> Event:
    """The privacy event of one part through its mechanism."""
    if isinstance(mechanism, GridQuantiles):
        return mechanism.event(part.distance, part.groups)
    if isinstance(mechanism, ThresholdMechanism):
        return mechanism.event(Distance(Norm.LINF, Fraction(1), part.distance.relation))
    return mechanism.event(part.distance)


def plan_for_price(
    question: Question,
    dataset: Dataset,
    price: Price,
    layouts: Mapping[str, int] = UNPREPARED,
    *,
    collects_codes: bool = True,
) -> Planned:
    """Returns the plan with the least error at a stated epsilon or rho.

    ``layouts`` has the prepared layouts; ``collects_codes`` is the property of the engine.

    Raises:
        WrongUse: there is a delta, but nothing in the question spends one; or an interval of
            quantiles is paid for, and there are no quantiles.
        MissingDeclaration: there is no delta, but the groups are not public.
    """
    norm = Norm.L1 if price.epsilon is not None else Norm.L2
    raw = _with_unit_count(question.raw)
    raw = with_leaves(raw, ends=price.interval, collects_codes=collects_codes)
    _require_delta(raw, price)
    bounded = compile_plan(raw, dataset, norm, layouts)
    total = price.epsilon if price.epsilon is not None else price.rho
    assert total is not None, "a price without a target has an epsilon or a rho"
    shares = _split_cost(bounded, total, dict(question.twins))
    pairs = zip(bounded.parts, shares, strict=True)
    mechanisms = tuple(_mechanism(part, bounded, share, price.delta) for part, share in pairs)
    notes = (*question.notes, *layout_notes(bounded, dataset, layouts))
    return Planned(question, bounded, mechanisms, notes)


def _with_unit_count(raw: Raw) -> Raw:
    """Adds the number of units to an open plan, since it decides which groups are shown."""
    if not raw.is_open or CountUnits() in raw.aggregates:
        return raw
    return replace(raw, aggregates=(*raw.aggregates, CountUnits()))


def _require_delta(raw: Raw, price: Price) -> None:
    """Raises an error unless there is a delta if and only if the groups are not public."""
    if raw.is_open and price.delta is None:
        names = ", ".join(key.value.name for key in raw.keys if key.codes is None)
        raise MissingDeclaration(
            f"GROUP BY {names}: which values occur is itself private, "
            "and showing those of many units spends delta.",
            allowed='delta="1e-7" beside epsilon= or rho=, from a budget with delta',
            remedy="Or declare the values: sf.Category('value', ...); "
            "then nothing is hidden and no delta is spent.",
        )
    if price.delta is not None and not raw.is_open:
        raise WrongUse(
            "Nothing in this question spends delta.",
            remedy="Leave delta= out; the account's delta is in its budget.",
        )


def _split_cost(bounded: Bounded, total: Fraction, twins: Mapping[int, int]) -> list[Fraction]:
    """Splits a cost among the parts; returns the share of each.

    ``twins`` maps the part of a clipped column to the part of the same column without the clip. The
    parts that are no twins share the cost as if there were no twins; then each gives up some of its
    share to its twin.
    """
    whole = [place for place in range(len(bounded.parts)) if place not in twins]
    weights = _weights(bounded, whole)
    shares = split(total, weights, bounded.norm) if len(whole) > 1 else [total]
    by_place = dict(zip(whole, shares, strict=True))
    for twin, place in twins.items():
        share = _twin_share(bounded.parts[place], bounded.parts[twin], bounded.norm)
        by_place[twin] = by_place[place] * share
        by_place[place] *= 1 - share
    return [by_place[place] for place in range(len(bounded.parts))]


def _twin_share(part: Part, twin: Part, norm: Norm) -> Fraction:
    """The fraction of a part's cost that its twin, which reads the clipped values, takes.

    It makes the twin's noise half as wide as the part's, but is at most a quarter. If a quarter is
    not enough, the clip is close to the range, and the twin gets ``SMALL_SHARE``.
    """
    halved = 2 * Fraction(twin.aggregate.largest, part.aggregate.largest)
    if norm is Norm.L2:
        halved **= 2
    share = halved / (1 + halved)
    if share <= _LARGEST_SHARE:
        return share
    return SMALL_SHARE[norm]


def _weights(bounded: Bounded, places: Sequence[int]) -> list[Fraction]:
    """The weights of the parts at these indices in the split of the cost."""
    parts = [bounded.parts[place] for place in places]
    weights = [_weight(part, bounded) for part in parts]
    if not bounded.tracked.raw.is_open or len(weights) == 1:
        return weights
    # half of the cost is for the threshold: a group that is not shown has no other number
    aggregates = [part.aggregate for part in parts]
    place = aggregates.index(CountUnits())
    power = Fraction(3, 2) if bounded.norm is Norm.L1 else 2
    others = [float(weight) for index, weight in enumerate(weights) if index != place]
    whole = sum(weight ** float(1 / power) for weight in others)
    weights[place] = Fraction(whole ** float(power)).limit_denominator(10**6)
    return weights


def _weight(part: Part, bounded: Bounded) -> Fraction:
    """The sensitivity of a part, divided by what one row of weight 1 adds (squared for L2)."""
    scale = Fraction(part.aggregate.largest * bounded.refinement)
    value = part.distance.value
    pure = bounded.norm is Norm.L1
    if isinstance(part.aggregate, Quantiles):
        selections = len(part.aggregate.levels) * (3 if part.aggregate.has_ends else 1)
        ratio = value * part.groups * selections / scale
        if pure:
            return ratio
        return ratio**2 / part.groups
    if pure:
        return value / scale
    return value / scale**2


def _mechanism(
    part: Part,
    bounded: Bounded,
    cost: Fraction,
    delta: Fraction | None,
) -> Mechanism:
    """The mechanism that a share of the cost buys for a part."""
    pure = bounded.norm is Norm.L1
    if isinstance(part.aggregate, Quantiles):
        make = grid_quantiles if pure else concentrated_grid_quantiles
        levels = part.aggregate.levels
        return make(part.distance, part.groups, cost, levels, ends=part.aggregate.has_ends)
    if part.aggregate == CountUnits() and bounded.tracked.raw.is_open:
        assert delta is not None, "required before"
        show = threshold_geometric if pure else threshold_gaussian
        return show(part.groups, cost, delta, part.distance.relation)
    if pure:
        return laplace(part.distance, cost)
    return gaussian(part.distance, cost)


def plans_for_target(
    question: Question,
    dataset: Dataset,
    price: Price,
    wanted: Wanted,
    *,
    concentrated: bool,
    layouts: Mapping[str, int] = UNPREPARED,
) -> list[Planned]:
    """Returns the plans that reach a requested accuracy within ``max_epsilon``, one per noise law.

    Laplace noise may cost ``max_epsilon``; Gaussian noise (only if ``concentrated``) the rho that a
    charge of ``max_epsilon`` costs.

    Raises:
        TargetUnreachable: no law meets it.
        UnsupportedSql: the question has parts whose error is not that of additive noise.
    """
    assert price.most is not None, "a target comes with max_epsilon"
    raw = question.raw
    if raw.is_open or any(isinstance(aggregate, Quantiles) for aggregate in raw.aggregates):
        raise UnsupportedSql(
            "error= of quantiles, or of groups that are not public.",
            remedy="Ask with epsilon= or rho=; sfumato preview shows the error that it buys.",
        )
    norms = (Norm.L1, Norm.L2) if concentrated else (Norm.L1,)
    candidates = [Grouping(question, dataset, norm, layouts) for norm in norms]
    plans = []
    for grouping in candidates:
        levels = grouping.cheapest(wanted, price.most)
        if levels is not None:
            plans.append(_plan_levels(grouping, levels, wanted, layouts))
    if not plans:
        raise _unreachable_error(candidates, wanted, price)
    return plans


def _plan_levels(
    grouping: Grouping,
    levels: Sequence[LevelCost],
    wanted: Wanted,
    layouts: Mapping[str, int],
) -> Planned:
    """The plan that measures these levels, each part at its cost."""
    mechanisms = []
    for level_cost in levels:
        bounded = level_cost.level.bounded
        pairs = zip(bounded.parts, level_cost.costs, strict=True)
        mechanisms += [_mechanism(part, bounded, cost, None) for part, cost in pairs]
    question, every = grouping.question, grouping.every
    finest = grouping.bounded(every)
    notes = (*question.notes, *wanted.notes, *layout_notes(finest, grouping.dataset, layouts))
    if [level_cost.level.keys for level_cost in levels] == [every]:
        return Planned(question, finest, tuple(mechanisms), notes)
    names = "; ".join(level_name(question, level_cost.level.keys) for level_cost in levels)
    apart = f"Measured apart, each with noise of its own: {names}. So parts need not add up."
    own = tuple(level_cost.level for level_cost in levels)
    return Planned(question, finest, tuple(mechanisms), (*notes, apart), levels=own)


def _unreachable_error(
    candidates: Sequence[Grouping], wanted: Wanted, price: Price
) -> TargetUnreachable:
    """The error for a target that is too expensive, with the least error that can be had."""
    most = price.most
    target = price.target
    assert most is not None and target is not None, "called with a target"

    def buys(steps: int) -> bool:
        times = wanted.times(Fraction(steps, 64))
        return any(each.cheapest(times, most) is not None for each in candidates)

    smallest_one = ""
    if candidates[0].question.output.sets:
        # a search would plan all levels many times
        factor = min(each.least_factor(wanted, most) for each in candidates)
        smallest_one = _least_error(target, factor)
    elif most >= EPSILON_GRID * len(wanted.demands) and buys(_FARTHEST):
        parts = smallest(lambda steps: steps > 0 and buys(steps), below=64)
        smallest_one = _least_error(target, Fraction(parts, 64))
    return TargetUnreachable(
        f"No mechanism reaches this error with max_epsilon = {decimal_text(most)}.{smallest_one}",
        remedy="Allow a larger error= or a larger max_epsilon=; "
        "sfumato preview shows what an epsilon buys.",
    )


def _least_error(target: Target, factor: Fraction) -> str:
    """A sentence that names the least possible error: the wanted one times a factor."""
    least = target.amount * factor
    shown = f"{two_digits(least * 100)}%" if target.relative else two_digits(least)
    return f" The smallest that it buys is about {shown}."


def cheapest(plans: Sequence[Planned], balances: Sequence[Balance]) -> Planned:
    """Returns the plan that takes the smallest share of the budget left, with a note on the choice.

    A plan must fit every balance; its share is the largest that it takes of any of them.
    """
    for plan in plans:
        if plan.fresh is None:
            return plan
    shares = [(share_of_left(plan.charge, balances), index) for index, plan in enumerate(plans)]
    payable = sorted((share, index) for share, index in shares if share is not None)
    if not payable:
        # the ledger will refuse it, naming what is left
        return plans[0]
    names = [name_of(plan.bounded.norm) for plan in plans]
    _, chosen = payable[0]
    best = plans[chosen]
    shown = ", ".join(f"{names[index]} would take {float(share):.2%}" for share, index in payable)
    note = f"{names[chosen]} noise chosen as the cheaper: of what is left, {shown}."
    closed = closing(best.bounded.norm, best.charge, balances)
    return replace(best, notes=(*best.notes, note, *closed))


def share_of_left(charge: Charge, balances: Sequence[Balance]) -> Fraction | None:
    """Returns the largest share of any remaining balance that a charge takes; None if one refuses
    it.
    """
    shares = [balance.gates.share(charge, balance.taken) for balance in balances]
    known = [share for share in shares if share is not None]
    if len(known) == len(shares):
        return max(known)
    return None


def closing(norm: Norm, charge: Charge, balances: Sequence[Balance]) -> list[str]:
    """Returns a note if this charge is the first Gaussian one, after which epsilons are not added
    up.
    """
    if norm is Norm.L1 or all(balance.taken.epsilon is None for balance in balances):
        return []
    before = min(balance.left.epsilon for balance in balances)
    after = min(balance.gates.left(balance.taken + charge).epsilon for balance in balances)
    reach = f"{float(after):.4g} instead of {float(before):.4g}"
    note = "It closes the pure gate for good: one more question with epsilon= may then cost at most"
    return [f"{note} {reach}."]


def name_of(norm: Norm) -> str:
    """Returns the name of the noise law for sensitivities in a norm: Laplace or Gaussian."""
    if norm is Norm.L1:
        return "Laplace"
    return "Gaussian"
