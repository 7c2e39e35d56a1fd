# SPDX-License-Identifier: Apache-2.0
"""Renyi divergences of events: an upper bound at any order, and the epsilon that follows.

They compose adaptively at a fixed order (``odometer.RenyiFilter``). Events without a sharper rule
here are bounded by their pure or zCDP cost (``account``). Proof: renyi.proof.md.
"""

import math
from collections.abc import Callable, Mapping
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any

from sfumato.accounting.account import account, check_relations
from sfumato.accounting.convert import approx_from_pure, approx_from_renyi
from sfumato.accounting.decimals import DOWN, ONE, UP, above, exp_above, exp_below, log_above
from sfumato.accounting.delta import delta_at
from sfumato.accounting.divergence import (
    HUGE,
    laplace_divergence,
    pure_divergence,
    range_divergence,
    response_divergence,
)
from sfumato.accounting.group import for_group
from sfumato.accounting.profile import Profile
from sfumato.accounting.zcdp import conversion_cost
from sfumato.errors import InvalidDeclaration, shown
from sfumato.exact.rational import Number, positive
from sfumato.exact.rounding import log_down, log_up
from sfumato.noise import DiscreteGaussian, DiscreteLaplace, RoundedGaussian
from sfumato.privacy.distance import Norm
from sfumato.privacy.event import (
    AdditiveNoise,
    BestOf,
    BoundedRange,
    Composed,
    ContinuousLaw,
    ContinuousNoise,
    Event,
    FixedSample,
    Group,
    Nonadaptive,
    PoissonSample,
    RandomizedResponse,
    Repeated,
    Rule,
    Sampled,
    Selection,
)
from sfumato.privacy.guarantee import PureDP, RenyiDP
from sfumato.privacy.unit import Relation

# The largest order of a sum over the binomial of a sample, which has as many terms; above it
# sampling is ignored.
_LARGEST_SUM = 2048
# Orders near 1 for large losses, eighths up to 3, then integers 12% apart; any grid is sound.
_ORDERS = tuple(
    sorted(
        {1 + Fraction(1, 2**power) for power in range(2, 24)}
        | {1 + Fraction(eighth, 8) for eighth in range(1, 16)}
        | {Fraction(round(2 ** (step / 6))) for step in range(9, 150)}
    )
)
# Finite differences of a higher order have no correct digit left of 36.
_LARGEST_DIFFERENCE = 64
_PATIENCE = 6
# The orders at which the best of several runs compares the tails of two neighbours.
_SECOND_ORDERS = tuple(
    sorted({Fraction(round(2 ** (step / 4))) for step in range(4, 40)}),
)
_REFINEMENTS = 4


def renyi(event: Event, order: Number) -> Fraction:
    """Returns an upper bound of an event's Renyi divergence of an order, for all neighbours.

    Guarantees:
        laplace has its exact renyi divergence
        randomised response has its exact renyi divergence
        a poisson sample costs at most its binomial sum
        a fixed sample costs at most its binomial sum
        a poisson sample of any event is amplified
        renyi divergences of a composition add
        an order between two integers is interpolated
        the best of runs costs at most its bound

    Raises:
        InvalidNumber: the order is 1 or less.
        InvalidDeclaration: neighbour relations are mixed, an event has no rule, or it spends delta
            itself, so that its divergence is infinite.

    >>> from sfumato.privacy import Distance
    >>> gaussian = AdditiveNoise(DiscreteGaussian(10), Distance(Norm.L2, Fraction(1)))
    >>> renyi(gaussian, 8)
    Fraction(1, 25)
    >>> round(float(renyi(Sampled(PoissonSample(Fraction(1, 100)), gaussian), 8)), 9)
    4.022e-06
    """
    check_relations(event)
    return bound(event, RenyiDP(order, 0).order)


