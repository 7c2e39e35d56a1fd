# SPDX-License-Identifier: Apache-2.0
"""One table of one level of a spine, as a statistic. Proof: layer.proof.md.

``CensusTask`` measures these statistics.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sfumato.errors import InvalidDeclaration
from sfumato.noise import Integers
from sfumato.plan.cube import BoundedCube
from sfumato.privacy.distance import Distance, Norm
from sfumato.query.statistic import (
    BoundedStatistic,
    Opened,
)


@dataclass(frozen=True, eq=False)
class CensusLayer(BoundedStatistic[Integers]):
    """The statistic of one census table: counts of the rows of each area of a level, by some axes.

    The counts are a flat array. The first axes of the cube give the location of a row. ``areas``
    has the area of each cell of the location, or -1; every area from 0 to the largest has a cell.
    ``places`` has, for each other axis, the cells that are counted, ascending; ``kept`` are the
    indices of the table's axes. Rows in no area, or in a cell that is left out, are not counted.

    Guarantees:
        a table of a level moves by at most its proved distance

    Raises:
        InvalidDeclaration: places that are not ascending, so that a cell might count twice.
    """

    plan: BoundedCube
    areas: Integers
    places: tuple[tuple[int, ...], ...]
    kept: tuple[int, ...]

    def __post_init__(self) -> None:
        for places in self.places:
            # the numbers of cells begin at 0; a negative one would be a cell from behind
            if any(one >= other for one, other in pairwise((-1, *places))):
                raise InvalidDeclaration(
                    "Cells of a table that do not ascend.", allowed="each cell once, in order"
                )

    def distance(self, norm: Norm) -> Distance:
        """Returns the sensitivity of the table's counts: the L1 norm, or the squared L2 norm.

        Raises:
            InvalidDeclaration: nothing is proved in another norm.
        """
        if norm is Norm.L1:
            return self.plan.l1
        if norm is Norm.L2:
            return self.plan.l2
        raise InvalidDeclaration(
            f"A table of a level in {norm.value}.",
            allowed="L1, L2",
        )

    @property
    def size(self) -> int:
        """The number of counts of the table, over all areas of its level."""
        cells = math.prod(len(self.places[axis]) for axis in self.kept)
        return (int(self.areas.max()) + 1) * cells

    def exact(self, opened: Opened) -> Integers:
        """Returns the table's counts without noise, as a flat array."""
        every = opened.marginal(self.plan, self.plan.cube.names)
        shape = every.shape[every.ndim - len(self.places) :]
        order = np.argsort(self.areas, kind="stable")
        # the places of areas, area by area; those in none come before them
        inside = order[np.count_nonzero(self.areas < 0) :]
        counted = np.ix_(inside, *map(np.array, self.places))
        table: Integers = every.reshape(len(self.areas), *shape)[counted]
        dropped = [axis + 1 for axis in range(len(self.places)) if axis not in self.kept]
        if dropped:
            table = table.sum(axis=tuple(dropped))
        starts = np.flatnonzero(np.diff(self.areas[inside], prepend=-1))
        found: Integers = np.add.reduceat(table, starts, axis=0)
        return found.ravel()
