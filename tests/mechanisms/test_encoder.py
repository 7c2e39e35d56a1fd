# SPDX-License-Identifier: Apache-2.0
"""Encoders: their rows against matrices, and their sensitivity against every pattern of ticks."""

import math
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InvalidDeclaration
from sfumato.mechanisms import encoder as module
from sfumato.mechanisms.encoder import (
    MOST_TICKS,
    Encoder,
    SquareRoot,
    Tree,
    most_times,
    root_up,
    squared,
)
from sfumato.privacy.distance import Norm


def rows(encoder: Encoder, inputs: list[list[int]]) -> list[int]:
    """All rows of an encoder, one after the other."""
    memory = encoder.begin(len(inputs[0]))
    found: list[int] = []
    for tick, counts in enumerate(inputs, start=1):
        memory, row = encoder.row(tick, memory, np.array(counts, np.int64))
        assert (
            len(row) == encoder.numbers(tick) * len(counts) <= (encoder.most_numbers * len(counts))
        )
        found += row
    return found


def matrix(encoder: Encoder) -> np.ndarray:
    """The encoder as a matrix: a column for the input of each tick."""
    columns = []
    for tick in range(encoder.steps):
        inputs = [[int(other == tick)] for other in range(encoder.steps)]
        columns.append(rows(encoder, inputs))
    return np.array(columns, object).T


def patterns(steps: int, participations: int, separation: int) -> list[tuple[int, ...]]:
    """All sets of ticks in which a unit may take part, no more than so many."""
    found = []
    for size in range(1, participations + 1):
        for ticks in combinations(range(steps), size):
            gaps = pairwise(ticks)
            if all(later - one >= separation for one, later in gaps):
                found.append(ticks)
    return found


def largest(encoder: Encoder, participations: int, separation: int) -> int:
    """The sensitivity, from every pattern, with equal signs."""
    columns = matrix(encoder)
    sums = [
        columns[:, list(ticks)].sum(axis=1)
        for ticks in patterns(encoder.steps, participations, separation)
    ]
    if encoder.norm is Norm.L1:
        return max(int(abs(each).sum()) for each in sums)
    return max(int((each**2).sum()) for each in sums)


SETTINGS = [(1, 1), (2, 1), (2, 3), (3, 2), (4, 1), (9, 1)]


@pytest.mark.parametrize("participations, separation", SETTINGS)
@pytest.mark.parametrize("bands", [1, 2, 4, 9])
def test_the_sensitivity_of_the_rounded_matrix_is_that_of_its_worst_pattern(
    bands, participations, separation
):
    encoder = SquareRoot(9, bands)
    exact = largest(encoder, participations, separation)
    stated = encoder.sensitivity(participations, separation)
    assert exact <= stated
    # for bands that share no row, columns at the end may be cut off
    if bands > separation or participations * separation + bands <= 9:
        assert exact == stated


def test_signs_and_cells_never_help():
    """Every difference of counts in three ticks, of both signs, in two cells."""
    encoder = SquareRoot(5, 5)
    columns = matrix(encoder).astype(float)
    unit = [(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1), (0.5, -0.5)]
    most = encoder.sensitivity(3, 1)
    for first in unit:
        for second in unit:
            for third in unit:
                moved = np.outer(columns[:, 0], first) + np.outer(columns[:, 1], second)
                moved = moved + np.outer(columns[:, 3], third)
                assert (moved**2).sum() <= most


@pytest.mark.parametrize("participations, separation", SETTINGS)
@pytest.mark.parametrize("base, weights", [(2, (1, 1, 1, 1)), (3, (2, 1, 5)), (2, (3,))])
def test_a_tree_moves_by_its_weights_for_each_participation(
    base, weights, participations, separation
):
    encoder = Tree(9, base, weights)
    exact = largest(encoder, participations, separation)
    assert exact <= encoder.sensitivity(participations, separation)
    # where every block of a tick is complete before the end, the bound is reached
    if participations == 1:
        assert exact == sum(weights) or base == 2


