# SPDX-License-Identifier: Apache-2.0
"""Binomial and Poisson distributions, given by the ratios of neighbouring probabilities.

Both rise to a mode and fall from it, and the ratios P(x + 1) / P(x) are rational. So a walk from
the mode bounds any probability to any precision, and ``rejection_sampler`` can draw from them.
``binomial`` and ``skellam`` use it. Proof: ratio.proof.md.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, islice
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

# the columns of the sampler cover this many standard deviations to either side
_REACH = 7
# stated probabilities have _BITS fractional bits relative to the largest, and end below 2^_REST
_BITS = 200
_REST = 60
# fractional bits of the heights from which the columns are made
_FALL = 96
# a distribution with more variance is drawn as a sum of independent pieces of at most this
_PIECE = 1 << 22
LARGEST_VARIANCE = 1 << 26


class Ratio(Protocol):
    """The interface of a distribution whose probabilities rise up to ``mode`` and fall after it."""

    def __hash__(self) -> int:
        """Equal distributions have equal hashes, so that they share their tables."""
        ...

    @property
    def mode(self) -> int:
        """An integer that has the largest probability."""
        ...

    @property
    def variance(self) -> Fraction:
        """The exact variance."""
        ...

    def up(self, x: int) -> tuple[int, int]:
        """Returns P(x + 1) / P(x) for x >= mode, as numerator and denominator."""
        ...

    def down(self, x: int) -> tuple[int, int]:
        """Returns P(x - 1) / P(x) for x <= mode, as numerator and denominator; 0 at the support's
        end.
        """
        ...


@dataclass(frozen=True, slots=True)
class BinomialRatio:
    """The binomial distribution P(x) = C(n, x) p^x (1-p)^(n-x), 0 < p < 1, given by the ratios of
    adjacent probabilities.
    """

    trials: int
    probability: Fraction

    @property
    def mode(self) -> int:
        """The most likely value: floor((n + 1) p)."""
        return math.floor((self.trials + 1) * self.probability)

    @property
    def variance(self) -> Fraction:
        """n p (1-p)."""
        return self.trials * self.probability * (1 - self.probability)

    def up(self, x: int) -> tuple[int, int]:
        """Returns P(x + 1) / P(x) = (n - x) p / ((x + 1) (1 - p))."""
        over = self.probability.numerator
        under = self.probability.denominator
        return (self.trials - x) * over, (x + 1) * (under - over)

    def down(self, x: int) -> tuple[int, int]:
        """Returns P(x - 1) / P(x) = x (1 - p) / ((n - x + 1) p)."""
        over = self.probability.numerator
        under = self.probability.denominator
        return x * (under - over), (self.trials - x + 1) * over


@dataclass(frozen=True, slots=True)
class PoissonRatio:
    """The Poisson distribution P(x) = e^-mean mean^x / x!, given by the ratios of adjacent
    probabilities.
    """

    mean: Fraction

    @property
    def mode(self) -> int:
        """The most likely value: floor(mean)."""
        return math.floor(self.mean)

    @property
    def variance(self) -> Fraction:
        """The variance, which is the mean."""
        return self.mean

    def up(self, x: int) -> tuple[int, int]:
        """Returns P(x + 1) / P(x) = mean / (x + 1)."""
        return self.mean.numerator, self.mean.denominator * (x + 1)

    def down(self, x: int) -> tuple[int, int]:
        """Returns P(x - 1) / P(x) = x / mean."""
        return x * self.mean.denominator, self.mean.numerator


@dataclass(frozen=True, slots=True)
class RatioCurve:
    """The curve f(x) = P(mode + x) / P(mode), under which ``rejection_sampler`` draws."""

    ratio: Ratio
    two_sided: bool = True
    fineness: int = 1

    @property
    def width(self) -> Fraction:
        """The standard deviation, rounded up."""
        return sqrt_up(self.ratio.variance)

    def shift(self, fineness: int) -> int:
        """Returns 0: blocks are single integers."""
        return 0

    def blocks(self, shift: int) -> int:
        """Returns the number of integers in seven standard deviations, and two more."""
        return math.ceil(_REACH * self.width) + 2

    def ends(self, shift: int, blocks: int) -> tuple[Integers, Integers]:
        """Returns 2^31 f at each integer, at most 1 too low."""
        drop = _FALL - 31
        right = [value >> drop for value in islice(self._walk(1, _FALL), blocks)]
        left = [value >> drop for value in islice(self._walk(-1, _FALL), blocks + 1)]
        heights = np.array([*left[:0:-1], *right])
        return heights, heights

    def rise(self, shift: int, farthest: int) -> "_Flat":
        """Returns a rise of 0, as a block is one integer."""
        return _Flat()

    def bounds(self, x: int, precision: int) -> tuple[int, int]:
        """Returns bounds of 2^precision f(x), by a walk to x whose steps each lose less than 1."""
        steps = abs(x)
        extra = steps.bit_length() + 8
        walk = self._walk(1 if x > 0 else -1, precision + extra)
        lower = next(islice(walk, steps, None))
        return lower >> extra, (lower + steps >> extra) + 1

    def halving(self, x: int) -> int:
        """Returns 1 / (1 - r), where r is the larger of the ratios at both ends."""
        mode = self.ratio.mode
        over_right, under_right = self.ratio.up(mode + x)
        over_left, under_left = self.ratio.down(max(mode - x, 0))
        right = -(-under_right // (under_right - over_right))
        left = -(-under_left // (under_left - over_left))
        return max(right, left)

    def _walk(self, direction: int, precision: int) -> Iterator[int]:
        """Yields 2^precision f at 0, 1, 2, ... steps from the mode, each step rounded down."""
        x = self.ratio.mode
        value = 1 << precision
        step = self.ratio.up if direction > 0 else self.ratio.down
        while True:
            yield value
            if value:
                over, under = step(x)
                value = value * over // under
            x += direction


@dataclass(frozen=True, slots=True)
class _Flat:
    """The rise of -ln f within a block of one integer: 0."""

    def __call__(self, distance: Ints, nearest: Ints) -> Ints:
        return distance - distance


class Pieces:
    """A sampler of a sum of independent variables ("pieces"), given with their numbers of copies.

    A distribution of large variance is split into pieces, whose tables are small.
    """

    __slots__ = ("_pieces",)

    def __init__(self, *pieces: tuple[Ratio, int]) -> None:
        self._pieces = [
            (Sampler(RatioCurve(ratio)), ratio.mode, times) for ratio, times in pieces if times
        ]

    def one(self, entropy: Entropy) -> int:
        """Returns an exact sample."""
        return sum(
            mode + sampler.one(entropy)
            for sampler, mode, times in self._pieces
            for _ in range(times)
        )

    def many(self, shape: Shape, entropy: Entropy) -> Integers:
        """Returns an array of independent exact samples."""
        size_of(shape)
        total = np.zeros(shape, np.int64)
        for sampler, mode, times in self._pieces:
            total += mode * times
            for _ in range(times):
                total += sampler.many(shape, entropy)
        return total


def pieces_for(variance: Fraction) -> int:
    """Returns the number of independent summands into which a distribution of this variance is
    split for sampling.
    """
    return max(math.ceil(variance / _PIECE), 1)


@dataclass(frozen=True, slots=True, eq=False)
class Stated:
    """The tabulated distribution of an integer noise X: bounds of P(X = x) and P(X >= x) from x =
    first on.

    Used to bound the ratio of two distributions without their formulas. ``pmf`` and ``upper_tail``
    each have an array of lower and one of upper bounds, for x = first, first + 1, ... ``rest``
    bounds the probability of all x outside of the tables.
    """

    first: int
    pmf: tuple[Floats, Floats]
    upper_tail: tuple[Floats, Floats]
    rest: float

    def probability(self, x: int) -> Bracket:
        """Returns bounds of P(X = x)."""
        place = x - self.first
        if not 0 <= place < len(self.pmf[0]):
            return Bracket(0.0, self.rest)
        return Bracket(float(self.pmf[0][place]), float(self.pmf[1][place]))

    def at_least(self, x: int) -> Bracket:
        """Returns bounds of P(X >= x)."""
        place = x - self.first
        if place < 0:
            return Bracket(math.nextafter(1.0 - self.rest, 0.0), 1.0)
        if place >= len(self.pmf[0]):
            return Bracket(0.0, self.rest)
        least = float(self.upper_tail[0][place])
        most = float(self.upper_tail[1][place])
        return Bracket(least, min(most, 1.0))


@lru_cache(maxsize=16)
def stated(ratio: Ratio) -> Stated:
    """Returns the tabulated distribution (``Stated``) for all x with more than 2^-140 of the
    largest probability.
    """
    curve = RatioCurve(ratio)
    left, below = _side(curve, -1)
    right, beyond = _side(curve, 1)
    lows = [*left[:0:-1], *right]
    steps = max(len(left), len(right))
    least = sum(lows)
    most = least + steps * len(lows) + below + beyond
    highs = [low + steps for low in lows]
    low_sums = list(accumulate(reversed(lows)))[::-1]
    counts = range(len(lows), 0, -1)
    high_sums = []
    for low, terms in zip(low_sums, counts, strict=True):
        high_sums.append(low + steps * terms + beyond)
    return Stated(
        first=ratio.mode - len(left) + 1,
        pmf=(_down(lows, most), _up(highs, least)),
        upper_tail=(_down(low_sums, most), _up(high_sums, least)),
        rest=float(_up([below + beyond], least)[0]),
    )


def _side(curve: RatioCurve, direction: int) -> tuple[list[int], int]:
    """2^200 f on one side of the mode, rounded down, while it is at least 2^60.

    Also returns an upper bound of the sum of 2^200 f over the rest of that side.
    """
    values: list[int] = []
    step = curve.ratio.up if direction > 0 else curve.ratio.down
    for value in curve._walk(direction, _BITS):
        # the ratios fall outward, so the rest is at most a geometric series
        over, under = step(curve.ratio.mode + direction * max(len(values) - 1, 0))
        if value >> _REST == 0 and over < under:
            return values, (value + len(values)) * -(-under // (under - over))
        values.append(value)
    raise AssertionError("a walk does not end")


def _down(numerators: list[int], denominator: int) -> Floats:
    """Lower bounds of the quotients, as floats >= 0."""
    nearest = np.array([numerator / denominator for numerator in numerators])
    quotients: Floats = np.nextafter(nearest, -np.inf)
    return np.maximum(quotients, 0.0)


def _up(numerators: list[int], denominator: int) -> Floats:
    """Upper bounds of the quotients, as floats."""
    nearest = np.array([numerator / denominator for numerator in numerators])
    quotients: Floats = np.nextafter(nearest, np.inf)
    return quotients
