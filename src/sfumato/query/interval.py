# SPDX-License-Identifier: Apache-2.0
"""Confidence intervals of a mean of noisy sums (RULES 23). Proof: interval.proof.md.

A mean is u / (u + v) for two released integers a = u + X and b = v + Y. For the true share m,
T = (1-m) a - m b = (1-m) X - m Y depends on the noise alone. The interval contains every m that
this test does not reject (Fieller's method), so it covers as stated for any u and v. For a group
that is too small it is the whole declared range.
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

# A factor for the error of libm's exp and erfc; it only widens the interval.
_SLACK = 1 + 1e-9
# Shares are multiples of 1 / _PLACES, so that T is exact before its one rounding.
_PLACES = 2**40
# The error of an end is at most 1 / _PRECISION of its distance from the estimate.
_PRECISION = 2**12
# The thresholds of T are tabulated at this many weights between 1/2 and 1, to guess an end.
_LEVELS = 64
# The search for a threshold gives up here.
_FARTHEST = 2.0**200


def share_interval(
    a: int,
    b: int,
    noise: Noise,
    miss: Fraction,
) -> tuple[float, float]:
    """Returns a confidence interval for a share u / (u + v), within [0, 1], that misses it with
    probability at most ``miss``.

    ``a`` is u plus noise and ``b`` is v plus noise, independent, both of the law ``noise``.

    Guarantees:
        the interval covers at least as often as stated

    >>> share_interval(500, 500, DiscreteLaplace(1), Fraction(1, 20))
    (0.4969..., 0.5030...)
    """
    test = _test(noise, miss)
    return _too_small(a, b, test), 1 - _too_small(b, a, test)


class _Test:
    """The test of a share with error probability ``allowed``.

    It caches approximate rejection thresholds of T by the weights, to guess an end of the interval.
    """

    def __init__(self, noise: Noise, miss: Fraction) -> None:
        if isinstance(noise, DiscreteLaplace):
            self.tail = _laplace_tail(float(noise.scale))
        else:
            self.tail = _gaussian_tail(noise)
        self.allowed = float(miss)
        self._thresholds: dict[int, float] = {}

    def guess(self, a: int, whole: int) -> float:
        """An approximation of the smallest share that is not rejected."""
        share = a / whole
        for _ in range(4):
            level = abs(2 * share - 1) * _LEVELS
            place = min(int(level), _LEVELS - 1)
            start = self._threshold(place)
            end = self._threshold(place + 1)
            share = max((a - start - (end - start) * (level - place)) / whole, 0.0)
        return share

    def _threshold(self, level: int) -> float:
        """The threshold of T at a tabulated weight, cached."""
        if level not in self._thresholds:
            self._thresholds[level] = self._reach((1 + level / _LEVELS) / 2)
        return self._thresholds[level]

    def _reach(self, weight: float) -> float:
        """About the least |T| at which a share is rejected, by bisection."""
        high = 1.0
        while self.tail(high, weight) > self.allowed and high < _FARTHEST:
            high *= 2
        low = high / 2
        for _ in range(20):
            middle = (low + high) / 2
            if self.tail(middle, weight) <= self.allowed:
                high = middle
            else:
                low = middle
        return high


def _too_small(a: int, b: int, test: _Test) -> float:
    """A share such that all smaller shares are rejected; 0 if there is none.

    For b >= 0 rejection is monotone: every share below a rejected one is rejected. A negative b
    counts as 0, which rejects fewer shares.
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
    low = max(guess - step, 0)
    high = min(guess + step, estimate)
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
    """The test for a noise law and an error probability, with its cached thresholds."""
    return _Test(noise, miss)


def _laplace_tail(scale: float) -> Tail:
    """Returns an upper bound of P(|(1-m) X - m Y| >= t) for independent discrete Laplace X, Y.

    A discrete Laplace variable differs from a continuous one of the same scale by less than 1, so
    T differs by less than 1. The tail of the continuous T has a closed form.
    """

    def bound(t: float, m: float) -> float:
        x = (t - 1) / scale
        if x <= 0:
            return 1.0
        large = max(m, 1 - m)
        small = min(m, 1 - m)
        gap = large - small
        if gap < 1e-6:
            # near equal weights, where the closed form is 0/0: the tail is larger at 1/2 + gap
            large = 0.5 + 1e-6
            small = 0.5 - 1e-6
            gap = 2e-6
        tail = large**2 * math.exp(-x / large)
        if small > 0:
            tail -= small**2 * math.exp(-x / small)
        # the subtraction of nearly equal numbers has an error of about 1e-16 / gap
        return (tail / gap) * _SLACK + 1e-15 / gap

    return bound


def _gaussian_tail(noise: Noise) -> Tail:
    """Returns an upper bound of P(|(1-m) X - m Y| >= t) for independent discrete Gaussian X, Y.

    The probability of each value is at most e^(1/(24 sigma^2)) times that under the rounded
    continuous Gaussian; for the pair (X, Y) the factor is the square, e^(1/(12 sigma^2)).
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
