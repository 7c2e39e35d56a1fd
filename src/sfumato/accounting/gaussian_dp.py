# SPDX-License-Identifier: Apache-2.0
"""The mu of Gaussian differential privacy, for events for which one is proved.

Discrete Gaussian noise is not among them: its trade-off curve is not that of the continuous
Gaussian, so ``GaussianDP`` of sensitivity over sigma would be too optimistic (RULES 20). Its mu is
the largest Phi^-1(P(X < t)) - Phi^-1(P(X < t - 1)) over all integers t, times the L2 sensitivity;
each t can be bounded, but it is not proved here that distant t are smaller, so it is refused.
Proof: gaussian_dp.proof.md.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from sfumato.accounting.account import account, check_relations
from sfumato.accounting.convert import gaussian_from_pure, gaussian_from_range
from sfumato.errors import InvalidDeclaration
from sfumato.noise import RoundedGaussian
from sfumato.privacy.event import (
    AdditiveNoise,
    BoundedRange,
    Composed,
    ContinuousLaw,
    ContinuousNoise,
    Event,
    Group,
    Nonadaptive,
    Repeated,
    Rule,
    Selection,
    Stream,
)
from sfumato.privacy.guarantee import BoundedRangeDP, PureDP


def mu_squared(event: Event) -> Fraction:
    """Returns mu^2 such that the event is mu-GDP: exact for continuous Gaussian noise, else rounded
    up.

    Rounded Gaussian noise has the mu of the continuous noise that it is a function of.

    Guarantees:
        no event is easier to see than its mu says

    Raises:
        InvalidDeclaration: neighbour relations are mixed, or an event has no proved mu, such as
            discrete Gaussian noise, Gaussian noise on a sample, or an event that spends delta.

    >>> from sfumato.privacy import Distance, Norm
    >>> one = Distance(Norm.L2, Fraction(1))
    >>> noise = ContinuousNoise(ContinuousLaw.GAUSSIAN, Fraction(20), one)
    >>> mu_squared(Repeated(noise, 400))
    Fraction(1, 1)
    """
    check_relations(event)
    return _of(event)


def _of(event: Event) -> Fraction:
    return _RULES.get(type(event), _pure)(event)


def _pure(event: Event) -> Fraction:
    profile = account(event)
    if profile.epsilon is None or profile.delta > 0:
        raise InvalidDeclaration(
            f"No mu is proved for {type(event).__name__} with this noise.",
            allowed="pure events, bounded ranges, continuous Gaussian noise, and what they "
            "compose to",
            remedy="Use a ConcentratedFilter or a RenyiFilter for it.",
        )
    return gaussian_from_pure(PureDP(profile.epsilon)).mu_squared


def _continuous(event: ContinuousNoise) -> Fraction:
    if event.law is ContinuousLaw.GAUSSIAN:
        return event.distance.value / event.scale**2
    return _pure(event)


def _additive(event: AdditiveNoise) -> Fraction:
    if isinstance(event.noise, RoundedGaussian):
        return 2 * account(event).rho
    return _pure(event)


def _selection(event: Selection) -> Fraction:
    profile = account(event)
    if event.rule is Rule.EXPONENTIAL and profile.epsilon is not None:
        return gaussian_from_range(BoundedRangeDP(profile.epsilon)).mu_squared
    return _pure(event)


_RULES: Mapping[type, Callable[[Any], Fraction]] = {
    AdditiveNoise: _additive,
    ContinuousNoise: _continuous,
    Selection: _selection,
    BoundedRange: lambda event: gaussian_from_range(BoundedRangeDP(event.eta)).mu_squared,
    Stream: lambda event: _of(event.noise),
    Group: lambda event: event.size**2 * _of(event.event),
    Composed: lambda event: sum((_of(part) for part in event.events), Fraction(0)),
    Repeated: lambda event: event.times * _of(event.event),
    Nonadaptive: lambda event: _of(event.event),
}
