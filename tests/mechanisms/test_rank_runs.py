# SPDX-License-Identifier: Apache-2.0
"""Runs of points by their rank errors: every point once, its error, exact draws."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.mechanisms.rank_runs import draw_point, rank_runs, total_weight
from sfumato.testing import Replay, assert_follows

LEVELS = st.sampled_from(
    [Fraction(1, 2), Fraction(1, 10), Fraction(2, 3), Fraction(999_999, 10**6)]
)
WEIGHTS = st.dictionaries(st.integers(-5, 9), st.integers(1, 9), max_size=8)


def errors(weights, q, shift):
    """The rank error of every point from -5 to 9, by its definition."""
    aim = q * sum(weights.values()) + shift
    found = {}
    for point in range(-5, 10):
        before = sum(weight for value, weight in weights.items() if value < point)
        upto = before + weights.get(point, 0)
        found[point] = max(before - aim, aim - upto, Fraction(0))
    return found


def runs_of(weights, q, shift, factor=1):
    values = sorted(weights)
    kind = np.int64 if factor == 1 else object
    counted = np.array([weights[value] * factor for value in values], kind)
    return rank_runs(np.array(values, np.int64), counted, (-5, 9), q, shift)


@pytest.mark.parametrize("factor", [1, 2**70])
@given(WEIGHTS, LEVELS, st.integers(-20, 20))
def test_runs_are_every_point_once_with_its_rank_error(factor, weights, q, shift):
    runs = runs_of(weights, q, shift * factor, factor)
    found = {}
    for start, width, error in zip(*(part.tolist() for part in runs), strict=True):
        for point in range(start, start + width):
            assert point not in found
            found[point] = Fraction(error, q.denominator * factor)
    assert found == errors(weights, q, shift)


def test_a_point_is_drawn_in_proportion_to_its_weight():
    weights, q, rate = {-3: 2, 0: 5, 6: 1}, Fraction(1, 3), Fraction(1, 2)
    off = errors(weights, q, 0)

    def cdf(at):
        likely = {point: math.exp(-at * error) for point, error in off.items()}
        whole = sum(likely.values())
        return lambda point: sum(each for place, each in likely.items() if place <= point) / whole

    entropy = Replay(3)
    runs = runs_of(weights, q, 0)
    draws = [draw_point(runs, rate / q.denominator, entropy) for _ in range(4_000)]
    assert_follows(draws, cdf(0.5), notices=cdf(3))


def test_runs_drawn_without_their_widths_are_noticed():
    """The mutant: a gap of many points weighs as much as one point."""
    starts, widths, off = rank_runs(np.array([4]), np.array([1]), (0, 10**9), Fraction(1, 2))
    entropy = Replay(4)
    mutant = starts, np.ones_like(widths), off
    draws = [draw_point(mutant, Fraction(1, 2), entropy) for _ in range(100)]
    assert draws.count(4) > 10
    honest = [draw_point((starts, widths, off), Fraction(1, 2), entropy) for _ in range(100)]
    assert honest.count(4) == 0


@given(st.lists(st.integers(0, 2**62), max_size=5))
def test_weights_are_added_whatever_their_size(weights):
    assert total_weight(np.array(weights, np.int64)) == sum(weights)
