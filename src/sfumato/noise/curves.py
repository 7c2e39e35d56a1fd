# SPDX-License-Identifier: Apache-2.0
"""The two curves under which the engine draws: e^-(x/scale) and e^-(x^2 / 2 sigma^2).

Proof: curves.proof.md.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil

import numpy as np

from sfumato.exact.exponential import exp_scaled
from sfumato.exact.rounding import sqrt_down
from sfumato.noise.decay import FRACTION, decay
from sfumato.noise.law import Integers
from sfumato.noise.rejection_sampler import Ints

# an energy of 64 or more counts as infinite: e^-64 is far below any height
_INFINITE = 64 << FRACTION


class Even(ABC):
    """What both share: f(x) = e^-energy(|x|), on all integers or on those from 0, out to ``reach`` widths."""

    __slots__ = ()
    width: Fraction
    two_sided: bool
    reach: int

    @abstractmethod
    def energy(self, x: int) -> tuple[int, int]:
        """At x >= 0, as a ratio."""

    @abstractmethod
    def energies(self, step: int, count: int) -> list[int]:
        """floor(2^42 energy(j step)) for j < count."""

    def shift(self, fineness: int) -> int:
        """The largest that leaves ``fineness`` blocks a width."""
        return max(int(self.width / fineness).bit_length() - 1, 0)

    def blocks(self, shift: int) -> int:
        """Out to ``reach`` widths."""
        return ceil(self.reach * self.width / (1 << shift))

    def ends(self, shift: int, blocks: int) -> tuple[Integers, Integers]:
        """2^31 f at the near and at the far end of each block, within the error of ``decay``."""
        return _ends(
            decay(np.array(self.energies(1 << shift, blocks + 1))), shift, two_sided=self.two_sided
        )

    def bounds(self, x: int, precision: int) -> tuple[int, int]:
        """2^precision f(x)."""
        return exp_scaled(*self.energy(abs(x)), precision)


@dataclass(frozen=True, slots=True)
class Exponential(Even):
    """energy(x) = x / width."""

    width: Fraction
    two_sided: bool
    reach: int = 12
    fineness: int = 150

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

    def halving(self, x: int) -> int:
        """It falls by 1/e each width, everywhere."""
        return ceil(self.width)


@dataclass(frozen=True, slots=True)
class LinearRise:
    """2^31 d / width, at most 3 too low."""

    dropped: int
    factor: int

    def __call__(self, distance: Ints, nearest: Ints) -> Ints:
        return (distance >> self.dropped) * self.factor >> 31


@dataclass(frozen=True, slots=True)
class Parabola(Even):
    """energy(x) = x^2 / (2 sigma^2); its width is sigma, nearly."""

    sigma_squared: Fraction
    two_sided: bool = True
    reach: int = 5
    fineness: int = 220
    width: Fraction = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", sqrt_down(self.sigma_squared))

    def energy(self, x: int) -> tuple[int, int]:
        """x^2 / (2 sigma^2) as a ratio."""
        return x * x * self.sigma_squared.denominator, 2 * self.sigma_squared.numerator

    def energies(self, step: int, count: int) -> list[int]:
        """floor(2^42 energy(j step)) for j < count."""
        over, under = (
            step * step * self.sigma_squared.denominator << FRACTION,
            2 * self.sigma_squared.numerator,
        )
        return [min(j * j * over // under, _INFINITE) for j in range(count)]

    def rise(self, shift: int, farthest: int) -> "QuadraticRise":
        """d (2x + d) / (2 sigma^2), its factors and their product cut to 31 bits."""
        longest = (2 * farthest + (1 << shift)).bit_length()
        first, second = max(shift - 31, 0), max(longest - 31, 0)
        third = max(min(shift, 31) + min(longest, 31) - 31, 0)
        over = self.sigma_squared.denominator << 62 + first + second + third
        return QuadraticRise(first, second, third, over // (2 * self.sigma_squared.numerator))

    def halving(self, x: int) -> int:
        """Beyond x the energy grows at least as fast as its tangent there, 1 in sigma^2 / x."""
        return ceil(self.sigma_squared / x)


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


def _ends(heights: Integers, shift: int, *, two_sided: bool) -> tuple[Integers, Integers]:
    """The heights of an even curve at 0, B, 2B, ... as those of the ends of its blocks."""
    if shift:
        near, far = heights[:-1], heights[1:]
        # block -1 - j lies between the heights of block j, one integer further out
        mirror = near, far
    else:
        near = far = heights[:-1]
        mirror = heights[1:], heights[1:]
    if not two_sided:
        return near, far
    return np.concatenate((mirror[0][::-1], near)), np.concatenate((mirror[1][::-1], far))
