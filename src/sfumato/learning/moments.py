# SPDX-License-Identifier: Apache-2.0
"""The statistic of ridge regression: sums of products of coordinates. Proof: moments.proof.md."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.errors import InvalidDeclaration
from sfumato.learning.features import Features, Floats
from sfumato.noise import Integers
from sfumato.plan.rows import MISSING, BoundedRows
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.unit import Relation
from sfumato.query.clip import LONGEST, clipped
from sfumato.query.statistic import BoundedStatistic, Opened, Rows

# The number of cells of a matrix of examples, or of products of units, at once.
_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True)
class SecondMoments(BoundedStatistic[Integers]):
    """A statistic for ridge regression: the sum over units of the products of any two feature
    coordinates of their rows.

    It is the upper triangle of a symmetric matrix, row by row. ``places`` are the indices of the
    columns among the codes of a row. A row whose code at index ``required`` is missing adds
    nothing. The products of a unit with several rows are added up and clipped once.

    Guarantees:
        moments move by at most their proved distance
        a row without its required value adds nothing

    Raises:
        InvalidDeclaration: products of a unit that may be 2^31 long.
    """

    plan: BoundedRows
    features: Features
    places: tuple[int, ...]
    required: int

    def __post_init__(self) -> None:
        if self.plan.most * self.bound >= LONGEST:
            raise InvalidDeclaration(
                f"Products of {self.plan.most:,} rows of a unit.", allowed="less than 2^31 in all"
            )

    @property
    def bound(self) -> int:
        """The largest L2 norm of the products that a unit adds: the squared length of the longest
        possible row.
        """
        return self.features.scale**2 * len(self.places)

    @property
    def width(self) -> int:
        """The number of integers of the statistic: one for each pair of coordinates."""
        count = self.features.width
        return count * (count + 1) // 2

    def distance(self, norm: Norm) -> Distance:
        """Returns the squared L2 sensitivity: the square of the largest norm that a unit adds, or
        four times that if a unit is replaced.
        """
        if norm is not Norm.L2:
            raise InvalidDeclaration(f"Second moments in {norm.value}.", allowed="L2")
        times = 1
        if self.plan.neighbours is Relation.REPLACE_ONE:
            times = 2
        return Distance(norm, Fraction((times * self.bound) ** 2), self.plan.neighbours)

    def exact(self, opened: Opened) -> Integers:
        """Returns the exact sums of products, without noise."""
        rows = opened.unit_rows(self.plan)
        if self.plan.most == 1:
            return self._single(rows)
        return self._several(rows)

    def _single(self, rows: Rows) -> Integers:
        """Returns the sums where each row is a unit."""
        count = self.features.width
        total = np.zeros((count, count), np.int64)
        step = max(_AT_ONCE // count, 1)
        for first in range(0, rows.units, step):
            matrix = self._matrix(rows.codes[first : first + step])
            # products and sums of integers below 2^53 are exact in any order
            total += (matrix.T @ matrix).astype(np.int64)
        return total[np.triu_indices(count)]

    def _several(self, rows: Rows) -> Integers:
        """Returns the sums where units have several rows: products are added up per unit, then
        clipped.
        """
        above = np.triu_indices(self.features.width)
        total = np.zeros(self.width, np.int64)
        step = max(_AT_ONCE // (self.width * self.plan.most), 1)
        for first in range(0, rows.units, step):
            starts = rows.starts[first : first + step + 1]
            matrix = self._matrix(rows.codes[starts[0] : starts[-1]])
            products = matrix[:, above[0]] * matrix[:, above[1]]
            by_unit = np.add.reduceat(products, starts[:-1] - starts[0], axis=0)
            total += clipped(by_unit.astype(np.int64), self.bound, Norm.L2).sum(axis=0)
        return total

    def _matrix(self, codes: Integers) -> Floats:
        """Returns the weights of the coordinates as a matrix, one row per row: floats that are
        integers.
        """
        matrix = np.zeros((len(codes), self.features.width))
        columns = [codes[:, place] for place in self.places]
        row = np.arange(len(codes))
        for at, weight in self.features.encoded(columns):
            if weight is None:
                matrix[row, at] = self.features.scale
                continue
            divided = weight.astype(np.float64)
            matrix[row, at] = self.features.scale - divided
            matrix[row, at + (weight > 0)] += divided
        matrix[codes[:, self.required] == MISSING] = 0
        return matrix
