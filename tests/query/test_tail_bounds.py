# SPDX-License-Identifier: Apache-2.0
"""Reaches of sums: against the exact law by convolution, and never wider than the union bound."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.query import tail_bounds as module
from sfumato.query.tail_bounds import is_within, reach

MISS = Fraction(1, 20)


def law(noise, width):
    """The probabilities of -width..width, as floats."""
    return np.array([float(noise.pmf(x).upper) for x in range(-width, width + 1)])


def beyond(noise, copies, far):
    """P(|sum of copies| > far), by convolution of the exact law."""
    one = law(noise, 400)
    total = one
    for _ in range(copies - 1):
        total = np.convolve(total, one)
    middle = len(total) // 2
    inside = total[middle - math.floor(far) : middle + math.floor(far) + 1].sum()
    return 1 - inside


@pytest.mark.parametrize(
    "noise", [DiscreteLaplace(6), DiscreteLaplace("0.4"), DiscreteGaussian(sigma_squared=50)]
)
@pytest.mark.parametrize("copies", [1, 2, 5])
def test_a_sum_of_noises_is_within_its_reach_at_least_as_often_as_stated(noise, copies):
    far = reach(noise, MISS, copies=copies)
    assert beyond(noise, copies, far) <= float(MISS)


@pytest.mark.parametrize("noise", [DiscreteLaplace(30), DiscreteGaussian(sigma_squared=900)])
def test_coefficients_weigh(noise):
    """3 X + Y by convolution on the lattice of one."""
    far = reach(noise, MISS, (Fraction(3), Fraction(-1)))
    one = law(noise, 600)
    stretched = np.zeros(3 * (len(one) - 1) + 1)
    stretched[::3] = one
    total = np.convolve(stretched, one)
    middle = len(total) // 2
    assert 1 - total[middle - math.floor(far) : middle + math.floor(far) + 1].sum() <= float(MISS)
    assert far <= 4 * noise.half_width(1 - MISS / 2)


def test_many_copies_reach_as_their_root():
    far = reach(DiscreteLaplace(100), MISS, copies=400)
    assert far < 400 * DiscreteLaplace(100).half_width(1 - MISS / 400) / 8
    assert far < 1.4 * 1.96 * math.sqrt(400 * 2 * 100**2)


def test_nothing_reaches_nowhere():
    assert reach(DiscreteLaplace(5), MISS, (Fraction(0),)) == 0


def test_a_reach_of_one_noise_for_the_sum_is_noticed(monkeypatch):
    noise = DiscreteLaplace(6)
    monkeypatch.setattr(module, "_laplace", lambda *_: Fraction(noise.half_width(1 - MISS)))
    module.reach.cache_clear()
    assert beyond(noise, 5, reach(noise, MISS, copies=5)) > float(MISS)
    module.reach.cache_clear()


@pytest.mark.parametrize("noise", [DiscreteLaplace(6), DiscreteGaussian(sigma_squared=50)])
@pytest.mark.parametrize("copies", [1, 2, 5])
@pytest.mark.parametrize("weights", [(Fraction(1),), (Fraction(1, 3), Fraction(-2))])
def test_within_is_the_reach_without_the_search(noise, copies, weights):
    far = reach(noise, MISS, weights, copies)
    for most in (far, far + Fraction(1, 7), 2 * far):
        assert is_within(noise, most, MISS, weights, copies)
    for most in (far - Fraction(1, 10**6), far / 2, Fraction(0), Fraction(-1)):
        assert not is_within(noise, most, MISS, weights, copies)
