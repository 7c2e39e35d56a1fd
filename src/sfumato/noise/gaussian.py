# SPDX-License-Identifier: Apache-2.0
"""The discrete Gaussian distribution.

Source: Canonne, Kamath, Steinke (2020): variance Corollary 9, tail Proposition 25. Proof:
gaussian.proof.md.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache, partial
from itertools import accumulate

from sfumato.exact.bracket import Bracket
from sfumato.exact.rational import Number, positive
from sfumato.exact.rounding import exp_down, exp_up, float_down, float_up, sqrt_up
from sfumato.noise import plain
from sfumato.noise.curves import Parabola
from sfumato.noise.entropy import SYSTEM, Entropy
from sfumato.noise.law import Integers, Shape, half_width_of, quantile_of
from sfumato.noise.sampler import Sampler

# Up to this sigma the tails are summed term by term. Beyond it the midpoint rule has an error of
# at most u^3 / (24 sigma^3) at u standard deviations.
_SUMMED_SIGMA = 64
# Slack for rounding errors of erfc and sqrt in the C library; only stated error bounds use it.
_LIBM_SLACK = 1e-9
_BITS = 200
_ONE = 1 << _BITS


@dataclass(frozen=True, slots=True, init=False)
class DiscreteGaussian:
    """The discrete Gaussian: P(X = x) proportional to exp(-x^2 / (2 sigma^2)) on the integers.

    Give ``sigma`` or, by name, ``sigma_squared``. The value that is kept is sigma^2, since zCDP
    calibrates it exactly.

    Guarantees:
        gaussian draws follow the stated law
        gaussian statements are outward bounds

    >>> DiscreteGaussian(3) == DiscreteGaussian(sigma_squared=9)
    True
    >>> DiscreteGaussian(3).half_width(0.95)
    6
    """

    sigma_squared: Fraction
    _sampler: Sampler = field(repr=False, compare=False)

    def __init__(self, sigma: Number | None = None, *, sigma_squared: Number | None = None) -> None:
        if sigma_squared is None:
            root = positive("sigma", "not given" if sigma is None else sigma)
            sigma_squared = root * root
        object.__setattr__(self, "sigma_squared", positive("sigma_squared", sigma_squared))
        wide = partial(plain.gaussian, self.sigma_squared)
        object.__setattr__(self, "_sampler", Sampler(Parabola(self.sigma_squared), wide))

    def __reduce__(self) -> tuple[object, ...]:
        # rebuild, so that the sampler and the stated law agree after unpickling too
        return partial(DiscreteGaussian, sigma_squared=self.sigma_squared), ()

    def sample_one(self, entropy: Entropy = SYSTEM) -> int:
        """One exact draw."""
        return self._sampler.one(entropy)

    def sample(self, shape: Shape, entropy: Entropy = SYSTEM) -> Integers:
        """Independent exact draws as int64; as Python integers if sigma exceeds 2^52."""
        return self._sampler.many(shape, entropy)

    def pmf(self, x: int) -> Bracket:
        """P(X = x)."""
        lower, upper = _normaliser(self.sigma_squared)
        rate = -Fraction(int(x) ** 2) / (2 * self.sigma_squared)
        least = float_down(exp_down(rate) / upper)
        most = float_up(exp_up(rate) / lower)
        return Bracket(max(least, 0.0), most)

    def cdf(self, x: int) -> Bracket:
        """P(X <= x)."""
        return self.above(-x - 1)

    def above(self, x: int) -> Bracket:
        """P(X > x)."""
        if x >= 0:
            return self._above(x)
        mirrored = self._above(-x - 1)
        return Bracket(_minus(mirrored.upper), _minus(mirrored.lower, up=True))

    def tail(self, half_width: int) -> Bracket:
        """P(|X| > half_width)."""
        if half_width < 0:
            return Bracket(1.0, 1.0)
        above = self._above(half_width)
        return Bracket(2 * above.lower, min(2 * above.upper, 1.0))

    def quantile(self, probability: Number) -> int:
        """The smallest x with P(X <= x) >= probability, certain not to be too small."""
        return quantile_of(self.cdf, probability)

    def half_width(self, confidence: Number) -> int:
        """The smallest h with P(|X| <= h) >= confidence, certain not to be too small."""
        guess = 2 * math.isqrt(int(self.sigma_squared))
        return half_width_of(self.tail, confidence, guess=guess)

    @property
    def variance(self) -> Bracket:
        """At most sigma^2 (Corollary 9); within a relative 1e-6 of it for sigma >= 1."""
        upper = float_up(self.sigma_squared)
        if self.sigma_squared < 1:
            return Bracket(0.0, upper)
        lower = float_down(self.sigma_squared * (1 - Fraction(1, 10**6)))
        return Bracket(lower, upper)

    def _above(self, x: int) -> Bracket:
        """P(X > x), x >= 0."""
        if self.sigma_squared <= _SUMMED_SIGMA**2:
            lows, highs = _tail_sums(self.sigma_squared)
            lower_z, upper_z = _normaliser(self.sigma_squared)
            place = min(x + 1, len(lows) - 1)
            return Bracket(
                float_down(Fraction(lows[place], _ONE) / upper_z),
                float_up(Fraction(highs[place], _ONE) / lower_z),
            )
        if int(x) ** 2 > 1600 * self.sigma_squared:
            return Bracket(0.0, 1e-300)
        return _midpoint(float(sqrt_up(self.sigma_squared)), x + 0.5)


def _midpoint(sigma: float, start: float) -> Bracket:
    """Bounds of the tail beyond ``start``, for sigma >= 64: midpoint rule with its second term."""
    v = start / sigma
    decay = math.exp(-v * v / 2)
    density = decay / math.sqrt(2 * math.pi)
    value = math.erfc(v / math.sqrt(2)) / 2 - v * density / 24 / sigma / sigma
    # the total variation of (u^2 - 1) e^(-u^2/2) beyond v; its maximum is 2 e^(-3/2), at sqrt 3
    variation = (v * v - 1) * decay
    if v * v < 3:
        variation = 2 * 0.4462603203 - variation
    error = variation / (24 * math.sqrt(2 * math.pi)) / sigma / sigma / sigma
    slack = error * (1 + _LIBM_SLACK)
    lower = value * (1 - _LIBM_SLACK) - slack
    upper = value * (1 + _LIBM_SLACK) + slack
    if not lower > 1e-300:
        lower = 0.0
    return Bracket(lower, max(upper, 1e-300))


def _minus(probability: float, *, up: bool = False) -> float:
    """1 - probability, rounded down, or up to at most 1."""
    direction = math.inf if up else 0.0
    return min(math.nextafter(1 - probability, direction), 1.0)


@lru_cache(maxsize=64)
def _normaliser(sigma_squared: Fraction) -> tuple[Fraction, Fraction]:
    """Bounds of the sum of exp(-x^2 / (2 sigma^2)) over all integers."""
    if sigma_squared <= _SUMMED_SIGMA**2:
        lows, highs = _tail_sums(sigma_squared)
        return Fraction(_ONE + 2 * lows[1], _ONE), Fraction(_ONE + 2 * highs[1], _ONE)
    # Poisson summation: sqrt(2 pi sigma^2) <= Z <= that times 1 + 1e-30 for sigma >= 64.
    pi_down = Fraction(3141592653589793, 10**15)
    pi_up = Fraction(3141592653589794, 10**15)
    root = sqrt_up(2 * pi_up * sigma_squared)
    return root * (pi_down / pi_up), root * (1 + Fraction(1, 10**30))


@lru_cache(maxsize=64)
def _tail_sums(sigma_squared: Fraction) -> tuple[list[int], list[int]]:
    """Bounds of the sum of exp(-y^2 / (2 sigma^2)) over y >= x, for x = 0, 1, ..., about 13 sigma.

    In multiples of 2^-200. The last ones hold for every larger x too.
    """
    weights, rest = _weights(sigma_squared)
    lows = accumulate((low for low, _ in reversed(weights)), initial=0)
    highs = accumulate((high for _, high in reversed(weights)), initial=rest)
    return [*lows][::-1], [*highs][::-1]


def _weights(sigma_squared: Fraction) -> tuple[list[tuple[int, int]], int]:
    """Bounds of exp(-x^2 / (2 sigma^2)) for x = 0, 1, ... up to about 13 sigma, and of the rest.

    Uses w(x+1) = w(x) r(x) and r(x+1) = r(x) c, in multiples of 2^-200, rounded down and up.
    """
    first = -1 / (2 * sigma_squared)
    ratio = -1 / sigma_squared
    low_r = int(exp_down(first) * _ONE)
    low_c = int(exp_down(ratio) * _ONE)
    high_r = int(exp_up(first) * _ONE) + 1
    high_c = int(exp_up(ratio) * _ONE) + 1
    low = high = _ONE
    weights: list[tuple[int, int]] = []
    while len(weights) < 2 or high > _ONE >> 133:
        weights.append((low, high))
        low = low * low_r >> _BITS
        low_r = low_r * low_c >> _BITS
        high = (high * high_r >> _BITS) + 1
        high_r = (high_r * high_c >> _BITS) + 1
    # The next x is beyond 13 sigma, where (sigma <= 64) each term is below 0.9 of the one
    # before it, so all remaining terms add up to less than ten times the next one.
    return weights, 10 * high