def epsilon_from_renyi(event: Event, delta: Number) -> Fraction:
    """Returns the least epsilon at delta over a grid of Renyi orders; the pure one if smaller.

    >>> from sfumato.privacy import Distance
    >>> one = Distance(Norm.L2, Fraction(1))
    >>> step = ContinuousNoise(ContinuousLaw.GAUSSIAN, Fraction("1.1"), one)
    >>> run = Repeated(Sampled(PoissonSample(Fraction("0.01")), step), 1000)
    >>> round(float(epsilon_from_renyi(run, "1e-6")), 4)
    1.9814
    """
    slack = positive("delta", delta, at_most=Fraction(1))
    order = _best_order(lambda at: renyi(event, at) + conversion_cost(slack, at))
    epsilon = approx_from_renyi(RenyiDP(order, renyi(event, order)), slack).epsilon
    profile = profile_of(event)
    if profile is not None and profile.epsilon is not None and profile.delta == 0:
        epsilon = min(epsilon, approx_from_pure(PureDP(profile.epsilon), slack).epsilon)
    return epsilon


def delta_from_renyi(event: Event, epsilon: Number) -> Fraction:
    """Returns the least delta at epsilon over a grid of Renyi orders.

    >>> from sfumato.privacy import Distance
    >>> one = Distance(Norm.L2, Fraction(1))
    >>> step = ContinuousNoise(ContinuousLaw.GAUSSIAN, Fraction("1.1"), one)
    >>> run = Repeated(Sampled(PoissonSample(Fraction("0.01")), step), 1000)
    >>> f"{float(delta_from_renyi(run, 2)):.2g}"
    '8.5e-07'
    """
    loss = PureDP(epsilon).epsilon
    # the logarithm of delta at an order
    order = _best_order(
        lambda at: (at - 1) * (renyi(event, at) - loss + log_up(1 - 1 / at)) - log_down(at)
    )
    return delta_at(RenyiDP(order, renyi(event, order)), loss).delta


def _best_order(cost: Callable[[Fraction], Fraction]) -> Fraction:
    """A good order: up the grid while it improves, then bisecting around the best."""
    best, at, worse = cost(_ORDERS[0]), 0, 0
    for index, order in enumerate(_ORDERS[1:], start=1):
        if (here := cost(order)) < best:
            best, at, worse = here, index, 0
        else:
            worse += 1
        if worse > _PATIENCE:
            break
    chosen, step = _ORDERS[at], _ORDERS[min(at + 1, len(_ORDERS) - 1)] - _ORDERS[at]
    for _ in range(_REFINEMENTS):
        step /= 2
        for order in (chosen + step, max(chosen - step, (1 + chosen) / 2)):
            if (here := cost(order)) < best:
                best, chosen = here, order
    return chosen


def bound(event: Event, order: Fraction) -> Fraction:
    return _RULES.get(type(event), _profiled)(event, order)


def _profiled(event: Event, order: Fraction) -> Fraction:
    """The bound from the pure loss and the zCDP of an event."""
    return _from_profile(account(event), event, order)


def _from_profile(profile: Profile, event: Event, order: Fraction) -> Fraction:
    if profile.delta > 0:
        raise InvalidDeclaration(
            f"{type(event).__name__} spends delta of its own: with some probability nothing "
            "bounds its loss.",
            allowed="events whose own delta is 0",
            remedy="Use Gates, which count such deltas apart.",
        )
    concentrated = order * profile.rho
    if profile.epsilon is None:
        return concentrated
    return min(concentrated, pure_divergence(profile.epsilon, order))


def profile_of(event: Event) -> Profile | None:
    """Returns the exact cost of an event in the measures of a ledger account; None if no rule
    computes it.
    """
    try:
        return account(event)
    except InvalidDeclaration:
        return None


