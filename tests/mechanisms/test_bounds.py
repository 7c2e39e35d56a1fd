# SPDX-License-Identifier: Apache-2.0
"""Private bounds: one bin a row, noise on every bin, a threshold that is exactly as rare as
declared.
"""

import math
from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sfumato.accounting import account
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.mechanisms.additive import AdditiveMechanism, gaussian
from sfumato.mechanisms.bounds import ApproximateBounds, bounds
from sfumato.metadata import Integer
from sfumato.noise import DiscreteLaplace
from sfumato.privacy import AdditiveNoise, Distance, Norm, Relation
from sfumato.testing import Replay, assert_at_most

# the room exports a function of the same name
module = import_module("sfumato.mechanisms.bounds")

ROW = Distance(Norm.L1, Fraction(1))
WIDE = bounds(ROW, 1, lower=-16, upper=2**40, failure="1e-6")
SMALL = bounds(ROW, 1, lower=-4, upper=8, failure="0.1")
ROWS = st.lists(st.integers(-20, 20), max_size=12)


class Seen(Exception):
    """Carries the exact counts that were handed to the noise."""


def counts_of(mechanism, rows, monkeypatch):
    """The counts that get noise."""

    def seen(additive, exact, drawn=None):
        raise Seen(list(exact))

    with monkeypatch.context() as patch:
        patch.setattr(AdditiveMechanism, "release", seen)
        with pytest.raises(Seen) as caught:
            mechanism.release(rows)
    return caught.value.args[0]


def expected_counts(rows):
    """Bins of -4, -2, -1, 0, 1, 2, 4, 8, each with its upper edge.

    Rows beyond the ends in the end bins.
    """
    edges = [-4, -2, -1, 0, 1, 2, 4, 8]
    counts = [0] * 7
    for row in rows:
        inside = [i for i in range(7) if edges[i] < row <= edges[i + 1]]
        counts[inside[0] if inside else (0 if row <= -4 else 6)] += 1
    return counts


def test_the_edges_are_signed_powers_of_two_within_the_widest_bounds():
    assert SMALL.edges == (-4, -2, -1, 0, 1, 2, 4, 8)
    assert bounds(ROW, 1, lower=0, upper=4, failure=0.1).edges == (0, 1, 2, 4)
    assert bounds(ROW, 1, lower=4, upper=64, failure=0.1).edges == (4, 8, 16, 32, 64)
    assert bounds(ROW, 1, lower=-64, upper=-16, failure=0.1).edges == (-64, -32, -16)
    assert len(bounds(ROW, 1, lower=-(2**52), upper=2**52, failure=0.1).edges) == 2 * 53 + 1


@given(ROWS)
@example([-4, -2, -1, 0, 1, 2, 4, 8, 2**52, -(2**52)])
@settings(deadline=None)
def test_each_row_is_in_one_bin_that_holds_it(rows):
    with pytest.MonkeyPatch.context() as patch:
        assert counts_of(SMALL, rows, patch) == expected_counts(rows)


def moved(mechanism, rows, more, monkeypatch):
    """How far in L1 the counts of neighbours are."""
    one, other = (counts_of(mechanism, data, monkeypatch) for data in (rows, [*rows, *more]))
    return sum(abs(a - b) for a, b in zip(one, other, strict=True))


@given(ROWS, ROWS)
@settings(deadline=None)
def test_rows_move_the_counts_by_at_most_their_number(rows, more):
    with pytest.MonkeyPatch.context() as patch:
        assert moved(SMALL, rows, more, patch) <= len(more)


def test_a_row_in_two_bins_is_noticed(monkeypatch):
    counted = np.bincount
    monkeypatch.setattr(
        np, "bincount", lambda places, minlength: counted(np.concatenate([places, places]), None, 7)
    )
    assert moved(SMALL, [1, 2], [3], monkeypatch) == 2


def test_every_bin_gets_the_noise_of_the_event():
    event = SMALL.event(ROW)
    assert event == AdditiveNoise(DiscreteLaplace(1), ROW)
    assert event.noise is SMALL.additive.noise
    drawn = SMALL.draw(Replay(3))
    assert len(drawn) == 7 == len(SMALL.edges) - 1
    assert list(drawn) == event.noise.sample(7, Replay(3)).tolist()
    # the noise alone decides on empty bins: bins 2 and 4 pass
    t = SMALL.threshold
    assert SMALL.release([], drawn=[0, 0, t + 1, 0, t + 1, 0, 0]) == (-1, 2)
    assert SMALL.release([], drawn=[t] * 7) == (-4, 8)
    with pytest.raises(ValueError, match="zip"):
        SMALL.release([], drawn=[0] * 6)


@given(
    st.fractions(min_value=Fraction(1, 1000), max_value=100),
    st.integers(1, 9),
    st.sampled_from(Relation),
)
@settings(deadline=None)
def test_bounds_buy_exactly_their_epsilon(epsilon, k, relation):
    distance = Distance(Norm.L1, Fraction(k), relation)
    mechanism = bounds(distance, epsilon, lower=0, upper=8, failure="0.1")
    assert account(mechanism.event(distance)).epsilon == epsilon
    assert account(mechanism.event(distance)).delta == 0


