# SPDX-License-Identifier: Apache-2.0
"""The base of statistics that sum one integer vector per unit, clipped to a norm bound.

A unit's vector is the sum of the vectors of its rows; a row's vector is a function of that row
only. Proof: unit_vectors.proof.md.
"""

from abc import abstractmethod
from collections.abc import Iterator
from fractions import Fraction
from math import isqrt
from typing import Any, Generic, Protocol, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidDeclaration
from sfumato.noise import Integers
from sfumato.plan.rows import BoundedRows
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.unit import Relation
from sfumato.query.clip import LONGEST, clipped
from sfumato.query.statistic import BoundedStatistic, Opened

# The number of rows, or of cells of vectors of units, that are added up at once.
_AT_ONCE = 1 << 18
# Coordinates, and what is added to each: floats that are integers, as bincount takes them.
Coordinates: TypeAlias = NDArray[np.integer[Any]]
Floats: TypeAlias = NDArray[np.float64]
Added: TypeAlias = tuple[Coordinates, Floats]


class Divided(Protocol):
    """Encoded rows that can be cut into parts."""

    @property
    def count(self) -> int:
        """The number of rows."""
        ...

    def part(
        self,
        first: int,
        last: int,
    ) -> Self:
        """Returns the rows from ``first`` up to, but not including, ``last``."""
        ...


R = TypeVar("R", bound=Divided)


class UnitVectors(BoundedStatistic[Integers], Generic[R]):
    """A statistic that sums vectors over units, where the vector of a unit with several rows is
    clipped to a norm.

    A row adds at most ``length`` in L1 and the square root of ``squared`` in L2.
    """

    __slots__ = ()
    plan: BoundedRows
    norm: Norm

    @property
    @abstractmethod
    def length(self) -> int:
        """The largest L1 norm of the vector that one row adds."""

    @property
    @abstractmethod
    def squared(self) -> int:
        """The largest squared L2 norm of the vector that one row adds."""

    @property
    @abstractmethod
    def width(self) -> int:
        """The number of integers of the statistic."""

    @abstractmethod
    def read(self, opened: Opened) -> R:
        """Returns all rows of the data, read and encoded; ``added`` takes them."""

    @abstractmethod
    def added(self, rows: R) -> Iterator[Added]:
        """Yields the vectors of rows, coordinate by coordinate: arrays with one index and one
        amount for each row.
        """

    @property
    def bound(self) -> int:
        """The norm (L1 or L2, by ``norm``) to which the vector of a unit with several rows is
        clipped.
        """
        if self.norm is Norm.L1:
            return self.length
        return isqrt(self.squared)

    def require_bounded(self) -> None:
        """Raises InvalidDeclaration for a norm other than L1 or L2, or if a unit's vector may reach
        2^31.
        """
        if self.norm not in (Norm.L1, Norm.L2):
            raise InvalidDeclaration(f"Examples in {self.norm.value}.", allowed="L1, L2")
        if self.plan.most * self.length >= LONGEST:
            raise InvalidDeclaration("Vectors of a unit beyond 2^31.", allowed="fewer steps")

    def distance(self, norm: Norm) -> Distance:
        """Returns the sensitivity: the norm bound of a unit's vector, twice that if a unit is
        replaced.
        """
        if norm is not self.norm:
            raise InvalidDeclaration(f"Examples clipped in {self.norm.value}.")
        times = 1
        if self.plan.neighbours is Relation.REPLACE_ONE:
            times = 2
        if norm is Norm.L2:
            return Distance(norm, Fraction(times**2 * self.squared), self.plan.neighbours)
        return Distance(norm, Fraction(times * self.bound), self.plan.neighbours)

    def exact(self, opened: Opened) -> Integers:
        """Returns the exact sum of all units' vectors."""
        rows = opened.unit_rows(self.plan)
        read = self.read(opened)
        if self.plan.most == 1:
            return self._single(read)
        return self._several(read, rows.starts)

    def _single(self, read: R) -> Integers:
        """Returns the sums where each row is a unit."""
        total = np.zeros(self.width, np.int64)
        for first in range(0, read.count, _AT_ONCE):
            total += self.summed(read.part(first, first + _AT_ONCE))
        return total

    def summed(self, rows: R) -> Integers:
        """Returns the sum of the vectors of some rows, at most 2^18."""
        total = np.zeros(self.width, np.int64)
        for places, amounts in self.added(rows):
            total += counted(places, amounts, self.width)
        return total

    def _several(
        self,
        read: R,
        starts: Integers,
    ) -> Integers:
        """Returns the sums where units have several rows: vectors are added up per unit, then
        clipped.
        """
        width = self.width
        total = np.zeros(width, np.int64)
        step = max(_AT_ONCE // width, 1)
        for first in range(0, len(starts) - 1, step):
            units = starts[first : first + step + 1]
            count = len(units) - 1
            row = np.repeat(np.arange(count), np.diff(units))
            vectors = np.zeros(count * width, np.int64)
            for places, amounts in self.added(read.part(units[0], units[-1])):
                vectors += counted(row * width + places, amounts, count * width)
            by_unit = vectors.reshape(count, width)
            total += clipped(by_unit, self.bound, self.norm).sum(axis=0)
        return total


def counted(
    places: Coordinates,
    amounts: Floats,
    width: int,
) -> Integers:
    """Returns the sum of ``amounts`` at each index of ``places``, as ``width`` integers; amounts
    are integers below 2^53 in floats.
    """
    return np.bincount(places.ravel(), amounts.ravel(), width).astype(np.int64)