def _additive(event: AdditiveNoise, order: Fraction) -> Fraction:
    noise, distance = event.noise, event.distance
    if not isinstance(noise, DiscreteLaplace):
        return _profiled(event, order)
    if distance.norm is Norm.L1:
        return _laplace(noise.scale, math.floor(distance.value), order)
    if distance.norm is Norm.LINF and event.cells is not None:
        return event.cells * _laplace(noise.scale, math.floor(distance.value), order)
    return _profiled(event, order)


def _laplace(scale: Fraction, shift: int, order: Fraction) -> Fraction:
    return laplace_divergence(shift / scale, order, scale)


def _continuous(event: ContinuousNoise, order: Fraction) -> Fraction:
    if event.law is not ContinuousLaw.LAPLACE:
        return _profiled(event, order)
    return laplace_divergence(event.distance.value / event.scale, order)


def _response(event: RandomizedResponse, order: Fraction) -> Fraction:
    return response_divergence(event.epsilon, event.categories, order)


def _selection(event: Selection, order: Fraction) -> Fraction:
    profile = account(event)
    if event.rule is Rule.EXPONENTIAL and profile.epsilon is not None:
        return range_divergence(profile.epsilon, order)
    return _from_profile(profile, event, order)


def _ranged(event: BoundedRange, order: Fraction) -> Fraction:
    return range_divergence(event.eta, order)


def _composed(event: Composed, order: Fraction) -> Fraction:
    return sum((bound(part, order) for part in event.events), Fraction(0))


def _repeated(event: Repeated, order: Fraction) -> Fraction:
    return event.times * bound(event.event, order)


def _best_of(event: BestOf, order: Fraction) -> Fraction:
    """The bound of Papernot and Steinke (2022), Theorem 2, at the best second order of a grid."""
    profile = profile_of(event)
    pure = None if profile is None else _from_profile(profile, event, order)
    runs, chosen = _dearest(event, order), (1 + event.shape) * _second(event)
    found = runs + chosen + log_up(event.law.mean.upper) / (order - 1)
    return found if pure is None else min(found, pure)


def _dearest(event: BestOf, order: Fraction) -> Fraction:
    """The bound of the dearest of the runs."""
    return max(bound(part, order) for part in event.events)


# cached, since it is the same at every order
@lru_cache(maxsize=256)
def _second(event: BestOf) -> Fraction:
    """(1 - 1/b) D_b + ln(1/stop) / b at the best of some orders b."""
    longest = log_up(1 / event.stop)
    found: list[Fraction] = []
    for at in _SECOND_ORDERS:
        found.append((1 - 1 / at) * _dearest(event, at) + longest / at)
        if len(found) - found.index(min(found)) > _PATIENCE:
            break
    return min(found)


def _group(event: Group, order: Fraction) -> Fraction:
    """The bound from the profile, if there is one, and from a larger order by Hoelder's
    inequality.
    """
    if event.size == 1:
        return bound(event.event, order)
    profile = profile_of(event)
    bounds = [] if profile is None else [_from_profile(profile, event, order)]
    larger = Fraction(math.ceil(1 / -math.expm1(math.log1p(-1 / float(order)) / event.size)))
    if larger <= _LARGEST_SUM:
        grown = for_group(RenyiDP(larger, bound(event.event, larger)), event.size)
        bounds += [grown.epsilon] if grown.order >= order else []
    if not bounds:
        raise InvalidDeclaration(
            f"No Renyi bound of {shown(event)} at order {order}.",
            allowed="a smaller group or order",
        )
    return min(bounds)


def _sampled(event: Sampled, order: Fraction) -> Fraction:
    """The least of the unamplified bound, the amplified pure loss, and the binomial sums."""
    inner, design = event.event, event.design
    if not isinstance(design, PoissonSample | FixedSample):
        return _profiled(event, order)
    if isinstance(design, PoissonSample) and design.relation is Relation.REPLACE_ONE:
        # replacing a unit is removing one and adding another
        return _group(Group(Sampled(PoissonSample(design.rate), inner), 2), order)
    whole = bound(inner, order)
    if design.rate == 1:
        return whole
    bounds = [whole]
    profile = profile_of(event)
    if profile is not None and profile.epsilon is not None:
        bounds.append(_from_profile(profile, event, order))
    low, high = _log_moment(event, math.floor(order)), _log_moment(event, math.ceil(order))
    if low is not None and high is not None:
        bounds.append((low + (order - math.floor(order)) * (high - low)) / (order - 1))
    return min(bounds)


