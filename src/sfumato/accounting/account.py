# SPDX-License-Identifier: Apache-2.0
"""What an event costs: one dispatch table; an unknown event raises.

Proof: account.proof.md.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from sfumato.accounting.convert import zcdp_from_pure
from sfumato.errors import InvalidDeclaration
from sfumato.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.privacy.distance import Norm
from sfumato.privacy.event import AdditiveNoise, Composed, Event
from sfumato.privacy.guarantee import PureDP


@dataclass(frozen=True, slots=True)
class Profile:
    """The exact cost of an event in the measures that the gates add up.

    ``epsilon`` is its pure loss, None where it has none (Gaussian noise); ``rho`` its zCDP;
    ``delta`` what it spends of its own.
    """

    epsilon: Fraction | None
    rho: Fraction
    delta: Fraction = Fraction(0)


def account(event: Event) -> Profile:
    """The cost of an event, exact.

    Guarantees:
        laplace costs its sensitivity over its scale
        gaussian costs its squared sensitivity over twice its variance
        composition adds
        an event without a rule raises

    >>> from sfumato.privacy import Distance, Norm
    >>> account(AdditiveNoise(DiscreteLaplace(10), Distance(Norm.L1, Fraction(1)))).epsilon
    Fraction(1, 10)
    """
    rule = _EVENTS.get(type(event))
    if rule is None:
        raise _no_rule(event)
    return rule(event)


def _additive(event: AdditiveNoise) -> Profile:
    noise, distance = event.noise, event.distance
    if isinstance(noise, DiscreteLaplace) and distance.norm is Norm.L1:
        epsilon = distance.value / noise.scale
        return Profile(epsilon, zcdp_from_pure(PureDP(epsilon)).rho)
    if isinstance(noise, DiscreteGaussian) and distance.norm is Norm.L2:
        return Profile(None, distance.value / (2 * noise.sigma_squared))
    raise _no_rule(event)


def _composed(event: Composed) -> Profile:
    parts = [account(each) for each in event.events]
    pure = [part.epsilon for part in parts if part.epsilon is not None]
    return Profile(
        sum(pure, Fraction(0)) if len(pure) == len(parts) else None,
        sum((part.rho for part in parts), Fraction(0)),
        sum((part.delta for part in parts), Fraction(0)),
    )


_EVENTS: dict[type, Callable[..., Profile]] = {AdditiveNoise: _additive, Composed: _composed}


def _no_rule(event: object) -> InvalidDeclaration:
    return InvalidDeclaration(
        f"The accountant has no rule for {event!r}.",
        allowed="discrete Laplace under an L1 sensitivity, discrete Gaussian under an L2 one, and their composition",
    )
