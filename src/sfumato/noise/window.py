# SPDX-License-Identifier: Apache-2.0
"""The weight that a window of integers holds, bounded outward and relatively precise.

A weight is w(x) = e^-energy(x) on x >= 0, with energy 0 at 0, increasing and convex.
Every sum here is of positive terms, so nothing cancels. Proof: window.proof.md.
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
# Steps of a 64th of sigma, up to 40 sigma; beyond, the weight is below every float.
_STEPS, _REACH = 64, 40
# Moments up to here are added one by one; those beyond this energy may be taken in wide panels.
_FEW, _NEGLIGIBLE = 1024, 64
# What a float can show, and 200 bits more.
_ONE = 1 << 1300


class Weight(Protocol):
    """A decreasing weight on the integers x >= 0."""

    def energy(self, x: int) -> Fraction:
        """-ln w(x)."""
        ...

    def exceeds(self, reach: int) -> bool:
        """Whether one scale (one sigma) exceeds ``reach``."""
        ...

    def rate(self, bits: int) -> int:
        """floor(2^bits / scale), or / sigma."""
        ...

    def mass(self, first: int, last: int) -> Bounds:
        """The sum of w(x) over first <= x <= last, 0 <= first."""
        ...

    @property
    def unit(self) -> int:
        """A length over which the weight changes little near its scale."""
        ...


@dataclass(frozen=True, slots=True)
class ExponentialWeight:
    """w(x) = e^(-x / scale).

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
        return _scaled(self.energy(first), _series(1 / self.scale, last - first + 1))

    @property
    def unit(self) -> int:
        return max(int(self.scale) // 16, 1)


@dataclass(frozen=True, slots=True)
class GaussianWeight:
    """w(x) = e^(-x^2 / (2 sigma^2)); ``reach``: how far windows are asked for.

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
        lows, highs = _steps(self, step, min(self.reach, _REACH * (step + 1) * _STEPS) // step)
        begin, end = -(-first // step), min((last + 1) // step, len(lows) - 1)
        if begin > end:
            return self.stretch(first, last - first + 1)
        head = self.stretch(first, begin * step - first)
        rest = self.stretch(end * step, last + 1 - end * step)
        return (
            head[0] + Fraction(lows[end] - lows[begin], _ONE) + rest[0],
            head[1] + Fraction(highs[end] - highs[begin], _ONE) + rest[1],
        )

    def stretch(self, first: int, length: int) -> Bounds:
        """The sum of w(first + j) = w(first) e^(-first j / sigma^2) e^(-j^2 / (2 sigma^2)) over j < length."""
        if length == 0:
            return _NONE
        low, high = _scaled(self.energy(first), _series(first / self.sigma_squared, length))
        return low * exp_down(-self.energy(length - 1)), high

    @property
    def unit(self) -> int:
        return self._step * max(math.isqrt(int(self.sigma_squared)) // (16 * self._step), 1)

    @property
    def _step(self) -> int:
        return max(math.isqrt(int(self.sigma_squared)) // _STEPS, 1)


@lru_cache(maxsize=16)
def _steps(weight: GaussianWeight, step: int, count: int) -> tuple[list[int], list[int]]:
    """Running sums of the lower and of the upper bounds of ``count`` steps, in units of 1/_ONE."""
    found = [weight.stretch(index * step, step) for index in range(count)]
    lows = accumulate((math.floor(low * _ONE) for low, _ in found), initial=0)
    highs = accumulate((math.ceil(high * _ONE) for _, high in found), initial=0)
    return list(lows), list(highs)


def moments(weight: Weight, last: int) -> tuple[Bounds, Bounds]:
    """The sums of x w(x) and of x^2 w(x) over 0 <= x <= last."""
    low_one, high_one, low_two, high_two = (Fraction(0),) * 4
    for start, length in _panels(weight, last):
        low, high = weight.mass(start, start + length - 1)
        middle, spread = start + Fraction(length - 1, 2), Fraction(length * length - 1, 12)
        drop = weight.energy(start + length - 1) - weight.energy(start)
        shift = Fraction(length, 8) * (drop + drop * drop) if drop <= 1 else middle
        low_one += low * max(middle - shift, Fraction(start))
        high_one += high * middle
        low_two += low * max(
            middle * (middle - 2 * shift) + spread * (1 - drop), Fraction(start * start)
        )
        high_two += high * (middle * middle + spread)
    return (low_one, high_one), (low_two, high_two)


def _panels(weight: Weight, last: int) -> Iterator[tuple[int, int]]:
    """(start, length) of panels that cover 0 .. last: short while the weight matters, then doubling."""
    start, short = 0, weight.unit if last >= _FEW else 1
    while start <= last:
        length = min(short if weight.energy(start) < _NEGLIGIBLE else start, last + 1 - start)
        yield start, length
        start += length


def shortfall(rate: Fraction) -> Bounds:
    """1 - e^-rate for rate >= 0."""
    if rate < Fraction(1, 10**20):
        return rate - rate * rate / 2, rate
    return 1 - exp_up(-rate), 1 - exp_down(-rate)


def _series(rate: Fraction, length: int) -> Bounds:
    """The sum of e^(-rate j) over 0 <= j < length."""
    if rate == 0 or length == 1:
        return Fraction(length), Fraction(length)
    part, whole = shortfall(rate * length), shortfall(rate)
    return part[0] / whole[1], part[1] / whole[0]


def _scaled(energy: Fraction, bounds: Bounds) -> Bounds:
    """``bounds`` times e^-energy."""
    return exp_down(-energy) * bounds[0], exp_up(-energy) * bounds[1]
