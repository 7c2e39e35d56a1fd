# SPDX-License-Identifier: Apache-2.0
"""Rows as integer points: each column scaled from its bounds to -STEPS to STEPS.

k-means and PCA read rows this way. Proof: points.proof.md.

Proof: points.proof.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import WrongUse
from sfumato.metadata.column import Boolean, ColumnType, Date, Integer, Real
from sfumato.noise import Integers
from sfumato.plan.rows import MISSING, BoundedRows
from sfumato.query.statistic import Opened, Rows

# A point lies in the box from -STEPS to STEPS.
STEPS = 1 << 10
_BITS = 48


@dataclass(frozen=True, slots=True)
class Points:
    """Rows as integer vectors: each number is scaled to an integer coordinate from -STEPS to STEPS.

    ``known`` is False for a row with a missing number; its coordinates are 0.
    """

    matrix: NDArray[np.int16]
    known: NDArray[np.bool]

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(self.known)

    def part(
        self,
        first: int,
        last: int,
    ) -> "Points":
        """Returns the rows from index ``first`` up to, but not including, ``last``."""
        return Points(self.matrix[first:last], self.known[first:last])


class Boxed(Protocol):
    """The interface of a map from the codes of rows to ``Points``, in which each point depends on
    its own row only.
    """

    @property
    def width(self) -> int:
        """The number of coordinates of a point."""
        ...

    def points(self, codes: Sequence[Integers]) -> Points:
        """Returns rows as points with coordinates from -STEPS to STEPS; ``codes`` has an array for
        each column.
        """
        ...


@dataclass(frozen=True, slots=True)
class Box:
    """The linear map from codes between declared bounds to coordinates from -STEPS to STEPS; codes
    beyond a bound are clipped.

    A row with a missing code is not ``known``; its coordinates are 0.

    Guarantees:
        a point depends on its own row alone
        a point lies in the box

    >>> Box((0,), (100,)).points([np.array([0, 50, 200, MISSING])]).matrix.ravel().tolist()
    [-1024, 0, 1024, 0]
    """

    lower: tuple[int, ...]
    upper: tuple[int, ...]

    @property
    def width(self) -> int:
        """The number of coordinates of a point."""
        return len(self.lower)

    def points(self, codes: Sequence[Integers]) -> Points:
        """Returns the points of rows of codes; ``codes`` has an array for each column."""
        matrix = np.zeros((len(codes[0]), self.width), np.int16)
        is_known = np.ones(len(matrix), np.bool)
        for dimension, (column, lower, upper) in enumerate(
            zip(codes, self.lower, self.upper, strict=True)
        ):
            # ranges of up to 2^53 codes: the product fits 64 bits
            shift = max((upper - lower).bit_length() - _BITS, 0)
            size = (upper - lower) >> shift
            offset = (np.clip(column, lower, upper) - lower) >> shift
            # rounded to the nearest
            share = (4 * STEPS * offset + size) // (2 * size)
            matrix[:, dimension] = share - STEPS
            is_known &= column != MISSING
        matrix[~is_known] = 0
        return Points(matrix, is_known)


def bounds(name: str, kind: ColumnType) -> tuple[int, int]:
    """Returns the lowest and the highest code of a numeric column: the ends of its clipping range,
    or else its declared bounds.

    Raises:
        WrongUse: a column that is no number.

    >>> bounds("age", Integer(0, 99, clip=80))
    (0, 80)
    """
    if not isinstance(kind, Boolean | Integer | Real | Date):
        raise WrongUse(
            f"{name} is a {type(kind).__name__}: points are made of numbers.",
            allowed="Integer, Real, Date, Boolean, an Array of numbers",
            remedy="Leave it out, or make tests of it: city = 'Rome' AS rome.",
        )
    if isinstance(kind, Integer | Real) and isinstance(kind.clip, tuple):
        return kind.clip
    return kind.lower_code, kind.upper_code


def read_points(
    opened: Opened,
    plan: BoundedRows,
    box: Boxed,
    places: tuple[int, ...],
) -> Points:
    """Returns the private rows of a plan as points; ``places`` are the indices of the codes that
    they are made of. Cached as long as the rows are open.
    """

    def points(rows: Rows) -> Points:
        return box.points([rows.codes[:, place] for place in places])

    return opened.derived(plan, ("points", box, places), points)
