# SPDX-License-Identifier: Apache-2.0
"""The rounded Gaussian: a real normal number rounded to the nearest integer, drawn exactly.

Integers plus rounded normal noise equal the rounded result of the continuous Gaussian mechanism, so
every guarantee of that mechanism holds. Proof: rounded.proof.md.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidNumber
from sfumato.exact.bracket import Bracket
from sfumato.exact.exponential import exp_scaled
from sfumato.exact.rational import Number, positive
from sfumato.exact.rounding import float_down, float_up
from sfumato.noise.entropy import SYSTEM, Entropy, words
from sfumato.noise.gaussian import DiscreteGaussian
from sfumato.noise.law import Integers, Shape, half_width_of, quantile_of, size_of
from sfumato.noise.lazy_uniform import is_below
from sfumato.noise.search import smallest

_WIDEST = 1 << 28
# The first bits of a height decide nearly always, these nearly all others.
_FIRST, _BITS = 16, 62
# Draws within so many standard deviations are decided by the first bits.
_NEAR = 6
# Slack for rounding errors of the C library; only stated error bounds use it.
_LIBM_SLACK = 1e-9
# Beyond this many standard deviations a tail is below 6e-300.
_FAR = 37.0
_NOTHING = 1e-299
_HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True, init=False)
class RoundedGaussian:
    """The rounded Gaussian: round(N), N normal with mean 0 and standard deviation ``sigma``.

    P(X = x) = Phi((x + 1/2) / sigma) - Phi((x - 1/2) / sigma).

    Guarantees:
        rounded gaussian draws follow the stated law
        rounded gaussian statements are outward bounds

    Raises:
        InvalidNumber: sigma is below 1 or above 2^28.

    >>> RoundedGaussian(3).half_width(0.95)
    6
    """

    sigma: Fraction
    _hat: DiscreteGaussian = field(repr=False, compare=False)
    _slopes: tuple[int, int, int, int] = field(repr=False, compare=False)
    _sure: tuple[int, int] = field(repr=False, compare=False)

    def __init__(self, sigma: Number) -> None:
        root = positive("sigma", sigma)
        if not 1 <= root <= _WIDEST:
            raise InvalidNumber(
                f"A rounded Gaussian of sigma {float(root):g}.",
                allowed="from 1 to 2^28",
                remedy="A very small cost needs more noise than that, a very large one less: ask "
                "with another.",
            )
        object.__setattr__(self, "sigma", root)
        hat = DiscreteGaussian(sigma_squared=root * root + root)
        object.__setattr__(self, "_hat", hat)
        slopes = _slopes(root)
        object.__setattr__(self, "_slopes", slopes)
        object.__setattr__(self, "_sure", _sure(root, slopes))

    def __reduce__(self) -> tuple[object, ...]:
        return RoundedGaussian, (self.sigma,)

    def sample_one(self, entropy: Entropy = SYSTEM) -> int:
        """One exact draw."""
        while True:
            x = self._hat.sample_one(entropy)
            if is_below(_Share(self.sigma, x, entropy), entropy):
                return x

    def sample(
        self,
        shape: Shape,
        entropy: Entropy = SYSTEM,
    ) -> Integers:
        """Independent exact draws as int64."""
        size = size_of(shape)
        out = self._hat.sample(size, entropy)
        again = self._rejected(out, entropy)
        if len(again):
            out[again] = self.sample(len(again), entropy)
        return out.reshape(shape)

    def _rejected(
        self,
        drawn: Integers,
        entropy: Entropy,
    ) -> Integers:
        """The places of the draws of the hat that are not accepted."""
        least, farthest = self._sure
        heights = np.empty(len(drawn), "<u2")
        entropy.fill(heights.view(np.uint8))
        is_open = heights >= least
        if len(drawn) and max(-int(drawn.min()), int(drawn.max())) > farthest:
            is_open |= np.abs(drawn) > farthest
        places = np.flatnonzero(is_open)
        is_kept = self._kept(drawn[places], heights[places], entropy)
        return places[~is_kept]

    def _kept(
        self,
        drawn: Integers,
        first: NDArray[np.uint16],
        entropy: Entropy,
    ) -> NDArray[np.bool]:
        """Which draws of the hat are accepted; ``first`` are the first bits of their heights."""
        square, slope, constant, farthest = self._slopes
        unused = np.uint64(64 - _BITS + _FIRST)
        heights = (words(len(drawn), entropy) >> unused).astype(np.int64)
        heights |= first.astype(np.int64) << _BITS - _FIRST
        far = np.abs(drawn)
        near = np.minimum(far, farthest)
        rejected = near * near * square
        rejected += near * slope
        rejected += constant
        is_kept: NDArray[np.bool] = heights < (1 << _BITS) - rejected
        is_kept &= far <= farthest
        for place in np.flatnonzero(~is_kept):
            share = _Share(self.sigma, int(drawn[place]), entropy)
            prefix = int(heights[place])
            is_kept[place] = is_below(share, entropy, prefix=prefix, known=_BITS)
        return is_kept

    def pmf(self, x: int) -> Bracket:
        """P(X = x)."""
        near = abs(int(x))
        before = self.above(near - 1)
        after = self.above(near)
        lower = max(before.lower - after.upper, 0.0)
        upper = before.upper - after.lower
        if near <= _FAR * float(self.sigma):
            middle = _around_the_middle(float(self.sigma), near)
            lower = max(lower, middle.lower)
            upper = min(upper, middle.upper)
        return Bracket(lower, upper)

    def cdf(self, x: int) -> Bracket:
        """P(X <= x)."""
        return self.above(-x - 1)

    def above(self, x: int) -> Bracket:
        """P(X > x), which is P(N > x + 1/2)."""
        if x < 0:
            mirrored = self.above(-x - 1)
            least = math.nextafter(1 - mirrored.upper, 0.0)
            most = math.nextafter(1 - mirrored.lower, 2.0)
            return Bracket(least, min(most, 1.0))
        start = (x + _HALF) / self.sigma
        if start > _FAR:
            return Bracket(0.0, _NOTHING)
        value = math.erfc(float(start) / math.sqrt(2)) / 2
        lower = value * (1 - _LIBM_SLACK)
        upper = value * (1 + _LIBM_SLACK)
        return Bracket(lower, upper)

    def tail(self, half_width: int) -> Bracket:
        """P(|X| > half_width)."""
        if half_width < 0:
            return Bracket(1.0, 1.0)
        above = self.above(half_width)
        return Bracket(2 * above.lower, min(2 * above.upper, 1.0))

    def quantile(self, probability: Number) -> int:
        """The smallest x with P(X <= x) >= probability, certain not to be too small."""
        return quantile_of(self.cdf, probability)

    def half_width(self, confidence: Number) -> int:
        """The smallest h with P(|X| <= h) >= confidence, certain not to be too small."""
        return half_width_of(self.tail, confidence, guess=2 * int(self.sigma))

    @property
    def variance(self) -> Bracket:
        """sigma^2 + 1/12, within a relative 1e-7."""
        middle = self.sigma**2 + Fraction(1, 12)
        slack = middle / 10**7
        lower = float_down(middle - slack)
        upper = float_up(middle + slack)
        return Bracket(lower, upper)


class _Share:
    """The share of the hat at x that is kept: e^-t for a t that depends on where the point of a
    normal density lies within the cell of x.

    That place is uniform, and as many of its bits are drawn as are asked for.
    """

    def __init__(
        self,
        sigma: Fraction,
        x: int,
        entropy: Entropy,
    ) -> None:
        self._sigma = sigma
        self._x = x
        self._entropy = entropy
        self._place = 0
        self._known = 0

    def __call__(self, precision: int) -> tuple[int, int]:
        """Bounds of 2^precision times the share."""
        more = precision - self._known
        self._place = self._place << more | self._entropy.bits(more)
        self._known = precision
        left = self._energy(self._place)
        right = self._energy(self._place + 1)
        most = max(left, right)
        least = min(left, right)
        lower, _ = exp_scaled(most.numerator, most.denominator, precision)
        _, upper = exp_scaled(least.numerator, least.denominator, precision)
        return lower, upper

    def _energy(self, place: int) -> Fraction:
        """t at x - 1/2 + place / 2^known."""
        sigma = self._sigma
        point = self._x - _HALF
        point += Fraction(place, 1 << self._known)
        wanted = point**2 / sigma**2
        variance = sigma**2 + sigma
        hat = self._x**2 / variance
        least = 1 / (8 * sigma)
        return (wanted - hat) / 2 + least


def _around_the_middle(sigma: float, x: int) -> Bracket:
    """P(X = x) as the density at x times the mean of its ratio to that over the cell."""
    middle = x / sigma
    density = math.exp(-(middle**2) / 2)
    mass = density / sigma / math.sqrt(2 * math.pi)
    half = middle / sigma / 2
    if half > 0:
        mass *= math.sinh(half) / half
    least = math.exp(-1 / (8 * sigma**2))
    lower = mass * least / (1 + _LIBM_SLACK)
    upper = mass * (1 + _LIBM_SLACK)
    return Bracket(lower, upper)


def _slopes(sigma: Fraction) -> tuple[int, int, int, int]:
    """Integers a, b, c and the largest y so that 2^62 t <= a y^2 + b y + c <= 2^62 for |x| <= y."""
    whole = 1 << _BITS
    unit = whole / (2 * sigma**2)
    square = math.ceil(unit / (sigma + 1))
    slope = math.ceil(2 * unit)
    constant = math.ceil(unit * (1 + sigma) / 4)

    def exceeds(y: int) -> bool:
        return square * y * y + slope * y + constant > whole

    farthest = smallest(exceeds, below=int(sigma)) - 1
    return square, slope, constant, farthest


def _sure(
    sigma: Fraction,
    slopes: tuple[int, int, int, int],
) -> tuple[int, int]:
    """Integers w and y: first bits below w accept every |x| <= y."""
    square, slope, constant, farthest = slopes
    y = min(farthest, math.ceil(_NEAR * sigma))
    rejected = square * y * y + slope * y + constant
    return ((1 << _BITS) - rejected) >> _BITS - _FIRST, y
