# SPDX-License-Identifier: Apache-2.0
"""Reaches of sums of a few noises: against the law by convolution, and how narrow they are."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.query import noise_sums as module
from sfumato.query.noise_sums import sum_reach
from sfumato.query.tail_bounds import reach

MISS = Fraction(1, 20)
ONE = (Fraction(1),)
LAWS = [
    DiscreteLaplace("0.3"),
    DiscreteLaplace(10),
    DiscreteLaplace(220),
    DiscreteGaussian(sigma_squared="0.5"),
    DiscreteGaussian(sigma_squared=100),
]


def tails(noise, draws):
    """P(|S| > t) of the sum of so many draws for t = 0, 1, ..., by convolution of the exact law."""
    width = 18 * math.ceil(math.sqrt(noise.variance.upper)) + 5
    one = np.array([noise.pmf(x).upper for x in range(-width, width + 1)])
    size = draws * (len(one) - 1) + 1
    law = np.fft.irfft(np.fft.rfft(one, 2 * size) ** draws, 2 * size)[:size]
    middle = size // 2
    inside = np.cumsum(law[middle:]) * 2 - law[middle]
    return 1 - inside


@pytest.mark.parametrize("noise", LAWS, ids=range(len(LAWS)))
@pytest.mark.parametrize("draws", [2, 12])
def test_a_sum_of_releases_is_within_its_reach_at_least_as_often_as_stated(noise, draws):
    beyond = tails(noise, draws)
    far = sum_reach(noise, MISS, ONE, draws)
    assert far.denominator == 1
    assert beyond[int(far)] <= float(MISS)
    # the smallest that is, but for 2%
    narrowest = int(np.flatnonzero(beyond <= float(MISS))[0])
    assert far <= max(1.02 * narrowest, narrowest)


def test_the_continuous_bound_holds_where_both_are_known(monkeypatch):
    noise = DiscreteGaussian(sigma_squared=100)
    monkeypatch.setattr(module, "_LARGEST_SIGMA", 1)
    module._exact.cache_clear()
    far = sum_reach(noise, MISS, ONE, 12)
    assert tails(noise, 12)[int(far)] <= float(MISS)
    assert far <= reach(noise, MISS, ONE, 12)
    module._exact.cache_clear()


def test_a_difference_and_a_sum_of_twelve_are_as_narrow_as_they_can_be():
    assert sum_reach(DiscreteLaplace(10), MISS, ONE, 2) == 41
    assert sum_reach(DiscreteLaplace(10), MISS, ONE, 12) == 97


def test_weights_stretch_the_reach():
    half = (Fraction(1, 2), Fraction(-1, 2))
    assert sum_reach(DiscreteLaplace(10), MISS, half, 1) == Fraction(41, 2)


def test_other_sums_have_the_bound_of_all():
    laplace = DiscreteLaplace(10)
    unequal = (Fraction(1), Fraction(3))
    assert sum_reach(laplace, MISS, unequal, 2) == reach(laplace, MISS, unequal, 2)
    assert sum_reach(laplace, MISS, ONE, 66) == reach(laplace, MISS, ONE, 66)
    # a count in between has the bound of the next one
    assert sum_reach(laplace, MISS, ONE, 65) == reach(laplace, MISS, ONE, 66)
    assert sum_reach(laplace, MISS, ONE, 1) == reach(laplace, MISS, ONE, 1)
    rare = Fraction(1, 10**9)
    assert sum_reach(laplace, rare, ONE, 2) == reach(laplace, rare, ONE, 2)


def test_one_noise_fewer_is_noticed(monkeypatch):
    noise = DiscreteLaplace(10)
    true = module._tail_of_sum
    monkeypatch.setattr(
        module, "_tail_of_sum", lambda mass, cell, draws, miss: true(mass, cell, draws - 1, miss)
    )
    caches = (module._exact, sum_reach)
    for cached in caches:
        cached.cache_clear()
    far = sum_reach(noise, MISS, ONE, 12)
    for cached in caches:
        cached.cache_clear()
    assert tails(noise, 12)[int(far)] > float(MISS)
