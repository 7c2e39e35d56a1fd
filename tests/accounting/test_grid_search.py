# SPDX-License-Identifier: Apache-2.0
"""What meets and what fails is read, whatever the readings do; and few readings are enough."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import grid_search as module
from sfumato.accounting.grid_search import Counts, Decimals, frontier
from sfumato.errors import InvalidNumber
from tests.contracts.effort import examples

TARGETS = st.fractions(Fraction(1, 10**6), 10**6)


class Readings:
    """Any brackets, the same for the same index, and how often they were asked for."""

    def __init__(self, brackets):
        self.brackets, self.asked = brackets, []

    def __call__(self, index):
        self.asked.append(index)
        return self.brackets(index)


def around(truth, width=0.0):
    """Brackets of this relative width around a true cost."""
    return Readings(lambda index: (truth(index) * (1 - width / 2), truth(index) * (1 + width / 2)))


def power(grid, exponent, factor=1.0):
    """A cost that falls as a power of the parameter."""
    return lambda index: factor * math.exp(-exponent * grid.place(index))


STEEP, WIDE = st.floats(0.3, 5), st.floats(0, 1e-2)


@given(TARGETS, STEEP, WIDE, st.integers(-200, 200), st.sampled_from((0.0, 1e-3)))
@settings(deadline=None)
def test_a_search_ends_within_its_precision_or_where_neighbours_tell_no_more(
    target, exponent, width, start, precision
):
    grid = Decimals(4)
    readings = around(power(grid, exponent), width)
    found = frontier(readings, target, grid, start=start * 100, precision=precision)
    apart = grid.place(found.meets) - grid.place(found.fails)
    if apart > precision:
        # neighbours are undecided: the brackets are as wide as that
        assert readings.brackets(found.meets - 1)[1] > target
        assert readings.brackets(found.fails + 1)[0] <= target
        assert apart <= width * 1.01 / exponent + 2.1e-3
    assert len(set(readings.asked)) == len(readings.asked) <= 40


@given(TARGETS, STEEP, WIDE)
@settings(deadline=None)
def test_what_meets_is_proved_by_its_upper_end(target, exponent, width):
    grid = Decimals(4)
    readings = around(power(grid, exponent), width)
    found = frontier(readings, target, grid, start=0)
    assert found.meets in readings.asked and found.cost == readings.brackets(found.meets)
    assert found.cost[1] <= target


@given(TARGETS, STEEP, WIDE)
@settings(deadline=None)
def test_what_fails_is_proved_by_its_lower_end(target, exponent, width):
    grid = Decimals(4)
    readings = around(power(grid, exponent), width)
    found = frontier(readings, target, grid, start=0)
    assert found.fails in readings.asked and found.fails < found.meets
    assert readings.brackets(found.fails)[0] > target


# values of no order at all, with none, nothing known, and what is no number among them
UGLY = st.sampled_from(
    (0.0, 0.5, 1.0, 1.5, 3.0, math.inf, math.nan, -math.inf, Fraction(1), Fraction(10**400))
)


@given(st.lists(st.tuples(UGLY, UGLY), min_size=8, max_size=8), st.integers(-20, 20))
@settings(deadline=None, max_examples=examples(4))
def test_what_was_read_is_what_is_proved_even_if_no_reading_makes_sense(ends, start):
    readings = Readings(lambda index: ends[index % 8])
    try:
        found = frontier(readings, Fraction(1), Counts(50), start=start)
    except InvalidNumber:
        assert not any(readings.brackets(index)[1] <= 1 for index in readings.asked)
        return
    assert readings.brackets(found.meets)[1] <= 1 and found.meets in readings.asked
    assert found.fails is None or (
        readings.brackets(found.fails)[0] > 1 and found.fails in readings.asked
    )


@pytest.mark.parametrize(
    ("end", "caught_by"),
    [("meets", lambda found, brackets: brackets(found.meets)[1] <= 1), ("edge", lambda found, brackets: brackets(found.fails)[0] > 1)],
)  # fmt: skip
def test_a_search_that_takes_the_other_end_is_noticed(monkeypatch, end, caught_by):
    grid = Decimals(4)
    readings = around(power(grid, 1.0), 0.01)
    assert caught_by(frontier(readings, Fraction(1), grid, start=0), readings.brackets)
    monkeypatch.setattr(
        module, "_UPPER" if end == "meets" else "_LOWER", 0 if end == "meets" else 1
    )
    assert not caught_by(frontier(readings, Fraction(1), grid, start=0), readings.brackets)


@pytest.mark.parametrize("exponent", [0.3, 1, 4])
@pytest.mark.parametrize("far", [-3, 0, 2])
def test_a_power_law_needs_few_readings(exponent, far):
    grid = Decimals(5)
    readings = around(power(grid, exponent, 7.0), 1e-4)
    frontier(readings, Fraction(3), grid, start=grid.near(far * 2.0))
    assert len(readings.asked) <= 7


def test_a_cost_that_is_infinite_at_first_is_walked_out_of():
    grid = Decimals(5)
    readings = around(
        lambda index: math.exp(20 / grid.value(index)) if grid.value(index) > 0.1 else math.inf
    )
    found = frontier(readings, Fraction(2), grid, start=grid.near(-9))
    assert float(grid.value(found.meets)) == pytest.approx(20 / math.log(2), rel=1e-4)
    assert found.meets - found.fails == 1 and len(readings.asked) <= 30


def test_where_nothing_is_known_to_fail_the_neighbour_is_not_known_to_meet():
    readings = Readings(lambda index: (-math.inf, Fraction(-index, 3)))
    found = frontier(readings, Fraction(5), Counts(10**12), start=-1)
    assert found.meets == -15 and found.fails is None


def test_a_target_that_nothing_meets_is_refused():
    for cost in (math.inf, 2.0, math.nan):
        with pytest.raises(InvalidNumber):
            frontier(around(lambda index, cost=cost: cost), Fraction(1), Decimals(3), start=0)


def test_the_easiest_point_of_all_is_found_where_all_meet():
    grid = Decimals(3)
    found = frontier(around(lambda index: 0.5), Fraction(1), grid, start=0)
    assert (found.meets, found.fails) == (grid.lowest, None)


@given(st.integers(1, 8), st.floats(-1, 1), st.booleans())
def test_the_numbers_of_a_grid_rise_by_one_last_digit(digits, share, falling):
    grid = Decimals(digits, falling=falling)
    index = round(share * grid.highest)
    here, there = sorted((grid.value(index), grid.value(index + 1)))
    assert falling == (grid.value(index) > grid.value(index + 1))
    exponent = next(
        e for e in range(-31, 32) if Fraction(10) ** e <= here < Fraction(10) ** (e + 1)
    )
    assert there - here == Fraction(10) ** (exponent - digits + 1)
    assert here / Fraction(10) ** exponent * 10 ** (digits - 1) % 1 == 0


@given(st.integers(2, 6), st.floats(-1, 1), st.booleans())
def test_the_place_of_a_point_is_near_it(digits, share, falling):
    grid, counts = Decimals(digits, falling=falling), Counts(10**7)
    index, count = round(share * grid.highest), -1 - abs(round(share * 10**6))
    assert abs(grid.near(grid.place(index)) - index) <= 1
    assert counts.near(counts.place(count)) == count
