# SPDX-License-Identifier: Apache-2.0
"""Bernoulli distributions with a rational, an exponential or a logistic bias.

Proof: coin.proof.md.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidNumber
from sfumato.exact.bracket import Bracket
from sfumato.exact.exponential import exp_scaled
from sfumato.exact.rational import Number, positive, to_fraction
from sfumato.noise.bits import random_bits
from sfumato.noise.entropy import SYSTEM, Entropy, Words
from sfumato.noise.law import Shape, bracket, open_unit, size_of
from sfumato.noise.lazy_uniform import is_below

Booleans: TypeAlias = NDArray[np.bool_]

# Bits unpacked at a time: half a MiB of packed bits, besides the result.
_BLOCK = 1 << 22
# Bits of precision, enough for the smallest float, 2^-1074.
_FINEST = 2048


class Coin(ABC):
    """Base class of Bernoulli distributions: True with an exact real bias in [0, 1].

    Guarantees:
        a coin is drawn with exactly its bias
        coin statements are outward bounds
    """

    __slots__ = ()

    @abstractmethod
    def bounds(self, precision: int) -> tuple[int, int]:
        """Returns integers lower <= 2^precision P(True) <= upper, tighter with higher precision."""

    def sample_one(self, entropy: Entropy = SYSTEM) -> bool:
        """One exact draw."""
        return is_below(self.bounds, entropy)

    def sample(self, shape: Shape, entropy: Entropy = SYSTEM) -> Booleans:
        """Independent exact draws."""
        drawn = np.empty(size_of(shape), np.uint8)
        for start in range(0, len(drawn), _BLOCK):
            part = drawn[start : start + _BLOCK]
            packed = self.bits(len(part), entropy).astype("<u8", copy=False)
            as_bytes = packed.view(np.uint8)
            part[:] = np.unpackbits(as_bytes, count=len(part), bitorder="little")
        return drawn.view(np.bool_).reshape(shape)

    def bits(self, count: int, entropy: Entropy = SYSTEM) -> Words:
        """Returns ``count`` independent exact draws, packed into 64-bit words, lowest bit first.

        The bits after the last draw are zero.
        """
        return random_bits(count, self.bounds, entropy)

    def pmf(self, x: int) -> Bracket:
        """P(X = x), with True as 1 and False as 0."""
        lower, upper = self._true()
        if x == 1:
            return bracket(lower, upper)
        if x == 0:
            return bracket(1 - upper, 1 - lower)
        return Bracket(0.0, 0.0)

    def cdf(self, x: int) -> Bracket:
        """P(X <= x)."""
        if x < 0:
            return Bracket(0.0, 0.0)
        if x > 0:
            return Bracket(1.0, 1.0)
        return self.pmf(0)

    def above(self, x: int) -> Bracket:
        """P(X > x)."""
        if x < 0:
            return Bracket(1.0, 1.0)
        if x > 0:
            return Bracket(0.0, 0.0)
        return self.pmf(1)

    def tail(self, half_width: int) -> Bracket:
        """P(|X| > half_width)."""
        return self.above(half_width)

    def quantile(self, probability: Number) -> int:
        """The smallest x with P(X <= x) >= probability, certain not to be too small."""
        return int(self.cdf(0).lower < open_unit("probability", probability))

    @property
    def variance(self) -> Bracket:
        """p (1 - p)."""
        lower, upper = self._true()
        return bracket(lower * (1 - upper), upper * (1 - lower))

    def _true(self) -> tuple[Fraction, Fraction]:
        """Bounds of P(True), down to 2^-1900 within a relative 2^-59 of it and of P(False)."""
        precision = 64
        while True:
            lower, upper = self.bounds(precision)
            known = lower >> 60 and ((1 << precision) - upper) >> 60
            if lower == upper or known or precision >= _FINEST:
                return Fraction(lower, 1 << precision), Fraction(upper, 1 << precision)
            precision *= 2


@dataclass(frozen=True, slots=True, init=False)
class Bernoulli(Coin):
    """A Bernoulli distribution: true with a rational probability.

    Raises:
        InvalidNumber: the probability is outside [0, 1].

    >>> Bernoulli("1/3").pmf(1)
    Bracket(lower=0.3333333333333333, upper=0.33333333333333337)
    >>> Bernoulli(1).sample_one()
    True
    """

    probability: Fraction

    def __init__(self, probability: Number) -> None:
        bias = to_fraction("probability", probability)
        if not 0 <= bias <= 1:
            raise InvalidNumber(f"probability = {probability}.", allowed="from 0 to 1")
        object.__setattr__(self, "probability", bias)

    def bounds(self, precision: int) -> tuple[int, int]:
        """Returns 2^precision times the probability of true, rounded down and up."""
        scaled = self.probability.numerator << precision
        denominator = self.probability.denominator
        return scaled // denominator, -(-scaled // denominator)


@dataclass(frozen=True, slots=True, init=False)
class BernoulliExp(Coin):
    """A Bernoulli distribution: true with probability e^-gamma, gamma any rational >= 0.

    >>> BernoulliExp(1).pmf(1)
    Bracket(lower=0.3678794411714423, upper=0.36787944117144233)
    """

    gamma: Fraction

    def __init__(self, gamma: Number) -> None:
        object.__setattr__(self, "gamma", _decay("gamma", gamma))

    def bounds(self, precision: int) -> tuple[int, int]:
        """Returns integer bounds of 2^precision e^-gamma."""
        lower, upper = exp_scaled(self.gamma.numerator, self.gamma.denominator, precision)
        return lower, min(upper, 1 << precision)


@dataclass(frozen=True, slots=True, init=False)
class BernoulliLogistic(Coin):
    """A Bernoulli distribution: true with probability odds / (odds + e^gamma), gamma any rational
    >= 0.

    With odds 1 and gamma epsilon, this is the flip of randomized response to a yes-or-no question.

    Raises:
        InvalidNumber: gamma is below 0 (negate the coin of -gamma instead), or the odds are not
            above 0.

    >>> BernoulliLogistic(0).pmf(1)
    Bracket(lower=0.5, upper=0.5)
    >>> BernoulliLogistic(1).pmf(1)
    Bracket(lower=0.2689414213699951, upper=0.26894142136999516)
    """

    gamma: Fraction
    odds: Fraction

    def __init__(self, gamma: Number, odds: Number = 1) -> None:
        object.__setattr__(self, "gamma", _decay("gamma", gamma))
        object.__setattr__(self, "odds", positive("odds", odds))

    def bounds(self, precision: int) -> tuple[int, int]:
        """Returns integer bounds of 2^precision times the probability of true, odds e^-gamma / (1 +
        odds e^-gamma).
        """
        for_true = self.odds.numerator
        for_false = self.odds.denominator
        fine = precision + 2 + for_true.bit_length()
        least, most = exp_scaled(self.gamma.numerator, self.gamma.denominator, fine)
        lower = for_true * least
        upper = for_true * most
        false = for_false << fine
        rounded_down = (lower << precision) // (lower + false)
        rounded_up = -(-(upper << precision) // (upper + false))
        return rounded_down, rounded_up


def _decay(name: str, value: Number) -> Fraction:
    rate = to_fraction(name, value)
    if rate < 0:
        raise InvalidNumber(f"{name} = {value}.", allowed="0 or more")
    return rate
