# SPDX-License-Identifier: Apache-2.0
"""Bounds on weighted sums of noise, against their exact tails."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import InvalidNumber
from sfumato.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.synopsis.estimate import gaussian_reach, laplace_reach, miss_of, noise_width


def tail(noise: object, weights: list[int], reach: float) -> float:
    """The exact probability that a weighted sum of independent noise is beyond ``reach``."""
    most = 400
    law = np.array([float(noise.pmf(value).upper) for value in range(-most, most + 1)])
    sums = np.ones(1)
    for weight in weights:
        spread = np.zeros(2 * most * weight + 1)
        spread[::weight] = law
        sums = np.convolve(sums, spread)
    middle = len(sums) // 2
    far = np.abs(np.arange(len(sums)) - middle) > reach
    return float(sums[far].sum())


@pytest.mark.parametrize("miss", [0.2, 0.05, 1e-6])
@pytest.mark.parametrize("weights", [[1], [3, 1], [2, 2, 1]])
def test_the_bounds_hold_and_are_not_far_off(weights, miss):
    gauss, laplace = DiscreteGaussian(3), DiscreteLaplace(Fraction(4))
    for noise, reach in (
        (gauss, gaussian_reach(9 * sum(w * w for w in weights), math.log(2 / miss))),
        (
            laplace,
            laplace_reach(16 * sum(w * w for w in weights), 4 * max(weights), math.log(2 / miss)),
        ),
    ):
        assert tail(noise, weights, reach) <= miss
        # a quarter of it does not hold at the usual confidences
        assert tail(noise, weights, reach / 4) > miss


def test_widths_are_the_parameters_of_the_noise():
    assert noise_width(DiscreteGaussian(3)) == 3
    assert noise_width(DiscreteLaplace(Fraction(7, 2))) == 3.5


def test_no_noise_reaches_nowhere():
    assert laplace_reach(0.0, 0.0, 1.0) == 0


@pytest.mark.parametrize("confidence", [0, 1, "1.5", float("nan")])
def test_a_confidence_is_a_probability(confidence):
    with pytest.raises(InvalidNumber):
        miss_of(confidence)
