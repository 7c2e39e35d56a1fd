# SPDX-License-Identifier: Apache-2.0
"""Additive mechanisms: exact noise added to exact integers.

Source: Dwork and Roth (2014), sections 3.3 and 3.5.3, on the integers: Ghosh, Roughgarden,
Sundararajan (2009); Canonne, Kamath, Steinke (2020). Proof: additive.proof.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.accounting.gaussian import gaussian_for
from sfumato.errors import InvalidDeclaration
from sfumato.exact.rational import Number, positive
from sfumato.exact.rounding import sqrt_up
from sfumato.noise import (
    SYSTEM,
    DiscreteGaussian,
    DiscreteLaplace,
    DiscreteStaircase,
    Entropy,
    Integers,
    Noise,
    RoundedGaussian,
)
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import AdditiveNoise

# The sum of two integers below this fits an int64.
_ADDABLE = 2**62
_NORM = {
    DiscreteLaplace: Norm.L1,
    DiscreteGaussian: Norm.L2,
    RoundedGaussian: Norm.L2,
    DiscreteStaircase: Norm.LINF,
}


@dataclass(frozen=True, slots=True)
class AdditiveMechanism:
    """The mechanism that adds independent draws of ``noise`` to integers; ``cells`` is their
    number, if it is declared.

    Guarantees:
        the event names the very noise that is drawn
        noise is added to integers alone
        a mechanism takes only its own norm
        the error covers as often as stated

    >>> from fractions import Fraction
    >>> mechanism = laplace(Distance(Norm.L1, Fraction(1)), epsilon="0.5")
    >>> mechanism.noise
    DiscreteLaplace(scale=Fraction(2, 1))
    >>> mechanism.release([10], drawn=[-3])
    (7,)
    """

    noise: Noise
    cells: int | None = None

    def __post_init__(self) -> None:
        if type(self.noise) not in _NORM:
            raise InvalidDeclaration(
                f"{type(self.noise).__name__} alone is no mechanism.",
                allowed=", ".join(law.__name__ for law in _NORM),
            )

    @property
    def norm(self) -> Norm:
        """The norm in which the sensitivity of the statistic must be bounded."""
        return _NORM[type(self.noise)]

    def event(self, distance: Distance) -> AdditiveNoise:
        """Returns the event of a release whose sensitivity is ``distance``."""
        _require(distance, _NORM[type(self.noise)], type(self.noise).__name__)
        return AdditiveNoise(self.noise, distance, self.cells)

    def draw(self, cells: int, entropy: Entropy = SYSTEM) -> tuple[int, ...]:
        """Returns ``cells`` independent noise samples."""
        drawn = self.noise.sample(cells, entropy)
        return tuple(drawn.tolist())

    def release(self, exact: Sequence[int], drawn: Sequence[int] | None = None) -> tuple[int, ...]:
        """Returns exact integers plus noise; ``drawn`` is noise sampled before the data was read.

        Raises:
            InvalidDeclaration: a value is not an integer (integer noise would not hide its
                fraction), or the number of values is not the declared one.
        """
        if self.cells not in (None, len(exact)):
            raise InvalidDeclaration(
                f"{len(exact)} integers.", allowed=f"the declared {self.cells}"
            )
        values = [_integer(value) for value in exact]
        noise = self.draw(len(values)) if drawn is None else drawn
        return tuple(value + _integer(extra) for value, extra in zip(values, noise, strict=True))

    def release_many(self, exact: Integers, drawn: Integers | None = None) -> Integers:
        """Returns an int64 array of exact integers plus noise, as ``release``; Python integers if a
        sum may overflow 64 bits.

        Raises:
            InvalidDeclaration: as ``release``.
        """
        if exact.ndim != 1 or exact.dtype != np.int64 or self.cells not in (None, len(exact)):
            raise InvalidDeclaration(
                f"{exact.shape} of {exact.dtype}.", allowed="the declared number of int64"
            )
        noise = self.noise.sample(len(exact)) if drawn is None else drawn
        if noise.shape != exact.shape:
            raise InvalidDeclaration(
                f"Noise of {noise.shape} for {exact.shape} integers.", allowed="one each"
            )
        if noise.dtype != np.int64 or max(map(_reach, (exact, noise))) >= _ADDABLE:
            wide: Integers = exact.astype(object) + noise.astype(object)
            return wide
        return exact + noise

    def error(self, confidence: Number) -> int:
        """Returns the least h such that one noise sample is in -h to h with the given confidence."""
        return self.noise.half_width(confidence)


def laplace(distance: Distance, epsilon: Number) -> AdditiveMechanism:
    """The discrete Laplace mechanism: noise of scale sensitivity / epsilon, epsilon-DP (L1).

    Source: Dwork, McSherry, Nissim, Smith (2006); on the integers Ghosh, Roughgarden, Sundararajan
    (2009).

    Raises:
        InvalidDeclaration: the distance is not in L1, or is below one lattice step.
        InvalidNumber: epsilon is not above 0.

    >>> from fractions import Fraction
    >>> laplace(Distance(Norm.L1, Fraction(3)), epsilon="0.5").noise.scale
    Fraction(6, 1)
    """
    _require(distance, Norm.L1, "Laplace noise")
    scale = distance.value / positive("epsilon", epsilon)
    return AdditiveMechanism(DiscreteLaplace(scale))


def geometric(distance: Distance, epsilon: Number) -> AdditiveMechanism:
    """Returns the geometric mechanism: another name of ``laplace`` on the integers.

    For a single count it is optimal for every user at once among all epsilon-DP mechanisms (Ghosh,
    Roughgarden, Sundararajan 2009).

    >>> from fractions import Fraction
    >>> geometric(Distance(Norm.L1, Fraction(1)), epsilon=1).noise
    DiscreteLaplace(scale=Fraction(1, 1))
    """
    return laplace(distance, epsilon)


def gaussian(distance: Distance, rho: Number) -> AdditiveMechanism:
    """The discrete Gaussian mechanism: sigma^2 = sensitivity^2 / (2 rho), rho-zCDP (L2).

    Source: Canonne, Kamath, Steinke (2020), Theorem 14.

    Raises:
        InvalidDeclaration: the distance is not in L2, or is below one lattice step.
        InvalidNumber: rho is not above 0.

    >>> from fractions import Fraction
    >>> gaussian(Distance(Norm.L2, Fraction(4)), rho="0.5").noise.sigma_squared
    Fraction(4, 1)
    """
    _require(distance, Norm.L2, "Gaussian noise")
    sigma_squared = distance.value / (2 * positive("rho", rho))
    return AdditiveMechanism(DiscreteGaussian(sigma_squared=sigma_squared))


def rounded_gaussian(distance: Distance, multiplier: Number) -> AdditiveMechanism:
    """The rounded Gaussian mechanism: sigma is ``multiplier`` times the sensitivity (L2).

    Every guarantee of continuous Gaussian noise holds for it, also for vectors and on samples: the
    exact privacy curve, mu = 1 / multiplier and rho = 1 / (2 multiplier^2).

    Raises:
        InvalidDeclaration: the distance is not in L2, or is below one lattice step.
        InvalidNumber: sigma is below one lattice step.

    >>> from fractions import Fraction
    >>> rounded_gaussian(Distance(Norm.L2, Fraction(100)), multiplier=3).noise.sigma
    Fraction(30, 1)
    """
    _require(distance, Norm.L2, "Gaussian noise")
    return AdditiveMechanism(
        RoundedGaussian(sqrt_up(distance.value) * positive("multiplier", multiplier))
    )


def calibrated_gaussian(
    distance: Distance,
    epsilon: Number,
    delta: Number,
    cells: int | None = None,
) -> AdditiveMechanism:
    """The discrete Gaussian mechanism with nearly minimal variance for (epsilon, delta)-DP (L2).

    For one cell it uses the exact privacy curve of the discrete distribution, for more a proved
    bound (``accounting.gaussian_for``).

    >>> from fractions import Fraction
    >>> mechanism = calibrated_gaussian(Distance(Norm.L2, Fraction(1)), 1, "1e-6", cells=1)
    >>> round(float(mechanism.noise.sigma_squared) ** 0.5, 2)
    4.23
    """
    _require(distance, Norm.L2, "Gaussian noise")
    noise = gaussian_for(epsilon, delta, sensitivity_squared=distance.value, entries=cells)
    return AdditiveMechanism(noise, cells)


def staircase(distance: Distance, epsilon: Number) -> AdditiveMechanism:
    """Returns the staircase mechanism for one integer that changes by at most ``distance`` (Linf).

    It is epsilon-DP, with the least expected |noise| of all additive epsilon-DP mechanisms (Geng
    and Viswanath 2014). The gain over Laplace noise is large for large epsilon.

    >>> from fractions import Fraction
    >>> staircase(Distance(Norm.LINF, Fraction(10)), epsilon=3).noise.step
    2
    """
    _require(distance, Norm.LINF, "Staircase noise")
    return AdditiveMechanism(DiscreteStaircase(epsilon, math.ceil(distance.value)), cells=1)


def _reach(values: Integers) -> int:
    """The largest absolute value, 0 for an empty array."""
    if not values.size:
        return 0
    return max(abs(int(values.min())), abs(int(values.max())))


def _integer(value: object) -> int:
    """``value`` as a Python integer, since an int64 could overflow; refuses all other types.

    Integer noise on a fraction would release its fractional part.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InvalidDeclaration(
            f"Noise on a {type(value).__name__}.", allowed="exact integers, on a lattice"
        )
    return int(value)


def _require(distance: object, norm: Norm, noise_name: str) -> None:
    """Refuses a distance in another norm, and anything but a ``Distance`` (a local sensitivity)."""
    if not isinstance(distance, Distance):
        raise InvalidDeclaration(
            f"{noise_name} calibrated to a {type(distance).__name__}.",
            allowed="a Distance: a bound over all neighbouring datasets (global sensitivity)",
            remedy="A local sensitivity depends on the data and reveals it "
            "(Nissim, Raskhodnikova, Smith 2007).",
        )
    if distance.norm is not norm:
        raise InvalidDeclaration(
            f"{noise_name} on a statistic bounded in {distance.norm.value}.",
            allowed=f"a statistic bounded in {norm.value}",
        )
    if distance.value < 1:
        raise InvalidDeclaration(
            f"A sensitivity of {distance.value} lattice steps.",
            allowed="1 or more: integers that differ at all differ by a step",
            remedy="Put the statistic on a finer lattice, and give its sensitivity in those steps.",
        )
