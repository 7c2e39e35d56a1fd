# SPDX-License-Identifier: Apache-2.0
"""The discrete staircase distribution.

Source: Geng, Viswanath, "The optimal mechanism in differential privacy" (ISIT 2014; "The
optimal noise-adding mechanism in differential privacy", IEEE Transactions on Information
Theory 62, 2016), the discrete setting. Proof: staircase.proof.md.
"""

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from sfumato.errors import InvalidNumber, shown
from sfumato.exact.bracket import Bracket
from sfumato.exact.exponential import exp_scaled
from sfumato.exact.rational import Number, positive
from sfumato.exact.rounding import exp_down, exp_up, float_down, float_up
from sfumato.noise.coin import BernoulliLogistic
from sfumato.noise.entropy import SYSTEM, Entropy, below, words
from sfumato.noise.geometric import Geometric
from sfumato.noise.law import Integers, Shape, bracket, half_width_of, quantile_of, size_of
from sfumato.noise.sampler import WIDEST
from sfumato.noise.uniform import accepted, below_many
from sfumato.noise.window import Bounds, shortfall

# Draws are cut to this size. For scales up to WIDEST a larger one has probability below e^-1000.
_MOST = 1 << 62


@dataclass(frozen=True, slots=True, init=False)
class DiscreteStaircase:
    """The discrete staircase: P(X = x) proportional to e^(-epsilon k), where |x| is on stair k.

    Stair 0 is |x| < step; every other stair is ``sensitivity`` integers long. A shift by s changes
    no probability by more than a factor of e^(epsilon ceil(s / sensitivity)). The default ``step``
    minimises the expected |X|: the smallest r with r (1 + e^(epsilon/2)) >= sensitivity.

    Guarantees:
        staircase draws follow the stated law
        staircase statements are outward bounds
        a shift costs epsilon for each sensitivity begun
        the chosen step has the least expected magnitude

    Raises:
        InvalidNumber: epsilon is not positive, sensitivity or step is not an integer, or not 1 <=
            step <= sensitivity.

    >>> DiscreteStaircase("2", 10)
    DiscreteStaircase(epsilon=Fraction(2, 1), sensitivity=10, step=3)
    """

    epsilon: Fraction
    sensitivity: int
    step: int
    _stairs: Geometric = field(repr=False, compare=False)

    def __init__(self, epsilon: Number, sensitivity: int, step: int | None = None) -> None:
        object.__setattr__(self, "epsilon", positive("epsilon", epsilon))
        object.__setattr__(self, "sensitivity", _whole("sensitivity", sensitivity, None))
        chosen = _least_magnitude(self.epsilon, sensitivity) if step is None else step
        object.__setattr__(self, "step", _whole("step", chosen, sensitivity))
        object.__setattr__(self, "_stairs", Geometric(1 / self.epsilon))

    def sample_one(self, entropy: Entropy = SYSTEM) -> int:
        """One exact draw."""
        part = self._part
        while True:
            magnitude = self._stairs.sample_one(entropy) * self.sensitivity
            if part is not None and part.sample_one(entropy):
                magnitude += self.step + below(self.sensitivity - self.step, entropy)
            else:
                magnitude += below(self.step, entropy)
            negative = entropy.bits(1) == 1
            # reject -0, or zero would be drawn twice as often
            if not (negative and magnitude == 0):
                return -magnitude if negative else magnitude

    def sample(self, shape: Shape, entropy: Entropy = SYSTEM) -> Integers:
        """Independent exact draws."""
        size = size_of(shape)
        if self.sensitivity > WIDEST or self.sensitivity > WIDEST * self.epsilon:
            drawn = np.empty(size, object)
            drawn[:] = [self.sample_one(entropy) for _ in range(size)]
        else:
            drawn = accepted(size, lambda count: self._proposals(count, entropy))
        return drawn.reshape(shape)

    def pmf(self, x: int) -> Bracket:
        """P(X = x)."""
        one = Fraction(1)
        return self._of_total((one, one), self._stair(abs(x)))

    def cdf(self, x: int) -> Bracket:
        """P(X <= x)."""
        return self.above(-x - 1)

    def above(self, x: int) -> Bracket:
        """P(X > x)."""
        if x < 0:
            mirrored = self.above(-x - 1)
            return bracket(1 - Fraction(mirrored.upper), 1 - Fraction(mirrored.lower))
        return self._beyond(x, 1)

    def tail(self, half_width: int) -> Bracket:
        """P(|X| > half_width)."""
        if half_width < 0:
            return Bracket(1.0, 1.0)
        return self._beyond(half_width, 2)

    def quantile(self, probability: Number) -> int:
        """The smallest x with P(X <= x) >= probability, certain not to be too small."""
        return quantile_of(self.cdf, probability)

    def half_width(self, confidence: Number) -> int:
        """The smallest h with P(|X| <= h) >= confidence, certain not to be too small."""
        return half_width_of(self.tail, confidence)

    @property
    def variance(self) -> Bracket:
        """The variance, from the sum of the squares on each stair."""
        r = self.step
        d = self.sensitivity
        low, high = self._further
        centre = Fraction((r - 1) * r * (2 * r - 1), 6)
        flat = r * (r + d - 1) + Fraction((d - 1) * (2 * d - 1), 6)

        def squares(further: Fraction) -> Fraction:
            growth = (2 * r + 2 * d - 1) * further + 2 * further * further
            return centre + further * (flat + growth)

        least = 2 * squares(low) / (2 * (r + high) - 1)
        most = 2 * squares(high) / (2 * (r + low) - 1)
        return Bracket(max(float_down(least), 0.0), float_up(most))

    def _proposals(self, count: int, entropy: Entropy) -> Integers:
        """At most ``count`` draws: stairs, parts, places and signs, without the lanes of -0."""
        stairs = self._stairs.sample(count, entropy)
        magnitude = np.minimum(stairs, _MOST // self.sensitivity + 1) * self.sensitivity
        part = self._part
        outer = np.zeros(count, np.bool_)
        if part is not None:
            outer = part.sample(count, entropy)
        second = int(np.count_nonzero(outer))
        magnitude[~outer] += below_many(self.step, count - second, entropy)
        if second:
            offsets = below_many(self.sensitivity - self.step, second, entropy)
            magnitude[outer] += self.step + offsets
        np.minimum(magnitude, _MOST, out=magnitude)
        negative = (words(count, entropy) & 1).astype(np.bool_)
        magnitude[negative] *= -1
        kept: Integers = magnitude[~(negative & (magnitude == 0))]
        return kept

    @property
    def _part(self) -> BernoulliLogistic | None:
        """The coin for the lower part of a period of d integers; None if the step r is d.

        The lower part weighs e^-epsilon (d - r), the upper part r.
        """
        if self.step == self.sensitivity:
            return None
        odds = Fraction(self.sensitivity - self.step, self.step)
        return BernoulliLogistic(self.epsilon, odds)

    def _stair(self, magnitude: int) -> int:
        """The number of the stair that contains ``magnitude``."""
        return (magnitude + self.sensitivity - self.step) // self.sensitivity

    @property
    def _further(self) -> Bounds:
        """Bounds of sensitivity / (e^epsilon - 1), the weight of all stairs above 0 on one side."""
        low, high = shortfall(self.epsilon)
        least = self.sensitivity * exp_down(-self.epsilon) / high
        most = self.sensitivity * exp_up(-self.epsilon) / low
        return least, most

    def _beyond(self, x: int, sides: int) -> Bracket:
        """Bounds of P(X > x), or with 2 sides of P(|X| > x), for x >= 0."""
        stair = self._stair(x)
        low, high = self._further
        rest_of_stair = self.step + stair * self.sensitivity - 1 - x
        least = sides * (rest_of_stair + low)
        most = sides * (rest_of_stair + high)
        return self._of_total((least, most), stair)

    def _of_total(self, places: Bounds, stair: int) -> Bracket:
        """Bounds of the probability of ``places`` integers, each of weight e^(-epsilon stair)."""
        low, high = self._further
        height = stair * self.epsilon
        least = places[0] * exp_down(-height) / (2 * (self.step + high) - 1)
        most = places[1] * exp_up(-height) / (2 * (self.step + low) - 1)
        return bracket(least, most)


def _least_magnitude(epsilon: Fraction, sensitivity: int) -> int:
    """The smallest integer r >= 1 with r (1 + e^(epsilon/2)) >= sensitivity, exactly."""
    precision = 64 + sensitivity.bit_length()
    one = 1 << precision
    while True:
        lower, upper = exp_scaled(epsilon.numerator, 2 * epsilon.denominator, precision)
        least = max(-(-sensitivity * lower // (one + lower)), 1)
        most = max(-(-sensitivity * upper // (one + upper)), 1)
        if least == most:
            return least
        precision *= 2
        one = 1 << precision


def _whole(name: str, value: int, most: int | None) -> int:
    """``value`` if it is an integer from 1 to ``most``, else ``InvalidNumber``."""
    if type(value) is not int or value < 1 or (most is not None and value > most):
        upper = "" if most is None else f" and at most the sensitivity, {most}"
        raise InvalidNumber(f"{name} = {shown(value)}.", allowed=f"an integer >= 1{upper}")
    return value
