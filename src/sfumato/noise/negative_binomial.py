# SPDX-License-Identifier: Apache-2.0
"""The negative binomial distribution from 1 on: how often a mechanism is run to keep the best.

Source: Papernot and Steinke, "Hyperparameter Tuning with Renyi Differential Privacy" (ICLR 2022),
Definition 1. Proof: negative_binomial.proof.md.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.errors import InvalidNumber, shown
from sfumato.exact.bracket import Bracket
from sfumato.exact.rational import Number, to_fraction
from sfumato.exact.rounding import exp_down, exp_up, log_down, log_up
from sfumato.noise.bernoulli import bernoulli
from sfumato.noise.entropy import SYSTEM, Entropy
from sfumato.noise.law import Integers, Shape, bracket, size_of

# A shape nearer to 0, or a stop nearer to 1, has a mean that 50 digits do not bound.
_APART = Fraction(1, 10**12)


@dataclass(frozen=True, slots=True, init=False)
class NegativeBinomial:
    """The negative binomial distribution without 0: P(K = k) proportional to (1 - stop)^k times the
    product of (l + shape) / (l + 1), 0 < l < k.

    k = 1, 2, ...; the shape is a rational above -1 and at most 1, and 0 or at least 1e-12 from it;
    ``stop`` is a rational above 0 and at most 1 - 1e-12. A shape of 1 is the geometric
    distribution, 0 the logarithmic one.

    Guarantees:
        negative binomial draws follow the stated law
        negative binomial statements are outward bounds

    Raises:
        InvalidNumber: ``shape`` or ``stop`` is outside these ranges.

    >>> NegativeBinomial(1, "0.1").mean.upper, NegativeBinomial(0, "0.1").pmf(1).upper
    (Fraction(10, 1), 0.390865033712926...)
    """

    shape: Fraction
    stop: Fraction

    def __init__(self, shape: Number, stop: Number) -> None:
        for name, value in (("shape", shape), ("stop", stop)):
            object.__setattr__(self, name, to_fraction(name, value))
        is_told = self.shape == 0 or abs(self.shape) >= _APART
        if not -1 < self.shape <= 1 or not is_told or not 0 < self.stop <= 1 - _APART:
            raise InvalidNumber(
                f"A number of runs of shape {shown(shape)} that stops with {shown(stop)}.",
                allowed="a shape above -1 and at most 1, 0 or 1e-12 from it, "
                "and a stop above 0 and at most 1 - 1e-12",
            )

    def sample_one(self, entropy: Entropy = SYSTEM) -> int:
        """Returns one exact draw, by about 2 / stop random coins."""
        while True:
            drawn = 1
            while not _coin(self.stop, entropy):
                if not _coin((drawn + self.shape) / (drawn + 1), entropy):
                    drawn = 0
                    break
                drawn += 1
            if drawn:
                return drawn

    def sample(self, shape: Shape, entropy: Entropy = SYSTEM) -> Integers:
        """Independent exact draws."""
        drawn = [self.sample_one(entropy) for _ in range(size_of(shape))]
        return np.array(drawn, np.int64).reshape(shape)

    def pmf(self, x: int) -> Bracket:
        """P(K = x)."""
        if x < 1:
            return Bracket(0.0, 0.0)
        weight = (1 - self.stop) ** int(x)
        for place in range(1, int(x)):
            weight *= (place + self.shape) / (place + 1)
        lower, upper = self._normal()
        return bracket(weight * lower, weight * upper)

    @property
    def mean(self) -> "Mean":
        """Bounds of the mean."""
        lower, upper = self._normal()
        least, most = _power(1 / self.stop, self.shape)
        odds = (1 - self.stop) / self.stop
        return Mean(odds * least * lower, odds * most * upper)

    def _normal(self) -> tuple[Fraction, Fraction]:
        """Bounds of shape / (stop^-shape - 1), whose limit at 0 is 1 / ln(1 / stop)."""
        if self.shape == 0:
            return 1 / log_up(1 / self.stop), 1 / log_down(1 / self.stop)
        least, most = _power(1 / self.stop, self.shape)
        ends = (self.shape / (least - 1), self.shape / (most - 1))
        return min(ends), max(ends)


@dataclass(frozen=True, slots=True)
class Mean:
    """Lower and upper bounds of a mean, as fractions."""

    lower: Fraction
    upper: Fraction


def _coin(bias: Fraction, entropy: Entropy) -> bool:
    """True with this probability, exactly."""
    return bernoulli(bias.numerator, bias.denominator, entropy)


def _power(base: Fraction, exponent: Fraction) -> tuple[Fraction, Fraction]:
    """Bounds of base^exponent, for a base above 1."""
    if exponent.denominator == 1:
        exact = base ** int(exponent)
        return exact, exact
    ends = (exponent * log_down(base), exponent * log_up(base))
    return exp_down(min(ends)), exp_up(max(ends))
