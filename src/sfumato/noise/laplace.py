# SPDX-License-Identifier: Apache-2.0
"""The discrete Laplace (two-sided geometric) distribution.

Source: Ghosh, Roughgarden, Sundararajan (STOC 2009). Proof: laplace.proof.md.
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
from sfumato.noise.law import Integers, Shape, bracket, open_unit, quantile_of
from sfumato.noise.sampler import Sampler
from sfumato.noise.search import smallest


@dataclass(frozen=True, slots=True, init=False)
class DiscreteLaplace:
    """The discrete Laplace: P(X = x) proportional to exp(-|x| / scale) on the integers.

    ``scale`` is any rational > 0, in lattice steps.

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
    _sampler: Sampler = field(repr=False, compare=False)

    def __init__(self, scale: Number) -> None:
        object.__setattr__(self, "scale", positive("scale", scale))
        curve = Exponential(self.scale, two_sided=True)
        wide = partial(plain.laplace, self.scale)
        object.__setattr__(self, "_sampler", Sampler(curve, wide))

    def __reduce__(self) -> tuple[object, ...]:
        # rebuild, so that the sampler and the stated law agree after unpickling too
        return DiscreteLaplace, (self.scale,)

    def sample_one(self, entropy: Entropy = SYSTEM) -> int:
        """One exact draw."""
        return self._sampler.one(entropy)

    def sample(self, shape: Shape, entropy: Entropy = SYSTEM) -> Integers:
        """Independent exact draws as int64; as Python integers if the scale exceeds 2^52."""
        return self._sampler.many(shape, entropy)

    def pmf(self, x: int) -> Bracket:
        """P(X = x)."""
        lower_g, upper_g = self._ratio()
        rate = Fraction(-abs(int(x))) / self.scale
        least = exp_down(rate) * (1 - upper_g) / (1 + upper_g)
        most = exp_up(rate) * (1 - lower_g) / (1 + lower_g)
        return bracket(least, most)

    def cdf(self, x: int) -> Bracket:
        """P(X <= x)."""
        return self.above(-x - 1)

    def above(self, x: int) -> Bracket:
        """P(X > x)."""
        if x >= 0:
            return bracket(*self._above(x))
        lower, upper = self._above(-x - 1)
        return bracket(1 - upper, 1 - lower)

    def tail(self, half_width: int) -> Bracket:
        """P(|X| > half_width)."""
        if half_width < 0:
            return Bracket(1.0, 1.0)
        lower, upper = self._above(half_width)
        return bracket(2 * lower, 2 * upper)

    def quantile(self, probability: Number) -> int:
        """The smallest x with P(X <= x) >= probability, certain not to be too small."""
        return quantile_of(self.cdf, probability)

    def half_width(self, confidence: Number) -> int:
        """The smallest h with P(|X| <= h) >= confidence, certain not to be too small."""
        miss = 1 - open_unit("confidence", confidence)
        lower_g, upper_g = self._ratio()
        # the h at which 2 exp(-(h+1)/scale) / (1 + g) is about ``miss``
        guess = int(self.scale * log_up(2 / (miss * (1 + upper_g))))

        def suffices(half_width: int) -> bool:
            # the upper end of ``tail``: each question asks for it, and its lower end takes as long
            rate = -Fraction(half_width + 1) / self.scale
            return half_width >= 0 and float_up(2 * exp_up(rate) / (1 + lower_g)) <= miss

        return smallest(suffices, below=max(guess, 0))

    @property
    def variance(self) -> Bracket:
        """2g / (1-g)^2 with g = exp(-1/scale); between 2 s^2 - 1/6 and 2 s^2 for every scale s."""
        if self.scale > 10**20:
            # it is 1 / (2 sinh^2(1/2s)), and 1/x^2 - 1/3 <= 1/sinh^2(x) <= 1/x^2
            twice = 2 * self.scale**2
            return Bracket(float_down(twice - Fraction(1, 6)), float_up(twice))
        lower, upper = self._ratio()
        least = 2 * lower / (1 - lower) ** 2
        most = 2 * upper / (1 - upper) ** 2
        return Bracket(float_down(least), float_up(most))

    def _ratio(self) -> tuple[Fraction, Fraction]:
        """Bounds of g = exp(-1/scale)."""
        rate = -1 / self.scale
        return exp_down(rate), exp_up(rate)

    def _above(self, x: int) -> tuple[Fraction, Fraction]:
        """Bounds of P(X > x) = exp(-(x+1)/scale) / (1 + g), x >= 0."""
        lower_g, upper_g = self._ratio()
        rate = -Fraction(int(x) + 1) / self.scale
        return exp_down(rate) / (1 + upper_g), exp_up(rate) / (1 + lower_g)
