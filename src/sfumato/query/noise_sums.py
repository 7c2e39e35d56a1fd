# SPDX-License-Identifier: Apache-2.0
"""How far a sum of a few independent noises of one law reaches, by their exact law.

Proof: noise_sums.proof.md.
"""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sfumato.exact.rounding import sqrt_up
from sfumato.noise import DiscreteGaussian, DiscreteLaplace, Noise
from sfumato.query.tail_bounds import reach

# The most draws of which the law is computed, and the smallest probability that it tells.
_MOST_DRAWS = 64
_SMALLEST_MISS = 1e-7
# Absolute errors of the transform, and what is beyond its ends.
_SLACK = 1e-10
# A Gaussian of a larger sigma is bounded by the continuous one.
_LARGEST_SIGMA = 200


@lru_cache(maxsize=2**12)
def sum_reach(
    noise: Noise, miss: Fraction, coefficients: tuple[Fraction, ...], count: int
) -> Fraction:
    """Returns a bound r with P(|S| > r) <= miss for a sum S of ``count`` released numbers.

    Each number has the noise of the sum of c X over the ``coefficients`` c, all independent.

    Guarantees:
        a sum of releases is within its reach at least as often as stated

    >>> sum_reach(DiscreteLaplace(10), Fraction(1, 20), (Fraction(1),), 2)
    Fraction(41, 1)
    """
    known = reach(noise, miss, coefficients, rounded_up(count))
    weights = {abs(coefficient) for coefficient in coefficients if coefficient}
    draws = count * sum(1 for coefficient in coefficients if coefficient)
    if len(weights) != 1 or not 2 <= draws <= _MOST_DRAWS or miss < _SMALLEST_MISS:
        return known
    (weight,) = weights
    exact = _exact(noise, float(miss), draws)
    return known if exact is None else min(known, exact * weight)


def rounded_up(count: int) -> int:
    """Returns a count that is up to 2% larger, so that error bounds of running sums are computed
    for few counts.

    >>> rounded_up(64), rounded_up(1_000), rounded_up(1_001)
    (64, 1008, 1008)
    """
    step = 1 << max(count.bit_length() - 6, 0) if count > _MOST_DRAWS else 1
    return -(-count // step) * step


@lru_cache(maxsize=256)
def _exact(noise: Noise, miss: float, draws: int) -> Fraction | None:
    """A bound of the sum of ``draws`` noises; None for laws of which none is known."""
    if isinstance(noise, DiscreteLaplace):
        scale = float(noise.scale)
        # a cell of a hundredth of the scale widens the bound by less than 3%
        cell = max(1, int(scale / 100))
        ends = math.ceil((40 + 6 * math.sqrt(2 * draws)) * scale / cell) + draws + 2
        far = _power_of_two(ends)
        edges = np.arange(-far, far + 1, dtype=np.float64) * cell - 1
        return _tail_of_sum(np.diff(_laplace_cdf(edges, scale)), cell, draws, miss)
    if not isinstance(noise, DiscreteGaussian):
        return None
    sigma = float(sqrt_up(noise.sigma_squared))
    if sigma > _LARGEST_SIGMA:
        return _continuous(sigma, draws, miss)
    far = _power_of_two(math.ceil((12 + 8 * math.sqrt(draws)) * sigma) + 2)
    squares = np.arange(-far, far, dtype=np.float64) ** 2
    mass = np.exp(-squares / (2 * float(noise.sigma_squared)))
    return _tail_of_sum(mass / mass.sum(), 1, draws, miss)


def _power_of_two(size: int) -> int:
    """The least power of two from a size on: transforms of other lengths take long."""
    return 1 << (size - 1).bit_length()


def _tail_of_sum(mass: NDArray[np.float64], cell: int, draws: int, miss: float) -> Fraction:
    """The smallest bound that the law of a sum gives; ``mass`` is that of cells around 0."""
    size = len(mass)
    middle = size // 2
    # cell q at place q, negative ones at the end: a product of transforms is a cyclic convolution
    law = np.fft.irfft(np.fft.rfft(np.roll(mass, -middle)) ** draws, size)
    above = np.cumsum(law[middle - 1 : 0 : -1])[::-1]
    # above[j] is P(sum of cells >= j + 1), for j + 1 below the middle
    suffices = np.flatnonzero(above <= miss / 2 - _SLACK)
    assert len(suffices), "the ends are far beyond any miss that is admitted"
    cells = int(suffices[0])
    # each noise is at most cell - 1 above the start of its cell
    return Fraction(cells * cell + draws * (cell - 1))


def _laplace_cdf(x: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """P(X <= x) of discrete Laplace noise, at integers."""
    decay = math.exp(-1 / scale)
    right = 1 - np.exp(-(np.maximum(x, 0) + 1) / scale) / (1 + decay)
    left = np.exp(np.minimum(x, 0) / scale) / (1 + decay)
    return np.where(x >= 0, right, left)


def _continuous(sigma: float, draws: int, miss: float) -> Fraction:
    """The bound from continuous Gaussians, of which each noise is a rounded one, almost."""
    factor = math.exp(draws / (24 * sigma * sigma))
    low, high = 0.0, 12.0
    for _ in range(60):
        middle = (low + high) / 2
        if math.erfc(middle / math.sqrt(2)) * factor > miss * (1 - 1e-9):
            low = middle
        else:
            high = middle
    return Fraction(math.ceil(high * sigma * math.sqrt(draws) * (1 + 1e-9) + draws / 2))
