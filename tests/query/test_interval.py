# SPDX-License-Identifier: Apache-2.0
"""Tails against exact enumeration, the interval of a share against brute force, and its
coverage.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.noise import DiscreteGaussian, DiscreteLaplace, Noise
from sfumato.query import interval
from sfumato.query.interval import _gaussian_tail, _laplace_tail, share_interval
from sfumato.testing import assert_at_most
from tests.contracts.tails import exact_tail

NOISES = [DiscreteLaplace(s) for s in ("0.4", 1, "2.5")] + [
    DiscreteGaussian(s) for s in ("0.3", 1, "2.5")
]
MISS = Fraction(1, 20)
TRIALS = 10_000


def tail_bound(noise: Noise) -> Callable[[float, float], float]:
    """The bound that the interval uses."""
    return (
        _laplace_tail(float(noise.scale))
        if isinstance(noise, DiscreteLaplace)
        else _gaussian_tail(noise)
    )


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
    st.integers(-30, 300),
    st.integers(-30, 300),
    st.sampled_from(NOISES),
    st.sampled_from(["1/20", "1/2", "1/1000"]),
)
def test_the_interval_is_the_set_that_the_test_does_not_exclude(
    a: int, b: int, noise: Noise, miss: str
) -> None:
    bound, allowed = tail_bound(noise), float(Fraction(miss))
    grid = np.linspace(0, 1, 401)
    kept = [m for m in grid if bound(abs((1 - m) * a - m * b), m) > allowed]
    low, high = share_interval(a, b, noise, Fraction(miss))
    assert 0 <= low <= high <= 1
    if kept:
        assert low <= kept[0] + 1e-9
        assert high >= kept[-1] - 1e-9
    if kept and min(a, b) >= 0:
        # and nothing more than the grid can see, and the part of its width to which an end is found
        spare = 1 / 400 + (high - low) / 4096 + 1e-9
        assert low >= kept[0] - spare
        assert high <= kept[-1] + spare


@pytest.mark.parametrize("noise", [DiscreteLaplace(2), DiscreteGaussian(2)], ids=str)
@pytest.mark.parametrize(("a", "b"), [(0, 0), (-3, 2), (-5, -5), (2, 1)])
def test_a_group_too_small_to_tell_gives_the_whole_range_on_a_side(
    noise: Noise, a: int, b: int
) -> None:
    low, high = share_interval(a, b, noise, MISS)
    assert low == 0 or high == 1


def test_a_share_without_doubt_is_a_narrow_interval_around_it() -> None:
    low, high = share_interval(250_000, 750_000, DiscreteLaplace(1), MISS)
    assert low < 0.25 < high
    assert high - low < 1e-5


@given(st.integers(0, 200), st.integers(0, 200), st.sampled_from(NOISES))
def test_more_confidence_is_a_wider_interval(a: int, b: int, noise: Noise) -> None:
    narrow, wide = (
        share_interval(a, b, noise, Fraction(1, 4)),
        share_interval(a, b, noise, Fraction(1, 100)),
    )
    if narrow[0] < narrow[1]:
        assert wide[0] <= narrow[0] + 1e-9
        assert wide[1] >= narrow[1] - 1e-9


@given(st.integers(0, 200), st.integers(0, 200), st.sampled_from(NOISES))
def test_an_interval_does_not_care_which_side_is_counted(a: int, b: int, noise: Noise) -> None:
    (low, high), (other_low, other_high) = (
        share_interval(a, b, noise, MISS),
        share_interval(b, a, noise, MISS),
    )
    assert abs(low - (1 - other_high)) < 1e-9
    assert abs(high - (1 - other_low)) < 1e-9


# --- against the plain way: a march of small steps, each of which is excluded whole --------------

LARGE = [DiscreteLaplace(10**6), DiscreteGaussian(10**6), *NOISES]


def marched(a: int, b: int, noise: Noise, miss: Fraction) -> tuple[float, float]:
    """The interval by steps from both ends, halved where a step is not excluded from end to end."""
    bound, allowed = tail_bound(noise), float(miss)

    def whole(sign: int, start: float, end: float) -> bool:
        reach = min(sign * (a - start * (a + b)), sign * (a - end * (a + b))) * (1 - 1e-12)
        return reach > 0 and max(bound(reach, start), bound(reach, end)) <= allowed

    def march(start: float, end: float, sign: int) -> float:
        point, step = start, (end - start) / 64
        while abs(step) > 2.0**-40 and point != end:
            beyond = min(max(point + step, 0.0), 1.0)
            if whole(sign, point, beyond):
                point = beyond
            else:
                step /= 2
        return point

    low, high = march(0.0, 1.0, 1), march(1.0, 0.0, -1)
    return min(low, high), max(low, high)


ENTRY = st.one_of(st.integers(-40, 400), st.integers(-3 * 10**6, 10**9), st.integers(0, 10**15))
MISSES = st.sampled_from([Fraction(1, 20), Fraction(1, 3), Fraction(1, 10**9)])


@given(ENTRY, ENTRY, st.sampled_from(LARGE), MISSES)
def test_it_is_the_marched_interval_and_hardly_wider(
    a: int, b: int, noise: Noise, miss: Fraction
) -> None:
    (low, high), (far_low, far_high) = marched(a, b, noise, miss), share_interval(a, b, noise, miss)
    assert far_low <= low + 1e-11
    assert far_high >= high - 1e-11
    if min(a, b) >= 0:
        assert (far_high - far_low) - (high - low) <= (high - low) / 1000 + 1e-11


def is_sound(a: int, b: int, noise: Noise, miss: Fraction) -> bool:
    """Whether every share that is left out is excluded by its own test."""
    bound, (low, high) = tail_bound(noise), share_interval(a, b, noise, miss)
    steps = [(part / 50) ** 4 for part in range(51)]
    outside = [low * (1 - step) for step in steps] + [high + (1 - high) * step for step in steps]
    left_out = [m for m in outside if m < low or m > high]
    return all(bound(abs((1 - m) * a - m * b), m) <= float(miss) * (1 + 1e-6) for m in left_out)


@given(ENTRY, ENTRY, st.sampled_from(LARGE), MISSES)
def test_every_share_that_is_left_out_is_excluded(
    a: int, b: int, noise: Noise, miss: Fraction
) -> None:
    assert is_sound(a, b, noise, miss)


@given(ENTRY, ENTRY, st.sampled_from(LARGE), st.floats(0, 1))
def test_a_bad_guess_costs_time_and_nothing_else(
    a: int, b: int, noise: Noise, guess: float
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        good = share_interval(a, b, noise, MISS)
        patch.setattr(interval._Test, "guess", lambda self, one, whole: guess)
        assert is_sound(a, b, noise, MISS)
        low, high = share_interval(a, b, noise, MISS)
    assert abs(low - good[0]) + abs(high - good[1]) <= (good[1] - good[0]) / 1000 + 1e-11


def test_an_end_that_is_moved_inwards_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [(300, 200, noise) for noise in NOISES[1:3]] + [(300, 200, NOISES[4])]
    assert all(is_sound(a, b, noise, MISS) for a, b, noise in cases)
    whole = interval._too_small
    monkeypatch.setattr(interval, "_too_small", lambda a, b, test: whole(a, b, test) * 1.001)
    assert not any(is_sound(a, b, noise, MISS) for a, b, noise in cases)


def evaluations(monkeypatch: pytest.MonkeyPatch, make: str, noise: Noise) -> int:
    """How many tails 200 intervals of one noise take, what is remembered included."""
    seen = [0]
    tail = getattr(interval, make)

    def counted(*arguments: object) -> Callable[[float, float], float]:
        bound = tail(*arguments)

        def count(t: float, m: float) -> float:
            seen[0] += 1
            return bound(t, m)

        return count

    monkeypatch.setattr(interval, make, counted)
    interval._test.cache_clear()
    for row in range(200):
        share_interval(40 * (row % 20) + 7, 3000 + 11 * row, noise, MISS)
    interval._test.cache_clear()
    return seen[0]


@pytest.mark.parametrize(
    ("make", "noise"),
    [("_laplace_tail", DiscreteLaplace(9)), ("_gaussian_tail", DiscreteGaussian(9))],
    ids=str,
)
def test_an_interval_takes_few_evaluations(
    monkeypatch: pytest.MonkeyPatch, make: str, noise: Noise
) -> None:
    # the march takes more than 200 each
    assert evaluations(monkeypatch, make, noise) < 200 * 15
    monkeypatch.setattr(interval._Test, "guess", lambda self, a, whole: 0.5)
    assert evaluations(monkeypatch, make, noise) > 200 * 15


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
        assert_at_most(
            misses(noise, 1000, 1000, shrink=0.5), TRIALS, 0.05, notices=0.115, false_alarm=1e-9
        )
