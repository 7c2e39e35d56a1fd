# SPDX-License-Identifier: Apache-2.0
"""Exact noise added to exact integers.

Source: Dwork and Roth (2014), sections 3.3 and 3.5.3, on the integers: Ghosh, Roughgarden,
Sundararajan (2009); Canonne, Kamath, Steinke (2020). Proof: additive.proof.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sfumato.errors import InvalidDeclaration
from sfumato.exact.rational import Number, positive
from sfumato.noise import SYSTEM, DiscreteGaussian, DiscreteLaplace, Entropy, Noise
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import AdditiveNoise

_NORM = {DiscreteLaplace: Norm.L1, DiscreteGaussian: Norm.L2}


@dataclass(frozen=True, slots=True)
class AdditiveMechanism:
    """Adds independent draws of ``noise`` to integers.

    Guarantees:
        the event names the very noise that is drawn
        a mechanism takes only its own norm
        the error covers as often as stated

    >>> mechanism = laplace(Distance(Norm.L1, Fraction(1)), epsilon="0.5")
    >>> mechanism.noise
    DiscreteLaplace(scale=Fraction(2, 1))
    >>> mechanism.release([10], drawn=[-3])
    (7,)
    """

    noise: Noise

    def event(self, distance: Distance) -> AdditiveNoise:
        """What happens to data whose neighbours are at most ``distance`` apart."""
        expected = _NORM[type(self.noise)]
        if distance.norm is not expected:
            raise InvalidDeclaration(
                f"{type(self.noise).__name__} on a statistic bounded in {distance.norm.value}.",
                allowed=f"a statistic bounded in {expected.value}",
            )
        return AdditiveNoise(self.noise, distance)

    def draw(self, cells: int, entropy: Entropy = SYSTEM) -> tuple[int, ...]:
        """The noise of ``cells`` integers."""
        return tuple(self.noise.sample(cells, entropy).tolist())

    def release(self, exact: Sequence[int], drawn: Sequence[int] | None = None) -> tuple[int, ...]:
        """Exact integers plus noise. ``drawn``: the noise, where it was drawn before the read."""
        noise = self.draw(len(exact)) if drawn is None else drawn
        return tuple(value + extra for value, extra in zip(exact, noise, strict=True))

    def error(self, confidence: Number) -> int:
        """The smallest h with P(|noise| <= h) >= confidence."""
        return self.noise.half_width(confidence)


def laplace(distance: Distance, epsilon: Number) -> AdditiveMechanism:
    """Discrete Laplace noise of scale sensitivity / epsilon: epsilon-DP (L1)."""
    mechanism = AdditiveMechanism(DiscreteLaplace(distance.value / positive("epsilon", epsilon)))
    mechanism.event(distance)
    return mechanism


def gaussian(distance: Distance, rho: Number) -> AdditiveMechanism:
    """Discrete Gaussian noise of sigma^2 = sensitivity^2 / (2 rho): rho-zCDP (L2)."""
    sigma_squared: Fraction = distance.value / (2 * positive("rho", rho))
    mechanism = AdditiveMechanism(DiscreteGaussian(sigma_squared=sigma_squared))
    mechanism.event(distance)
    return mechanism
