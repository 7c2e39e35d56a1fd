# SPDX-License-Identifier: Apache-2.0
"""Seeds and the k-means of weighted points, against all partitions of a few points."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sfumato.learning.coreset import grouped, nearest_other, seeds, squares


def cost(points: np.ndarray, weights: np.ndarray, means: np.ndarray) -> float:
    return float(weights @ ((points[:, None] - means) ** 2).sum(axis=2).min(axis=1))


def least_cost(points: np.ndarray, weights: np.ndarray, count: int) -> float:
    """The cost of the best partition."""
    found = np.inf
    for groups in itertools.product(range(count), repeat=len(points)):
        total = 0.0
        for group in set(groups):
            chosen = [place for place, each in enumerate(groups) if each == group]
            mean = np.average(points[chosen], axis=0, weights=weights[chosen])
            total += cost(points[chosen], weights[chosen], mean[None])
        found = min(found, total)
    return found


@given(st.integers(0, 10**6), st.sampled_from([2, 3]))
def test_groups_are_nearly_the_best(seed: int, count: int) -> None:
    random = np.random.default_rng(seed)
    points, weights = random.uniform(-1, 1, (6, 2)), random.uniform(0.5, 9, 6)
    means = grouped(points, weights, count)
    assert means.shape == (count, 2)
    assert cost(points, weights, means) <= 2 * least_cost(points, weights, count) + 1e-9


def test_groups_of_clusters_are_the_clusters() -> None:
    random = np.random.default_rng(3)
    middles = np.array([[-0.8, 0], [0.8, 0.8], [0.5, -0.7], [-0.2, 0.9]])
    points = np.concatenate([middle + random.normal(0, 0.01, (5, 2)) for middle in middles])
    means = grouped(points, np.ones(20), 4)
    assert np.sqrt(squares(middles, means).min(axis=1)).max() < 0.02


def test_few_points_are_their_own_groups() -> None:
    points = np.array([[0.5], [0.1]])
    assert grouped(points, np.ones(2), 5) is points
    same = grouped(np.zeros((9, 2)), np.ones(9), 3)
    assert same.shape == (3, 2) and not same.any()


def test_seeds_fill_the_box() -> None:
    found = seeds(256, 3)
    assert np.abs(found).max() <= 1 and len(np.unique(found, axis=0)) == 256
    octants = (found > 0) @ [1, 2, 4]
    assert np.bincount(octants, minlength=8).min() > 20
    assert seeds(4, 784).shape == (4, 784)


def test_points_at_the_same_place_are_no_neighbours() -> None:
    assert nearest_other(np.zeros((3, 2))).tolist() == [np.inf] * 3
    assert nearest_other(np.array([[0.0], [0.0], [1.0]])).tolist() == [1, 1, 1]