def exact_failure(threshold, bins, epsilon):
    """1 - (1 - P(X > t))^bins, P(X > t) = g^(t+1) / (1+g)."""
    g = math.exp(-epsilon)
    return -math.expm1(bins * math.log1p(-(g ** (threshold + 1)) / (1 + g)))


@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "1", "3"])
@pytest.mark.parametrize("failure", ["0.5", "0.01", "1e-9"])
def test_the_threshold_is_the_smallest_with_the_declared_failure(epsilon, failure):
    mechanism = bounds(ROW, epsilon, lower=-(2**30), upper=2**52, failure=failure)
    bins, threshold = len(mechanism.edges) - 1, mechanism.threshold
    assert bins == 31 + 53
    assert exact_failure(threshold, bins, float(epsilon)) <= float(failure) * (1 + 1e-9)
    assert exact_failure(threshold - 1, bins, float(epsilon)) > float(failure) * (1 - 1e-9)


def empty_bins_passing(mechanism, stated):
    entropy = Replay(17)
    passed = sum(max(mechanism.draw(entropy)) > mechanism.threshold for _ in range(4000))
    assert_at_most(passed, 4000, stated, notices=stated + 0.11)


def test_an_empty_bin_passes_at_most_as_often_as_declared():
    empty_bins_passing(SMALL, 0.1)


def test_a_threshold_for_one_bin_is_noticed(monkeypatch):
    alone = Fraction(SMALL.failure)
    one = module.smallest(lambda x: Fraction(SMALL.additive.noise.above(x).upper) <= alone)
    monkeypatch.setattr(ApproximateBounds, "threshold", property(lambda mechanism: one))
    with pytest.raises(AssertionError, match="was stated"):
        empty_bins_passing(SMALL, 0.1)


def test_a_full_bin_is_inside_the_bounds_as_often_as_stated():
    rows, entropy = SMALL.error("0.9"), Replay(23)
    assert_at_most(outside(rows, entropy), 1500, 0.1, notices=0.27)


def test_a_bin_of_as_many_rows_as_the_threshold_is_noticed():
    with pytest.raises(AssertionError, match="was stated"):
        assert_at_most(outside(SMALL.threshold, Replay(23)), 1500, 0.1, notices=0.27)


def outside(rows, entropy):
    """How often bounds leave out -3, beside a bin that surely passes."""
    data = np.array([-3] * rows + [7] * 200)
    return sum(SMALL.release(data, entropy=entropy)[0] > -3 for _ in range(1500))


def test_nothing_that_passes_means_the_widest_bounds():
    assert WIDE.release([]) == WIDE.release([None, math.nan]) == (-16, 2**40)
    assert WIDE.release([5]) == (-16, 2**40)


@given(
    st.lists(st.one_of(st.none(), st.floats(), st.integers(-(2**60), 2**60)), max_size=20),
    st.integers(0, 10**6),
)
@settings(deadline=None)
def test_bounds_are_never_degenerate_whatever_the_rows_and_the_noise(rows, seed):
    lower, upper = SMALL.release(rows, entropy=Replay(seed))
    assert lower < upper and {lower, upper} <= set(SMALL.edges)


def test_bounds_hold_the_rows_closely():
    assert WIDE.release([-3] * 99 + [1000] * 99) == (-4, 1024)
    assert WIDE.release([1024] * 99 + [1025] * 99) == (512, 2048)
    assert WIDE.release([-(10**9)] * 99) == (-16, -8)
    assert WIDE.release([math.inf] * 99) == (2**39, 2**40)
    assert WIDE.release([0] * 99) == (-1, 0)


@pytest.mark.parametrize(
    ("lower", "upper"), [(0, 0), (8, 4), (0, 3), (-5, 8), (0, 2**53), (0.5, 2)]
)
def test_widest_bounds_off_the_grid_are_refused(lower, upper):
    with pytest.raises(InvalidDeclaration):
        bounds(ROW, 1, lower=lower, upper=upper, failure="0.1")


@pytest.mark.parametrize("failure", [0, 1, -1, 2, math.nan, "x"])
def test_a_failure_outside_the_open_unit_is_refused(failure):
    with pytest.raises(InvalidNumber, match="failure"):
        bounds(ROW, 1, lower=0, upper=8, failure=failure)
    with pytest.raises(InvalidNumber, match="failure"):
        ApproximateBounds(Integer(0, 8), SMALL.additive, failure)


def test_a_cost_or_distance_that_is_none_is_refused():
    with pytest.raises(InvalidNumber, match="epsilon"):
        bounds(ROW, 0, lower=0, upper=8, failure="0.1")
    for norm in (Norm.L2, Norm.LINF):
        with pytest.raises(InvalidDeclaration, match=norm.value):
            bounds(Distance(norm, Fraction(1)), 1, lower=0, upper=8, failure="0.1")
        with pytest.raises(InvalidDeclaration):
            SMALL.event(Distance(norm, Fraction(1)))
    other = ApproximateBounds(
        Integer(0, 8), gaussian(Distance(Norm.L2, Fraction(1)), 1), Fraction(1, 10)
    )
    with pytest.raises(InvalidDeclaration):
        other.event(ROW)
