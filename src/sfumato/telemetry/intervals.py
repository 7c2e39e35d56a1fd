# SPDX-License-Identifier: Apache-2.0
"""Confidence intervals for the number of devices that hold a value.

A report supports a value with probability ``own`` if its device holds the value, else with
probability ``other``. So the number of supporting reports is a sum of independent coins. Proof:
intervals.proof.md.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.exact.rational import Number
from sfumato.noise import Integers
from sfumato.noise.law import open_unit
from sfumato.telemetry.tails import BERRY_ESSEEN

Floats: TypeAlias = NDArray[np.float64]

# Far above the rounding errors of the sums below, relative to the number of reports.
_ROUNDING = 2.0**-44


@dataclass(frozen=True, slots=True)
class Coins:
    """The distribution of a value's support, the number of reports that support it: a sum of coins
    with the probability ``own`` for devices that hold the value, ``other`` for the rest.

    Guarantees:
        an interval holds the number of devices as often as stated
        a value that no device holds seldom has a small p value

    >>> coins = Coins(10_000, Fraction(3, 4), Fraction(1, 4))
    >>> coins.estimate(np.array([2500, 5000])).tolist()
    [0.0, 5000.0]
    >>> low, high = coins.interval(np.array([2500]), "0.95")
    >>> round(float(low[0])), round(float(high[0]))
    (-195, 195)
    """

    reports: int
    own: Fraction
    other: Fraction

    @property
    def apart(self) -> float:
        """The difference of the two probabilities of support, ``own`` minus ``other``."""
        return float(self.own - self.other)

    def estimate(self, support: Integers) -> Floats:
        """Returns the unbiased estimate of the number of devices that hold each value."""
        expected = float(self.reports * self.other)
        estimate: Floats = (support.astype(np.float64) - expected) / self.apart
        return estimate

    def variance(self, holders: Floats) -> Floats:
        """Returns the variance of each estimate if ``holders`` devices hold the value."""
        return self._spread(holders) / self.apart**2

    def _spread(self, holders: Floats) -> Floats:
        """Returns the variance of the support, if so many devices hold the value."""
        own = float(self.own * (1 - self.own))
        other = float(self.other * (1 - self.other))
        inside = np.clip(holders, 0, self.reports)
        outside = self.reports - inside
        spread: Floats = other * outside + own * inside
        return spread

    @property
    def _least_deviation(self) -> float:
        """The least standard deviation of the support, whatever the devices hold."""
        ends = self._spread(np.array([0.0, self.reports]))
        return float(np.sqrt(ends.min()))

    def interval(self, support: Integers, confidence: Number) -> tuple[Floats, Floats]:
        """Returns intervals for the number of devices that hold each value: the lower and the upper
        ends.

        ``support`` has the number of reports that support each value.
        """
        miss = 1 - open_unit("confidence", confidence)
        factor, extra = self._width(float(miss))
        expected = float(self.reports * self.other)
        excess: Floats = support.astype(np.float64) - expected
        pad = self.reports * _ROUNDING / self.apart
        low = self._end(excess - extra, -factor) - pad
        high = self._end(excess + extra, factor) + pad
        return low, high

    def _width(self, miss: float) -> tuple[float, float]:
        """Returns z and c: the support is further than z sigma + c from its mean with at most
        ``miss``.

        From the normal law with the bound of Berry and Esseen, or from Bernstein's inequality.
        """
        logarithm = math.log(2 / miss)
        factor = math.sqrt(2 * logarithm)
        extra = 2 * logarithm / 3
        least = max(self._least_deviation, 1e-9)
        left = miss - 2 * BERRY_ESSEEN / least
        if left <= 1e-15:
            return factor, extra
        normal = NormalDist().inv_cdf(1 - left / 2)
        if normal * least < factor * least + extra:
            return normal, 0.0
        return factor, extra

    def _end(self, excess: Floats, factor: float) -> Floats:
        """Solves excess + factor sigma(x) = apart x for x: where sigma depends on x, a quadratic.

        sigma^2 = a + b x for x from 0 to n, and constant beyond.
        """
        ends = np.array([0.0, float(self.reports)])
        start, end = self._spread(ends).tolist()
        slope = (end - start) / self.reports
        apart = self.apart
        linear = 2 * apart * excess + factor**2 * slope
        inner = 4 * apart * (excess * slope + apart * start)
        inner = inner + (factor * slope) ** 2
        root = factor * np.sqrt(np.maximum(inner, 0))
        inside = (linear + root) / (2 * apart**2)
        below = (excess + factor * math.sqrt(start)) / apart
        above = (excess + factor * math.sqrt(end)) / apart
        found = np.where(above >= self.reports, above, inside)
        return np.where(below <= 0, below, found)

    def p_value(self, support: Integers) -> Floats:
        """Returns upper bounds of the probability of this support if no device holds the value."""
        chance = float(self.other)
        share = np.clip(support / self.reports, chance, 1)
        rest = 1 - share
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = share * np.log(share / chance)
            outside = rest * np.log(rest / (1 - chance))
        divergence = inside + np.where(share < 1, outside, 0.0)
        chernoff = np.exp(-self.reports * divergence)
        expected = self.reports * chance
        deviation = math.sqrt(expected * (1 - chance))
        scores = (support - 1 - expected) / deviation
        roots = (scores / math.sqrt(2)).tolist()
        tails = np.array([math.erfc(root) / 2 for root in roots])
        normal = tails + BERRY_ESSEEN / deviation
        return np.minimum(np.minimum(chernoff, normal), 1.0)

    def moved_by(self, share: float) -> tuple[float, float]:
        """Returns the largest amounts by which a share of lying devices can lower and raise an
        estimate.

        A lying device sends a report that supports the value, or does not, instead of its honest
        one.
        """
        liars = share * self.reports
        down = liars * (1 + float(self.other) / self.apart)
        up = liars * float(1 - self.other) / self.apart
        return down, up
