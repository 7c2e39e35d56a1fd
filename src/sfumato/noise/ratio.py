# SPDX-License-Identifier: Apache-2.0
"""Laws known by the ratio of neighbouring probabilities: binomial and Poisson.

Both rise to a mode and fall from it, and the ratios are rational; so a walk from the mode
bounds any probability as closely as wanted, and the engine of ``cells`` draws from them.
Proof: ratio.proof.md.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.exact.bracket import Bracket
from sfumato.exact.rounding import sqrt_up
from sfumato.noise.entropy import Entropy
from sfumato.noise.law import Integers, Shape, size_of
from sfumato.noise.rejection_sampler import Ints
from sfumato.noise.sampler import Sampler

Floats: TypeAlias = NDArray[np.float64]

# columns reach this many standard deviations, and the stated law this many bits, to either side
_REACH = 7
_BITS, _REST = 200, 60
_FALL = 96
# a law of more variance is drawn as a sum of laws of at most this
_PIECE = 1 << 22
LARGEST_VARIANCE = 1 << 26


class Ratio(Protocol):
    """A law that rises to ``mode`` and falls from it."""

    def __hash__(self) -> int:
        """Equal ratios share their tables."""
        ...

    @property
    def mode(self) -> int:
        """Where it is largest."""
        ...

    @property
    def variance(self) -> Fraction:
        """Its variance."""
        ...

    def up(self, x: int) -> tuple[int, int]:
        """P(x + 1) / P(x) for x >= mode."""
        ...

    def down(self, x: int) -> tuple[int, int]:
        """P(x - 1) / P(x) for x <= mode; 0 at the end of the support."""
        ...


@dataclass(frozen=True, slots=True)
class BinomialRatio:
    """C(n, x) p^x (1-p)^(n-x), 0 < p < 1."""

    trials: int
    probability: Fraction

    @property
    def mode(self) -> int:
        """floor((n + 1) p)."""
        return math.floor((self.trials + 1) * self.probability)

    @property
    def variance(self) -> Fraction:
        """n p (1-p)."""
        return self.trials * self.probability * (1 - self.probability)

    def up(self, x: int) -> tuple[int, int]:
        """(n - x) p / ((x + 1) (1 - p))."""
        over, under = self.probability.numerator, self.probability.denominator
        return (self.trials - x) * over, (x + 1) * (under - over)

    def down(self, x: int) -> tuple[int, int]:
        """x (1 - p) / ((n - x + 1) p)."""
        over, under = self.probability.numerator, self.probability.denominator
        return x * (under - over), (self.trials - x + 1) * over


@dataclass(frozen=True, slots=True)
class PoissonRatio:
    """e^-mean mean^x / x!."""

    mean: Fraction

    @property
    def mode(self) -> int:
        """floor(mean)."""
        return math.floor(self.mean)

    @property
    def variance(self) -> Fraction:
        """The mean."""
        return self.mean

    def up(self, x: int) -> tuple[int, int]:
        """mean / (x + 1)."""
        return self.mean.numerator, self.mean.denominator * (x + 1)

    def down(self, x: int) -> tuple[int, int]:
        """x / mean."""
        return x * self.mean.denominator, self.mean.numerator


@dataclass(frozen=True, slots=True)
class RatioCurve:
    """The curve f(x) = P(mode + x) / P(mode)."""

    ratio: Ratio
    two_sided: bool = True
    fineness: int = 1

    @property
    def width(self) -> Fraction:
        """The standard deviation, nearly."""
        return sqrt_up(self.ratio.variance)

    def shift(self, fineness: int) -> int:
        """Blocks are single integers."""
        return 0

    def blocks(self, shift: int) -> int:
        """Seven standard deviations and a little."""
        return math.ceil(_REACH * self.width) + 2

    def ends(self, shift: int, blocks: int) -> tuple[Integers, Integers]:
        """2^31 f at each integer, at most 1 too low."""
        right = [
            value >> _FALL - 31
            for _, value in zip(range(blocks), self._walk(1, _FALL), strict=False)
        ]
        left = [
            value >> _FALL - 31
            for _, value in zip(range(blocks + 1), self._walk(-1, _FALL), strict=False)
        ]
        heights = np.array([*left[:0:-1], *right])
        return heights, heights

    def rise(self, shift: int, farthest: int) -> "Flat":
        """Nothing within one integer."""
        return Flat()

    def bounds(self, x: int, precision: int) -> tuple[int, int]:
        """2^precision f(x), by the walk to x; each step loses less than one unit of the last place."""
        steps = abs(x)
        extra = steps.bit_length() + 8
        walk = self._walk(1 if x > 0 else -1, precision + extra)
        lower = next(value for step, value in enumerate(walk) if step == steps)
        return lower >> extra, (lower + steps >> extra) + 1

    def halving(self, x: int) -> int:
        """1 / (1 - r) steps, r the ratio at the end where it is larger."""
        falls = (self.ratio.up(self.ratio.mode + x), self.ratio.down(max(self.ratio.mode - x, 0)))
        return max(-(-under // (under - over)) for over, under in falls)

    def _walk(self, direction: int, precision: int) -> Iterator[int]:
        """2^precision f at 0, 1, 2, ... steps from the mode, each step rounded down."""
        x, value = self.ratio.mode, 1 << precision
        step = self.ratio.up if direction > 0 else self.ratio.down
        while True:
            yield value
            if value:
                over, under = step(x)
                value = value * over // under
            x += direction


@dataclass(frozen=True, slots=True)
class Flat:
    """No rise at all."""

    def __call__(self, distance: Ints, nearest: Ints) -> Ints:
        return distance - distance


class Pieces:
    """Draws of a law that is the sum of independent pieces, each given with how often it occurs."""

    __slots__ = ("_pieces",)

    def __init__(self, *pieces: tuple[Ratio, int]) -> None:
        self._pieces = [
            (Sampler(RatioCurve(ratio)), ratio.mode, times) for ratio, times in pieces if times
        ]

    def one(self, entropy: Entropy) -> int:
        """One exact draw."""
        return sum(
            mode + sampler.one(entropy)
            for sampler, mode, times in self._pieces
            for _ in range(times)
        )

    def many(self, shape: Shape, entropy: Entropy) -> Integers:
        """Independent exact draws."""
        size_of(shape)
        total = np.zeros(shape, np.int64)
        for sampler, mode, times in self._pieces:
            total += mode * times
            for _ in range(times):
                total += sampler.many(shape, entropy)
        return total


def pieces_for(variance: Fraction) -> int:
    """Into how many pieces a law of this variance is cut."""
    return max(math.ceil(variance / _PIECE), 1)


@dataclass(frozen=True, slots=True, eq=False)
class Stated:
    """Outward bounds of P(X = x) and of P(X >= x) for x = first, first + 1, ... and of what is beyond."""

    first: int
    pmf: tuple[Floats, Floats]
    upper_tail: tuple[Floats, Floats]
    rest: float

    def probability(self, x: int) -> Bracket:
        """P(X = x)."""
        place = x - self.first
        if not 0 <= place < len(self.pmf[0]):
            return Bracket(0.0, self.rest)
        return Bracket(float(self.pmf[0][place]), float(self.pmf[1][place]))

    def at_least(self, x: int) -> Bracket:
        """P(X >= x)."""
        place = x - self.first
        if place < 0:
            return Bracket(math.nextafter(1.0 - self.rest, 0.0), 1.0)
        if place >= len(self.pmf[0]):
            return Bracket(0.0, self.rest)
        return Bracket(float(self.upper_tail[0][place]), min(float(self.upper_tail[1][place]), 1.0))


@lru_cache(maxsize=16)
def stated(ratio: Ratio) -> Stated:
    """The law, normalised, as far as its probabilities exceed 2^-140 of the largest."""
    curve = RatioCurve(ratio)
    left, below = _side(curve, -1)
    right, beyond = _side(curve, 1)
    lows = [*left[:0:-1], *right]
    steps = max(len(left), len(right))
    least, most = sum(lows), sum(lows) + steps * len(lows) + below + beyond
    sums = list(accumulate(reversed(lows)))[::-1]
    counts = range(len(lows), 0, -1)
    return Stated(
        ratio.mode - len(left) + 1,
        (_down(lows, most), _up([low + steps for low in lows], least)),
        (
            _down(sums, most),
            _up([low + steps * n + beyond for low, n in zip(sums, counts, strict=True)], least),
        ),
        float(_up([below + beyond], least)[0]),
    )


def _side(curve: RatioCurve, direction: int) -> tuple[list[int], int]:
    """2^200 f outward from the mode, rounded down, while above 2^60; and a bound of the sum of the rest."""
    values: list[int] = []
    step = curve.ratio.up if direction > 0 else curve.ratio.down
    for value in curve._walk(direction, _BITS):
        # the ratios fall outward: what is left is at most a geometric series
        over, under = step(curve.ratio.mode + direction * max(len(values) - 1, 0))
        if value >> _REST == 0 and over < under:
            return values, (value + len(values)) * -(-under // (under - over))
        values.append(value)
    raise AssertionError("a walk does not end")


def _down(over: list[int], under: int) -> Floats:
    quotients: Floats = np.nextafter(np.array([each / under for each in over]), -np.inf)
    return np.maximum(quotients, 0.0)


def _up(over: list[int], under: int) -> Floats:
    quotients: Floats = np.nextafter(np.array([each / under for each in over]), np.inf)
    return quotients
