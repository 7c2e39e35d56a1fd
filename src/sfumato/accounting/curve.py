# SPDX-License-Identifier: Apache-2.0
"""The privacy curve of a fixed plan: every (epsilon, delta) that it satisfies.

For plans that are fixed before their first answer. If a later event or its parameters may depend on
an earlier answer, use a filter (``odometer``) instead. A filter takes no ``Curve``, so the two
cannot be confused. Proof: curve.proof.md.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from sfumato.accounting.account import check_relations
from sfumato.accounting.closed import (
    Between,
    Converted,
    Curve,
    FixedSize,
    Least,
    Normal,
    Once,
    Reports,
    Shifts,
    loss_of,
    no_finite_epsilon,
    spare_of,
)
from sfumato.accounting.dominating_pairs import MOST_VARIANCE, FixedPlan
from sfumato.accounting.fixed_scores import FixedScores
from sfumato.accounting.implied import find_pairs, gather_equal, imply_curve, is_sharp
from sfumato.accounting.log_concave import LogConcave
from sfumato.accounting.loss import (
    Lattice,
    delta_at,
    discretise,
    epsilon_at,
    merge,
    power,
    widths_at,
)
from sfumato.accounting.loss.cap import Capped, with_cap
from sfumato.accounting.loss.compose import even_share, folded
from sfumato.accounting.loss.discretise import Span
from sfumato.accounting.loss.travel import travelled
from sfumato.accounting.loss.tuning import (
    WIDTH,
    Aim,
    Part,
    Split,
    aim,
    capped,
    finer,
    least_lost,
    separated,
)
from sfumato.accounting.profile import Profile
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.exact.bracket import Bounds, Bracket
from sfumato.exact.rational import Number, positive
from sfumato.exact.rounding import float_down, float_up
from sfumato.noise import Binomial, DiscreteGaussian, Skellam
from sfumato.privacy.distance import Norm
from sfumato.privacy.event import (
    AdditiveNoise,
    ContinuousLaw,
    ContinuousNoise,
    Event,
    FixedSample,
    Nonadaptive,
    PoissonSample,
    Sampled,
    Shuffled,
)

__all__ = ["MOST_EVENTS", "Curve", "privacy_curve"]

MOST_EVENTS = 10**7
_WIDEST, _NARROWEST = Fraction(1, 100), Fraction(1, 10**6)
# Factor of the blur of a rough sum, which suffices to show that the other direction is no worse.
_ROUGH = 50
# The most points of a lattice; more take minutes and gigabytes.
_MOST_POINTS = 1 << 22
_LOOKS = 3
# The relative distance of the bounds at which refining stops, and the factor by which a refinement
# must narrow them to be repeated.
_NEARLY, _WORTH = 1.0, 0.8
# The width for curves that only guide a search, where accuracy would waste time.
_ROUGHLY = 1e-2
# The largest squared mu of Gaussians whose sum with other losses is put on a lattice: beyond it
# epsilon is in the thousands.
_MOST_SQUARED = 10**4
# The largest squared mu of Gaussians that is accounted for; above it no protection is left.
_LEAST_NOISE = 10**12
# The most mechanisms with fixed scores for which a plan is given their tighter bound.
_MOST_FIXED = 10**6
# The share of the allowed loss of weight that is spent on losses with long tails on both sides.
_TRAVEL_LOST = 0.1
# The quotient of the bounds of a delta below which no other bound is looked for.
_FLAT = 1.1
# The largest epsilon of a curve; a delta for a larger one is read here.
_FARTHEST = Fraction(10**6)
# The smallest pure epsilon in all; the squares of smaller ones underflow.
_FAINTEST = Fraction(1, 10**100)


def privacy_curve(event: Event, *, width: Number = WIDTH) -> Curve:
    """Returns the privacy curve of a plan that is fixed in advance.

    It is the curve of the worst mechanism that the event describes (its dominating pair), plus the
    deltas that events spend themselves. ``width`` is the target distance of the bounds, relative to
    epsilon, where losses are rounded to a lattice; closed forms and pure sums are tighter. The
    upper bound is the least of all known ones, including those that the event's cost and its Renyi
    divergences imply. Beyond an epsilon of 500, which hides nothing, the lower bound may be 0.

    Guarantees:
        a curve lies between its bounds
        pure epsilon never exceeds the exact sum
        gaussians of all sigmas merge into one
        own deltas of events are added
        too many events are refused
        mixed relations have no curve
        a fixed sample keeps its amplified curve
        every delta has an epsilon
        an upper end is never above that of renyi divergences
        noise of every scale has a curve
        a plan has one curve however it is written

    Raises:
        InvalidDeclaration: an event has no rule, or neighbour relations are mixed.
        InvalidNumber: there are more than 10^7 events, noise hides next to nothing, or the width is
            not between 1e-6 and 1/100.

    >>> from sfumato.privacy import ContinuousNoise, Distance, Norm, Repeated
    >>> from sfumato.privacy.event import ContinuousLaw
    >>> noise = ContinuousNoise(ContinuousLaw.LAPLACE, Fraction(50), Distance(Norm.L1, Fraction(1)))
    >>> bounds = privacy_curve(Repeated(noise, 1000)).epsilon("1e-6")
    >>> round(bounds.lower, 3), round(bounds.upper, 3)
    (2.905, 2.905)
    """
    check_relations(event)
    relative = positive("width", width, at_most=_WIDEST)
    if relative < _NARROWEST:
        raise InvalidNumber(f"A width of {float(relative):.6g}.", allowed="from 1e-6 to 1/100")
    event = gather_equal(event)
    closed = _closed(event, width)
    if closed is not None:
        return closed
    plan = find_pairs(event)
    if plan is None:
        return imply_curve(event)
    if plan.size > MOST_EVENTS:
        raise InvalidNumber(
            f"A plan of {plan.size} events.",
            allowed=f"at most {MOST_EVENTS}",
            remedy="Read epsilon_from_renyi of the plan, which takes any number.",
        )
    if plan.squared > _LEAST_NOISE:
        raise InvalidNumber(
            "Gaussian noise that hides nothing: a squared mu of "
            f"{plan.squared.numerator // plan.squared.denominator}.",
            allowed=f"at most {_LEAST_NOISE} in all",
            remedy="Use more noise or fewer releases.",
        )
    if plan.pairs and plan.pure is not None and plan.pure < _FAINTEST:
        return Converted(Profile.pure(plan.pure, plan.own.upper))
    if not plan.pairs:
        whole = Normal(plan.squared, plan.own, plan.reached)
        return whole if is_sharp(plan) or plan.own.upper else Least((whole, imply_curve(event)))
    curve = _Composed(plan, float(relative), event)
    below = plan.one_way
    return curve if below is None else Between(curve, _Composed(below, float(relative)))


@dataclass(frozen=True, slots=True)
class _Way:
    """A direction to look at: what to aim at, the parts, and whether P and Q are exchanged."""

    goal: Aim
    parts: Sequence[Part]
    exchanged: bool


@dataclass(frozen=True, slots=True)
class _Composed:
    """A curve computed from privacy loss distributions, and from what ``event`` implies.

    Without an event other bounds are left out: of a rough reading, or where only the lower is read.
    """

    plan: FixedPlan
    width: float
    event: Event | None = None

    def epsilon(self, delta: Number) -> Bounds:
        spare, most = spare_of(delta, self.plan.own)
        pure = math.inf if self.plan.pure is None else float_up(self.plan.pure)
        if spare == 0:
            if self.plan.pure is None:
                raise no_finite_epsilon()
            # amplified losses are rounded up, by much less than the spacing of floats
            least = math.nextafter(float_down(self.plan.pure), 0.0)
            return self._shown(Bracket(least if most == spare else 0.0, pure))
        worst = self._read(partial(epsilon_at, delta=float(spare)), delta=float(spare))
        upper = min(worst.upper, pure)
        if not is_sharp(self.plan) or worst.upper > (1 + self.width) * worst.lower:
            upper = min(upper, self._apart(spare), self._implied(lambda of: of.epsilon(delta)))
        if upper == math.inf:
            raise InvalidNumber(
                f"No epsilon is proved at delta = {float(spare):.6g}.",
                allowed="from about 1e-25 on",
                remedy="State a larger delta, or read the plan in parts.",
            )
        # the lower bound holds only if rounding the events' own deltas changes the delta by less
        # than a float
        told = most <= spare * (1 + Fraction(1, 2**52))
        return self._shown(Bracket(min(worst.lower, upper) if told else 0.0, upper))

    def roughly(self, delta: Number) -> float:
        """A quick estimate of the least epsilon, to start a search."""
        rough = replace(self, width=max(self.width, _ROUGHLY), event=None)
        return rough.epsilon(delta).upper

    def _shown(self, bracket: Bracket) -> Bounds:
        """Bounds whose lower end is kept only if neighbours attain it."""
        return bracket if self.plan.reached else Bounds(None, bracket.upper)

    def _implied(self, read: Callable[[Curve], Bounds]) -> float:
        """Returns the bound that costs and Renyi divergences imply; infinite if they imply none."""
        if self.event is None:
            return math.inf
        try:
            return read(imply_curve(self.event)).upper
        except (InvalidDeclaration, InvalidNumber):
            # a part without a rule; a delta below what events spend of their own
            return math.inf

    def _apart(self, spare: Fraction) -> float:
        """A coarse bound: bounded losses at their largest, Gaussians exactly."""
        bounded, squared, outside = self.plan.apart()
        if spare <= outside:
            return math.inf
        return float_up(bounded + Fraction(Normal(squared).epsilon(spare - outside).upper))

    def delta(self, epsilon: Number) -> Bounds:
        loss = loss_of(epsilon)
        if self.plan.pure is not None and loss >= self.plan.pure:
            return self.plan.own.added(self._shown(Bracket(0.0, 0.0)))
        near = float(min(loss, _FARTHEST))
        bracket = self._read(partial(delta_at, epsilon=near), epsilon=near)
        lower = bracket.lower if loss <= _FARTHEST else 0.0
        bounds = self.plan.own.added(self._shown(Bracket(lower, bracket.upper)))
        if is_sharp(self.plan) and bracket.upper <= _FLAT * bracket.lower:
            return bounds
        apart = self.plan.own.added(Bounds(None, self._delta_apart(loss)))
        upper = min(bounds.upper, apart.upper, self._implied(lambda of: of.delta(loss)))
        return Bounds(None if bounds.lower is None else min(bounds.lower, upper), upper)

    def _delta_apart(self, loss: Fraction) -> float:
        """The delta of ``_apart`` at an epsilon."""
        bounded, squared, outside = self.plan.apart()
        left = Normal(squared).delta(max(loss - bounded, Fraction(0))).upper
        return 1.0 if loss < bounded else float_up(min(outside + Fraction(left), Fraction(1)))

    def _read(
        self,
        read: Callable[[Lattice], Bracket],
        *,
        delta: float | None = None,
        epsilon: float = 0.0,
    ) -> Bracket:
        """The bracket of the worse direction; of all numbers where Gaussians hide nothing, or where
        floats overflow, which happens beyond epsilons that hide anything.
        """
        unknown = Bracket(0.0, math.inf if delta else 1.0)
        if self.plan.squared > _MOST_SQUARED:
            return unknown
        try:
            return self._worst(read, delta=delta, epsilon=epsilon)
        except ArithmeticError:
            return unknown

    def _worst(
        self, read: Callable[[Lattice], Bracket], *, delta: float | None, epsilon: float
    ) -> Bracket:
        """The bracket of the worse direction, removing a unit or adding one; starts with the one
        that is estimated worse.
        """
        parts = self.plan.parts()
        first, *others = self._ways(parts, delta=delta, epsilon=epsilon)
        look = partial(self._look, read, parts, again=bool(delta))
        worst = look(first.parts, first.goal, exchanged=first.exchanged)
        for way in others:
            rough = replace(way.goal, blur=_ROUGH * way.goal.blur)
            bracket = read(_sum(way.parts, rough, exchanged=way.exchanged))
            if bracket.upper > worst.upper:
                bracket = look(way.parts, way.goal, exchanged=way.exchanged)
            worst = Bracket(max(worst.lower, bracket.lower), max(worst.upper, bracket.upper))
        return worst

    def _ways(self, parts: Sequence[Part], *, delta: float | None, epsilon: float) -> list[_Way]:
        """The directions to look at, the worse one first by an estimate."""
        ways = []
        symmetric = all(part.pair.symmetric for part in parts)
        for exchanged in (False,) if symmetric else (False, True):
            near = parts if exchanged else capped(parts, delta=delta, epsilon=epsilon)
            goal = aim(near, delta=delta, epsilon=epsilon, width=self.width, exchanged=exchanged)
            ways.append(_Way(goal, near, exchanged))

        def badness(way: _Way) -> tuple[bool, float]:
            # capping helps where losses are long in one direction: the worse one
            return way.parts is not parts, way.goal.epsilon if delta else way.goal.delta

        return sorted(ways, key=badness, reverse=True)

    def _look(
        self,
        read: Callable[[Lattice], Bracket],
        whole: Sequence[Part],
        parts: Sequence[Part],
        goal: Aim,
        *,
        exchanged: bool,
        again: bool,
    ) -> Bracket:
        """Refines the lattice until the bracket is as tight as wanted."""
        floor = least_lost(parts)
        again = again and goal.epsilon > 0
        if again and parts is not whole:
            # the first pass only has to find an epsilon for the next cap, so it may be rough
            goal = replace(goal, blur=_ROUGH * goal.blur)
        seen = _sum(parts, goal, exchanged=exchanged)
        bracket = read(seen)
        for _ in range(_LOOKS if again else 0):
            near = min(bracket.upper, goal.epsilon)
            if bracket.width <= _NEARLY * goal.apart(near):
                break
            parts = whole if exchanged else capped(whole, epsilon=near)
            better = aim(parts, epsilon=near, exchanged=exchanged, width=self.width, known=goal)
            before = goal
            goal = finer(before, better, *widths_at(seen, near))
            if len(seen.weights) * before.step(parts) > _MOST_POINTS * goal.step(parts):
                break
            # one more pass with the smallest allowed loss of weight, by the better tilt
            is_last = goal.lost < floor >= before.lost
            goal = replace(goal, lost=max(goal.lost, floor))
            seen = _sum(parts, goal, exchanged=exchanged)
            both = _both(bracket, read(seen))
            # a bracket that rounding errors keep wide does not improve by more passes
            is_last = is_last or both.width >= _WORTH * bracket.width
            bracket = both
            if is_last:
                break
        return bracket


def _both(first: Bracket, second: Bracket) -> Bracket:
    """Returns the bracket that two brackets of one number prove together."""
    return Bracket(max(first.lower, second.lower), min(first.upper, second.upper))


def _sum(parts: Sequence[Part], goal: Aim, *, exchanged: bool) -> Lattice:
    """The loss of all parts on one lattice, with a smaller tilt where floats overflow."""
    for gentler in (1, 16, 256):
        try:
            return _tilted(parts, replace(goal, tilt=goal.tilt / gentler), exchanged=exchanged)
        except ArithmeticError:
            continue
    raise OverflowError("losses of a plan that hides nothing")


def _tilted(parts: Sequence[Part], goal: Aim, *, exchanged: bool) -> Lattice:
    """The loss of all parts on one lattice, by the tilt of ``goal``."""
    step = goal.step(parts)
    times = sum(part.times for part in parts)
    sums: list[Lattice] = []
    steps: list[tuple[Lattice, float]] = []
    for part in parts:
        apart = separated(part, step, goal, exchanged=exchanged, alone=len(parts) == 1)
        pair = part.pair
        if isinstance(pair, Capped):
            pair = pair.on(apart.far if apart else step, goal.outside / times)
        outside = goal.outside / times
        rounded = partial(discretise, pair, tilt=goal.tilt, outside=outside, exchanged=exchanged)
        blur = goal.blur / 2 * part.times / times
        parted = _apart(part, goal, blur, rounded, apart)
        if parted is None:
            one = rounded(step)
            parted = [power(one, part.times, blur, lost=goal.lost)], [(one, part.times)]
        sums += parted[0]
        steps += parted[1]
    whole = _merged(sums, steps, goal)
    if isinstance(pair, Capped):
        return with_cap(whole, pair, [one for one, _ in steps], times, goal.epsilon)
    return whole


def _merged(sums: Sequence[Lattice], steps: Sequence[tuple[Lattice, float]], goal: Aim) -> Lattice:
    """Adds up the sums of the parts; ``steps`` are the single losses, with their numbers."""
    whole = merge(sums, goal.blur / 2, lost=goal.lost)
    seldom = _TRAVEL_LOST * goal.lost
    return replace(whole, travel=travelled(steps, seldom), error=whole.error + 2 * seldom)


def _apart(
    part: Part, goal: Aim, blur: float, rounded: Callable[..., Lattice], apart: Split | None
) -> tuple[list[Lattice], list[tuple[Lattice, float]]] | None:
    """The sums of a part whose rare large losses are on a coarser lattice, and its single losses;
    or None.
    """
    if apart is None:
        return None
    body = rounded(apart.near, span=Span(apart.low, apart.high, inside=True))
    tail = rounded(apart.far, span=Span(apart.low, apart.high, inside=False))
    if tail.log_mass >= body.log_mass:
        # the estimate was wrong: the part assumed rare has most of the weight
        return None
    folds = even_share(part.times, apart.times)
    count, left = divmod(part.times, folds)
    sums = [power(folded(body, tail, folds, count, lost=goal.lost), count, blur, lost=goal.lost)]
    if left:
        sums.append(folded(body, tail, left, 1, lost=goal.lost))
    seldom = math.exp(tail.log_mass - body.log_mass)
    return sums, [(body, part.times / (1 + seldom)), (tail, part.times * seldom / (1 + seldom))]


def _closed(event: Event, width: Number) -> Curve | None:
    """The curve of an event that needs no lattice; else None."""
    shift = _lone_shift(event)
    if (
        shift is not None
        and isinstance(event, AdditiveNoise)
        and isinstance(event.noise, DiscreteGaussian)
    ):
        return Shifts(event.noise, shift)
    if (
        isinstance(event, AdditiveNoise)
        and isinstance(event.noise, Skellam | Binomial)
        and event.cells == 1
    ):
        return LogConcave(event.noise, _moved(event))
    if isinstance(event, Shuffled):
        return Reports(event)
    if isinstance(event, Nonadaptive):
        return _nonadaptive(event, width)
    if not isinstance(event, Sampled):
        return None
    if isinstance(event.design, FixedSample):
        summed = isinstance(event.event, AdditiveNoise | ContinuousNoise)
        return FixedSize(privacy_curve(event.event, width=width), event.design.rate, reached=summed)
    inner = event.event
    gaussian = isinstance(inner, ContinuousNoise) and inner.law is ContinuousLaw.GAUSSIAN
    if (
        isinstance(inner, ContinuousNoise)
        and gaussian
        and event.design == PoissonSample(event.design.rate)
    ):
        return Once(Normal(inner.distance.value / inner.scale**2), event.design.rate)
    return None


def _nonadaptive(event: Nonadaptive, width: Number) -> Curve:
    """Mechanisms of one bounded range, tightly; of several ranges also as if all had the
    largest.
    """
    any_scores, plan = privacy_curve(event.event, width=width), FixedPlan.of(event.event)
    widest = None if plan is None else plan.widest_range
    if plan is None or plan.pure is None or widest is None or plan.size > _MOST_FIXED:
        return any_scores
    if len(plan.pairs) == 1:
        return FixedScores(widest, plan.size, plan.pure, plan.exists)
    return Least((FixedScores(widest, plan.size, plan.pure, reached=False), any_scores))


def _lone_shift(event: Event) -> int | None:
    """How far the one integer of an event with discrete Gaussian noise can move, if it has no
    single dominating pair.
    """
    if (
        not isinstance(event, AdditiveNoise)
        or not isinstance(event.noise, DiscreteGaussian)
        or event.cells != 1
    ):
        return None
    shift = 0 if event.distance.norm is Norm.L1 else _moved(event)
    return shift if shift > 1 or (shift and event.noise.sigma_squared > MOST_VARIANCE) else None


def _moved(event: AdditiveNoise) -> int:
    """Returns how far one integer can change; an L2 distance is squared."""
    value = math.floor(event.distance.value)
    return math.isqrt(value) if event.distance.norm is Norm.L2 else value
