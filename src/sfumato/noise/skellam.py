# SPDX-License-Identifier: Apache-2.0
"""The Skellam distribution: the difference of two Poissons.

Proof: skellam.proof.md.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

import numpy as np

from sfumato.errors import InvalidNumber
from sfumato.exact.bracket import Bracket
from sfumato.exact.rational import Number, positive
from sfumato.exact.rounding import float_down, float_up
from sfumato.noise.entropy import SYSTEM, Entropy
from sfumato.noise.law import Integers, Shape, half_width_of, quantile_of
from sfumato.noise.ratio import LARGEST_VARIANCE, Pieces, PoissonRatio, Stated, pieces_for, stated


@dataclass(frozen=True, slots=True, init=False)
class Skellam:
    """The Skellam distribution: the difference of two independent Poissons of mean ``rate``.

    The variance is 2 rate. The noise of distributed mechanisms (Agarwal, Kairouz, Liu 2021): a sum
    of Skellams is a Skellam whose rate is the sum of the rates.

    Guarantees:
        skellam draws follow the stated law
        skellam statements are outward bounds

    Raises:
        InvalidNumber: the rate is 0 or less, or above 2^25.

    >>> Skellam(2).variance
    Bracket(lower=4.0, upper=4.0)
    """

    rate: Fraction
    _pieces: Pieces = field(repr=False, compare=False)

    def __init__(self, rate: Number) -> None:
        mean = positive("rate", rate)
        if 2 * mean > LARGEST_VARIANCE:
            raise InvalidNumber(f"A Skellam of rate {float(mean):g}.", allowed="at most 2^25")
        object.__setattr__(self, "rate", mean)
        count = pieces_for(mean)
        object.__setattr__(self, "_pieces", Pieces((PoissonRatio(mean / count), count)))

    def sample_one(self, entropy: Entropy = SYSTEM) -> int:
        """One exact draw."""
        return self._pieces.one(entropy) - self._pieces.one(entropy)

    def sample(self, shape: Shape, entropy: Entropy = SYSTEM) -> Integers:
        """Independent exact draws."""
        drawn = self._pieces.many(shape, entropy)
        drawn -= self._pieces.many(shape, entropy)
        return drawn

    def pmf(self, x: int) -> Bracket:
        """P(X = x): the sum over y of P(Y = y) P(Y' = y + |x|) for Poissons Y and Y'."""
        lower, upper = _shifted(self.rate, abs(x), tails=False)
        return Bracket(lower, upper)

    def cdf(self, x: int) -> Bracket:
        """P(X <= x) = P(X >= -x)."""
        return self.above(-x - 1)

    def above(self, x: int) -> Bracket:
        """P(X > x): the sum over y of P(Y = y) P(Y' > x + y) for Poissons Y and Y'."""
        if x < 0:
            mirrored = self.above(-x - 1)
            least = float(np.nextafter(1 - mirrored.upper, 0))
            most = float(np.nextafter(1 - mirrored.lower, 2))
            return Bracket(least, min(most, 1.0))
        lower, upper = _shifted(self.rate, x + 1, tails=True)
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
        return half_width_of(self.tail, confidence)

    @property
    def variance(self) -> Bracket:
        """2 rate."""
        exact = 2 * self.rate
        return Bracket(float_down(exact), float_up(exact))


@lru_cache(maxsize=4096)
def _shifted(rate: Fraction, shift: int, *, tails: bool) -> tuple[float, float]:
    """Bounds of the sum over y of P(y) P(y + shift); with ``tails``, of P(y) P(Y >= y + shift)."""
    law = stated(PoissonRatio(rate))
    lower = _dot(law, shift, 0, tails=tails)
    upper = _dot(law, shift, 1, tails=tails)
    return lower, upper


def _dot(
    law: Stated,
    shift: int,
    side: int,
    *,
    tails: bool,
) -> float:
    """The lower (side 0) or upper (side 1) bound of ``_shifted``.

    A sum of floats, moved outward by more than n + 2 rounding errors can change it.
    """
    first = law.pmf[side]
    second = law.upper_tail[side] if tails else law.pmf[side]
    overlap = max(len(first) - shift, 0)
    total = float(np.sum(first[:overlap] * second[shift : shift + overlap]))
    slack = (len(first) + 2) * 2.0**-52
    if side == 0:
        return total * (1 - slack)
    # the terms outside the two tables add up to at most twice the rest
    return min(total * (1 + slack) + 2 * law.rest, 1.0)
