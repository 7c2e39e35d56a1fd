# SPDX-License-Identifier: Apache-2.0
"""The binomial distribution, for noise that several parties add together.

Proof: ratio.proof.md.
"""

from dataclasses import dataclass, field
from fractions import Fraction

from sfumato.errors import InvalidNumber, shown
from sfumato.exact.bracket import Bracket
from sfumato.exact.rational import Number, positive
from sfumato.exact.rounding import float_down, float_up
from sfumato.noise.entropy import SYSTEM, Entropy
from sfumato.noise.law import Integers, Shape, half_width_of, quantile_of
from sfumato.noise.ratio import LARGEST_VARIANCE, BinomialRatio, Pieces, pieces_for, stated


@dataclass(frozen=True, slots=True, init=False)
class Binomial:
    """The binomial distribution: successes in ``trials`` independent trials of one ``probability``.

    The noise of distributed mechanisms (Dwork et al. 2006; Agarwal et al. 2018): a sum of binomials
    with the same probability is binomial.

    Guarantees:
        binomial draws follow the stated law
        binomial statements are outward bounds

    Raises:
        InvalidNumber: trials are below 1, the probability is outside (0, 1), the variance is above
            2^26, or the mean is above 2^62.

    >>> Binomial(10, "0.5").quantile("0.5")
    5
    """

    trials: int
    probability: Fraction
    _pieces: Pieces = field(repr=False, compare=False)

    def __init__(self, trials: int, probability: Number) -> None:
        bias = positive("probability", probability)
        if type(trials) is not int or trials < 1 or bias >= 1:
            raise InvalidNumber(
                f"A binomial of {shown(trials)} trials of probability {bias}.",
                allowed="trials >= 1, 0 < probability < 1",
            )
        variance = BinomialRatio(trials, bias).variance
        if variance > LARGEST_VARIANCE:
            raise InvalidNumber(
                f"A binomial of variance {float(variance):g}.", allowed="at most 2^26"
            )
        if trials * bias > 1 << 62:
            raise InvalidNumber("A binomial with a mean beyond 2^62.", allowed="what fits 64 bits")
        object.__setattr__(self, "trials", trials)
        object.__setattr__(self, "probability", bias)
        count = pieces_for(variance)
        size, longer = divmod(trials, count)
        short_pieces = (BinomialRatio(size, bias), count - longer)
        long_pieces = (BinomialRatio(size + 1, bias), longer)
        object.__setattr__(self, "_pieces", Pieces(short_pieces, long_pieces))

    def sample_one(self, entropy: Entropy = SYSTEM) -> int:
        """One exact draw."""
        return self._pieces.one(entropy)

    def sample(self, shape: Shape, entropy: Entropy = SYSTEM) -> Integers:
        """Independent exact draws."""
        return self._pieces.many(shape, entropy)

    def pmf(self, x: int) -> Bracket:
        """P(X = x)."""
        if not 0 <= x <= self.trials:
            return Bracket(0.0, 0.0)
        return stated(BinomialRatio(self.trials, self.probability)).probability(x)

    def cdf(self, x: int) -> Bracket:
        """P(X <= x), as P(trials - X >= trials - x)."""
        return self._mirrored().above(self.trials - x - 1)

    def above(self, x: int) -> Bracket:
        """P(X > x)."""
        if x < 0:
            return Bracket(1.0, 1.0)
        if x >= self.trials:
            return Bracket(0.0, 0.0)
        return stated(BinomialRatio(self.trials, self.probability)).at_least(x + 1)

    def tail(self, half_width: int) -> Bracket:
        """P(|X| > half_width) = P(X > half_width)."""
        return self.above(half_width) if half_width >= 0 else Bracket(1.0, 1.0)

    def quantile(self, probability: Number) -> int:
        """The smallest x with P(X <= x) >= probability, certain not to be too small."""
        return quantile_of(self.cdf, probability, guess=int(self.trials * self.probability))

    def half_width(self, confidence: Number) -> int:
        """The smallest h with P(X <= h) >= confidence, certain not to be too small."""
        return half_width_of(self.tail, confidence, guess=int(self.trials * self.probability))

    @property
    def variance(self) -> Bracket:
        """n p (1 - p)."""
        exact = BinomialRatio(self.trials, self.probability).variance
        return Bracket(float_down(exact), float_up(exact))

    def _mirrored(self) -> "Binomial":
        return Binomial(self.trials, 1 - self.probability)
