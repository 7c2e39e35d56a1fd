# SPDX-License-Identifier: Apache-2.0
"""A statistic for k-means and PCA: for each public center, the number and offsets of its rows.

A row belongs to its nearest center. Proof: cluster_sums.proof.md.

Proof: cluster_sums.proof.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sfumato.errors import InvalidDeclaration
from sfumato.learning.points import STEPS, Boxed, Points, read_points
from sfumato.noise import Integers
from sfumato.plan.rows import BoundedRows
from sfumato.privacy.distance import Norm
from sfumato.query.statistic import Opened
from sfumato.query.unit_vectors import Added, UnitVectors

# The number of distances that are computed at once.
_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True)
class ClusterSums(UnitVectors[Points]):
    """A statistic for each cluster center: STEPS times the number of rows nearest to it, then the
    sum of their offsets in each column.

    An offset is the distance from the center in units of ``reach`` / STEPS, clipped to STEPS.
    ``centers`` has one row per center, in steps of the box; ``reach`` is positive. A row with a
    missing number adds nothing. The vectors of a unit with several rows are added up and clipped
    once.

    Guarantees:
        cluster sums move by at most their proved distance
        a row with a missing number adds nothing

    Raises:
        InvalidDeclaration: vectors of a unit that may be 2^31 long, centers outside the box.
    """

    plan: BoundedRows
    places: tuple[int, ...]
    box: Boxed
    centers: Integers
    reach: Integers
    norm: Norm

    def __post_init__(self) -> None:
        inside = self.centers.shape == (len(self.reach), self.box.width)
        if not inside or np.abs(self.centers).max() > STEPS or self.reach.min() < 1:
            raise InvalidDeclaration("Centers outside the box.", allowed="centers inside")
        self.require_bounded()

    @property
    def length(self) -> int:
        """The largest L1 norm of the vector that a row adds to the sums."""
        return STEPS * (1 + self.box.width)

    @property
    def squared(self) -> int:
        """The largest squared L2 norm of the vector that a row adds to the sums."""
        return STEPS**2 * (1 + self.box.width)

    @property
    def width(self) -> int:
        """The number of integers of the statistic."""
        return len(self.reach) * (1 + self.box.width)

    def read(self, opened: Opened) -> Points:
        """Reads the private rows and returns them as points of the box."""
        return read_points(opened, self.plan, self.box, self.places)

    def added(self, rows: Points) -> Iterator[Added]:
        """Yields the vector that each row adds to the sums of its nearest center: STEPS as its
        count, then its offset in each column.

        Of equally near centers the first counts.
        """
        chosen = self._nearest(rows)
        first = chosen * (1 + self.box.width)
        has_numbers = rows.known.astype(np.float64)
        yield first, STEPS * has_numbers
        reach = self.reach[chosen]
        for number in range(self.box.width):
            apart = rows.matrix[:, number].astype(np.int64) - self.centers[chosen, number]
            # rounded to the nearest
            offset = (2 * STEPS * apart + reach) // (2 * reach)
            yield first + 1 + number, np.clip(offset, -STEPS, STEPS) * has_numbers

    def _nearest(self, rows: Points) -> Integers:
        """Returns the index of the nearest center of each row."""
        centers = self.centers.astype(np.float64)
        squares = (centers * centers).sum(axis=1)
        nearest = np.zeros(rows.count, np.int64)
        step = max(_AT_ONCE // len(centers), 1)
        for first in range(0, rows.count, step):
            matrix = rows.matrix[first : first + step].astype(np.float64)
            # integers below 2^53: exact in every order of summation
            nearest[first : first + step] = (squares - 2 * matrix @ centers.T).argmin(axis=1)
        return nearest
