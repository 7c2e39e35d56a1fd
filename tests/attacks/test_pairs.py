# SPDX-License-Identifier: Apache-2.0
"""Attacks on draws that share their randomness with the next one.

Box-Muller and the polar method turn two uniform numbers into two Gaussians. Whoever sees a pair
tests for each possible pair of exact answers whether the two uniform numbers lie on the grid of
the generator (Jin, McMurtry, Rubinstein, Ohrimenko 2022). Ours come one at a time.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from sfumato.noise import SYSTEM, DiscreteGaussian, DiscreteLaplace, Geometric, Law
from sfumato.noise.entropy import below
from sfumato.testing import assert_at_most, assert_counts_follow

Pair = tuple[float, float]

GRID = 2.0**32
ANSWERS = list(product(range(6), repeat=2))
SIGMA = 1000


def box_muller() -> Pair:
    """Two Gaussians from two 32-bit uniform numbers."""
    first, second = (below(2**32 - 1, SYSTEM) + 1) / GRID, below(2**32, SYSTEM) / GRID
    radius, angle = math.sqrt(-2 * math.log(first)), 2 * math.pi * second
    return radius * math.cos(angle), radius * math.sin(angle)


def polar() -> Pair:
    """Two Gaussians from a point of the unit disc with 32-bit coordinates: Marsaglia's method."""
    while True:
        x, y = (2 * below(2**32, SYSTEM) / GRID - 1 for _ in range(2))
        square = x * x + y * y
        if 0 < square < 1:
            factor = math.sqrt(-2 * math.log(square) / square)
            return x * factor, y * factor


def ours() -> Pair:
    """Two discrete Gaussians, as many sigmas as they are."""
    first, second = DiscreteGaussian(SIGMA).sample(2).tolist()
    return first / SIGMA, second / SIGMA


def is_on_the_grid(number: float) -> bool:
    """Whether a number is a multiple of 2^-32, up to the rounding of doubles."""
    return abs(number * GRID - round(number * GRID)) < 1e-3


def is_box_muller(noise: Pair) -> bool:
    """Whether a pair comes from two uniform numbers of 32 bits."""
    angle = math.atan2(noise[1], noise[0]) / (2 * math.pi)
    return is_on_the_grid(math.exp(-(noise[0] ** 2 + noise[1] ** 2) / 2)) and is_on_the_grid(
        angle % 1
    )


def is_polar(noise: Pair) -> bool:
    """Whether a pair comes from a point with coordinates of 32 bits."""
    square = noise[0] ** 2 + noise[1] ** 2
    shrink = math.sqrt(math.exp(-square / 2) / square)
    return all(is_on_the_grid((each * shrink + 1) / 2) for each in noise)


def recovered(draw: Callable[[], Pair], looks_right: Callable[[Pair], bool]) -> bool:
    """Whether the attacker names the two exact answers, from the noisy ones alone."""
    answers = ANSWERS[below(len(ANSWERS), SYSTEM)]
    noise = draw()
    noisy = (answers[0] + noise[0], answers[1] + noise[1])
    fitting = [
        each for each in ANSWERS if looks_right((noisy[0] - each[0] or 1e-9, noisy[1] - each[1]))
    ]
    return fitting == [answers]


@pytest.mark.parametrize(("draw", "looks_right"), [(box_muller, is_box_muller), (polar, is_polar)])
def test_pairs_give_both_answers_away(
    draw: Callable[[], Pair], looks_right: Callable[[Pair], bool]
) -> None:
    missed = sum(not recovered(draw, looks_right) for _ in range(200))
    assert_at_most(missed, 200, 0.05, notices=0.51)


@pytest.mark.parametrize("looks_right", [is_box_muller, is_polar])
def test_our_draws_have_no_partner(looks_right: Callable[[Pair], bool]) -> None:
    found = sum(recovered(ours, looks_right) for _ in range(400))
    # by chance a false pair looks right once in 250,000; a third would be noticed
    assert_at_most(found, 400, 1e-4, notices=0.33)


# ---------------------------------------------------------------- neighbours in a stream

CELLS = 6


def classes(draws: np.ndarray, edges: list[int]) -> np.ndarray:
    """The quantile cell of each draw."""
    return np.searchsorted(edges, draws, "left")


def assert_neighbours_are_independent(noise: Law, draws: np.ndarray, distance: int) -> None:
    """Fails unless draws ``distance`` apart fill 6 x 6 quantile cells as independent ones do.

    Sure to notice that the second draw of one pair in ten falls where the first one did.
    """
    edges = sorted({noise.quantile(Fraction(k, CELLS)) for k in range(1, CELLS)})
    sums = [0.0, *(noise.cdf(edge).lower for edge in edges), 1.0]
    law = np.diff(sums)
    first = classes(draws[: -distance or None], edges)
    second = classes(draws[distance:], edges)
    # every pair once: pairs that overlap would not be independent of each other
    apart = np.arange(len(first)) // distance % 2 == 0
    counts = np.bincount(first[apart] * len(law) + second[apart], minlength=len(law) ** 2)
    both = np.outer(law, law)
    clinging = 0.9 * both + 0.1 * np.diag(law)
    assert_counts_follow(counts, both.ravel(), notices=clinging.ravel())


LAWS = [
    DiscreteLaplace(5),
    DiscreteLaplace(10**6),
    DiscreteGaussian(3),
    DiscreteGaussian(2**40),
    Geometric(50),
]


@pytest.mark.parametrize("distance", [1, 2, 31, 1 << 14])
@pytest.mark.parametrize("noise", LAWS, ids=str)
def test_draws_of_one_array_are_independent(noise: Law, distance: int) -> None:
    assert_neighbours_are_independent(noise, noise.sample(10**6), distance)


@pytest.mark.parametrize("noise", LAWS[1:3], ids=str)
def test_draws_one_by_one_are_independent(noise: Law) -> None:
    draws = np.array([noise.sample_one() for _ in range(100_000)])
    assert_neighbours_are_independent(noise, draws, 1)


def test_independence_notices_pairs_of_opposite_signs_and_a_stream_that_comes_back() -> None:
    noise = DiscreteLaplace(10**6)
    draws = noise.sample(10**6)
    antithetic = draws.copy()
    antithetic[1::10] = -antithetic[::10]
    with pytest.raises(AssertionError, match="counts are"):
        assert_neighbours_are_independent(noise, antithetic, 1)
    again = np.tile(draws[: 1 << 14], 60)
    with pytest.raises(AssertionError, match="counts are"):
        assert_neighbours_are_independent(noise, again, 1 << 14)
