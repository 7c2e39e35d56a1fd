# SPDX-License-Identifier: Apache-2.0
"""The exponential curve e^-(x/scale) and the Gaussian curve e^-(x^2 / 2 sigma^2).

``rejection_sampler`` draws integers under them, for the Laplace and Gaussian distributions. Proof:
curves.proof.md.
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

# an energy of 64 or more is treated as infinite: e^-64 is far below the height of a cell
_INFINITE = 64 << FRACTION


class Even(ABC):
    """Base class of curves f(x) = e^-energy(|x|), on all integers or on those from 0.

    The sampler's table covers ``reach`` widths to either side.
    """

    __slots__ = ()
    width: Fraction
    two_sided: bool
    reach: int

    @abstractmethod
    def energy(self, x: int) -> tuple[int, int]:
        """Returns energy(x) for x >= 0, as numerator and denominator."""

    @abstractmethod
    def energies(self, step: int, count: int) -> list[int]:
        """Returns floor(2^42 energy(j step)) for j < count."""

    def shift(self, fineness: int) -> int:
        """Returns the largest shift with at least ``fineness`` blocks of 2^shift per width, or 0."""
        return max(int(self.width / fineness).bit_length() - 1, 0)

    def blocks(self, shift: int) -> int:
        """Returns the number of blocks of 2^shift integers that cover ``reach`` widths."""
        return ceil(self.reach * self.width / (1 << shift))

    def ends(self, shift: int, blocks: int) -> tuple[Integers, Integers]:
        """Returns 2^31 f at the near and at the far end of each block, within the error of
        ``decay``.
        """
        heights = decay(np.array(self.energies(1 << shift, blocks + 1)))
        return _ends(heights, shift, two_sided=self.two_sided)

    def bounds(self, x: int, precision: int) -> tuple[int, int]:
        """Returns bounds of 2^precision f(x)."""
        return exp_scaled(*self.energy(abs(x)), precision)


@dataclass(frozen=True, slots=True)
class Exponential(Even):
    """The curve f(x) = e^-energy(|x|) of geometric and Laplace noise, from which samples are drawn:
    energy(x) = x / width.
    """

    width: Fraction
    two_sided: bool
    reach: int = 12
    fineness: int = 150

    def energy(self, x: int) -> tuple[int, int]:
        """Returns x / width (minus the logarithm of the curve at x >= 0), as numerator and
        denominator.
        """
        return x * self.width.denominator, self.width.numerator

    def energies(self, step: int, count: int) -> list[int]:
        """Returns floor(2^42 energy(j step)) for each j < count."""
        over = step * self.width.denominator << FRACTION
        under = self.width.numerator
        return [min(j * over // under, _INFINITE) for j in range(count)]

    def rise(self, shift: int, farthest: int) -> "LinearRise":
        """Returns a function for the rise of the energy from a block's near end to a point in it,
        which is the same in every block.
        """
        dropped = max(shift - 31, 0)
        scaled = self.width.denominator << 62 + dropped
        return LinearRise(dropped, scaled // self.width.numerator)

    def halving(self, x: int) -> int:
        """Returns the width, rounded up, as a distance over which the curve at least halves: it
        falls by a factor of e.
        """
        return ceil(self.width)


@dataclass(frozen=True, slots=True)
class LinearRise:
    """Computes 2^31 d / width for a distance d, never too high and at most 3 too low."""

    dropped: int
    factor: int

    def __call__(self, distance: Ints, nearest: Ints) -> Ints:
        return (distance >> self.dropped) * self.factor >> 31


@dataclass(frozen=True, slots=True)
class Parabola(Even):
    """The curve f(x) = e^-energy(|x|) of Gaussian noise, from which samples are drawn: energy(x) =
    x^2 / (2 sigma^2); the width is sigma, rounded down.
    """

    sigma_squared: Fraction
    two_sided: bool = True
    reach: int = 5
    fineness: int = 220
    width: Fraction = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", sqrt_down(self.sigma_squared))

    def energy(self, x: int) -> tuple[int, int]:
        """Returns x^2 / (2 sigma^2) (minus the logarithm of the curve at x >= 0), as numerator and
        denominator.
        """
        return x * x * self.sigma_squared.denominator, 2 * self.sigma_squared.numerator

    def energies(self, step: int, count: int) -> list[int]:
        """Returns floor(2^42 energy(j step)) for each j < count."""
        over = step * step * self.sigma_squared.denominator << FRACTION
        under = 2 * self.sigma_squared.numerator
        return [min(j * j * over // under, _INFINITE) for j in range(count)]

    def rise(self, shift: int, farthest: int) -> "QuadraticRise":
        """Returns a function for the rise of the energy over a distance d from x, d (2x + d) / (2
        sigma^2); its factors and their product are cut to 31 bits.
        """
        longest = (2 * farthest + (1 << shift)).bit_length()
        first = max(shift - 31, 0)
        second = max(longest - 31, 0)
        third = max(min(shift, 31) + min(longest, 31) - 31, 0)
        over = self.sigma_squared.denominator << 62 + first + second + third
        return QuadraticRise(first, second, third, over // (2 * self.sigma_squared.numerator))

    def halving(self, x: int) -> int:
        """Returns sigma^2 / x, as a distance over which the curve at least halves beyond x: the
        energy grows by at least 1.
        """
        return ceil(self.sigma_squared / x)


@dataclass(frozen=True, slots=True)
class QuadraticRise:
    """Computes 2^31 d (2x + d) / (2 sigma^2) for a distance d, never too high, at most 16 too low."""

    first: int
    second: int
    third: int
    factor: int

    def __call__(self, distance: Ints, nearest: Ints) -> Ints:
        product = (distance >> self.first) * (2 * nearest + distance >> self.second)
        return (product >> self.third) * self.factor >> 31


def _ends(heights: Integers, shift: int, *, two_sided: bool) -> tuple[Integers, Integers]:
    """The heights at the near and far ends of the blocks of an even curve.

    ``heights`` are those at 0, B, 2B, ..., where B is the length of a block.
    """
    if shift:
        near = heights[:-1]
        far = heights[1:]
        # block -1 - j lies between the heights of block j, one integer further out
        near_left = near
        far_left = far
    else:
        near = far = heights[:-1]
        near_left = far_left = heights[1:]
    if not two_sided:
        return near, far
    all_near = np.concatenate((near_left[::-1], near))
    all_far = np.concatenate((far_left[::-1], far))
    return all_near, all_far