def _mirrors(event: Event) -> bool:
    """Whether a reflection exchanges the distributions on two neighbours: one symmetric noise,
    shifted.
    """
    return isinstance(event, ContinuousNoise) or (
        isinstance(event, AdditiveNoise)
        and isinstance(event.noise, DiscreteGaussian | DiscreteLaplace | RoundedGaussian)
    )


def _log_moment(event: Sampled, order: int) -> Fraction | None:
    """An upper bound of (order - 1) times the divergence of an integer order, from a binomial
    sum.
    """
    if order == 1:
        return Fraction(0)
    both_ways = isinstance(event.design, PoissonSample) and not _mirrors(event.event)
    largest = (
        _LARGEST_SUM if _concentrated(event.event) else _LARGEST_SUM // (32 if both_ways else 8)
    )
    if order > largest or (order - 1) * bound(event.event, Fraction(order)) > HUGE:
        return None
    moments = _moments(event.event, order)
    total = _poisson(event.design.rate, moments)
    if isinstance(event.design, FixedSample):
        total = _fixed(event, moments)
    if both_ways:
        total = max(total, _added(event.design.rate, moments))
    return Fraction(log_above(total))


def _moments(event: Event, order: int) -> list[Decimal]:
    """Upper bounds of the mean of (P/Q)^k under Q, k = 0, ..., order: e^((k-1) D_k)."""
    moments = [Decimal(1), Decimal(1)]
    if _concentrated(event):
        return _growing(UP, exp_above(2 * account(event).rho), order)
    return moments + [_moment(event, k) for k in range(2, order + 1)]


# cached, since a search over orders needs the moments of all smaller ones at each
@lru_cache(maxsize=4096)
def _moment(event: Event, order: int) -> Decimal:
    """An upper bound of the mean of (P/Q)^order under Q."""
    return exp_above((order - 1) * bound(event, Fraction(order)))


def _growing(context: Context, square: Decimal, order: int) -> list[Decimal]:
    """The powers square^(k (k-1) / 2), k = 0, ..., order."""
    moments, growth = [ONE, ONE], square
    for _ in range(2, order + 1):
        moments.append(context.multiply(moments[-1], growth))
        growth = context.multiply(growth, square)
    return moments


def _triples(event: Event, order: int) -> dict[int, Decimal]:
    """Upper bounds of the integral of (P - Q)^k / R^(k-1), k = 2, ..., order, for Gaussian noise;
    else none.
    """
    if not _concentrated(event):
        return {}
    rho = account(event).rho
    bounds = {2: UP.multiply(Decimal(2), UP.subtract(exp_above(2 * rho), exp_below(rho)))}
    if order <= _LARGEST_DIFFERENCE:
        distances = _distances(rho, order)
        bounds |= {
            k: UP.multiply(Decimal(4 - 2 * (k % 2)), distances[k]) for k in range(3, order + 1)
        }
    return bounds


