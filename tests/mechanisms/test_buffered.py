# SPDX-License-Identifier: Apache-2.0
"""The buffered encoder: heights above its coefficients, and rounding of less than two steps."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidDeclaration
from sfumato.mechanisms.buffered import Buffered
from tests.mechanisms.test_encoder import patterns, rows

ONE = 2**48
SMALL = Buffered(40, (ONE, ONE // 3, ONE - ONE // 50, 0), (ONE // 8, ONE // 4, ONE // 4, ONE // 8))


def coefficient(encoder: Buffered, age: int) -> Fraction:
    """The coefficient of an age, exactly, in steps."""
    total = Fraction(0)
    for rate, weight in zip(encoder.rates, encoder.weights, strict=True):
        total += Fraction(weight, ONE) * Fraction(rate, ONE) ** age
    return total * 2**24


def test_a_coefficient_is_never_above_its_height():
    heights = SMALL.heights.tolist()
    exact = [coefficient(SMALL, age) for age in range(40)]
    assert all(true <= height < true + 1 for true, height in zip(exact, heights, strict=True))
    long = Buffered(2**14, (ONE - ONE // 5000, ONE // 2), (ONE // 2, ONE // 2))
    heights = long.heights
    assert len(heights) == 2**14 and (np.diff(heights) <= 0).all()
    for age in (0, 1, 1023, 1024, 1025, 2047, 2049, 5000, 2**14 - 1):
        true = coefficient(long, age)
        assert true <= int(heights[age]) <= true * Fraction(101, 100) + 1


@given(st.data())
@settings(deadline=None)
def test_rounding_moves_a_row_by_less_than_two_steps(data):
    steps = 8
    rates = data.draw(st.lists(st.integers(0, ONE), min_size=1, max_size=3))
    weights = [ONE // (2 * len(rates)) + place for place in range(len(rates))]
    encoder = Buffered(steps, tuple(rates), tuple(weights))
    count = st.lists(st.integers(0, 2**50), min_size=steps, max_size=steps)
    one, other = data.draw(count), data.draw(count)
    left, right = (rows(encoder, [[each] for each in inputs]) for inputs in (one, other))
    for tick in range(steps):
        linear = Fraction(0)
        for age in range(tick + 1):
            linear += coefficient(encoder, age) * (one[tick - age] - other[tick - age])
        assert abs(left[tick] - right[tick] - linear) < 2


def test_all_rows_together_move_by_no_more_than_sensitivity_and_slack():
    encoder = Buffered(8, (ONE, ONE // 3), (ONE // 4, ONE // 2))
    base = [[1000 + 7 * tick] for tick in range(8)]
    before = np.array(rows(encoder, base), object)
    for participations, separation in ((1, 1), (3, 2), (8, 1)):
        linear = encoder.sensitivity(participations, separation) ** 0.5
        reached = 0.0
        for ticks in patterns(8, participations, separation):
            more = [[count + (tick in ticks)] for tick, (count,) in enumerate(base)]
            moved = np.array(rows(encoder, more), object) - before
            reached = max(reached, float((moved**2).sum()) ** 0.5)
        assert reached <= linear + encoder.slack**0.5
        # and the bound is not loose: heights are rounded up, rows down
        assert reached >= linear - 2 * encoder.slack**0.5


def test_a_mutant_that_forgets_one_buffer_in_its_heights_is_caught():
    encoder = Buffered(8, (ONE, ONE // 3), (ONE // 4, ONE // 2))
    forgetful = Buffered(8, (ONE // 3,), (ONE // 2,)).heights
    assert any(coefficient(encoder, age) > int(forgetful[age]) for age in range(8))


def test_the_memory_holds_large_counts_without_loss():
    encoder = Buffered(4, (ONE,), (ONE,))
    counts = [2**55 - 1, 2**55 - 3, 5, 0]
    found = rows(encoder, [[count] for count in counts])
    assert found == [sum(counts[: tick + 1]) * 2**24 for tick in range(4)]


@pytest.mark.parametrize(
    "build",
    [
        lambda: Buffered(0, (0,), (1,)),
        lambda: Buffered(2**40, (0,), (1,)),
        lambda: Buffered(4, (ONE + 1,), (1,)),
        lambda: Buffered(4, (-1,), (1,)),
        lambda: Buffered(4, (0,), (ONE + 1,)),
        lambda: Buffered(4, (0, 0), (1,)),
        lambda: Buffered(4, (0,), (0,)),
        lambda: Buffered(4, (0.5,), (1,)),
    ],
)
def test_buffers_whose_coefficients_could_rise_are_refused(build):
    with pytest.raises(InvalidDeclaration):
        build()
