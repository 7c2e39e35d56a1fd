# SPDX-License-Identifier: Apache-2.0
"""The two curves under which the engine draws: e^-(x/scale) and e^-(x^2 / 2 sigma^2).

Proof: curves.proof.md.
"""

from dataclasses import dataclass
from fractions import Fraction

from sfumato.exact.rounding import sqrt_down
from sfumato.noise import plain
from sfumato.noise.cells import Ints
from sfumato.noise.decay import FRACTION
from sfumato.noise.entropy import Entropy

# an energy of 64 or more counts as infinite: e^-64 is far below any height
_INFINITE = 64 << FRACTION


@dataclass(frozen=True, slots=True)
class Exponential:
    """energy(x) = x / width, on all integers or on those from 0."""

    width: Fraction
    two_sided: bool
    reach: int = 11
    fineness: int = 110

    def energy(self, x: int) -> tuple[int, int]:
        """x / width as a ratio."""
        return x * self.width.denominator, self.width.numerator

    def energies(self, step: int, count: int) -> list[int]:
        """floor(2^42 energy(j step)) for j < count."""
        over, under = step * self.width.denominator << FRACTION, self.width.numerator
        return [min(j * over // under, _INFINITE) for j in range(count)]

    def rise(self, shift: int, farthest: int) -> "LinearRise":
        """The same everywhere."""
        dropped = max(shift - 31, 0)
        return LinearRise(dropped, (self.width.denominator << 62 + dropped) // self.width.numerator)

    def flatten(self, x: int) -> Fraction:
        """It falls by 1/e each width, everywhere."""
        return self.width

    def plain(self, entropy: Entropy) -> int:
        """One draw by the plain sampler."""
        return (plain.laplace if self.two_sided else plain.geometric)(self.width, entropy)


@dataclass(frozen=True, slots=True)
class LinearRise:
    """2^31 d / width, at most 3 too low."""

    dropped: int
    factor: int

    def __call__(self, distance: Ints, nearest: Ints) -> Ints:
        return (distance >> self.dropped) * self.factor >> 31


@dataclass(frozen=True, slots=True)
class Parabola:
    """energy(x) = x^2 / (2 sigma^2)."""

    sigma_squared: Fraction
    two_sided: bool = True
    reach: int = 5
    fineness: int = 150

    @property
    def width(self) -> Fraction:
        """sigma, nearly."""
        return sqrt_down(self.sigma_squared)

    def energy(self, x: int) -> tuple[int, int]:
        """x^2 / (2 sigma^2) as a ratio."""
        return x * x * self.sigma_squared.denominator, 2 * self.sigma_squared.numerator

    def energies(self, step: int, count: int) -> list[int]:
        """floor(2^42 energy(j step)) for j < count."""
        over, under = step * step * self.sigma_squared.denominator << FRACTION, 2 * self.sigma_squared.numerator
        return [min(j * j * over // under, _INFINITE) for j in range(count)]

    def rise(self, shift: int, farthest: int) -> "QuadraticRise":
        """d (2x + d) / (2 sigma^2), its factors and their product cut to 31 bits."""
        longest = (2 * farthest + (1 << shift)).bit_length()
        first, second = max(shift - 31, 0), max(longest - 31, 0)
        third = max(min(shift, 31) + min(longest, 31) - 31, 0)
        over = self.sigma_squared.denominator << 62 + first + second + third
        return QuadraticRise(first, second, third, over // (2 * self.sigma_squared.numerator))

    def flatten(self, x: int) -> Fraction:
        """sigma^2 / x: beyond x the energy grows at least as fast as its tangent there."""
        return self.sigma_squared / x

    def plain(self, entropy: Entropy) -> int:
        """One draw by the plain sampler."""
        return plain.gaussian(self.sigma_squared, entropy)


@dataclass(frozen=True, slots=True)
class QuadraticRise:
    """2^31 d (2x + d) / (2 sigma^2), at most 16 too low."""

    first: int
    second: int
    third: int
    factor: int

    def __call__(self, distance: Ints, nearest: Ints) -> Ints:
        product = (distance >> self.first) * (2 * nearest + distance >> self.second)
        return (product >> self.third) * self.factor >> 31
