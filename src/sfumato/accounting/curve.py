# SPDX-License-Identifier: Apache-2.0
"""The privacy curve of a plan that is fixed in advance: every (epsilon, delta) that it keeps.

For plans only. Where a later event, or its parameters, may depend on an earlier answer,
nothing here holds: use a filter. A ``Curve`` is an input of no filter, so the two cannot be
mixed up. Proof: curve.proof.md.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Protocol

from sfumato.accounting.account import account, relations_of
from sfumato.accounting.convert import approx_from_zcdp
from sfumato.accounting.delta import delta_at as guaranteed_delta
from sfumato.accounting.divergence import HUGE
from sfumato.accounting.dominate import MOST_VARIANCE, FixedPlan
from sfumato.accounting.gaussian import gaussian_delta
from sfumato.accounting.loss import Lattice, delta_at, discretise, epsilon_at, merge, power, widths_at
from sfumato.accounting.loss.aim import LEAST_LOST, TELLS_ALL, WIDTH, Aim, Part, aim, finer, split
from sfumato.accounting.loss.compose import even_share, folded
from sfumato.accounting.loss.discretise import Span
from sfumato.accounting.normal import normal_excess
from sfumato.accounting.profile import Profile
from sfumato.accounting.renyi import profile_of
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.exact.bracket import Bracket
from sfumato.exact.rational import Number, positive, to_fraction
from sfumato.exact.rounding import exp_down, exp_up, float_down, float_up, log_down, log_up, sqrt_down, sqrt_up
from sfumato.noise import DiscreteGaussian
from sfumato.privacy.distance import Norm
from sfumato.privacy.event import AdditiveNoise, Event, FixedSample, Sampled
from sfumato.privacy.guarantee import PureDP, ZeroConcentratedDP

MOST_EVENTS = 10**7
_SMALLEST = Fraction(1, 10**300)
_ITERATIONS = 60
_WIDEST, _NARROWEST = Fraction(1, 100), Fraction(1, 10**6)
_LEAST_LOSS = Fraction(1, 10**12)
# blur with which the other direction is shown to be no worse
_ROUGH = 50
# bounds that much further apart than wanted are left; another look must bring them so much closer, or is the last
_NEARLY, _WORTH = 1.05, 0.8
# squared mu of Gaussians, beyond which there is nothing left to account for
_LEAST_NOISE = 10**12
# in all: squares of less are no floats
_FAINTEST = Fraction(1, 10**100)


class Curve(Protocol):
    """Epsilon as a function of delta and the reverse, between bounds that hold the least true one."""

    def epsilon(self, delta: Number) -> Bracket:
        """The least epsilon at ``delta``, 0 <= delta < 1."""
        ...

    def delta(self, epsilon: Number) -> Bracket:
        """The least delta at ``epsilon`` >= 0."""
        ...


def privacy_curve(event: Event, *, width: Number = WIDTH) -> Curve:
    """The whole privacy curve of a plan fixed in advance.

    It is that of the worst mechanism that the event describes (its dominating pair); deltas
    that events spend of their own are added. ``width``: how far apart, relative to epsilon, the
    bounds may about be where losses are rounded; closed forms and pure sums are closer, and beyond an
    epsilon of 500, which hides nothing, the lower bound may be 0.

    Guarantees:
        a curve lies between its bounds
        pure epsilon never exceeds the exact sum
        gaussians of all sigmas merge into one
        own deltas of events are added
        too many events are refused
        mixed relations have no curve
        a fixed sample keeps its amplified curve
        every delta has an epsilon

    Raises:
        InvalidDeclaration: an event without a rule; mixed neighbour relations.
        InvalidNumber: more than 10^7 events; noise that hides next to nothing; a width that is
            not between 1e-6 and 1/100.

    >>> from sfumato.privacy import ContinuousNoise, Distance, Norm, Repeated
    >>> from sfumato.privacy.event import ContinuousLaw
    >>> noise = ContinuousNoise(ContinuousLaw.LAPLACE, Fraction(50), Distance(Norm.L1, Fraction(1)))
    >>> bounds = privacy_curve(Repeated(noise, 1000)).epsilon("1e-6")
    >>> round(bounds.lower, 3), round(bounds.upper, 3)
    (2.905, 2.905)
    """
    if len(relations_of(event)) > 1:
        raise InvalidDeclaration(
            "Parts of one event are about different neighbour relations.", allowed="one relation for all parts"
        )
    relative = positive("width", width, at_most=_WIDEST)
    if relative < _NARROWEST:
        raise InvalidNumber(f"A width of {float(relative):.6g}.", allowed="from 1e-6 to 1/100")
    shift = _lone_shift(event)
    if shift is not None and isinstance(event, AdditiveNoise) and isinstance(event.noise, DiscreteGaussian):
        return _Shifts(event.noise, shift)
    if isinstance(event, Sampled) and isinstance(event.design, FixedSample):
        return _FixedSample(privacy_curve(event.event, width=width), event.design.rate)
    plan = FixedPlan.of(event)
    if plan is None:
        return _Converted(account(event))
    if plan.size > MOST_EVENTS:
        raise InvalidNumber(f"A plan of {plan.size} events.", allowed=f"at most {MOST_EVENTS}")
    if plan.squared > _LEAST_NOISE:
        raise InvalidNumber(
            f"Gaussian noise that hides nothing: a squared mu of {plan.squared.numerator // plan.squared.denominator}.",
            allowed=f"at most {_LEAST_NOISE} in all",
        )
    if plan.pure is not None and plan.pure < _FAINTEST:
        return _Converted(Profile.pure(plan.pure, plan.delta))
    if not plan.pairs:
        return _Normal(plan.squared, plan.delta)
    return _Composed(plan, float(relative), event)


@dataclass(frozen=True, slots=True)
class _Composed:
    """A curve by privacy loss distributions."""

    plan: FixedPlan
    width: float
    event: Event

    def epsilon(self, delta: Number) -> Bracket:
        spare = _spare(delta, self.plan.delta)
        pure = math.inf if self.plan.pure is None else float_up(self.plan.pure)
        if spare == 0:
            if self.plan.pure is None:
                raise _no_finite_epsilon()
            # amplified losses are rounded up, by far less than a float
            return Bracket(math.nextafter(float_down(self.plan.pure), 0.0), pure)
        worst = self._worst(partial(epsilon_at, delta=float(spare)), delta=float(spare))
        upper = min(worst.upper, pure)
        return Bracket(min(worst.lower, pure), upper if upper < math.inf else self._apart(spare))

    def _apart(self, spare: Fraction) -> float:
        """Where rounding proves nothing: bounded losses at their largest, Gaussians whole and exactly."""
        bounded, squared, outside = self.plan.apart()
        if spare <= outside:
            cost = profile_of(self.event)
            if cost is not None:
                return _Converted(cost).epsilon(spare + self.plan.delta).upper
            raise InvalidNumber(f"No epsilon is proved at delta = {float(spare):.6g}.", allowed="from about 1e-25 on")
        return float_up(bounded + Fraction(_Normal(squared, Fraction(0)).epsilon(spare - outside).upper))

    def delta(self, epsilon: Number) -> Bracket:
        loss = _loss(epsilon)
        own = self.plan.delta
        if self.plan.pure is not None and loss >= self.plan.pure:
            return _added(Bracket(0.0, 0.0), own)
        return _added(self._worst(partial(delta_at, epsilon=float(loss)), epsilon=float(loss)), own)

    def _worst(
        self, read: Callable[[Lattice], Bracket], *, delta: float | None = None, epsilon: float = 0.0
    ) -> Bracket:
        """Of removing a unit and of adding one, where these differ: the larger by a rough guess first."""
        parts = self.plan.parts()
        ways = (False,) if all(part.pair.symmetric for part in parts) else (False, True)
        found_by = partial(aim, parts, delta=delta, epsilon=epsilon, width=self.width)
        goals = [(found_by(exchanged=way), way) for way in ways]
        goals.sort(key=lambda goal: goal[0].epsilon if delta else goal[0].delta, reverse=True)

        look = partial(self._look, read, parts, again=bool(delta))
        worst = look(goals[0][0], exchanged=goals[0][1])
        for goal, way in goals[1:]:
            found = read(_sum(parts, replace(goal, blur=_ROUGH * goal.blur), exchanged=way))
            if found.upper > worst.upper:
                found = look(goal, exchanged=way)
            worst = Bracket(max(worst.lower, found.lower), max(worst.upper, found.upper))
        return worst

    def _look(
        self, read: Callable[[Lattice], Bracket], parts: Sequence[Part], goal: Aim, *, exchanged: bool, again: bool
    ) -> Bracket:
        """What is read; ``again`` and again, from finer lattices, while its ends are further apart than was wanted."""
        seen = _sum(parts, goal, exchanged=exchanged)
        found = read(seen)
        while again and 0 < goal.epsilon < TELLS_ALL:
            near = min(found.upper, goal.epsilon)
            if found.width <= _NEARLY * goal.apart(near):
                break
            better = aim(parts, epsilon=near, exchanged=exchanged, width=self.width)
            goal = finer(goal, better, *widths_at(seen, near))
            if goal.lost < LEAST_LOST:
                break
            seen = _sum(parts, goal, exchanged=exchanged)
            closer = read(seen)
            both = Bracket(max(found.lower, closer.lower), min(found.upper, closer.upper))
            # what rounding alone keeps apart stays so
            again, found = both.width < _WORTH * found.width, both
        return found


def _sum(parts: Sequence[Part], goal: Aim, *, exchanged: bool) -> Lattice:
    """The loss of all parts on one lattice."""
    step = goal.step(parts)
    times = sum(part.times for part in parts)
    sums = []
    for part in parts:
        rounded = partial(discretise, part.pair, tilt=goal.tilt, outside=goal.outside / times, exchanged=exchanged)
        blur = goal.blur / 2 * part.times / times
        apart = split(part, step, goal, exchanged=exchanged, alone=len(parts) == 1)
        if apart is None:
            sums.append(power(rounded(step), part.times, blur, lost=goal.lost))
            continue
        body = rounded(apart.near, span=Span(apart.low, apart.high, inside=True))
        tail = rounded(apart.far, span=Span(apart.low, apart.high, inside=False))
        if tail.log_mass >= body.log_mass:
            # the outline misled: what is seldom holds the most weight
            sums.append(power(rounded(step), part.times, blur, lost=goal.lost))
            continue
        folds = even_share(part.times, apart.times)
        count, left = divmod(part.times, folds)
        sums.append(power(folded(body, tail, folds, count, lost=goal.lost), count, blur, lost=goal.lost))
        if left:
            sums.append(folded(body, tail, left, 1, lost=goal.lost))
    return merge(sums, goal.blur / 2, lost=goal.lost)


@dataclass(frozen=True, slots=True)
class _Normal:
    """Gaussians only: mu-GDP for mu^2 the sum of all (Dong, Roth, Su 2022; Balle and Wang 2018)."""

    squared: Fraction
    own: Fraction

    def epsilon(self, delta: Number) -> Bracket:
        spare = _spare(delta, self.own)
        if not self.squared:
            return Bracket(0.0, 0.0)
        if spare == 0:
            raise _no_finite_epsilon()
        mu = sqrt_up(self.squared)
        low, high = Fraction(0), mu * mu / 2 + mu * sqrt_up(Fraction(2 * math.log(1 / float(spare)) + 1))
        if self._curve(low)[0] <= spare:
            return Bracket(0.0, 0.0 if self._curve(low)[1] <= spare else self._search(low, high, spare)[1])
        return Bracket(*self._search(low, high, spare))

    def _search(self, low: Fraction, high: Fraction, spare: Fraction) -> tuple[float, float]:
        """Ends that were read: above delta at the lower, not above at the upper one."""
        under, over = low, high
        for _ in range(_ITERATIONS):
            middle = Fraction(float((low + high) / 2))
            lower, upper = self._curve(middle)
            under, over = (middle if lower > spare else under), (middle if upper <= spare else over)
            if lower > spare:
                low = middle
            else:
                high = middle
        return float_down(under), float_up(over)

    def delta(self, epsilon: Number) -> Bracket:
        lower, upper = self._curve(_loss(epsilon)) if self.squared else (Fraction(0), Fraction(0))
        return _added(Bracket(float_down(lower), float_up(upper)), self.own)

    def _curve(self, epsilon: Fraction) -> tuple[Fraction, Fraction]:
        """P(Z > a) - e^epsilon P(Z > b), a = epsilon/mu - mu/2, b = epsilon/mu + mu/2; it grows with mu."""
        down, up = sqrt_down(self.squared), sqrt_up(self.squared)
        lower = normal_excess(epsilon / down - down / 2, epsilon / down + down / 2)[0] if down else Fraction(0)
        upper = normal_excess(epsilon / up - up / 2, epsilon / up + up / 2)[1]
        return max(lower, Fraction(0)), min(max(upper, Fraction(0)), Fraction(1))


@dataclass(frozen=True, slots=True)
class _Shifts:
    """One integer with discrete Gaussian noise, moved by up to ``shift``: the worst of all shifts."""

    noise: DiscreteGaussian
    shift: int

    def epsilon(self, delta: Number) -> Bracket:
        spare = _spare(delta, Fraction(0))
        if spare == 0:
            raise _no_finite_epsilon()
        rho = ZeroConcentratedDP(Fraction(self.shift**2) / (2 * self.noise.sigma_squared))
        low, high = 0.0, float_up(approx_from_zcdp(rho, spare).epsilon)
        under, over, target = low, high, float_down(spare)
        for _ in range(_ITERATIONS):
            middle = (low + high) / 2
            found = self.delta(middle)
            under, over = (middle if found.lower > spare else under), (middle if found.upper <= target else over)
            low, high = (middle, high) if found.lower > spare else (low, middle)
        return Bracket(under, over)

    def delta(self, epsilon: Number) -> Bracket:
        loss = _loss(epsilon)
        if loss > _LEAST_LOSS:
            return gaussian_delta(self.noise, self.shift, loss)
        # delta(0) <= delta(epsilon) + e^epsilon - 1
        near = gaussian_delta(self.noise, self.shift, _LEAST_LOSS)
        return Bracket(near.lower, min(math.nextafter(near.upper + 2 * float(_LEAST_LOSS), 1.0), 1.0))


@dataclass(frozen=True, slots=True)
class _FixedSample:
    """A sample of fixed size, one unit replaced: delta'(ln(1 + q (e^epsilon - 1))) <= q delta(epsilon).

    Balle, Barthe, Gaboardi (2018), Theorem 9, for every mechanism. Below it claims nothing.
    """

    whole: Curve
    rate: Fraction

    def epsilon(self, delta: Number) -> Bracket:
        spare = _spare(delta, Fraction(0)) / self.rate
        if spare >= 1:
            return Bracket(0.0, 0.0)
        inner = Fraction(self.whole.epsilon(spare).upper)
        if inner > HUGE:
            return Bracket(0.0, float_up(inner))
        return Bracket(0.0, float_up(min(log_up(1 + self.rate * (exp_up(inner) - 1)), inner)))

    def delta(self, epsilon: Number) -> Bracket:
        loss = _loss(epsilon)
        grown = max(exp_down(loss) - 1, Fraction(0)) if loss <= HUGE else Fraction(0)
        inner = max(log_down(1 + grown / self.rate), loss)
        return Bracket(0.0, float_up(self.rate * Fraction(self.whole.delta(inner).upper)))


@dataclass(frozen=True, slots=True)
class _Converted:
    """Where there is no pair: what the exact costs imply. Proved above; below it claims nothing."""

    profile: Profile

    def epsilon(self, delta: Number) -> Bracket:
        spare, pure = _spare(delta, self.profile.delta), self.profile.epsilon
        if spare == 0 and pure is None:
            raise _no_finite_epsilon()
        found = [] if pure is None else [pure]
        if spare > 0:
            found.append(approx_from_zcdp(ZeroConcentratedDP(self.profile.rho), spare).epsilon)
        return Bracket(0.0, float_up(min(found)))

    def delta(self, epsilon: Number) -> Bracket:
        loss, pure = _loss(epsilon), self.profile.epsilon
        found = [guaranteed_delta(ZeroConcentratedDP(self.profile.rho), loss).delta]
        if pure is not None:
            found.append(guaranteed_delta(PureDP(pure), loss).delta)
        return Bracket(0.0, float_up(min(min(found) + self.profile.delta, Fraction(1))))


def _spare(delta: Number, own: Fraction) -> Fraction:
    """What is left of delta when the events' own are paid."""
    asked = to_fraction("delta", delta)
    if not 0 <= asked < 1:
        raise InvalidNumber(f"delta = {asked}.", allowed="0 or greater, and less than 1")
    if asked < own:
        raise InvalidNumber(
            f"delta = {float(asked):.6g}, and the events spend {float(own):.6g} of their own.",
            allowed="at least what the events spend of their own",
            remedy="Ask for a larger delta.",
        )
    left = asked - own
    if 0 < left < _SMALLEST:
        raise InvalidNumber(f"A delta of {float(left):.6g}.", allowed="0, or at least 1e-300")
    return left


def _loss(epsilon: Number) -> Fraction:
    asked = to_fraction("epsilon", epsilon)
    if asked < 0:
        raise InvalidNumber(f"epsilon = {asked}.", allowed="0 or greater")
    return asked


def _added(found: Bracket, own: Fraction) -> Bracket:
    lower, upper = Fraction(found.lower) + own, Fraction(found.upper) + own
    return Bracket(float_down(min(lower, Fraction(1))), float_up(min(upper, Fraction(1))))


def _no_finite_epsilon() -> InvalidNumber:
    return InvalidNumber(
        "No epsilon holds at this delta: some noise of the plan has no largest loss.", allowed="a delta greater than 0"
    )


def _lone_shift(event: Event) -> int | None:
    """By how much the one integer of an event with discrete Gaussian noise can move, if that has no one pair."""
    if not isinstance(event, AdditiveNoise) or not isinstance(event.noise, DiscreteGaussian) or event.cells != 1:
        return None
    value = math.floor(event.distance.value)
    shift = {Norm.LINF: value, Norm.L1: 0, Norm.L2: math.isqrt(value)}[event.distance.norm]
    return shift if shift > 1 or (shift and event.noise.sigma_squared > MOST_VARIANCE) else None
