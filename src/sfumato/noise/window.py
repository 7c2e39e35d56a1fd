# SPDX-License-Identifier: Apache-2.0
"""Outward bounds of sums of weights over a window of integers, with a small relative error.

The statements of distributions (probabilities, tails) are computed from them. A weight is w(x) =
e^-energy(x) on x >= 0, where the energy is 0 at 0, increasing and convex. All terms of the sums are
positive, so nothing cancels. Proof: window.proof.md.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Protocol, TypeAlias

from sfumato.exact.rounding import exp_down, exp_up

Bounds: TypeAlias = tuple[Fraction, Fraction]

_NONE: Bounds = (Fraction(0), Fraction(0))
# Steps of sigma / 64, up to 40 sigma; beyond that the weight is below every positive float.
_STEPS = 64
_REACH = 40
# Moments up to _FEW are summed term by term. Panels are wide beyond an energy of _NEGLIGIBLE.
_FEW = 1024
_NEGLIGIBLE = 64
# Fixed-point one: the range of floats, and 200 bits more.
_ONE = 1 << 1300


class Weight(Protocol):
    """The interface of a decreasing weight on the integers x >= 0."""

    def energy(self, x: int) -> Fraction:
        """Returns -ln w(x)."""
        ...

    def exceeds(self, reach: int) -> bool:
        """Whether the scale (or sigma) exceeds ``reach``."""
        ...

    def rate(self, bits: int) -> int:
        """Returns floor(2^bits / scale), where the scale of a Gaussian weight is sigma."""
        ...

    def mass(self, first: int, last: int) -> Bounds:
        """Returns bounds of the sum of w(x) over first <= x <= last, 0 <= first."""
        ...

    @property
    def panel(self) -> int:
        """A number of integers over which the weight changes little, at x near its scale."""
        ...


@dataclass(frozen=True, slots=True)
class ExponentialWeight:
    """The exponential weight w(x) = e^(-x / scale) on the integers x >= 0, whose sums over ranges
    are bounded.

    Guarantees:
        an exponential window holds its sum

    >>> float(ExponentialWeight(Fraction(1)).mass(0, 10**9)[0])
    1.5819767068693265
    """

    scale: Fraction

    def energy(self, x: int) -> Fraction:
        return x / self.scale

    def exceeds(self, reach: int) -> bool:
        return reach < self.scale

    def rate(self, bits: int) -> int:
        return math.floor((1 << bits) / self.scale)

    def mass(self, first: int, last: int) -> Bounds:
        if last < first:
            return _NONE
        series = _series(1 / self.scale, last - first + 1)
        return _scaled(self.energy(first), series)

    @property
    def panel(self) -> int:
        return max(int(self.scale) // 16, 1)


@dataclass(frozen=True, slots=True)
class GaussianWeight:
    """The Gaussian weight w(x) = e^(-x^2 / (2 sigma^2)) on the integers x >= 0, whose sums over
    ranges are bounded; ``reach`` is the largest x of a range.

    Guarantees:
        a gaussian window holds its sum
    """

    sigma_squared: Fraction
    reach: int

    def energy(self, x: int) -> Fraction:
        return Fraction(x * x) / (2 * self.sigma_squared)

    def exceeds(self, reach: int) -> bool:
        return reach * reach < self.sigma_squared

    def rate(self, bits: int) -> int:
        return math.isqrt(math.floor((1 << 2 * bits) / self.sigma_squared))

    def mass(self, first: int, last: int) -> Bounds:
        if last < first:
            return _NONE
        step = self._step
        farthest = min(self.reach, _REACH * (step + 1) * _STEPS)
        lows, highs = _steps(self, step, farthest // step)
        begin = -(-first // step)
        end = min((last + 1) // step, len(lows) - 1)
        if begin > end:
            return self.stretch(first, last - first + 1)
        head = self.stretch(first, begin * step - first)
        rest = self.stretch(end * step, last + 1 - end * step)
        low_middle = Fraction(lows[end] - lows[begin], _ONE)
        high_middle = Fraction(highs[end] - highs[begin], _ONE)
        return head[0] + low_middle + rest[0], head[1] + high_middle + rest[1]

    def stretch(self, first: int, length: int) -> Bounds:
        """Returns bounds of the sum of w(x) over ``length`` integers from ``first`` on.

        w(first + j) = w(first) e^(-first j / sigma^2) e^(-j^2 / (2 sigma^2)), and the last factor
        is between its value at length - 1 and 1.
        """
        if length == 0:
            return _NONE
        series = _series(first / self.sigma_squared, length)
        low, high = _scaled(self.energy(first), series)
        return low * exp_down(-self.energy(length - 1)), high

    @property
    def panel(self) -> int:
        sigma = math.isqrt(int(self.sigma_squared))
        return self._step * max(sigma // (16 * self._step), 1)

    @property
    def _step(self) -> int:
        """The length of a step: sigma / 64, rounded down, at least 1."""
        return max(math.isqrt(int(self.sigma_squared)) // _STEPS, 1)


@lru_cache(maxsize=16)
def _steps(weight: GaussianWeight, step: int, count: int) -> tuple[list[int], list[int]]:
    """Running sums of the lower and of the upper bounds of ``count`` steps, times ``_ONE``."""
    stretches = [weight.stretch(index * step, step) for index in range(count)]
    lows = accumulate((math.floor(low * _ONE) for low, _ in stretches), initial=0)
    highs = accumulate((math.ceil(high * _ONE) for _, high in stretches), initial=0)
    return list(lows), list(highs)


def moments(weight: Weight, last: int) -> tuple[Bounds, Bounds]:
    """Returns bounds of the sums of x w(x) and of x^2 w(x) over 0 <= x <= last."""
    low_one, high_one, low_two, high_two = (Fraction(0),) * 4
    for start, length in _panels(weight, last):
        end = start + length - 1
        low, high = weight.mass(start, end)
        middle = start + Fraction(length - 1, 2)
        spread = Fraction(length * length - 1, 12)
        drop = weight.energy(end) - weight.energy(start)
        shift = middle
        if drop <= 1:
            shift = Fraction(length, 8) * (drop + drop * drop)
        square = middle * (middle - 2 * shift) + spread * (1 - drop)
        low_one += low * max(middle - shift, Fraction(start))
        high_one += high * middle
        low_two += low * max(square, Fraction(start * start))
        high_two += high * (middle * middle + spread)
    return (low_one, high_one), (low_two, high_two)


def _panels(weight: Weight, last: int) -> Iterator[tuple[int, int]]:
    """Panels (start, length) that cover 0 to ``last``.

    They are short while the weight matters, then each is as long as all before it.
    """
    start = 0
    short = weight.panel if last >= _FEW else 1
    while start <= last:
        length = short if weight.energy(start) < _NEGLIGIBLE else start
        length = min(length, last + 1 - start)
        yield start, length
        start += length


def shortfall(rate: Fraction) -> Bounds:
    """Returns bounds of 1 - e^-rate for rate >= 0."""
    if rate < Fraction(1, 10**20):
        return rate - rate * rate / 2, rate
    return 1 - exp_up(-rate), 1 - exp_down(-rate)


def _series(rate: Fraction, length: int) -> Bounds:
    """Bounds of the geometric sum of e^(-rate j) over 0 <= j < length."""
    if rate == 0 or length == 1:
        return Fraction(length), Fraction(length)
    low_sum, high_sum = shortfall(rate * length)
    low_term, high_term = shortfall(rate)
    return low_sum / high_term, high_sum / low_term


def _scaled(energy: Fraction, bounds: Bounds) -> Bounds:
    """``bounds`` times e^-energy, rounded outward."""
    return exp_down(-energy) * bounds[0], exp_up(-energy) * bounds[1]
