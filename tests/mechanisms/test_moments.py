# SPDX-License-Identifier: Apache-2.0
"""Private mean and variance: what rows move, what it costs, what the interval covers."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import account
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.mechanisms import bernstein, moments
from sfumato.mechanisms.bernstein import Statistic
from sfumato.mechanisms.bounds import bounds
from sfumato.mechanisms.moments import Clipped, clipped_mean, clipped_variance, mean, variance
from sfumato.mechanisms.quantile import quantiles
from sfumato.noise import DiscreteLaplace
from sfumato.privacy import AdditiveNoise, Composed, Distance, Norm, Relation
from sfumato.testing import Replay, assert_at_most

ROW = Distance(Norm.L1, Fraction(1))
MAKERS = {Statistic.MEAN: mean, Statistic.VARIANCE: variance}
PRIVATE = {Statistic.MEAN: clipped_mean, Statistic.VARIANCE: clipped_variance}
BOTH = pytest.mark.parametrize("statistic", list(Statistic))
ROWS = st.lists(st.integers(-30, 120), max_size=9)


def truth(rows, lower, upper, statistic):
    """The statistic of the rows clipped to bounds, by numpy's or Python's own definition."""
    clipped = [Fraction(min(max(row, lower), upper)) for row in rows]
    average = sum(clipped) / len(clipped)
    return (
        average
        if statistic is Statistic.MEAN
        else sum((row - average) ** 2 for row in clipped) / len(clipped)
    )


def exact(mechanism, rows):
    """The sums without noise."""
    return mechanism.release(rows, drawn=[0] * mechanism.statistic.amounts)


def moved(mechanism, rows, more):
    return sum(
        abs(a - b)
        for a, b in zip(exact(mechanism, rows), exact(mechanism, [*rows, *more]), strict=True)
    )


@BOTH
@given(ROWS, st.lists(st.integers(-30, 120), min_size=1, max_size=3), st.sampled_from(Relation))
def test_neighbours_move_the_sums_by_at_most_the_distance(statistic, rows, more, relation):
    distance = Distance(Norm.L1, Fraction(len(more)), relation)
    mechanism = MAKERS[statistic](distance, 1, lower=-10, upper=90)
    event = mechanism.event(distance)
    assert event == AdditiveNoise(
        mechanism.additive.noise, Distance(Norm.L1, event.distance.value, relation)
    )
    assert moved(mechanism, rows, more) <= event.distance.value == len(more) * 100**statistic.value


@BOTH
def test_rows_that_are_not_clipped_are_noticed(statistic, monkeypatch):
    mechanism = MAKERS[statistic](ROW, 1, lower=-10, upper=90)
    monkeypatch.setattr(moments, "on_lattice", lambda rows, within: np.array(rows, np.int64))
    assert moved(mechanism, [], [120]) > mechanism.event(ROW).distance.value


@given(
    st.fractions(min_value=Fraction(1, 1000), max_value=100),
    st.integers(1, 9),
    st.sampled_from(Statistic),
)
def test_a_moment_buys_exactly_its_epsilon(epsilon, k, statistic):
    distance = Distance(Norm.L1, Fraction(k))
    mechanism = MAKERS[statistic](distance, epsilon, lower=-10, upper=90)
    assert account(mechanism.event(distance)).epsilon == epsilon
    assert mechanism.additive.noise == DiscreteLaplace(k * 100**statistic.value / epsilon)
    assert len(mechanism.draw()) == statistic.amounts


@BOTH
@given(st.lists(st.integers(-30, 120), min_size=1, max_size=9))
def test_a_moment_without_noise_is_the_statistic_of_the_clipped_rows(statistic, rows):
    mechanism = MAKERS[statistic](ROW, 10**12, lower=-10, upper=90)
    assert mechanism.estimate(exact(mechanism, rows), 0.5).value == truth(rows, -10, 90, statistic)


DATA = [5, 17, 17, 40, 66, 90, 200, -50] * 6


def misses(mechanism, rows, right, confidence, trials=600):
    """How often the interval leaves the truth out; sure to notice a miss of 0.27 more."""
    entropy = Replay(31)
    estimates = (
        mechanism.estimate(mechanism.release(rows, entropy=entropy), confidence)
        for _ in range(trials)
    )
    missed = sum(not each.lower <= right(each) <= each.upper for each in estimates)
    miss = float(1 - Fraction(str(confidence)))
    assert_at_most(missed, trials, miss, notices=miss + 0.27)


@BOTH
def test_the_interval_covers_the_clipped_statistic(statistic):
    mechanism = MAKERS[statistic](ROW, 1, lower=0, upper=100)
    misses(mechanism, DATA, lambda _: truth(DATA, 0, 100, statistic), "0.8")


@BOTH
def test_an_interval_for_a_sixteenth_of_the_noise_is_noticed(statistic, monkeypatch):
    mechanism = MAKERS[statistic](ROW, 1, lower=0, upper=100)
    reach = moments._reach
    monkeypatch.setattr(moments, "_reach", lambda *given: reach(*given) // 16)
    with pytest.raises(AssertionError, match="was stated"):
        misses(mechanism, DATA, lambda _: truth(DATA, 0, 100, statistic), "0.8")


@BOTH
def test_the_statistic_of_the_raw_rows_is_not_what_is_covered(statistic):
    mechanism = MAKERS[statistic](ROW, 50, lower=0, upper=100)
    with pytest.raises(AssertionError, match="was stated"):
        misses(mechanism, DATA, lambda _: truth(DATA, -1000, 1000, statistic), "0.8")


@BOTH
def test_the_error_of_a_moment_is_as_stated(statistic):
    mechanism = MAKERS[statistic](ROW, 1, lower=0, upper=100)
    too_far(mechanism, statistic, mechanism.error("0.8", size=len(DATA)))


@BOTH
def test_an_eighth_of_the_error_is_noticed(statistic):
    mechanism = MAKERS[statistic](ROW, 1, lower=0, upper=100)
    with pytest.raises(AssertionError, match="was stated"):
        too_far(mechanism, statistic, mechanism.error("0.8", size=len(DATA)) / 8)


def too_far(mechanism, statistic, bound):
    entropy, right = Replay(37), truth(DATA, 0, 100, statistic)
    values = [
        mechanism.estimate(mechanism.release(DATA, entropy=entropy), 0.5).value for _ in range(600)
    ]
    assert_at_most(sum(abs(value - right) > bound for value in values), 600, 0.2, notices=0.47)


@BOTH
def test_the_error_falls_with_the_rows_and_is_never_more_than_the_range(statistic):
    mechanism = MAKERS[statistic](ROW, 1, lower=0, upper=100)
    errors = [mechanism.error("0.95", size=size) for size in (0, 1, 10, 100, 10**4, 10**6)]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] == statistic.most * 100**statistic.value
    assert errors[-1] < Fraction(1, 100) * 100 ** (statistic.value - 1)


@BOTH
def test_no_rows_are_a_case_like_any_other(statistic):
    mechanism = MAKERS[statistic](ROW, 1, lower=20, upper=30)
    for rows in ([], [None], [math.nan]):
        noisy = mechanism.release(rows, entropy=Replay(1))
        found = mechanism.estimate(noisy, 0.95)
        assert found.lower <= found.value <= found.upper
    nothing = mechanism.estimate([-1, -1, -1][: statistic.amounts], "0.95")
    start, span = (20, 10) if statistic is Statistic.MEAN else (0, 25)
    assert (nothing.value, nothing.lower, nothing.upper) == (
        start + Fraction(span, 2),
        start,
        start + span,
    )


def test_the_widest_bounds_stay_exact():
    mechanism = variance(ROW, "1e15", lower=-(2**52), upper=2**52)
    assert mechanism.estimate(exact(mechanism, [-(2**60), 2**60] * 1000), 0.9).value == 2**104
    noisy = mechanism.release([0] * 1000)
    assert all(isinstance(each, int) for each in noisy)


# --- private bounds --------------------------------------------------------------------

CLIPS = {
    "bounds": lambda e: bounds(ROW, e, lower=-1024, upper=2**30, failure="1e-6"),
    "quantiles": lambda e: quantiles(ROW, e, q=["0.1", "0.9"], lower=-1024, upper=2**30),
}
CLIP = pytest.mark.parametrize("clip", CLIPS.values(), ids=CLIPS.keys())


@CLIP
@BOTH
@pytest.mark.parametrize("epsilon", ["0.7", "1", "1e3"])
def test_private_bounds_and_sums_cost_epsilon_together(clip, statistic, epsilon):
    search = clip("0.1")
    mechanism = PRIVATE[statistic](ROW, epsilon, clip=search)
    event = mechanism.event(ROW)
    assert account(event).epsilon == Fraction(epsilon)
    assert event == Composed((search.event(ROW), event.events[1]))
    assert event.events[1] == AdditiveNoise(
        mechanism.additive.noise, Distance(Norm.L1, Fraction(2 ** (20 * statistic.value)))
    )
    assert account(event.events[1]).epsilon == Fraction(epsilon) - Fraction("0.1")


@CLIP
@BOTH
@given(
    rows=st.lists(st.integers(-(2**31), 2**31), max_size=6),
    row=st.integers(-(2**31), 2**31),
    found=st.tuples(st.integers(-1024, 2**30), st.integers(-1024, 2**30)).map(sorted),
)
@settings(deadline=None)
def test_given_the_bounds_neighbours_move_the_sums_by_at_most_the_distance(
    clip, statistic, rows, row, found
):
    mechanism = PRIVATE[statistic](ROW, 1, clip=clip("0.1"))
    one, other = (sums_within(mechanism, data, found) for data in (rows, [*rows, row]))
    assert (
        sum(abs(a - b) for a, b in zip(one, other, strict=True))
        <= mechanism.event(ROW).events[1].distance.value
    )


def sums_within(mechanism, rows, found):
    """The exact sums after bounds were found."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(mechanism.clip), "release", lambda clip, rows, entropy: tuple(found))
        patch.setattr(
            moments.AdditiveMechanism, "draw", lambda additive, cells, entropy: (0,) * cells
        )
        released = mechanism.release(rows)
    assert (released.lower, released.upper) == tuple(found)
    return released.noisy


