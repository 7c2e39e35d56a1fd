# SPDX-License-Identifier: Apache-2.0
"""Isotonic regression is the nearest ascending sequence; degrees are read from diagrams."""

import itertools
import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sfumato.graph.isotonic import (
    counts_of,
    histogram_of_columns,
    histogram_of_cumulative,
    isotonic,
    stars_of,
)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=5))
def test_no_ascending_sequence_is_nearer(values):
    fitted = isotonic(values)
    assert all(first <= second + 1e-9 for first, second in itertools.pairwise(fitted))
    error = sum((a - b) ** 2 for a, b in zip(values, fitted, strict=True))
    grid = [step / 2 for step in range(-6, 7)]
    for other in itertools.combinations_with_replacement(grid, len(values)):
        assert error <= sum((a - b) ** 2 for a, b in zip(values, other, strict=True)) + 1e-9


def test_numbers_of_nodes_are_not_negative():
    assert counts_of([-3.0, -1.0, 0.4, 2.6]) == [0, 0, 0, 3]


@given(st.lists(st.integers(1, 30), max_size=40), st.integers(1, 9))
def test_an_exact_diagram_gives_the_degrees_back(degrees, columns):
    rows = 50
    at_least = [sum(each >= t for each in degrees) for t in range(1, columns + 1)]
    excess = sorted((max(each - columns, 0) for each in degrees), reverse=True)
    excess += [0] * (rows - len(excess))
    found = histogram_of_columns(np.array([*at_least, *excess]), columns)
    assert found == {degree: degrees.count(degree) for degree in set(degrees)}


def test_a_hub_is_not_lost_in_the_noise_of_columns():
    """A star: the columns above 1 are noise around one node, and round to none."""
    noisy = np.array([100_001, -1, -2, -3, 99_996, 4, -5, 1])
    assert 100_000 not in histogram_of_columns(noisy, 4)
    assert histogram_of_columns(noisy, 4, sure=40) == {100_000: 1, 1: 100_000}


@given(st.lists(st.integers(0, 12), max_size=40))
def test_exact_cumulative_numbers_give_the_degrees_back(degrees):
    at_most = [float(sum(each <= t for each in degrees)) for t in range(13)]
    found = histogram_of_cumulative(at_most)
    assert found == {degree: degrees.count(degree) for degree in set(degrees)}


@given(st.dictionaries(st.integers(0, 20), st.integers(0, 9)), st.integers(1, 4))
def test_stars_are_choices_of_edges_at_a_node(histogram, size):
    assert stars_of(histogram, size) == sum(
        nodes * math.comb(degree, size) for degree, nodes in histogram.items()
    )
