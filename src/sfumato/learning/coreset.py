# SPDX-License-Identifier: Apache-2.0
"""Deterministic starting centers, and k-means of weighted points; computes with released numbers
only.

``KMeans`` uses it between and after its noisy releases.
"""

import math

import numpy as np

from sfumato.learning.features import Floats

# The starts of a k-means of weighted points, and its rounds.
_STARTS, _ROUNDS = 8, 30
# A start costs this many distances, or fewer starts are tried.
_MOST = 1 << 26
# Points at a smaller squared distance are at the same place.
_SAME = 1e-12


def seeds(count: int, numbers: int) -> Floats:
    """Returns ``count`` fixed start points for k-means with ``numbers`` coordinates, spread evenly
    over the box from -1 to 1.

    They are a Weyl sequence with square roots of primes, so they need no random numbers.

    >>> seeds(2, 2).round(2).tolist()
    [[-0.17, 0.46], [0.66, -0.07]]
    """
    roots = np.sqrt(np.array(_primes(numbers), np.float64))
    places = np.arange(1, count + 1)[:, np.newaxis]
    shares: Floats = 2 * np.modf(places * roots)[0] - 1
    return shares


def grouped(
    points: Floats,
    weights: Floats,
    count: int,
) -> Floats:
    """Returns the centers of at most ``count`` clusters of weighted points: deterministic k-means.

    The first center is one of the heaviest points; each further one is the point that lowers the
    cost most.

    >>> grouped(np.array([[0.0], [0.2], [1.0]]), np.array([3.0, 1.0, 2.0]), 2).ravel().tolist()
    [0.05, 1.0]
    """
    if len(points) <= count:
        return points
    apart = squares(points, points)
    starts = max(min(_STARTS, _MOST // (count * apart.size)), 1)
    best, least = points[:count], math.inf
    for start in np.argsort(-weights, kind="stable")[:starts]:
        means = _settled(points, weights, points[_spread(apart, weights, int(start), count)])
        cost = float(weights @ squares(points, means).min(axis=1))
        if cost < least:
            best, least = means, cost
    return best


def nearest_other(points: Floats) -> Floats:
    """Returns the Euclidean distance of each point from the nearest different point; infinite if
    there is none.

    >>> nearest_other(np.array([[0.0], [3.0], [4.0]])).tolist()
    [3.0, 1.0, 1.0]
    """
    apart = squares(points, points)
    apart[apart < _SAME] = math.inf
    found: Floats = np.sqrt(apart.min(axis=1))
    return found


def _spread(
    apart: Floats,
    weights: Floats,
    start: int,
    count: int,
) -> list[int]:
    """Returns the indices of ``count`` starting points, each of which lowers the cost most."""
    chosen = [start]
    nearest = apart[start].copy()
    while len(chosen) < count:
        costs = np.minimum(apart, nearest) @ weights
        costs[chosen] = math.inf
        chosen.append(int(costs.argmin()))
        nearest = np.minimum(nearest, apart[chosen[-1]])
    return chosen


def _settled(
    points: Floats,
    weights: Floats,
    means: Floats,
) -> Floats:
    """Returns the centers after rounds of Lloyd's algorithm; a center without points stays."""
    for _ in range(_ROUNDS):
        group = squares(points, means).argmin(axis=1)
        sizes = np.bincount(group, weights=weights, minlength=len(means))
        sums = np.zeros_like(means)
        np.add.at(sums, group, points * weights[:, np.newaxis])
        alive = sizes > 0
        later = means.copy()
        later[alive] = sums[alive] / sizes[alive, np.newaxis]
        if (later == means).all():
            break
        means = later
    return means


def squares(
    points: Floats,
    others: Floats,
) -> Floats:
    """Returns the matrix of squared Euclidean distances of each point from each of ``others``."""
    lengths = (points * points).sum(axis=1)[:, np.newaxis] + (others * others).sum(axis=1)
    apart: Floats = np.maximum(lengths - 2 * points @ others.T, 0)
    return apart


def _primes(count: int) -> list[int]:
    """The first primes."""
    primes: list[int] = []
    number = 2
    while len(primes) < count:
        if all(number % prime for prime in primes if prime * prime <= number):
            primes.append(number)
        number += 1
    return primes
