# SPDX-License-Identifier: Apache-2.0
"""The geometric distribution on the integers from 0.

Proof: geometric.proof.md.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial

from sfumato.exact.bracket import Bracket
from sfumato.exact.rational import Number, positive
from sfumato.exact.rounding import exp_down, exp_up, float_down, float_up, log_up
from sfumato.noise import plain
from sfumato.noise.curves import Exponential
from sfumato.noise.entropy import SYSTEM, Entropy
from sfumato.noise.law import Integers, Shape, bracket, half_width_of, open_unit, quantile_of
from sfumato.noise.sampler import Sampler


@dataclass(frozen=True, slots=True, init=False)
class Geometric:
    """The geometric distribution: P(X = x) proportional to exp(-x / scale) for x >= 0.

    ``scale`` is any rational > 0. A building block of other distributions. It gives no privacy as
    additive noise: a noisy value would never be below the exact one.

    Guarantees:
        geometric draws follow the stated law
        geometric statements are outward bounds

    >>> Geometric(3).half_width(0.95)
    8
    """

    scale: Fraction
    _sampler: Sampler = field(repr=False, compare=False)

    def __init__(self, scale: Number) -> None:
        object.__setattr__(self, "scale", positive("scale", scale))
        curve = Exponential(self.scale, two_sided=False)
        wide = partial(plain.geometric, self.scale)
        object.__setattr__(self, "_sampler", Sampler(curve, wide))

    def __reduce__(self) -> tuple[object, ...]:
        # rebuild, so that the sampler and the stated law agree after unpickling too
        return Geometric, (self.scale,)

    def sample_one(self, entropy: Entropy = SYSTEM) -> int:
        """One exact draw."""
        return self._sampler.one(entropy)

    def sample(self, shape: Shape, entropy: Entropy = SYSTEM) -> Integers:
        """Independent exact draws as int64; as Python integers if the scale exceeds 2^52."""
        return self._sampler.many(shape, entropy)

    def pmf(self, x: int) -> Bracket:
        """P(X = x) = g^x (1 - g), g = exp(-1/scale)."""
        if x < 0:
            return Bracket(0.0, 0.0)
        rate = Fraction(-int(x)) / self.scale
        lower, upper = self._ratio()
        return bracket(exp_down(rate) * (1 - upper), exp_up(rate) * (1 - lower))

    def cdf(self, x: int) -> Bracket:
        """P(X <= x)."""
        if x < 0:
            return Bracket(0.0, 0.0)
        rate = -Fraction(int(x) + 1) / self.scale
        return bracket(1 - exp_up(rate), 1 - exp_down(rate))

    def above(self, x: int) -> Bracket:
        """P(X > x) = g^(x+1)."""
        if x < 0:
            return Bracket(1.0, 1.0)
        rate = -Fraction(int(x) + 1) / self.scale
        return bracket(exp_down(rate), exp_up(rate))

    def tail(self, half_width: int) -> Bracket:
        """P(|X| > half_width) = P(X > half_width)."""
        return self.above(half_width)

    def quantile(self, probability: Number) -> int:
        """The smallest x with P(X <= x) >= probability, certain not to be too small."""
        return quantile_of(self.cdf, probability)

    def half_width(self, confidence: Number) -> int:
        """The smallest h with P(X <= h) >= confidence, certain not to be too small."""
        miss = 1 - open_unit("confidence", confidence)
        guess = int(self.scale * log_up(1 / miss)) + 1
        return half_width_of(self.tail, confidence, guess=guess)

    @property
    def variance(self) -> Bracket:
        """g / (1-g)^2 with g = exp(-1/scale); between s^2 - 1/12 and s^2 for every scale s."""
        if self.scale > 10**20:
            # it is 1 / (4 sinh^2(1/2s)), and 1/x^2 - 1/3 <= 1/sinh^2(x) <= 1/x^2
            square = self.scale**2
            return Bracket(float_down(square - Fraction(1, 12)), float_up(square))
        lower, upper = self._ratio()
        least = lower / (1 - lower) ** 2
        most = upper / (1 - upper) ** 2
        return Bracket(float_down(least), float_up(most))

    def _ratio(self) -> tuple[Fraction, Fraction]:
        """Bounds of g = exp(-1/scale)."""
        rate = -1 / self.scale
        return exp_down(rate), exp_up(rate)