def _distances(rho: Fraction, order: int) -> list[Decimal]:
    """Upper bounds of the mean of |P/Q - 1|^k under Q, k = 0, ..., order: even ones are sums of
    moments.
    """
    most, least = (
        _growing(UP, exp_above(2 * rho), order + 1),
        _growing(DOWN, exp_below(2 * rho), order + 1),
    )
    even = []
    for k in range(0, order + 2, 2):
        over = under = Decimal(0)
        for i in range(0, k + 1, 2):
            over = UP.fma(Decimal(math.comb(k, i)), most[i], over)
        for i in range(1, k, 2):
            under = DOWN.fma(Decimal(math.comb(k, i)), least[i], under)
        even.append(max(UP.subtract(over, under), Decimal(0)))
    between = [
        UP.next_plus(UP.sqrt(UP.multiply(one, next_one))) for one, next_one in pairwise(even)
    ]
    return [even[k // 2] if k % 2 == 0 else between[k // 2] for k in range(order + 1)]


def _concentrated(event: Event) -> bool:
    """Whether the divergence of an event is its order times its rho."""
    continuous = isinstance(event, ContinuousNoise) and event.law is ContinuousLaw.GAUSSIAN
    return continuous or (
        isinstance(event, AdditiveNoise)
        and isinstance(event.noise, DiscreteGaussian | RoundedGaussian)
    )


def _poisson(rate: Fraction, moments: list[Decimal]) -> Decimal:
    """Sum over k of binomial(a, k) (1-q)^(a-k) q^k moment_k (Mironov, Talwar, Zhang 2019, Section
    3.3).
    """
    order = len(moments) - 1
    odds = above(rate / (1 - rate))
    weight = _power(above(1 - rate), order)
    total = Decimal(0)
    for k, moment in enumerate(moments):
        total = UP.fma(weight, moment, total)
        weight = UP.divide(
            UP.multiply(weight, UP.multiply(odds, Decimal(order - k))), Decimal(k + 1)
        )
    return total


def _added(rate: Fraction, moments: list[Decimal]) -> Decimal:
    """A bound for an added unit, for any event: the lesser of a binomial sum of first order and of
    a second moment.
    """
    order = len(moments) - 1
    growth = _power(above(1 / (1 - rate)), order + 1)
    spread = UP.multiply(above(rate**2 * order * (order - 1) / 2), UP.subtract(moments[2], ONE))
    return min(_poisson(rate, [ONE, *moments[2:]]), UP.fma(growth, spread, ONE))


def _fixed(event: Sampled, moments: list[Decimal]) -> Decimal:
    """1 + sum over k >= 2 of binomial(a, k) q^k b_k (Wang, Balle, Kasiviswanathan 2019, Theorem 9;
    here sharper).
    """
    order, rate = len(moments) - 1, above(event.design.rate)
    profile = profile_of(event.event)
    epsilon = None if profile is None else profile.epsilon
    spread = None if epsilon is None or epsilon > 1 else UP.subtract(exp_above(epsilon), ONE)
    weight, total, power = Decimal(1), Decimal(1), Decimal(1)
    triples = _triples(event.event, order)
    for k in range(1, order + 1):
        weight = UP.divide(
            UP.multiply(weight, UP.multiply(rate, Decimal(order - k + 1))), Decimal(k)
        )
        power = Decimal(2) if spread is None else UP.multiply(power, spread)
        bound = UP.multiply(moments[k], min(power, Decimal(2 - k % 2)))
        if k == 2:
            bound = min(bound, UP.multiply(Decimal(4), UP.subtract(moments[2], Decimal(1))))
        bound = min(bound, triples.get(k, bound))
        total = UP.fma(weight, bound, total) if k > 1 else total
    return total


def _power(base: Decimal, exponent: int) -> Decimal:
    result = Decimal(1)
    for bit in bin(exponent)[2:]:
        result = UP.multiply(result, result)
        result = UP.multiply(result, base) if bit == "1" else result
    return result


_RULES: Mapping[type, Callable[[Any, Fraction], Fraction]] = {
    AdditiveNoise: _additive,
    ContinuousNoise: _continuous,
    RandomizedResponse: _response,
    Selection: _selection,
    BoundedRange: _ranged,
    Composed: _composed,
    Repeated: _repeated,
    Nonadaptive: lambda event, order: bound(event.event, order),
    BestOf: _best_of,
    Group: _group,
    Sampled: _sampled,
}
