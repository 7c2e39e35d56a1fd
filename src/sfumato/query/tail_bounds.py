# SPDX-License-Identifier: Apache-2.0
"""How far a sum of independent noises reaches. Proof: tail_bounds.proof.md."""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from sfumato.noise import DiscreteGaussian, DiscreteLaplace, Noise

# Slack for libm; it only widens the reach.
_SLACK = 1 + 1e-9
# Any point gives a valid bound (Chernoff); the best of these is within a percent of the best of all.
_POINTS = [step / 64 for step in range(1, 64)]


@lru_cache(maxsize=1024)
def reach(
    noise: Noise,
    miss: Fraction,
    coefficients: tuple[Fraction, ...] = (Fraction(1),),
    copies: int = 1,
) -> Fraction:
    """r with P(|sum of c X| > r) <= miss, over ``copies`` independent draws X for each coefficient c.

    Guarantees:
        a sum of noises is within its reach at least as often as stated

    >>> reach(DiscreteLaplace(10), Fraction(1, 20))
    Fraction(30, 1)
    """
    weights = [abs(each) for each in coefficients if each]
    if not weights:
        return Fraction(0)
    if len(weights) == 1 and copies == 1:
        return weights[0] * noise.half_width(1 - miss)
    union = (
        sum(weights, Fraction(0)) * copies * noise.half_width(1 - miss / (len(weights) * copies))
    )
    tail = math.log(2 / float(miss))
    if isinstance(noise, DiscreteGaussian):
        squares = float(
            noise.sigma_squared * sum((each * each for each in weights), Fraction(0)) * copies
        )
        return min(union, Fraction(math.sqrt(2 * squares * tail) * _SLACK))
    if isinstance(noise, DiscreteLaplace):
        return min(
            union, _laplace(float(noise.scale), [float(each) for each in weights], copies, tail)
        )
    return union


def _laplace(scale: float, weights: Sequence[float], copies: int, tail: float) -> Fraction:
    """Chernoff: P(S > t) <= exp(-s t) E exp(s S) for every s."""
    rate = 1 / (scale * max(weights))
    bounds = (
        (copies * sum(_log_moment(1 / scale, rate * point * each) for each in weights) + tail)
        / (rate * point)
        for point in _POINTS
    )
    return Fraction(min(bounds) * _SLACK)


def _log_moment(x: float, s: float) -> float:
    """log E exp(s X) of the discrete Laplace law of scale 1/x, 0 <= s < x."""
    return (
        2 * math.log(-math.expm1(-x)) - math.log(-math.expm1(s - x)) - math.log(-math.expm1(-s - x))
    )
