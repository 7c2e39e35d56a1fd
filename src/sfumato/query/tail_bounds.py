# SPDX-License-Identifier: Apache-2.0
"""Tail bounds for sums of independent noise, which give the intervals of estimates.

Proof: tail_bounds.proof.md.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from sfumato.noise import DiscreteGaussian, DiscreteLaplace, Noise

# A factor for the error of libm; it only widens the bound.
_SLACK = 1 + 1e-9
# Every point gives a valid Chernoff bound; the best of these is within 1% of the best of all.
_POINTS = [step / 64 for step in range(1, 64)]


@lru_cache(maxsize=1024)
def reach(
    noise: Noise,
    miss: Fraction,
    coefficients: tuple[Fraction, ...] = (Fraction(1),),
    copies: int = 1,
) -> Fraction:
    """Returns a bound r with P(|S| > r) <= miss, for a weighted sum S of independent noise.

    S adds c X over ``copies`` independent draws X for each coefficient c.

    Guarantees:
        a sum of noises is within its reach at least as often as stated

    >>> reach(DiscreteLaplace(10), Fraction(1, 20))
    Fraction(30, 1)
    """
    weights = [abs(coefficient) for coefficient in coefficients if coefficient]
    if not weights:
        return Fraction(0)
    if len(weights) == 1 and copies == 1:
        return weights[0] * noise.half_width(1 - miss)
    one = noise.half_width(1 - miss / (len(weights) * copies))
    union = sum(weights, Fraction(0)) * copies * one
    bound = _bound(noise, miss, weights, copies)
    return union if bound is None else min(union, bound)


def is_within(
    noise: Noise,
    most: Fraction,
    miss: Fraction,
    coefficients: tuple[Fraction, ...] = (Fraction(1),),
    copies: int = 1,
) -> bool:
    """Returns whether ``reach``, the tail bound of a sum of noise, is at most ``most``, without
    computing it.

    >>> is_within(DiscreteLaplace(10), Fraction(30), Fraction(1, 20))
    True
    """
    weights = [abs(coefficient) for coefficient in coefficients if coefficient]
    if not weights or most < 0:
        return most >= 0
    count = len(weights) * copies
    if noise.tail(int(most / (sum(weights, Fraction(0)) * copies))).upper <= miss / count:
        return True
    bound = None if count == 1 else _bound(noise, miss, weights, copies)
    return bound is not None and bound <= most


def _bound(
    noise: Noise,
    miss: Fraction,
    weights: Sequence[Fraction],
    copies: int,
) -> Fraction | None:
    """A bound like ``reach`` from the moments of the noise; None for laws without one."""
    tail = math.log(2 / float(miss))
    if isinstance(noise, DiscreteGaussian):
        squares = sum((weight * weight for weight in weights), Fraction(0))
        variance = float(noise.sigma_squared * squares * copies)
        return Fraction(math.sqrt(2 * variance * tail) * _SLACK)
    if isinstance(noise, DiscreteLaplace):
        return _laplace(float(noise.scale), [float(weight) for weight in weights], copies, tail)
    return None


def _laplace(
    scale: float,
    weights: Sequence[float],
    copies: int,
    tail: float,
) -> Fraction:
    """The Chernoff bound for discrete Laplace noise: P(S > t) <= exp(-s t) E exp(s S) for all s."""
    rate = 1 / (scale * max(weights))
    bounds = []
    for point in _POINTS:
        moment = sum(_log_moment(1 / scale, rate * point * weight) for weight in weights)
        bounds.append((copies * moment + tail) / (rate * point))
    return Fraction(min(bounds) * _SLACK)


def _log_moment(x: float, s: float) -> float:
    """The log of E exp(s X) for discrete Laplace noise X of scale 1/x, where 0 <= s < x."""
    middle = 2 * math.log(-math.expm1(-x))
    right = math.log(-math.expm1(s - x))
    left = math.log(-math.expm1(-s - x))
    return middle - right - left