def test_a_mutant_whose_sensitivity_is_taken_before_rounding_is_caught(monkeypatch):
    """Coefficients rounded up move rows further than the unrounded ones say."""
    honest = module._central(9)
    raised = honest + (np.arange(9) > 0)
    unrounded = sum(Fraction(math.comb(2 * k, k), 4**k) ** 2 for k in range(9)) * 2**36
    monkeypatch.setattr(module, "_central", lambda bands: raised[:bands])
    moved = largest(SquareRoot(9, 9), 1, 1)
    assert moved > unrounded
    module._sensitivity.cache_clear()
    assert SquareRoot(9, 9).sensitivity(1, 1) == moved
    module._sensitivity.cache_clear()


def test_a_mutant_that_forgets_that_columns_overlap_is_caught():
    encoder = SquareRoot(9, 9)
    orthogonal = 3 * encoder.sensitivity(1, 1)
    assert largest(encoder, 3, 2) > orthogonal


def test_a_mutant_tree_whose_root_is_measured_and_not_charged_is_caught():
    encoder = Tree(8, 2, (1, 1, 1, 1))
    without_root = Tree(8, 2, (1, 1, 1)).sensitivity(1, 1)
    assert largest(encoder, 1, 1) > without_root


def test_coefficients_never_rise():
    coefficients = SquareRoot(4096, 4096).coefficients
    assert (np.diff(coefficients) <= 0).all() and coefficients[0] == 2**18
    for age in (1, 2, 17, 300):
        true = Fraction(math.comb(2 * age, age), 4**age) * 2**18
        assert coefficients[age] == math.floor(true)


@given(st.data())
@settings(deadline=None)
def test_a_row_is_the_stated_sum_of_inputs(data):
    steps = data.draw(st.integers(1, 12))
    encoder = SquareRoot(steps, data.draw(st.integers(1, steps)))
    large = st.integers(0, 2**61)
    inputs = data.draw(
        st.lists(st.lists(large, min_size=2, max_size=2), min_size=1, max_size=steps)
    )
    weights = encoder.coefficients.tolist()
    expected = []
    for tick in range(len(inputs)):
        for cell in range(2):
            terms = [
                weight * inputs[tick - age][cell]
                for age, weight in enumerate(weights)
                if age <= tick
            ]
            expected.append(sum(terms))
    assert rows(encoder, inputs) == expected


@given(st.integers(2, 4), st.lists(st.integers(1, 9), min_size=1, max_size=4))
@settings(deadline=None)
def test_each_tick_is_in_one_block_of_each_level(base, weights):
    encoder = Tree(20, base, tuple(weights))
    inputs = [[3**tick] for tick in range(20)]
    found = iter(rows(encoder, inputs))
    for tick in range(1, 21):
        for level, weight in enumerate(weights):
            if tick % base**level == 0:
                block = inputs[tick - base**level : tick]
                assert next(found) == weight * sum(count for (count,) in block)


def test_no_unit_is_in_more_ticks_than_there_are():
    assert most_times(10, 100, 3) == len(range(0, 10, 3))
    assert SquareRoot(5, 5).sensitivity(99, 1) == SquareRoot(5, 5).sensitivity(5, 1)


def test_a_root_is_rounded_up():
    assert [root_up(number) for number in (0, 1, 2, 4, 5, 10**40 + 1)] == [
        0,
        1,
        2,
        2,
        3,
        10**20 + 1,
    ]


def test_a_column_sum_is_that_of_shifted_columns():
    heights = np.array([9, 7, 7, 3, 1], np.int64)
    shifted = np.zeros(5, np.int64)
    for start in (0, 2, 4):
        shifted[start:] += heights[: 5 - start]
    assert squared(heights, 3, 2) == int((shifted**2).sum())


@pytest.mark.parametrize(
    "build",
    [
        lambda: SquareRoot(0, 1),
        lambda: SquareRoot(MOST_TICKS + 1, 1),
        lambda: SquareRoot(2**40, 1),
        lambda: SquareRoot(8, 0),
        lambda: SquareRoot(8, 9),
        lambda: SquareRoot(2**20, 2**13),
        lambda: Tree(8, 1, (1,)),
        lambda: Tree(8, 2, ()),
        lambda: Tree(8, 2, (0,)),
        lambda: Tree(8, 2, (True,)),
    ],
)
def test_what_no_encoder_can_be_is_refused(build):
    with pytest.raises(InvalidDeclaration):
        build()
