# SPDX-License-Identifier: Apache-2.0
"""Isotonic regression, and degrees from noisy columns, rows or cumulative numbers."""

from collections.abc import Mapping, Sequence

import numpy as np

from sfumato.noise import Integers


def isotonic(values: Sequence[float]) -> list[float]:
    """The ascending sequence that is nearest in squares: pooled adjacent violators.

    >>> isotonic([1.0, 3.0, 2.0, 5.0])
    [1.0, 2.5, 2.5, 5.0]
    """
    means: list[float] = []
    sizes: list[int] = []
    for value in values:
        mean, size = float(value), 1
        while means and means[-1] > mean:
            size += sizes[-1]
            mean += (means.pop() - mean) * sizes.pop() / size
        means.append(mean)
        sizes.append(size)
    fitted: list[float] = []
    for mean, size in zip(means, sizes, strict=True):
        fitted += [mean] * size
    return fitted


def counts_of(values: Sequence[float]) -> list[int]:
    """The nearest ascending integers >= 0."""
    return [max(round(value), 0) for value in isotonic(values)]


def histogram_of_columns(noisy: Integers, columns: int, sure: int | None = None) -> dict[int, int]:
    """Returns the degree histogram (number of nodes by degree, from 1 on) that fits the noisy
    integers of a ``DegreeCounts``, by isotonic regression.

    ``noisy`` has the ``columns`` columns, then the rows. A row above ``sure`` is one of a node,
    whatever the columns say: a single hub would be lost in their noise.

    >>> histogram_of_columns(np.array([4, 2, 3, 1, 0, 0]), 2)
    {5: 1, 3: 1, 1: 2}
    """
    at_least = counts_of(noisy[:columns][::-1].tolist())[::-1]
    excess = counts_of(noisy[columns:][::-1].tolist())[::-1]
    certain = 0 if sure is None else sum(more > sure for more in excess)
    at_least = [max(nodes, certain) for nodes in at_least]
    excess = excess[: at_least[-1]]
    histogram = {columns: at_least[-1] - len(excess)}
    for more in excess:
        degree = columns + more
        histogram[degree] = histogram.get(degree, 0) + 1
    for degree in range(1, columns):
        histogram[degree] = at_least[degree - 1] - at_least[degree]
    return {degree: nodes for degree, nodes in histogram.items() if nodes}


def histogram_of_cumulative(noisy: Sequence[float]) -> dict[int, int]:
    """Returns the degree histogram (number of nodes by degree, from 0 on) that fits noisy
    cumulative counts, by isotonic regression.

    ``noisy`` has, for each degree, the noisy number of nodes of at most this degree.

    >>> histogram_of_cumulative([1.0, 4.2, 3.8, 6.0])
    {0: 1, 1: 3, 3: 2}
    """
    at_most = counts_of(noisy)
    steps = np.diff([0, *at_most]).tolist()
    return {degree: nodes for degree, nodes in enumerate(steps) if nodes}


def stars_of(histogram: Mapping[int, int], size: int) -> int:
    """Returns the number of stars in a graph with a degree histogram: choices of ``size`` edges
    that share a node.

    ``histogram`` has the number of nodes of each degree.

    >>> stars_of({3: 2, 1: 5}, 2)
    6
    """
    stars = 0
    for degree, nodes in histogram.items():
        chosen = 1
        for at in range(size):
            chosen = chosen * (degree - at) // (at + 1)
        stars += nodes * max(chosen, 0)
    return stars
