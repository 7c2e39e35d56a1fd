# SPDX-License-Identifier: Apache-2.0
"""Intervals against the exact law of support: a sum of two binomials, by convolution."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from sfumato.telemetry.choose import spread
from sfumato.telemetry.intervals import Coins
from sfumato.telemetry.oracles import bit, category, hashed, projective, unary

LAWS = [
    (Fraction(1, 2), Fraction(1, 4)),
    (Fraction(9, 10), Fraction(1, 100)),
    (Fraction(3, 4), Fraction(1, 2)),
    (Fraction(1, 50), Fraction(1, 100)),
    (Fraction(999, 1000), Fraction(998, 1000)),
]


def support_law(reports, holders, own, other):
    """The probability of each number of supporting reports."""
    ours = stats.binom.pmf(np.arange(holders + 1), holders, float(own))
    theirs = stats.binom.pmf(np.arange(reports - holders + 1), reports - holders, float(other))
    return np.convolve(ours, theirs)


@pytest.mark.parametrize(("own", "other"), LAWS)
@pytest.mark.parametrize("reports", [20, 400, 4000])
@pytest.mark.parametrize("confidence", ["0.5", "0.95", "0.999999"])
def test_an_interval_holds_the_number_of_devices_as_often_as_stated(
    own, other, reports, confidence
):
    coins = Coins(reports, own, other)
    low, high = coins.interval(np.arange(reports + 1), confidence)
    for holders in (0, 1, reports // 10, reports // 2, reports - 1, reports):
        law = support_law(reports, holders, own, other)
        covered = law[(low <= holders) & (holders <= high)].sum()
        assert covered >= float(confidence) - 1e-12


def test_intervals_are_little_wider_than_the_normal_ones():
    oracle = projective(1000, 1)
    coins = Coins(1_000_000, oracle.own, oracle.other)
    middle = round(float(coins.reports * coins.other))
    low, high = coins.interval(np.array([middle]), "0.95")
    normal = 2 * 1.96 * math.sqrt(1_000_000 * spread(oracle))
    assert normal < float(high[0] - low[0]) < 1.03 * normal


def test_ends_grow_with_the_support():
    for own, other in LAWS:
        low, high = Coins(1000, own, other).interval(np.arange(1001), "0.9")
        assert (np.diff(low) > 0).all() and (np.diff(high) > 0).all() and (low < high).all()


@pytest.mark.parametrize("make", [category, projective, bit, hashed, unary])
def test_the_variance_is_that_of_the_law(make):
    oracle = make(30, 1)
    coins = Coins(500, oracle.own, oracle.other)
    for holders in (0, 20, 500):
        law = support_law(500, holders, oracle.own, oracle.other)
        estimates = coins.estimate(np.arange(501))
        mean = (law * estimates).sum()
        assert math.isclose(mean, holders, rel_tol=1e-9, abs_tol=1e-6)
        variance = (law * (estimates - mean) ** 2).sum()
        assert math.isclose(variance, coins.variance(np.array([holders]))[0], rel_tol=1e-6)


@pytest.mark.parametrize(("own", "other"), LAWS)
@pytest.mark.parametrize("reports", [50, 3000])
def test_a_value_that_no_device_holds_seldom_has_a_small_p_value(own, other, reports):
    coins = Coins(reports, own, other)
    support = np.arange(reports + 1)
    exact = stats.binom.sf(support - 1, reports, float(other))
    found = coins.p_value(support)
    assert (found >= exact - 1e-12).all() and (found <= 1).all()
    # not far above it either, where it matters
    if 0.2 < other < 0.8:
        assert found[exact > 1e-9].min() < 1e-3


def test_lying_devices_move_an_estimate_by_no_more_than_stated():
    oracle = unary(10, 1)
    coins = Coins(10_000, oracle.own, oracle.other)
    down, up = coins.moved_by(0.01)
    honest = round(float(10_000 * oracle.other))
    at_most = coins.estimate(np.array([honest + 100 * float(1 - oracle.other)]))[0]
    assert at_most - coins.estimate(np.array([honest]))[0] <= up + 1e-6
    assert down > 100 and up > 100
