# SPDX-License-Identifier: Apache-2.0
"""Confidence intervals of released numbers (RULES 23). Proof: interval.proof.md.

A mean is u / (u + v) of two released integers a = u + X and b = v + Y. For the true share
m, T = (1-m) a - m b = (1-m) X - m Y is pure noise; the interval holds every m that this
test does not exclude (Fieller), so it covers at least as stated for any u and v, and is
the whole declared range where the group is too small to tell.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from sfumato.exact.rounding import sqrt_down
from sfumato.noise import DiscreteGaussian, DiscreteLaplace, Noise

# A bound of P(|(1-m) X - m Y| >= t), by t and m.
Tail: TypeAlias = Callable[[float, float], float]

# Slack for libm's exp and erfc; it only widens the interval.
_SLACK = 1 + 1e-9
# Shares are multiples of 1 / _PLACES, so that T is exact before its one rounding.
_PLACES = 2**40
# An end is found to this part of its distance from the estimate.
_PRECISION = 2**12
# Between weights of 1/2 and of 1 so many thresholds are tried out to guess an end by.
_LEVELS = 64
# Where a guess gives up: a noise so small that nothing is known of it.
_FARTHEST = 2.0**200


def share_interval(a: int, b: int, noise: Noise, miss: Fraction) -> tuple[float, float]:
    """[low, high] in [0, 1] holding u / (u + v) with probability at least 1 - miss.

    Guarantees:
        the interval covers at least as often as stated

    >>> share_interval(500, 500, DiscreteLaplace(1), Fraction(1, 20))
    (0.4969..., 0.5030...)
    """
    test = _test(noise, miss)
    return _too_small(a, b, test), 1 - _too_small(b, a, test)


class _Test:
    """The test of a share at a level.

    It remembers about what T must be to exclude a share, by its weights: what it guesses an end by.
    """

    def __init__(self, noise: Noise, miss: Fraction) -> None:
        self.tail = (
            _laplace_tail(float(noise.scale))
            if isinstance(noise, DiscreteLaplace)
            else _gaussian_tail(noise)
        )
        self.allowed = float(miss)
        self._thresholds: dict[int, float] = {}

    def guess(self, a: int, whole: int) -> float:
        """About the smallest share that is not excluded."""
        share = a / whole
        for _ in range(4):
            level = abs(2 * share - 1) * _LEVELS
            place = min(int(level), _LEVELS - 1)
            start, end = self._threshold(place), self._threshold(place + 1)
            share = max((a - start - (end - start) * (level - place)) / whole, 0.0)
        return share

    def _threshold(self, level: int) -> float:
        if level not in self._thresholds:
            self._thresholds[level] = self._reach((1 + level / _LEVELS) / 2)
        return self._thresholds[level]

    def _reach(self, weight: float) -> float:
        high = 1.0
        while self.tail(high, weight) > self.allowed and high < _FARTHEST:
            high *= 2
        low = high / 2
        for _ in range(20):
            middle = (low + high) / 2
            low, high = (
                (low, middle) if self.tail(middle, weight) <= self.allowed else (middle, high)
            )
        return high


def _too_small(a: int, b: int, test: _Test) -> float:
    """A share such that all smaller ones are excluded; 0 where none is.

    Where b >= 0 exclusion is monotone: what is below an excluded share is excluded too. A
    negative b counts as 0, which excludes less.
    """
    if a <= 0:
        return 0.0
    whole = a + max(b, 0)

    def excluded(place: int) -> bool:
        far = (a * _PLACES - place * whole) / _PLACES * (1 - 1e-12)
        return far > 0 and test.tail(far, place / _PLACES) <= test.allowed

    estimate = a * _PLACES // whole
    guess = min(int(test.guess(a, whole) * _PLACES), estimate)
    step = max((estimate - guess) // (2 * _PRECISION), 1)
    low, high = max(guess - step, 0), min(guess + step, estimate)
    while not excluded(low):
        if low == 0:
            return 0.0
        step *= 4
        low, high = max(low - step, 0), low
    while high < estimate and excluded(high):
        step *= 4
        low, high = high, min(high + step, estimate)
    while high - low > max((estimate - low) // _PRECISION, 2):
        middle = (low + high) // 2
        if excluded(middle):
            low = middle
        else:
            high = middle
    return low / _PLACES


@lru_cache(maxsize=64)
def _test(noise: Noise, miss: Fraction) -> _Test:
    """The test for a noise, with what it remembers."""
    return _Test(noise, miss)


def _laplace_tail(scale: float) -> Tail:
    """A bound of P(|(1-m) X - m Y| >= t) for discrete Laplace X, Y.

    A discrete Laplace is a continuous one of the same scale moved by less than one, so T
    moves by less than one; the continuous tail is a closed form.
    """

    def bound(t: float, m: float) -> float:
        x = (t - 1) / scale
        if x <= 0:
            return 1.0
        large, small = max(m, 1 - m), min(m, 1 - m)
        gap = large - small
        if gap < 1e-6:
            # the limit at equal weights; the tail grows away from it, so take it at 1/2 + gap
            large, small, gap = 0.5 + 1e-6, 0.5 - 1e-6, 2e-6
        tail = large**2 * math.exp(-x / large)
        tail -= small**2 * math.exp(-x / small) if small > 0 else 0.0
        # a subtraction of near equals loses about 1e-16 / gap
        return (tail / gap) * _SLACK + 1e-15 / gap

    return bound


def _gaussian_tail(noise: Noise) -> Tail:
    """A bound of P(|(1-m) X - m Y| >= t) for discrete Gaussian X, Y.

    Each is at most e^(1/(24 sigma^2)) times as likely as the rounded continuous Gaussian.
    """
    assert isinstance(noise, DiscreteGaussian), "a mean has one of the two"
    sigma = float(sqrt_down(noise.sigma_squared))
    factor = math.exp(1 / (12 * sigma * sigma)) if sigma > 0.05 else math.inf

    def bound(t: float, m: float) -> float:
        if t <= 0.5 or factor == math.inf:
            return 1.0
        spread = sigma * math.hypot(m, 1 - m) * (1 + 1e-12)
        return math.erfc((t - 0.5) / (spread * math.sqrt(2))) * factor * _SLACK

    return bound
