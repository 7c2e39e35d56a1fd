# SPDX-License-Identifier: Apache-2.0
"""Projective-geometry response: a point that often lies on the value's hyperplane.

Reports of about log2 k bits, nearly the least variance, and all estimates by one Fourier
transform. Source: Feldman, Nelson, Nguyen, Talwar, "Private Frequency Estimation via Projective
Geometry" (ICML 2022). Proof: projective.proof.md. ``points`` numbers points and hyperplanes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato.errors import InvalidDeclaration, shown
from sfumato.exact.rational import Number, positive
from sfumato.noise import Entropy, Integers
from sfumato.noise.entropy import words as drawn_words
from sfumato.privacy.event import ProjectiveReport
from sfumato.telemetry.oracles.incidence import incident
from sfumato.telemetry.oracles.oracle import (
    WHOLE,
    Mask,
    Payloads,
    bytes_for,
    least_weight,
    odds_of,
    packed,
    require_domain,
    require_useful,
    unpacked,
)
from sfumato.telemetry.oracles.points import Space

# Larger spaces could not be transformed in the memory of a laptop.
_MOST_CELLS = 30_000_000
_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83)


@dataclass(frozen=True, slots=True)
class ProjectiveOracle:
    """The projective geometry response: reports a point of a finite space, with weight ``near`` if
    it is on the value's hyperplane, ``far`` if not.

    Guarantees:
        a point has exactly the stated weights
        hyperplanes meet as often as stated

    >>> oracle = projective(1000, 1)
    >>> oracle.prime, oracle.dimension, oracle.size
    (3, 7, 2)
    """

    kind: ClassVar[str] = "projective"
    values: int
    prime: int
    dimension: int
    near: int
    far: int

    def __post_init__(self) -> None:
        require_domain(self.values)
        # refuses a field, a dimension and weights that fit no space
        ProjectiveReport(self.near, self.far, self.prime, self.dimension)
        if self.values > self.space.points or self.prime**self.dimension > _MOST_CELLS:
            raise InvalidDeclaration(
                f"{self.values} values in {self.dimension} coordinates over {shown(self.prime)}.",
                allowed=f"at most a point each, and {_MOST_CELLS:,} vectors",
            )
        require_useful(self.own, self.other)

    @property
    def space(self) -> Space:
        """The finite projective space of the points; its hyperplanes stand for the values."""
        return Space(self.prime, self.dimension)

    @property
    def event(self) -> ProjectiveReport:
        """The privacy event of a report."""
        return ProjectiveReport(self.near, self.far, self.prime, self.dimension)

    @property
    def draws(self) -> int:
        """The number of 64-bit random words that a report needs: 1."""
        return 1

    @property
    def size(self) -> int:
        """The number of bytes of a report."""
        return bytes_for(self.space.points - 1)

    @property
    def cells(self) -> int:
        """The number of counts that the aggregator keeps: one for each point."""
        return self.space.points

    @property
    def own(self) -> Fraction:
        """The probability that the point is on the hyperplane of the device's value."""
        return Fraction(self.near * self.space.on_plane, WHOLE)

    @property
    def other(self) -> Fraction:
        """The probability that the point is on the hyperplane of one given value that is not the
        true one.
        """
        both = self.space.on_both
        return Fraction(self.near * both + self.far * (self.space.on_plane - both), WHOLE)

    @property
    def _border(self) -> int:
        """Words below it give a point on the hyperplane."""
        return self.near * self.space.on_plane

    def encode(self, value: int, words: Sequence[int]) -> bytes:
        """Returns the report of a value; the random word is compared with the weight of its
        hyperplane.
        """
        return self._point(value, words[0]).to_bytes(self.size, "big")

    def _point(self, value: int, word: int) -> int:
        """Returns the point that a word gives."""
        if word < self._border:
            return self.space.on(value, word // self.near)
        return self.space.beyond(value, (word - self._border) // self.far)

    def encode_many(self, values: Integers, entropy: Entropy) -> Payloads:
        """Returns the reports of many devices, given their values."""
        words = drawn_words(len(values), entropy)
        border = np.uint64(self._border)
        near = words < border
        points = np.empty(len(values), np.int64)
        places = (words[near] // np.uint64(self.near)).astype(np.int64)
        points[near] = self.space.on_many(values[near], places)
        places = ((words[~near] - border) // np.uint64(self.far)).astype(np.int64)
        points[~near] = self.space.beyond_many(values[~near], places)
        return packed(points.astype(np.uint64), self.size)

    def valid(self, payloads: Payloads) -> Mask:
        """Returns a mask of the payloads that are possible reports: they name an existing point."""
        return unpacked(payloads) < np.uint64(self.space.points)

    def tally(self, payloads: Payloads) -> Integers:
        """Returns the number of reports of each point."""
        return np.bincount(unpacked(payloads).astype(np.int64), minlength=self.cells)

    def support(self, tally: Integers, reports: int) -> Integers:
        """Returns how many reports support each value: those whose point is on its hyperplane."""
        return incident(self.space, tally, self.values)


def projective(values: int, epsilon: Number) -> ProjectiveOracle:
    """Returns the projective geometry response with at most this epsilon and the prime of least
    variance.

    Raises:
        InvalidDeclaration: no space with at most 3 x 10^7 vectors has so many points.

    >>> projective(1 << 20, 1).prime
    3
    """
    require_domain(values)
    odds = odds_of(positive("epsilon", epsilon))
    best: tuple[Fraction, Space] | None = None
    for prime in _PRIMES:
        space = Space.of(prime, values)
        if prime**space.dimension > _MOST_CELLS:
            continue
        spread = _variance(space, odds)
        if best is None or spread < best[0]:
            best = spread, space
    if best is None:
        raise InvalidDeclaration(
            f"{values:,} values in one space.", remedy="Report fewer values, or one-bit Hadamard."
        )
    return _with(values, best[1], odds)


def _variance(space: Space, odds: Fraction) -> Fraction:
    """Returns the variance of the estimate of an absent value, for one report, at these odds."""
    total = odds * space.on_plane + space.points - space.on_plane
    own = odds * space.on_plane / total
    other = (odds * space.on_both + space.on_plane - space.on_both) / total
    return other * (1 - other) / (own - other) ** 2


def _with(values: int, space: Space, odds: Fraction) -> ProjectiveOracle:
    """Returns the response in a space, with integer weights that add up to 2^64."""
    beyond = space.points - space.on_plane
    least = least_weight(odds * space.on_plane + beyond)
    # beyond = 1 modulo on_plane, so what is left for the hyperplane can be made a multiple of it
    far = least + (WHOLE - least) % space.on_plane
    near = (WHOLE - far * beyond) // space.on_plane
    return ProjectiveOracle(values, space.prime, space.dimension, near, far)
