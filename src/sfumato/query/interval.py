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

from sfumato.exact.rounding import sqrt_down
from sfumato.noise import DiscreteGaussian, DiscreteLaplace, Noise

# Slack for libm's exp and erfc; it only widens the interval.
_SLACK = 1 + 1e-9
_FINEST, _PLACES = 2.0**-40, 2.0**-13


def share_interval(a: int, b: int, noise: Noise, miss: Fraction) -> tuple[float, float]:
    """[low, high] in [0, 1] holding u / (u + v) with probability at least 1 - miss.

    Guarantees:
        the interval covers at least as often as stated

    >>> share_interval(500, 500, DiscreteLaplace(1), Fraction(1, 20))
    (0.4969..., 0.5030...)
    """
    p_value = _laplace_tail(float(noise.scale)) if isinstance(noise, DiscreteLaplace) else _gaussian_tail(noise)
    allowed = float(miss)

    def excluded(sign: int) -> Callable[[float, float], bool]:
        """Whether every m between two points gives a T of this sign beyond the noise."""

        def whole(start: float, end: float) -> bool:
            # T is linear in m and the noise largest at an end (it falls towards 1/2)
            reach = min(sign * (a - start * (a + b)), sign * (a - end * (a + b))) * (1 - 1e-12)
            return reach > 0 and p_value(reach, start) <= allowed and p_value(reach, end) <= allowed

        return whole

    middle = min(max(a / (a + b), 0.0), 1.0) if a + b > 0 else 0.5
    low = _march(0.0, 1.0, middle, excluded(1))
    high = _march(1.0, 0.0, middle, excluded(-1))
    return min(low, high), max(low, high)


def _march(start: float, end: float, middle: float, whole: Callable[[float, float], bool]) -> float:
    """How far from ``start`` towards ``end`` the points are all excluded, step by step.

    ``middle`` is where none is; how far it is from there is told to so many places only.
    """
    point, step = start, (middle - start) / 2
    while abs(step) > max(_FINEST, abs(middle - point) * _PLACES) and point != end:
        beyond = min(max(point + step, 0.0), 1.0)
        if whole(point, beyond):
            point = beyond
        else:
            step /= 2
    return point


def _laplace_tail(scale: float) -> Callable[[float, float], float]:
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


def _gaussian_tail(noise: Noise) -> Callable[[float, float], float]:
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
