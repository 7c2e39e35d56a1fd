# SPDX-License-Identifier: Apache-2.0
"""Privacy curves that need no numerical privacy loss distribution.

They are closed forms, searches or conversions; ``curve`` chooses among them. Proof:
closed.proof.md.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from sfumato.accounting.amplify import shuffled, shuffled_delta
from sfumato.accounting.delta import delta_at as guaranteed_delta
from sfumato.accounting.divergence import HUGE
from sfumato.accounting.gaussian import gaussian_delta
from sfumato.accounting.normal import normal_excess
from sfumato.accounting.own_delta import NONE, OwnDelta
from sfumato.accounting.profile import Profile
from sfumato.accounting.renyi import delta_from_renyi, epsilon_from_renyi
from sfumato.accounting.zcdp import approx_from_zcdp
from sfumato.errors import InvalidNumber
from sfumato.exact.bracket import Bounds, Bracket
from sfumato.exact.rational import Number, to_fraction
from sfumato.exact.rounding import (
    exp_down,
    exp_up,
    float_down,
    float_up,
    log_down,
    log_up,
    sqrt_down,
    sqrt_up,
)
from sfumato.noise import DiscreteGaussian
from sfumato.privacy.event import Event, Shuffled
from sfumato.privacy.guarantee import PureDP, ZeroConcentratedDP

_SMALLEST = Fraction(1, 10**300)
_ITERATIONS = 60
_LEAST_LOSS = Fraction(1, 10**12)


class Curve(Protocol):
    """The privacy curve of a plan: proved bounds of the least epsilon at a delta, and the reverse.

    A lower bound is the loss of neighbours that exist; None if none is known.
    """

    def epsilon(self, delta: Number) -> Bounds:
        """Returns bounds of the least epsilon at ``delta``, 0 <= delta < 1."""
        ...

    def delta(self, epsilon: Number) -> Bounds:
        """Returns bounds of the least delta at ``epsilon`` >= 0."""
        ...


class Estimated(Curve, Protocol):
    """A curve that also estimates epsilon quickly, to start a search."""

    def roughly(self, delta: Number) -> float: ...


@dataclass(frozen=True, slots=True)
class Normal:
    """The curve of Gaussian mechanisms only: mu-GDP, where mu^2 is the sum over all of them.

    ``squared`` is mu^2, ``own`` the deltas that events spend themselves. ``reached``: whether
    neighbours exist that attain both. Source: Dong, Roth, Su 2022; Balle and Wang 2018.
    """

    squared: Fraction
    own: OwnDelta = NONE
    reached: bool = True

    def epsilon(self, delta: Number) -> Bounds:
        spare, most = spare_of(delta, self.own)
        if not self.squared:
            return _shown(0.0, 0.0, reached=self.reached)
        if spare == 0:
            raise no_finite_epsilon()
        mu = sqrt_up(self.squared)
        high = mu * mu / 2 + mu * sqrt_up(Fraction(2 * math.log(1 / float(spare)) + 1))
        under, over = 0.0, 0.0
        if self.curve(Fraction(0))[1] > spare:
            under, over = _searched(self.curve, high, spare)
        return _shown(under if most == spare else 0.0, over, reached=self.reached)

    def delta(self, epsilon: Number) -> Bounds:
        lower, upper = self.curve(loss_of(epsilon)) if self.squared else (Fraction(0), Fraction(0))
        return self.own.added(_shown(float_down(lower), float_up(upper), reached=self.reached))

    def curve(self, epsilon: Fraction) -> tuple[Fraction, Fraction]:
        """Returns bounds of delta: P(Z > a) - e^epsilon P(Z > b), which grows with mu.

        a = epsilon/mu - mu/2, b = epsilon/mu + mu/2.
        """
        down, up = sqrt_down(self.squared), sqrt_up(self.squared)
        lower = (
            normal_excess(epsilon / down - down / 2, epsilon / down + down / 2)[0]
            if down
            else Fraction(0)
        )
        upper = normal_excess(epsilon / up - up / 2, epsilon / up + up / 2)[1]
        return max(lower, Fraction(0)), min(max(upper, Fraction(0)), Fraction(1))


@dataclass(frozen=True, slots=True)
class Once:
    """The curve of one release of Gaussian noise on a Poisson sample, from the curve without
    sampling.

    It is the larger delta of both directions (a removed and an added unit).

    Guarantees:
        one sample of gaussian noise has its closed form
    """

    whole: Normal
    rate: Fraction

    def epsilon(self, delta: Number) -> Bounds:
        spare, _ = spare_of(delta, NONE)
        if spare == 0:
            raise no_finite_epsilon()
        if self._curve(Fraction(0))[1] <= spare:
            return Bracket(0.0, 0.0)
        return Bracket(*_searched(self._curve, Fraction(self.whole.epsilon(spare).upper), spare))

    def delta(self, epsilon: Number) -> Bounds:
        lower, upper = self._curve(loss_of(epsilon))
        return Bracket(float_down(lower), float_up(upper))

    def _curve(self, epsilon: Fraction) -> tuple[Fraction, Fraction]:
        """Bounds of the curve, which falls with e^epsilon, so that rounding that bounds it."""
        if epsilon > HUGE:
            return Fraction(0), self.rate * self.whole.curve(epsilon)[1]
        most, least = max(exp_down(epsilon), Fraction(1)), exp_up(epsilon)
        return max(way[0] for way in self._ways(least)), max(way[1] for way in self._ways(most))

    def _ways(self, odds: Fraction) -> list[tuple[Fraction, Fraction]]:
        """The deltas for a unit removed and for one added, at given odds."""
        ways = [(self.rate, 1 + (odds - 1) / self.rate)]
        rest = 1 - odds * (1 - self.rate)
        if rest > 0:
            ways.append((rest, odds * self.rate / rest))
        return [
            (
                share * self.whole.curve(log_up(inner))[0],
                share * self.whole.curve(log_down(inner))[1],
            )
            for share, inner in ways
        ]


@dataclass(frozen=True, slots=True)
class Shifts:
    """The privacy curve of an integer with discrete Gaussian noise, which a unit changes by at most
    ``shift``.

    It is the worst curve over all changes up to ``shift``.
    """

    noise: DiscreteGaussian
    shift: int

    def epsilon(self, delta: Number) -> Bounds:
        spare, _ = spare_of(delta, NONE)
        if spare == 0:
            raise no_finite_epsilon()
        rho = ZeroConcentratedDP(Fraction(self.shift**2) / (2 * self.noise.sigma_squared))
        low, high = 0.0, float_up(approx_from_zcdp(rho, spare).epsilon)
        under, over, target = low, high, float_down(spare)
        for _ in range(_ITERATIONS):
            middle = (low + high) / 2
            reading = self._delta(middle)
            under, over = (
                (middle if reading.lower > spare else under),
                (middle if reading.upper <= target else over),
            )
            low, high = (middle, high) if reading.lower > spare else (low, middle)
        return Bracket(under, over)

    def delta(self, epsilon: Number) -> Bounds:
        return self._delta(epsilon)

    def _delta(self, epsilon: Number) -> Bracket:
        loss = loss_of(epsilon)
        if loss > _LEAST_LOSS:
            return gaussian_delta(self.noise, self.shift, loss)
        # delta(0) <= delta(epsilon) + e^epsilon - 1
        near = gaussian_delta(self.noise, self.shift, _LEAST_LOSS)
        return Bracket(
            near.lower, min(math.nextafter(near.upper + 2 * float(_LEAST_LOSS), 1.0), 1.0)
        )


@dataclass(frozen=True, slots=True)
class Reports:
    """The privacy curve of shuffled reports: its upper bound hides one report among clones, its
    lower bound counts the answers yes.
    """

    event: Shuffled

    def epsilon(self, delta: Number) -> Bounds:
        return shuffled(self.event, delta)

    def delta(self, epsilon: Number) -> Bounds:
        return shuffled_delta(self.event, epsilon)


@dataclass(frozen=True, slots=True)
class FixedSize:
    """The privacy curve of a mechanism on a random sample of fixed size under replace-one.

    delta'(ln(1 + q (e^epsilon - 1))) <= q delta(epsilon), where q is the ``rate`` and delta the
    curve ``whole`` without sampling: Balle, Barthe, Gaboardi (2018), Theorem 9, for every
    mechanism. With noise on a sum it is an equality (``reached``), since all other units may equal
    the replacement; otherwise there is no lower bound.
    """

    whole: Curve
    rate: Fraction
    reached: bool = False

    def epsilon(self, delta: Number) -> Bounds:
        spare = spare_of(delta, NONE)[0] / self.rate
        if spare >= 1:
            return Bounds(0.0 if self.reached else None, 0.0)
        whole = self.whole.epsilon(spare)
        inner = Fraction(whole.upper)
        upper = inner if inner > HUGE else min(log_up(1 + self.rate * (exp_up(inner) - 1)), inner)
        if not self.reached or whole.lower is None:
            return Bounds(None, float_up(upper))
        least = min(Fraction(whole.lower), Fraction(HUGE))
        return Bounds(
            max(float_down(log_down(1 + self.rate * (exp_down(least) - 1))), 0.0), float_up(upper)
        )

    def delta(self, epsilon: Number) -> Bounds:
        loss = loss_of(epsilon)
        grown = max(exp_down(loss) - 1, Fraction(0)) if loss <= HUGE else Fraction(0)
        inner = max(log_down(1 + grown / self.rate), loss)
        upper = float_up(self.rate * Fraction(self.whole.delta(inner).upper))
        if not self.reached or loss > HUGE:
            return Bounds(None, upper)
        lower = self.whole.delta(log_up(1 + (exp_up(loss) - 1) / self.rate)).lower
        return Bounds(None if lower is None else float_down(self.rate * Fraction(lower)), upper)


@dataclass(frozen=True, slots=True)
class Between:
    """A curve whose upper bounds come from one curve and whose lower bounds come from another.

    The upper bounds are those of the worst pairs, which no neighbours attain, the lower bounds
    those of neighbours that exist.
    """

    above: Estimated
    below: Curve

    def roughly(self, delta: Number) -> float:
        """Returns a quick estimate of the upper bound of epsilon at ``delta``."""
        return self.above.roughly(delta)

    def epsilon(self, delta: Number) -> Bounds:
        return Bounds(self.below.epsilon(delta).lower, self.above.epsilon(delta).upper)

    def delta(self, epsilon: Number) -> Bounds:
        return Bounds(self.below.delta(epsilon).lower, self.above.delta(epsilon).upper)


@dataclass(frozen=True, slots=True)
class Least:
    """The privacy curve of a plan for which several upper bounds are proved: the least of them.

    It has no lower bound.
    """

    curves: tuple[Curve, ...]

    def epsilon(self, delta: Number) -> Bounds:
        return Bounds(None, min(curve.epsilon(delta).upper for curve in self.curves))

    def delta(self, epsilon: Number) -> Bounds:
        return Bounds(None, min(curve.delta(epsilon).upper for curve in self.curves))


@dataclass(frozen=True, slots=True)
class Converted:
    """The privacy curve that the cost of an event (``account``) implies; it has no lower bound.

    Used for events without a dominating pair.
    """

    profile: Profile

    def epsilon(self, delta: Number) -> Bounds:
        spare, pure = spare_of(delta, OwnDelta.of(self.profile.delta))[0], self.profile.epsilon
        if spare == 0 and pure is None:
            raise no_finite_epsilon()
        bounds = [] if pure is None else [pure]
        if spare > 0:
            bounds.append(approx_from_zcdp(ZeroConcentratedDP(self.profile.rho), spare).epsilon)
        return Bounds(None, float_up(min(bounds)))

    def delta(self, epsilon: Number) -> Bounds:
        loss, pure = loss_of(epsilon), self.profile.epsilon
        bounds = [guaranteed_delta(ZeroConcentratedDP(self.profile.rho), loss).delta]
        if pure is not None:
            bounds.append(guaranteed_delta(PureDP(pure), loss).delta)
        return OwnDelta.of(self.profile.delta).added(Bounds(None, float_up(min(bounds))))


@dataclass(frozen=True, slots=True)
class Diverging:
    """The privacy curve that the Renyi divergences of an event imply; it has no lower bound."""

    event: Event

    def epsilon(self, delta: Number) -> Bounds:
        spare, _ = spare_of(delta, NONE)
        if spare == 0:
            raise no_finite_epsilon()
        return Bounds(None, float_up(epsilon_from_renyi(self.event, spare)))

    def delta(self, epsilon: Number) -> Bounds:
        return Bounds(None, float_up(delta_from_renyi(self.event, epsilon)))


def _searched(
    curve: Callable[[Fraction], tuple[Fraction, Fraction]], high: Fraction, spare: Fraction
) -> tuple[float, float]:
    """Two epsilons that bracket a delta, up to ``high``: above ``spare`` at the first, not at the
    second.
    """
    low = under = Fraction(0)
    over = high
    for _ in range(_ITERATIONS):
        middle = Fraction(float((low + high) / 2))
        lower, upper = curve(middle)
        under, over = (middle if lower > spare else under), (middle if upper <= spare else over)
        if lower > spare:
            low = middle
        else:
            high = middle
    return float_down(under), float_up(over)


def spare_of(delta: Number, own: OwnDelta) -> tuple[Fraction, Fraction]:
    """Returns the part of a target delta that remains after the deltas that the events themselves
    spend, rounded down and rounded up.
    """
    stated_delta = to_fraction("delta", delta)
    if not 0 <= stated_delta < 1:
        raise InvalidNumber(f"delta = {stated_delta}.", allowed="0 or greater, and less than 1")
    if stated_delta < own.upper:
        raise InvalidNumber(
            f"delta = {float(stated_delta):.6g}, and the events spend {float(own.upper):.6g} of "
            "their own.",
            allowed="at least what the events spend of their own",
            remedy="Ask for a larger delta.",
        )
    left = own.left(stated_delta)
    if 0 < left[0] < _SMALLEST:
        raise InvalidNumber(f"A delta of {float(left[0]):.6g}.", allowed="0, or at least 1e-300")
    return left


def loss_of(epsilon: Number) -> Fraction:
    """Returns the epsilon of a request as a Fraction; raises an error for an invalid one."""
    asked = to_fraction("epsilon", epsilon)
    if asked < 0:
        raise InvalidNumber(f"epsilon = {asked}.", allowed="0 or greater")
    return asked


def no_finite_epsilon() -> InvalidNumber:
    """Returns the error for noise with unbounded loss at delta = 0."""
    return InvalidNumber(
        "No epsilon holds at this delta: some noise of the plan has no largest loss.",
        allowed="a delta greater than 0",
        remedy='State a delta, such as "1e-7", or use Laplace noise.',
    )


def _shown(lower: float, upper: float, *, reached: bool) -> Bounds:
    """Bounds whose lower end is kept only if neighbours attain it."""
    return Bracket(lower, upper) if reached else Bounds(None, upper)