@CLIP
@BOTH
def test_the_interval_covers_the_statistic_clipped_to_private_bounds(clip, statistic):
    mechanism = PRIVATE[statistic](ROW, 3, clip=clip(2))
    covers(mechanism, statistic)


@CLIP
@BOTH
def test_an_interval_for_a_sixteenth_of_the_noise_is_noticed_with_private_bounds(
    clip, statistic, monkeypatch
):
    mechanism = PRIVATE[statistic](ROW, 3, clip=clip(2))
    reach = moments._reach
    monkeypatch.setattr(moments, "_reach", lambda *given: reach(*given) // 16)
    with pytest.raises(AssertionError, match="was stated"):
        covers(mechanism, statistic)


def covers(mechanism, statistic):
    """As ``misses``, but the bounds that the statistic is clipped to are part of each release."""
    entropy, missed, data = Replay(41), 0, DATA * 4
    for _ in range(300):
        released = mechanism.release(data, entropy)
        found = mechanism.estimate(released, "0.8")
        missed += (
            not found.lower <= truth(data, released.lower, released.upper, statistic) <= found.upper
        )
    assert_at_most(missed, 300, 0.2, notices=0.58)


@BOTH
@given(
    rows=st.lists(st.integers(-10, 2**31), min_size=1, max_size=6),
    found=st.tuples(st.integers(-1024, 2**30), st.integers(-1024, 2**30)).map(sorted),
)
@settings(deadline=None)
def test_rounding_to_steps_is_inside_the_interval(statistic, rows, found):
    mechanism = PRIVATE[statistic](ROW, "1e30", clip=CLIPS["bounds"]("0.1"))
    lower, upper = found
    estimate = mechanism.estimate(Clipped(lower, upper, sums_within(mechanism, rows, found)), "0.5")
    assert estimate.lower <= truth(rows, lower, upper, statistic) <= estimate.upper
    assert (
        estimate.upper - estimate.lower <= Fraction(3, 2**20) * (upper - lower) ** statistic.value
    )


def test_an_interval_that_forgets_the_rounding_is_noticed(monkeypatch):
    mechanism = clipped_mean(ROW, "1e30", clip=CLIPS["bounds"]("0.1"))
    released = Clipped(0, 3, sums_within(mechanism, [1], (0, 3)))
    monkeypatch.setattr(moments, "_ROUNDING", Fraction(0))
    found = mechanism.estimate(released, "0.5")
    assert not found.lower <= 1 <= found.upper


@given(st.integers(0, 2**42), st.integers(0, 2**42))
def test_steps_are_the_nearest_half_to_even(one, other):
    part, width = sorted((one, other))
    step = moments._steps(np.array([part], np.int64), width).item()
    assert step == (round(Fraction(part * 2**20, width)) if width else 0)


def test_bounds_that_meet_are_the_answer():
    mechanism = clipped_mean(ROW, 2, clip=CLIPS["quantiles"](1))
    found = mechanism.estimate(Clipped(7, 7, sums_within(mechanism, [5, 9], (7, 7))), "0.9")
    assert (found.value, found.lower, found.upper) == (7, 7, 7)


@CLIP
@BOTH
def test_a_private_range_is_found_and_used(clip, statistic):
    mechanism = PRIVATE[statistic](ROW, 60, clip=clip(40))
    released = mechanism.release([100] * 500 + [200] * 500)
    assert -1024 <= released.lower <= 100 and 200 <= released.upper <= 256
    value = mechanism.estimate(released, 0.9).value
    right = truth([100] * 500 + [200] * 500, released.lower, released.upper, statistic)
    assert abs(value - right) < right / 5
    assert mechanism.error(0.9, size=1000) < Fraction(1, 100)
    assert mechanism.error(0.9, size=0) == statistic.most


@CLIP
def test_rows_that_can_be_read_only_once_are_read_once(clip):
    mechanism = clipped_mean(ROW, 60, clip=clip(40))
    released = mechanism.release(iter([100, 200, None] * 300))
    assert sum(released.noisy) == pytest.approx(600 * 2**20, rel=0.01)


@pytest.mark.parametrize("epsilon", [0, -1, "nan", "0.1", "0.05"])
def test_an_epsilon_that_the_bounds_use_up_is_refused(epsilon):
    with pytest.raises(InvalidNumber, match="epsilon"):
        clipped_mean(ROW, epsilon, clip=CLIPS["bounds"]("0.1"))


def test_a_range_too_wide_to_step_through_is_refused():
    wide = bounds(ROW, 1, lower=-(2**52), upper=2**52, failure="0.1")
    with pytest.raises(InvalidDeclaration, match="42"):
        clipped_variance(ROW, 2, clip=wide)
    assert clipped_mean(ROW, 2, clip=bounds(ROW, 1, lower=-(2**41), upper=2**41, failure="0.1"))


@BOTH
def test_a_distance_that_is_not_in_rows_or_bounds_that_are_none_are_refused(statistic):
    for norm in (Norm.L2, Norm.LINF):
        with pytest.raises(InvalidDeclaration, match=norm.value):
            MAKERS[statistic](Distance(norm, Fraction(1)), 1, lower=0, upper=1)
        with pytest.raises(InvalidDeclaration, match=norm.value):
            PRIVATE[statistic](Distance(norm, Fraction(1)), 1, clip=CLIPS["bounds"]("0.1"))
    for lower, upper in ((3, 3), (5, 1), (0, 2**60)):
        with pytest.raises(InvalidDeclaration):
            MAKERS[statistic](ROW, 1, lower=lower, upper=upper)
    for epsilon in (0, -1, math.inf):
        with pytest.raises(InvalidNumber, match="epsilon"):
            MAKERS[statistic](ROW, epsilon, lower=0, upper=1)


def test_the_interval_rests_on_the_region_of_the_sums(monkeypatch):
    mechanism = mean(ROW, 1, lower=0, upper=100)
    monkeypatch.setattr(bernstein, "_ratio", lambda part, whole, otherwise: Fraction(1, 2))
    assert mechanism.estimate((10**6, 0), 0.9).value == 50
