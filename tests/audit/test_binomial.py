# SPDX-License-Identifier: Apache-2.0
"""Confidence bounds against Clopper and Pearson's, and their coverage by exact sums."""

import importlib
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

from sfumato.audit.binomial import at_least, at_most, usual
from tests.contracts.effort import examples

BINOMIAL = importlib.import_module("sfumato.audit.binomial")


def tail(count: int, runs: int, p: Fraction) -> Fraction:
    """P(X >= count), exactly."""
    return sum(
        (math.comb(runs, k) * p**k * (1 - p) ** (runs - k) for k in range(count, runs + 1)),
        Fraction(0),
    )


def misses(runs: int, p: Fraction, miss: float) -> tuple[Fraction, Fraction]:
    """How likely the lower bound is above p, and the upper one below it."""
    masses = [math.comb(runs, k) * p**k * (1 - p) ** (runs - k) for k in range(runs + 1)]
    return (
        sum(
            (m for k, m in enumerate(masses) if Fraction(at_least(k, runs, miss)) > p), Fraction(0)
        ),
        sum((m for k, m in enumerate(masses) if Fraction(at_most(k, runs, miss)) < p), Fraction(0)),
    )


PROBABILITIES = [Fraction(1, 50), Fraction(1, 7), Fraction(1, 2), Fraction(19, 20)]


@pytest.mark.parametrize("miss", [0.2, 0.01, 1e-4])
@pytest.mark.parametrize("p", PROBABILITIES)
def test_the_bounds_of_a_probability_miss_it_as_rarely_as_stated(p, miss):
    assert max(misses(60, p, miss)) <= miss


def test_bounds_by_the_normal_approximation_are_noticed(monkeypatch):
    monkeypatch.setattr(
        BINOMIAL,
        "_log_tail",
        lambda k, n, p: -((k - n * p) ** 2) / (2 * n * p * (1 - p)) if 0 < p < 1 else -math.inf,
    )
    assert max(max(misses(60, p, 1e-4)) for p in PROBABILITIES) > 1e-4


@given(st.integers(1, 10**6), st.floats(0, 1), st.sampled_from([1e-2, 1e-5, 2.5e-10]))
@settings(deadline=None, max_examples=examples(4))
def test_the_bounds_are_outside_those_of_clopper_and_pearson_and_near(runs, share, miss):
    happened = round(share * runs)
    lower = float(beta.ppf(miss, happened, runs - happened + 1)) if happened else 0.0
    upper = float(beta.ppf(1 - miss, happened + 1, runs - happened)) if happened < runs else 1.0
    ours = at_least(happened, runs, miss), at_most(happened, runs, miss)
    # beta.ppf is good to about 1e-9 of what it gives
    assert ours[0] <= lower * (1 + 1e-6) and 1 - ours[1] <= (1 - upper) * (1 + 1e-6) + 1e-9
    assert lower - ours[0] <= 0.06 * (happened / runs - lower) + 1e-12
    assert ours[1] - upper <= 0.06 * (upper - happened / runs) + 1e-9


@pytest.mark.parametrize(("runs", "p"), [(1, 0.5), (20, 0.1), (50, 0.5), (50, 0.99)])
def test_the_tail_is_an_upper_bound(runs, p):
    for count in range(runs + 2):
        truth = tail(count, runs, Fraction(p))
        assert math.exp(BINOMIAL._log_tail(count, runs, p)) >= truth * (1 - Fraction(1, 10**9))
        if count > runs * p + 3 * math.sqrt(runs * p * (1 - p)) and count <= runs:
            assert math.exp(BINOMIAL._log_tail(count, runs, p)) <= 1.2 * truth


@pytest.mark.parametrize("p", [0.0, 0.02, 0.5, 1.0])
@pytest.mark.parametrize("miss", [0.1, 1e-6])
def test_unusual_counts_are_as_rare_as_stated(p, miss):
    low, high = usual(p, 80, miss)
    assert tail(high + 1, 80, Fraction(p)) <= miss
    assert 1 - tail(low, 80, Fraction(p)) <= miss
    assert low <= 80 * p <= high


def test_nothing_and_all():
    assert at_least(0, 10, 0.1) == 0 and at_most(10, 10, 0.1) == 1
    # 0.9^10 is a third: an event that never happened in 10 runs has at most 1 - 0.1^(1/10)
    assert abs(at_most(0, 10, 0.1) - (1 - 0.1**0.1)) < 1e-6
    assert abs(at_least(10, 10, 0.1) - 0.1**0.1) < 1e-6
