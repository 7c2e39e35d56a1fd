# SPDX-License-Identifier: Apache-2.0
"""Splits a cost among layers so that the expected error of a workload is least.

``strategy`` and ``layout`` use it. A layer multiplies each space by a number; the error is the sum
over the spaces of the workload's energy, divided by the information on the space.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from sfumato.privacy.distance import Norm
from sfumato.synopsis.workload import Floats

# The multiplicative updates of the shares, which converge within far fewer.
_ROUNDS = 200
# Up to so many layers, each is tried to be left out.
_FEW = 24

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Dense:
    """The precision that each layer (row) contributes to each orthogonal space of queries (column),
    for a layer precision of 1; a dense table.

    A layer multiplies each function of a space by the number.

    >>> Dense(np.array([[1.0, 2.0], [0.0, 3.0]])).information(np.array([1.0, 10.0])).tolist()
    [1.0, 32.0]
    """

    table: Floats

    @property
    def layers(self) -> int:
        """The number of layers."""
        return len(self.table)

    def information(self, precisions: Floats) -> Floats:
        """Returns the precision with which all layers together measure each space, given that of
        each layer.
        """
        known: Floats = precisions @ self.table
        return known

    def back(self, slopes: Floats) -> Floats:
        """Returns the table times ``slopes``, which has a number for each space: the transpose of
        ``information``, for gradients.
        """
        falls: Floats = self.table @ slopes
        return falls

    def only(self, layers: Sequence[int]) -> "Dense":
        """Returns the same table for some of the layers only, renumbered."""
        return Dense(self.table[list(layers)])


@dataclass(frozen=True, slots=True)
class Sparse:
    """The table of ``Dense`` for many layers, stored as its non-zero entries.

    Entry i says that layer ``layer[i]`` multiplies space ``space[i]`` by ``number[i]``.

    >>> one, two = np.array([0, 0, 1]), np.array([0, 1, 1])
    >>> table = Sparse(one, two, np.array([1.0, 2.0, 3.0]), layers=2, spaces=2)
    >>> table.information(np.array([1.0, 10.0])).tolist()
    [1.0, 32.0]
    """

    layer: Indices
    space: Indices
    number: Floats
    layers: int
    spaces: int

    def information(self, precisions: Floats) -> Floats:
        """Returns the precision with which all layers together measure each space, given that of
        each layer.
        """
        weights = self.number * precisions[self.layer]
        known: Floats = np.bincount(self.space, weights, self.spaces).astype(np.float64)
        return known

    def back(self, slopes: Floats) -> Floats:
        """Returns the table times ``slopes``, which has a number for each space: the transpose of
        ``information``, for gradients.
        """
        weights = self.number * slopes[self.space]
        falls: Floats = np.bincount(self.layer, weights, self.layers).astype(np.float64)
        return falls

    def only(self, layers: Sequence[int]) -> "Sparse":
        """Returns the same table for some of the layers only, renumbered."""
        numbers = np.full(self.layers, -1)
        numbers[list(layers)] = np.arange(len(layers))
        stays = numbers[self.layer] >= 0
        layer = numbers[self.layer[stays]]
        return Sparse(layer, self.space[stays], self.number[stays], len(layers), self.spaces)


Actions: TypeAlias = Dense | Sparse


def information(shares: Floats, actions: Actions, norm: Norm) -> Floats:
    """Returns the precision with which each orthogonal space is measured, given each layer's share
    of the cost; a layer's precision is its share, squared in L1.
    """
    precisions = shares**2 if norm is Norm.L1 else shares
    return actions.information(precisions)


def error(energies: Floats, known: Floats) -> float:
    """Returns the squared error of a workload, from the squared projections of its queries on each
    space (``energies``) and the spaces' precisions (``known``).
    """
    real = energies > 1e-12 * energies.max()
    if (known[real] <= 0).any():
        return float("inf")
    return float((energies[real] / known[real]).sum())


# the share of a layer that is not worth its cost runs to 0, and its square below the least float
@np.errstate(under="ignore")
def best_split(energies: Floats, actions: Actions, norm: Norm) -> tuple[list[int], Floats]:
    """Returns the layers to measure, as indices, and the shares of the cost for each that give the
    least error.

    In L1 the error is not convex, so layers are left out one by one as long as that helps.
    """
    measured_layers = list(range(actions.layers))
    shares = _descended(energies, actions, norm)
    least = error(energies, information(shares, actions, norm))
    while norm is Norm.L1 and 1 < len(measured_layers) <= _FEW:
        tried = []
        for place in measured_layers:
            others = [other for other in measured_layers if other != place]
            left = actions.only(others)
            split = _descended(energies, left, norm)
            tried.append((error(energies, information(split, left, norm)), others, split))
        lower, others, split = min(tried, key=lambda one: one[0])
        if lower >= least:
            break
        least, measured_layers, shares = lower, others, split
    return measured_layers, shares


def _descended(energies: Floats, actions: Actions, norm: Norm) -> Floats:
    """Returns the shares of least error, by multiplicative updates from equal shares.

    At the optimum the error falls equally by a little more share of each layer. In L2 the error is
    convex in the shares, and the updates never raise it (Yu 2010, "Monotonic convergence of a
    general algorithm for computing optimal designs"); in L1 the best round is kept.
    """
    shares = np.full(actions.layers, 1 / actions.layers)
    power = 1 / 3 if norm is Norm.L1 else 1 / 2
    best, least = shares, float("inf")
    real = energies > 1e-12 * energies.max()
    for _ in range(_ROUNDS):
        known = information(shares, actions, norm)
        reached = error(energies, known)
        if reached < least:
            best, least = shares, reached
        slopes = np.where(real, energies / np.maximum(known, 1e-100) ** 2, 0.0)
        falls = actions.back(slopes)
        if norm is Norm.L1:
            falls = falls * 2 * shares
        shares = shares * np.maximum(falls, 1e-300) ** power
        shares = shares / shares.sum()
    return best
