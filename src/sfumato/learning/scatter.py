# SPDX-License-Identifier: Apache-2.0
"""The statistics of PCA: distances of rows from a center, and products of their offsets.

Proof: scatter.proof.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

import numpy as np

from sfumato.errors import InvalidDeclaration
from sfumato.learning.features import Floats
from sfumato.learning.points import STEPS, Boxed, Points, read_points
from sfumato.noise import Integers
from sfumato.plan.rows import BoundedRows
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.unit import Relation
from sfumato.query.clip import clipped
from sfumato.query.statistic import BoundedStatistic, Opened
from sfumato.query.unit_vectors import Added, UnitVectors

# The lengths, of steps, to which an offset may be cut.
FINEST, COARSEST = 1 << 10, 1 << 5
# What a product of two numbers, and a square, are multiplied by: 2 SQUARE^2 <= PRODUCT^2.
PRODUCT, SQUARE = 3, 2
# The radii, four for each doubling.
_RADII = 40
# A unit weighs so much for each row that it may have.
_EACH, _MOST_ROWS = 1 << 1, 1 << 10
# The number of offsets of numbers at once.
_AT_ONCE = 1 << 20


def radii(numbers: int) -> Integers:
    """Returns the radii of the distance histogram, in ascending order up to the diagonal of a box
    with ``numbers`` columns.

    >>> int(radii(4)[-1]), len(radii(4))
    (4096, 40)
    """
    longest = isqrt(4 * STEPS**2 * numbers)
    shares = 2.0 ** (-np.arange(_RADII)[::-1] / 4)
    return np.ceil(longest * shares).astype(np.int64)


@dataclass(frozen=True, slots=True)
class RadiusCounts(UnitVectors[Points]):
    """A statistic for PCA: a histogram of the rows' distances from a center, with one cell for each
    radius of ``radii``.

    A row counts at the smallest radius that holds it. Counts are multiplied by STEPS.

    Guarantees:
        radius counts move by at most their proved distance
    """

    plan: BoundedRows
    places: tuple[int, ...]
    box: Boxed
    center: Integers
    norm: Norm

    def __post_init__(self) -> None:
        self.require_bounded()

    @property
    def length(self) -> int:
        """The largest L1 norm of the vector that a row adds to the counts."""
        return STEPS

    @property
    def squared(self) -> int:
        """The largest squared L2 norm of the vector that a row adds to the counts."""
        return STEPS**2

    @property
    def width(self) -> int:
        """The number of integers of the statistic: one for each radius."""
        return _RADII

    def read(self, opened: Opened) -> Points:
        """Reads the private rows and returns them as points of the box."""
        return read_points(opened, self.plan, self.box, self.places)

    def added(self, rows: Points) -> Iterator[Added]:
        """Yields, for each row, the index of the smallest radius that contains it, and the amount
        STEPS; rows beyond the last radius count there.
        """
        squares = np.zeros(rows.count, np.int64)
        for number in range(self.box.width):
            apart = rows.matrix[:, number].astype(np.int64) - self.center[number]
            squares += apart * apart
        place = np.searchsorted(radii(self.box.width) ** 2, squares)
        yield np.minimum(place, _RADII - 1), STEPS * rows.known.astype(np.float64)


@dataclass(frozen=True, slots=True)
class Scatter(BoundedStatistic[Integers]):
    """A statistic for PCA: the sum over units of the products of any two columns of their rows'
    offsets from a center.

    An offset from the center is scaled so that ``radius`` becomes ``length``, and clipped there.
    The result is the upper triangle of the matrix, row by row: products times PRODUCT, squares
    times SQUARE. The rows of a unit share its ``weight``. A row with a missing number adds nothing.
    ``places`` are the indices of the numbers among the columns of the plan. The distance is proved
    in L2 only.

    Guarantees:
        scatter moves by at most its proved distance
        a row with a missing number adds nothing to scatter

    Raises:
        InvalidDeclaration: units of more than 1,024 rows, a radius that is none of
            ``radii(box.width)``, a center outside the box, a length that is not from 32 to 1,024.
    """

    plan: BoundedRows
    places: tuple[int, ...]
    box: Boxed
    center: Integers
    radius: int
    length: int

    def __post_init__(self) -> None:
        if self.plan.most > _MOST_ROWS:
            raise InvalidDeclaration(
                f"Units of {self.plan.most:,} rows.", allowed="max_rows_total up to 1,024"
            )
        inside = self.center.shape == (self.box.width,) and np.abs(self.center).max() <= STEPS
        if not inside or self.radius not in radii(self.box.width):
            raise InvalidDeclaration("A center outside the box.", allowed="one inside")
        if not COARSEST <= self.length <= FINEST:
            raise InvalidDeclaration(f"Offsets of {self.length} steps.", allowed="32 to 1,024")

    @property
    def weight(self) -> int:
        """The largest total weight of the rows of one unit: a power of two."""
        if self.plan.most == 1:
            return 1
        return _EACH << (self.plan.most - 1).bit_length()

    @property
    def width(self) -> int:
        """The number of products."""
        return self.box.width * (self.box.width + 1) // 2

    def distance(self, norm: Norm) -> Distance:
        """Returns the squared L2 sensitivity: half the square of the largest product that a unit
        can add, since the matrix's upper triangle counts a square once.
        """
        if norm is not Norm.L2:
            raise InvalidDeclaration(f"Scatter in {norm.value}.", allowed="L2")
        times = 1
        if self.plan.neighbours is Relation.REPLACE_ONE:
            times = 2
        largest = times * PRODUCT * self.weight * self.length**2
        return Distance(norm, Fraction(largest**2, 2), self.plan.neighbours)

    def exact(self, opened: Opened) -> Integers:
        """Returns the exact sums of products, without noise."""
        rows = opened.unit_rows(self.plan)
        points = read_points(opened, self.plan, self.box, self.places)
        sizes = np.diff(rows.starts)
        weights = np.repeat(self.weight // np.maximum(sizes, 1), sizes) * points.known
        numbers = self.box.width
        total = np.zeros((numbers, numbers), np.int64)
        # sums of integers below 2^53 are exact in any order
        step = max(min(_AT_ONCE // numbers, 2**53 // (self.weight * self.length**2)), 1)
        for first in range(0, points.count, step):
            offsets = self._offsets(points.part(first, first + step))
            weighted = offsets * weights[first : first + step, np.newaxis]
            total += (weighted.T @ offsets).astype(np.int64)
        factors = np.where(np.eye(numbers, dtype=np.bool), SQUARE, PRODUCT)
        triangle: Integers = (total * factors)[np.triu_indices(numbers)]
        return triangle

    def _offsets(self, points: Points) -> Floats:
        """Returns the scaled offsets of rows, at most ``length`` long: floats that are integers."""
        apart = points.matrix.astype(np.int64) - self.center
        scaled = (2 * apart * self.length + self.radius) // (2 * self.radius)
        return clipped(scaled, self.length, Norm.L2).astype(np.float64)
