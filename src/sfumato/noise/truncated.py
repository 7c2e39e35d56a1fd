# SPDX-License-Identifier: Apache-2.0
"""A distribution truncated to an interval: conditioned on lying inside.

Private partition selection uses the truncated discrete Laplace: Desfontaines, Voss, Gipson,
Mandayam, "Differentially private partition selection" (PETS 2022). Proof: truncated.proof.md.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from sfumato.errors import InvalidDeclaration, InvalidNumber, shown
from sfumato.exact.bracket import Bracket
from sfumato.exact.rational import Number
from sfumato.exact.rounding import float_down, float_up
from sfumato.noise.bernoulli import bernoulli_exp
from sfumato.noise.decay import FRACTION, coins
from sfumato.noise.entropy import SYSTEM, Entropy, below
from sfumato.noise.gaussian import DiscreteGaussian
from sfumato.noise.geometric import Geometric
from sfumato.noise.laplace import DiscreteLaplace
from sfumato.noise.law import Integers, Shape, bracket, half_width_of, quantile_of, size_of
from sfumato.noise.uniform import accepted, below_many
from sfumato.noise.window import Bounds, ExponentialWeight, GaussianWeight, moments

Cut: TypeAlias = DiscreteLaplace | DiscreteGaussian | Geometric

# Draws are int64 if the support is strictly within +-2^62.
_MOST = 1 << 62
# |x| / scale is computed from the first 38 bits of |x| and from floor(2^82 / scale).
_PLACE_BITS = 38
_RATE_BITS = 82
_SPLIT_BITS = 20


@dataclass(frozen=True, slots=True)
class Truncated:
    """The distribution ``whole``, conditioned on a value from ``lower`` to ``upper``.

    P(X = x) = P(whole = x) / P(lower <= whole <= upper) for lower <= x <= upper.

    Guarantees:
        truncated draws follow the stated law
        truncated statements are outward bounds
        a draw never leaves its support

    Raises:
        InvalidDeclaration: ``whole`` is not a discrete Laplace, discrete Gaussian or geometric.
        InvalidNumber: the bounds are not integers with lower <= 0 <= upper, or ``lower`` is below 0
            for a geometric distribution.

    >>> Truncated(DiscreteLaplace(2), -3, 3).half_width("0.95")
    3
    """

    whole: Cut
    lower: int
    upper: int

    def __post_init__(self) -> None:
        if not isinstance(self.whole, Cut):
            raise InvalidDeclaration(
                f"A truncated {type(self.whole).__name__}.",
                allowed="DiscreteLaplace, DiscreteGaussian or Geometric",
            )
        for name, value in (("lower", self.lower), ("upper", self.upper)):
            if type(value) is not int:
                raise InvalidNumber(f"{name} = {shown(value)}.", allowed="an integer")
        if not self.lower <= 0 <= self.upper:
            raise InvalidNumber(
                f"A support from {self.lower} to {self.upper}.", allowed="lower <= 0 <= upper"
            )
        if isinstance(self.whole, Geometric) and self.lower < 0:
            raise InvalidNumber(f"lower = {self.lower} for a law on x >= 0.", allowed="lower = 0")

    def sample_one(self, entropy: Entropy = SYSTEM) -> int:
        """One exact draw."""
        while True:
            if not self._is_narrow:
                x = self.whole.sample_one(entropy)
                if self.lower <= x <= self.upper:
                    return x
            else:
                x = self.lower + below(self.upper - self.lower + 1, entropy)
                if bernoulli_exp(*self._energy(x), entropy):
                    return x

    def sample(self, shape: Shape, entropy: Entropy = SYSTEM) -> Integers:
        """Independent exact draws."""
        size = size_of(shape)
        if self._reach >= _MOST:
            drawn = np.empty(size, object)
            drawn[:] = [self.sample_one(entropy) for _ in range(size)]
            return drawn.reshape(shape)
        propose = self._flat if self._is_narrow else self._inside
        return accepted(size, lambda count: propose(count, entropy)).reshape(shape)

    def pmf(self, x: int) -> Bracket:
        """P(X = x)."""
        return _share(*_split(self, int(x), int(x)))

    def cdf(self, x: int) -> Bracket:
        """P(X <= x)."""
        return _share(*_split(self, self.lower, int(x)))

    def above(self, x: int) -> Bracket:
        """P(X > x)."""
        return _share(*_split(self, int(x) + 1, self.upper))

    def tail(self, half_width: int) -> Bracket:
        """P(|X| > half_width)."""
        inside, outside = _split(self, -int(half_width), int(half_width))
        return _share(outside, inside)

    def quantile(self, probability: Number) -> int:
        """The smallest x with P(X <= x) >= probability, certain not to be too small."""
        return quantile_of(self.cdf, probability)

    def half_width(self, confidence: Number) -> int:
        """The smallest h with P(|X| <= h) >= confidence, certain not to be too small."""
        return half_width_of(self.tail, confidence)

    @property
    def variance(self) -> Bracket:
        """E X^2 - (E X)^2, within a hundredth of E X^2."""
        weight = self._weight
        low, high = self._between(self.lower, self.upper)
        right_first, right_second = moments(weight, self.upper)
        left_first, left_second = moments(weight, -self.lower)
        # bounds of E X times the total weight
        least = right_first[0] - left_first[1]
        most = right_first[1] - left_first[0]
        nearest = max(least, -most, Fraction(0))
        farthest = max(most, -least)
        upper = (right_second[1] + left_second[1]) / low - (nearest / high) ** 2
        lower = (right_second[0] + left_second[0]) / high - (farthest / low) ** 2
        return Bracket(max(float_down(lower), 0.0), float_up(upper))

    def _inside(self, count: int, entropy: Entropy) -> Integers:
        """Draws ``count`` times from ``whole`` and keeps the draws inside the bounds."""
        drawn = self.whole.sample(count, entropy)
        return drawn[(drawn >= self.lower) & (drawn <= self.upper)]

    def _flat(self, count: int, entropy: Entropy) -> Integers:
        """Draws ``count`` uniform integers of the support; keeps each with its weight."""
        drawn = below_many(self.upper - self.lower + 1, count, entropy)
        drawn += self.lower
        energies = self._energies(np.abs(drawn))
        kept = coins(energies, lambda lane: self._energy(int(drawn[lane])), entropy)
        return drawn[kept]

    def _energy(self, x: int) -> tuple[int, int]:
        """-ln of the weight of x, as numerator and denominator."""
        energy = self._weight.energy(abs(x))
        return energy.numerator, energy.denominator

    def _energies(self, magnitudes: Integers) -> Integers:
        """2^42 times the energy of each magnitude, never too high and less than 2^7 too low."""
        drop = max(self._reach.bit_length() - _PLACE_BITS, 0)
        # the scale can be below 1 only if the support is 0 alone
        rate = min(self._weight.rate(_RATE_BITS + drop), 1 << _RATE_BITS)
        high_rate = rate >> _SPLIT_BITS
        low_rate = rate & (1 << _SPLIT_BITS) - 1
        places = magnitudes >> drop
        shares = places * high_rate + (places * low_rate >> _SPLIT_BITS)
        shares >>= _RATE_BITS - _SPLIT_BITS - FRACTION
        if isinstance(self._weight, ExponentialWeight):
            return shares
        top = shares >> FRACTION // 2
        rest = shares & (1 << FRACTION // 2) - 1
        halves: Integers = top * top + (top * rest >> FRACTION // 2 - 1) >> 1
        return halves

    @property
    def _reach(self) -> int:
        return max(self.upper, -self.lower)

    @property
    def _is_narrow(self) -> bool:
        """Whether the support lies within one scale of 0, where every weight is above 1/e."""
        return self._weight.exceeds(self._reach)

    @property
    def _weight(self) -> ExponentialWeight | GaussianWeight:
        if isinstance(self.whole, DiscreteGaussian):
            return GaussianWeight(self.whole.sigma_squared, self._reach)
        return ExponentialWeight(self.whole.scale)

    def _between(self, first: int, last: int) -> Bounds:
        """Bounds of the total weight of the integers of the support from ``first`` to ``last``."""
        first = max(first, self.lower)
        last = min(last, self.upper)
        right = self._weight.mass(max(first, 0), last)
        left = self._weight.mass(max(-last, 1), -first)
        return right[0] + left[0], right[1] + left[1]


# cached, since calibration, cost and statement of a threshold ask for the same few
@lru_cache(maxsize=64)
def _split(law: Truncated, first: int, last: int) -> tuple[Bounds, Bounds]:
    """Bounds of the weight of the support from ``first`` to ``last``, and of the rest of it."""
    left = law._between(law.lower, first - 1)
    right = law._between(last + 1, law.upper)
    outside = (left[0] + right[0], left[1] + right[1])
    return law._between(first, last), outside


def _share(part: Bounds, rest: Bounds) -> Bracket:
    """Bounds of part / (part + rest); the support contains 0, so the sum is never 0."""
    least = part[0] / (part[0] + rest[1])
    most = part[1] / (part[1] + rest[0])
    return bracket(least, most)
