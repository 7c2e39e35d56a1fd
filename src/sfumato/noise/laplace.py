# SPDX-License-Identifier: Apache-2.0
"""The discrete Laplace (two-sided geometric) distribution.

Source: Ghosh, Roughgarden, Sundararajan (STOC 2009); sampler: Canonne, Kamath, Steinke
(2020), Algorithm 2. Proof: laplace.proof.md.
"""

from dataclasses import dataclass
from fractions import Fraction

from sfumato.exact.bracket import Bracket
from sfumato.exact.rational import Number, positive, to_fraction
from sfumato.exact.rounding import exp_down, exp_up, float_down, float_up, log_up
from sfumato.noise.bernoulli import bernoulli_exp
from sfumato.noise.entropy import SYSTEM, Entropy, below
from sfumato.noise.search import smallest


@dataclass(frozen=True, slots=True, init=False)
class DiscreteLaplace:
    """P(X = x) proportional to exp(-|x| / scale) on the integers; scale any rational > 0.

    Guarantees:
        laplace draws follow the stated law
        laplace statements are outward bounds

    >>> noise = DiscreteLaplace("2.5")
    >>> noise.scale
    Fraction(5, 2)
    >>> noise.half_width(0.95)
    7
    """

    scale: Fraction

    def __init__(self, scale: Number) -> None:
        object.__setattr__(self, "scale", positive("scale", scale))

    def sample_one(self, entropy: Entropy = SYSTEM) -> int:
        """One exact draw."""
        over, under = self.scale.numerator, self.scale.denominator
        while True:
            offset = below(over, entropy)
            if not bernoulli_exp(offset, over, entropy):
                continue
            turns = 0
            while bernoulli_exp(1, 1, entropy):
                turns += 1
            magnitude = (offset + over * turns) // under
            negative = entropy.bits(1) == 1
            # Zero must not count twice, once a sign.
            if not (negative and magnitude == 0):
                return -magnitude if negative else magnitude

    def sample(self, shape: int, entropy: Entropy = SYSTEM) -> list[int]:
        """``shape`` independent exact draws."""
        return [self.sample_one(entropy) for _ in range(shape)]

    def pmf(self, x: int) -> Bracket:
        """P(X = x)."""
        lower_g, upper_g = self._ratio()
        rate = Fraction(-abs(x)) / self.scale
        return _bracket(
            exp_down(rate) * (1 - upper_g) / (1 + upper_g),
            exp_up(rate) * (1 - lower_g) / (1 + lower_g),
        )

    def cdf(self, x: int) -> Bracket:
        """P(X <= x)."""
        return self.above(-x - 1)

    def above(self, x: int) -> Bracket:
        """P(X > x)."""
        lower, upper = self._above(x if x >= 0 else -x - 1)
        return _bracket(lower, upper) if x >= 0 else _bracket(1 - upper, 1 - lower)

    def tail(self, half_width: int) -> Bracket:
        """P(|X| > half_width)."""
        if half_width < 0:
            return Bracket(1.0, 1.0)
        lower, upper = self._above(half_width)
        return _bracket(2 * lower, 2 * upper)

    def quantile(self, probability: Number) -> int:
        """The smallest x with P(X <= x) >= probability, certain not to be too small."""
        target = _open_unit("probability", probability)
        return smallest(lambda x: self.cdf(x).lower >= target)

    def half_width(self, confidence: Number) -> int:
        """The smallest h with P(|X| <= h) >= confidence, certain not to be too small."""
        miss = 1 - _open_unit("confidence", confidence)
        guess = int(self.scale * log_up(2 / miss)) + 1
        return smallest(lambda h: self.tail(h).upper <= miss, below=guess)

    @property
    def variance(self) -> Bracket:
        """2g / (1-g)^2 with g = exp(-1/scale); from 2 s^2 - 1/6 to 2 s^2 for any scale s."""
        if self.scale > 10**20:
            # it is 1 / (2 sinh^2(1/2s)), and 1/x^2 - 1/3 <= 1/sinh^2(x) <= 1/x^2
            return _bracket(2 * self.scale**2 - Fraction(1, 6), 2 * self.scale**2)
        lower, upper = self._ratio()
        return _bracket(2 * lower / (1 - lower) ** 2, 2 * upper / (1 - upper) ** 2)

    def _ratio(self) -> tuple[Fraction, Fraction]:
        return exp_down(-1 / self.scale), exp_up(-1 / self.scale)

    def _above(self, x: int) -> tuple[Fraction, Fraction]:
        """Bounds of P(X > x) = exp(-(x+1)/scale) / (1 + g), x >= 0."""
        lower_g, upper_g = self._ratio()
        rate = -Fraction(x + 1) / self.scale
        return exp_down(rate) / (1 + upper_g), exp_up(rate) / (1 + lower_g)


def _bracket(lower: Fraction, upper: Fraction) -> Bracket:
    return Bracket(max(float_down(lower), 0.0), float_up(upper))


def _open_unit(name: str, value: Number) -> Fraction:
    return positive(name, to_fraction(name, value), at_most=1 - Fraction(1, 10**15))
