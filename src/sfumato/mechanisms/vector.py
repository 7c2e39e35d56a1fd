# SPDX-License-Identifier: Apache-2.0
"""Adds noise to vectors of exact integers, as int64 arrays that saturate instead of overflowing.

Proof: vector.proof.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidDeclaration, shown
from sfumato.exact.rational import Number
from sfumato.mechanisms.additive import AdditiveMechanism, gaussian, laplace
from sfumato.noise import SYSTEM, DiscreteGaussian, Entropy, Integers
from sfumato.noise.law import open_unit
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import AdditiveNoise

Vector: TypeAlias = NDArray[Any] | Sequence[int]

_LARGEST = 1 << 61


@dataclass(frozen=True, slots=True)
class VectorMechanism:
    """The mechanism that adds independent noise to each of ``cells`` integers, in arrays.

    Guarantees:
        a vector costs its sensitivity in the norm of its noise
        a saturated release is the clamp of the exact one
        the error holds for all cells at once

    >>> from fractions import Fraction
    >>> mechanism = vector(Distance(Norm.LINF, Fraction(1)), 3, rho="0.5")
    >>> mechanism.additive.noise
    DiscreteGaussian(sigma_squared=Fraction(3, 1))
    >>> mechanism.release([10, 20, 2**70], drawn=[-3, 0, 5])
    array([                 7,                  20, 2305843009213693952])
    """

    additive: AdditiveMechanism
    cells: int

    def __post_init__(self) -> None:
        _counted(self.cells)

    def event(self, distance: Distance) -> AdditiveNoise:
        """Returns the event of a release whose sensitivity is ``distance``."""
        norm = Norm.L2 if isinstance(self.additive.noise, DiscreteGaussian) else Norm.L1
        return self.additive.event(_summed(distance, self.cells, norm))

    def draw(self, entropy: Entropy = SYSTEM) -> Integers:
        """Returns a noise sample for all cells."""
        return self.additive.noise.sample(self.cells, entropy)

    def release(
        self, exact: Vector, drawn: Vector | None = None, entropy: Entropy = SYSTEM
    ) -> Integers:
        """Returns exact integers plus noise; a sum beyond 64 bits becomes the largest or least
        integer.

        ``drawn`` is noise that was sampled before the data was read; by default it is drawn here.
        """
        if len(exact) != self.cells:
            raise InvalidDeclaration(
                f"A vector of {len(exact)} cells.", allowed=f"the declared {self.cells}"
            )
        noise = self.draw(entropy) if drawn is None else drawn
        return add_saturating(exact, noise)

    def error(self, confidence: Number) -> int:
        """Returns an error h with P(|noise| <= h in every cell) >= confidence (union bound)."""
        miss = 1 - open_unit("confidence", confidence)
        return self.additive.error(1 - miss / self.cells)


def vector(
    distance: Distance,
    cells: int,
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
) -> VectorMechanism:
    """Returns the mechanism that adds noise to a vector: Laplace for epsilon (L1 sensitivity),
    Gaussian for rho (L2 sensitivity).

    An Linf sensitivity, which bounds each cell, is converted to L1 or L2 over all cells.

    Raises:
        InvalidDeclaration: not exactly one of epsilon and rho is given, it does not fit the norm,
            or there are no cells.
        InvalidNumber: epsilon or rho is not above 0.

    >>> from fractions import Fraction
    >>> vector(Distance(Norm.L1, Fraction(2)), 100, epsilon=1).additive.noise
    DiscreteLaplace(scale=Fraction(2, 1))
    """
    if epsilon is not None and rho is None:
        summed = _summed(distance, _counted(cells), Norm.L1)
        return VectorMechanism(laplace(summed, epsilon), cells)
    if rho is not None and epsilon is None:
        summed = _summed(distance, _counted(cells), Norm.L2)
        return VectorMechanism(gaussian(summed, rho), cells)
    raise InvalidDeclaration(
        "A vector with both epsilon= and rho=, or neither.", allowed="one of them"
    )


def add_saturating(exact: Vector, noise: Vector) -> Integers:
    """Returns exact + noise as int64, clamped to +-2^61 as if computed without overflow.

    ``exact`` is clamped to +-2^61 first, which does not increase the distance of neighbours.

    Raises:
        InvalidDeclaration: the shapes differ, or a number is not an integer.

    >>> add_saturating([2**61, -5, 0], [1, 2, -(2**80)]).tolist()
    [2305843009213693952, -3, -2305843009213693952]
    """
    left = _clamped(exact, _LARGEST)
    right = _clamped(noise, 2 * _LARGEST)
    if left.shape != right.shape:
        raise InvalidDeclaration(
            f"Noise of shape {right.shape}.", allowed=f"the shape {left.shape} of what it is for"
        )
    clamped: Integers = np.clip(left + right, -_LARGEST, _LARGEST)
    return clamped


def _clamped(values: Vector, limit: int) -> Integers:
    """Integers of any size as an int64 array, clamped to +-limit."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "i":
        whole = values.astype(np.int64, copy=False)
        clipped: Integers = np.clip(whole, -limit, limit)
        return clipped
    listed = np.asarray(values, object)
    try:
        within = [min(max(index(value), -limit), limit) for value in listed.flat]
    except TypeError:
        raise InvalidDeclaration(
            "A vector of numbers that are not all integers.", allowed="exact integers"
        ) from None
    return np.array(within, np.int64).reshape(listed.shape)


def _summed(distance: Distance, cells: int, norm: Norm) -> Distance:
    """An Linf sensitivity converted to ``norm`` over all cells; others unchanged."""
    if distance.norm is not Norm.LINF:
        return distance
    return distance.over(cells, norm)


def _counted(cells: int) -> int:
    if type(cells) is not int or cells < 1:
        raise InvalidDeclaration(f"A vector of {shown(cells)} cells.", allowed="an integer >= 1")
    return cells
