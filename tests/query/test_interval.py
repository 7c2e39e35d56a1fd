# SPDX-License-Identifier: Apache-2.0
"""Tails against exact enumeration, the interval of a share against brute force, and its coverage."""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.noise import DiscreteGaussian, DiscreteLaplace, Noise
from sfumato.query.interval import _gaussian_tail, _laplace_tail, share_interval
from sfumato.testing import assert_at_most
from tests.contracts.tails import exact_tail

NOISES = [DiscreteLaplace(s) for s in ("0.4", 1, "2.5")] + [DiscreteGaussian(s) for s in ("0.3", 1, "2.5")]
MISS = Fraction(1, 20)
TRIALS = 10_000


def tail_bound(noise: Noise) -> Callable[[float, float], float]:
    """The bound that the interval uses."""
    return _laplace_tail(float(noise.scale)) if isinstance(noise, DiscreteLaplace) else _gaussian_tail(noise)


def exceeds_somewhere(noise: Noise, bound: Callable[[float, float], float]) -> bool:
    """Whether the truth is above a bound at some point of a grid."""
    return any(
        exact_tail(noise, t, m) > bound(t, m) + 1e-11
        for m in (0.0, 0.01, 0.2, 0.4999, 0.5, 0.5000001, 0.75, 0.97, 1.0)
        for t in np.linspace(0.05, 16, 60)
    )


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_the_tail_bound_is_never_below_the_truth(noise: Noise) -> None:
    assert not exceeds_somewhere(noise, tail_bound(noise))


@pytest.mark.parametrize("noise", NOISES[1:3] + NOISES[4:], ids=str)
def test_a_tail_bound_without_its_step_towards_zero_is_caught(noise: Noise) -> None:
    bound, step = tail_bound(noise), 1.0 if isinstance(noise, DiscreteLaplace) else 0.5
    assert exceeds_somewhere(noise, lambda t, m: bound(t + step, m))


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_the_tail_bound_falls_with_the_distance_and_towards_equal_weights(noise: Noise) -> None:
    def bound(t: float, m: float) -> float:
        return min(tail_bound(noise)(t, m), 1.0)

    for t in np.linspace(0.5, 12, 24):
        assert bound(t + 0.1, 0.3) <= bound(t, 0.3) * (1 + 1e-12)
        along = [bound(t, m) for m in np.linspace(0, 0.5, 26)]
        assert all(later <= earlier * (1 + 1e-6) + 1e-9 for earlier, later in pairwise(along))


@given(
    st.integers(-30, 300), st.integers(-30, 300), st.sampled_from(NOISES), st.sampled_from(["1/20", "1/2", "1/1000"])
)
def test_the_interval_is_the_set_that_the_test_does_not_exclude(a: int, b: int, noise: Noise, miss: str) -> None:
    bound, allowed = tail_bound(noise), float(Fraction(miss))
    grid = np.linspace(0, 1, 401)
    kept = [m for m in grid if bound(abs((1 - m) * a - m * b), m) > allowed]
    low, high = share_interval(a, b, noise, Fraction(miss))
    assert 0 <= low <= high <= 1
    if kept:
        assert low <= kept[0] + 1e-9
        assert high >= kept[-1] - 1e-9
    if kept and min(a, b) >= 0:
        # and nothing more than the grid can see, and the places that are told
        more = 1 / 400 + 2**-12 * (kept[-1] - kept[0] + 2 / 400) + 1e-9
        assert low >= kept[0] - more
        assert high <= kept[-1] + more


@pytest.mark.parametrize("noise", [DiscreteLaplace(2), DiscreteGaussian(2)], ids=str)
@pytest.mark.parametrize(("a", "b"), [(0, 0), (-3, 2), (-5, -5), (2, 1)])
def test_a_group_too_small_to_tell_gives_the_whole_range_on_a_side(noise: Noise, a: int, b: int) -> None:
    low, high = share_interval(a, b, noise, MISS)
    assert low == 0 or high == 1


def test_a_share_without_doubt_is_a_narrow_interval_around_it() -> None:
    low, high = share_interval(250_000, 750_000, DiscreteLaplace(1), MISS)
    assert low < 0.25 < high
    assert high - low < 1e-5


@given(st.integers(0, 200), st.integers(0, 200), st.sampled_from(NOISES))
def test_more_confidence_is_a_wider_interval(a: int, b: int, noise: Noise) -> None:
    narrow, wide = share_interval(a, b, noise, Fraction(1, 4)), share_interval(a, b, noise, Fraction(1, 100))
    if narrow[0] < narrow[1]:
        assert wide[0] <= narrow[0] + 1e-9
        assert wide[1] >= narrow[1] - 1e-9


@given(st.integers(0, 200), st.integers(0, 200), st.sampled_from(NOISES))
def test_an_interval_does_not_care_which_side_is_counted(a: int, b: int, noise: Noise) -> None:
    (low, high), (other_low, other_high) = share_interval(a, b, noise, MISS), share_interval(b, a, noise, MISS)
    assert abs(low - (1 - other_high)) < 1e-9
    assert abs(high - (1 - other_low)) < 1e-9


# --- coverage (RULES 23): failures of 10,000 releases, one-sided ------------------------------

GROUPS = [(0, 1), (1, 0), (3, 2), (30, 10), (1000, 1000), (0, 400)]


@lru_cache(maxsize=100_000)
def remembered(a: int, b: int, noise: Noise) -> tuple[float, float]:
    """The interval: it is a function of the released numbers."""
    return share_interval(a, b, noise, MISS)


def misses(noise: Noise, u: int, v: int, shrink: float = 1.0) -> int:
    """How many of 10,000 releases of (u, v) have an interval without u / (u + v)."""
    truth, missed = u / (u + v), 0
    for x, y in zip(noise.sample(TRIALS), noise.sample(TRIALS), strict=True):
        low, high = remembered(u + x, v + y, noise)
        middle, half = (low + high) / 2, (high - low) / 2 * shrink
        missed += not middle - half - 1e-9 <= truth <= middle + half + 1e-9
    return missed


@pytest.mark.parametrize("noise", [DiscreteLaplace(3), DiscreteGaussian(3)], ids=str)
@pytest.mark.parametrize(("u", "v"), GROUPS)
def test_the_interval_covers_at_least_as_often_as_stated(noise: Noise, u: int, v: int) -> None:
    assert_at_most(misses(noise, u, v), TRIALS, 0.05, notices=0.115, false_alarm=1e-9)


@pytest.mark.parametrize("noise", [DiscreteLaplace(3), DiscreteGaussian(3)], ids=str)
def test_an_interval_half_as_wide_is_caught(noise: Noise) -> None:
    with pytest.raises(AssertionError, match=r"failed; 0\.05 was stated"):
        assert_at_most(misses(noise, 1000, 1000, shrink=0.5), TRIALS, 0.05, notices=0.115, false_alarm=1e-9)
