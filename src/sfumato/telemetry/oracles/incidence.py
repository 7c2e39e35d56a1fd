# SPDX-License-Identifier: Apache-2.0
"""Counts, for all hyperplanes at once, the points on each, by one Fourier transform.

``projective`` computes its estimates with it. Proof: incidence.proof.md.
"""

import numpy as np
from numpy.typing import NDArray

from sfumato.noise import Integers
from sfumato.telemetry.oracles.points import Space

# With so many points counted, the errors of the transform stay far below a half.
_EXACT = 1 << 30


def incident(space: Space, counts: Integers, planes: int) -> Integers:
    """Returns, for each of the first ``planes`` hyperplanes of a finite projective space, the sum
    of the counts of the points on it.

    Guarantees:
        a transform counts the points of every hyperplane

    >>> incident(Space(2, 3), np.array([5, 0, 0, 0, 0, 0, 2]), 3).tolist()
    [5, 5, 7]
    """
    total = int(counts.sum())
    if total > _EXACT:
        surplus = total.bit_length() - _EXACT.bit_length()
        scale = 2 << surplus
        upper, lower = np.divmod(counts, scale)
        found = scale * incident(space, upper, planes)
        found += incident(space, lower, planes)
        return found
    wave = _transformed(space, counts)
    sums = np.full(planes, float(total))
    if space.prime == 2:
        sums += wave[_places(space, 1, planes)]
    half = (space.prime - 1) // 2
    for factor in range(1, half + 1):
        # a vector and its negative have the same real part
        places = _places(space, factor, planes)
        sums += 2 * wave[places]
    counted = np.rint(sums / space.prime)
    return counted.astype(np.int64)


def _transformed(space: Space, counts: Integers) -> NDArray[np.float64]:
    """The real part of the transform of the counts, at vectors whose last digit is at most q/2."""
    prime, dimension = space.prime, space.dimension
    vectors = np.zeros(prime**dimension)
    for free in range(dimension):
        first = Space(prime, free).points
        leading = prime**free
        end = first + leading
        vectors[leading : 2 * leading] = counts[first:end]
    axes = tuple(range(dimension))
    cube = vectors.reshape((prime,) * dimension)
    wave = np.fft.rfftn(cube, axes=axes)
    return wave.real.ravel()


def _places(space: Space, factor: int, planes: int) -> Integers:
    """Where the transform at ``factor`` times the coefficients of each hyperplane stands.

    The digits of a hyperplane go with the coordinates from the other end, so its leading digit 1
    goes with the last axis, or leaves 0 there.
    """
    prime = space.prime
    kept = prime // 2 + 1
    axes = range(space.dimension - 1)
    strides = [1] + [kept * prime**axis for axis in axes]
    digits = np.arange(prime) * factor % prime
    blocks = []
    listed = 0
    rest = np.zeros(1, np.int64)
    for stride in reversed(strides):
        blocks.append(digits[1] * stride + rest)
        listed += len(rest)
        if listed >= planes:
            break
        rest = np.add.outer(digits * stride, rest).ravel()
    every = np.concatenate(blocks)
    return every[:planes]


def incidence(space: Space, planes: int) -> NDArray[np.float64]:
    """Returns the incidence matrix of a finite projective space: 1 if a point (column) lies on a
    hyperplane (row), else 0.

    Guarantees:
        a row of the incidence has a one for each point of its hyperplane

    >>> incidence(Space(2, 3), 2).astype(int).tolist()
    [[1, 1, 1, 0, 0, 0, 0], [1, 0, 0, 1, 1, 0, 0]]
    """
    places = np.tile(np.arange(space.on_plane), planes)
    rows = np.repeat(np.arange(planes), space.on_plane)
    meets = np.zeros((planes, space.points))
    meets[rows, space.on_many(rows, places)] = 1
    return meets
