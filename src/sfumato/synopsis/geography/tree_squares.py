# SPDX-License-Identifier: Apache-2.0
"""Least squares on a tree, in closed form: noisy numbers of areas that add up to their parents.

Each area of level k has an unknown number, which is the sum of those of its children, and is
measured with a precision p_k (one over the variance; 0 if it is not measured). One pass up gives
the best estimate from below, of variance V: that of the area's own measurement and of the sum of
its children, weighted by precision. One pass down gives the best estimate from all measurements, of
variance D: what a parent's estimate differs from the sum of its children is shared among them in
proportion to their V. Both are exact; this is the generalised least squares of Hay et al. (2010),
"Boosting the accuracy of differentially private histograms through consistency", for any tree, or
Kalman smoothing on it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from sfumato.synopsis.geography.tree import Floats, Tree

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class TreeSquares:
    """Weighted least squares for counts on a tree of areas, where children add up to their parent.

    Each level of the tree was measured with noise of variance 1 / ``precisions[level]``; precision
    0 means not measured. The last level must be measured. ``known`` has, for each level, the mask
    of the areas whose number is known exactly; it is empty if there are none.

    >>> squares = TreeSquares(Tree(1, (np.array([0, 0]),)), (1.0, 1.0))
    >>> [each.round(3).tolist() for each in squares.variances]
    [[0.667], [0.667, 0.667]]
    >>> [each.ravel().tolist() for each in squares.estimates([np.array([[4.0]]),
    ...                                                      np.array([[1.0], [0.0]])])]
    [[3.0], [2.0, 1.0]]
    """

    tree: Tree
    precisions: tuple[float, ...]
    known: tuple[Mask, ...] = ()
    _below: list[Floats] = field(init=False, repr=False)
    _sums: list[Floats] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        below, sums = [], []
        variance: Floats = np.full(self.tree.sizes[-1], 1 / self.precisions[-1])
        for level in range(self.tree.levels - 1, -1, -1):
            if level < self.tree.levels - 1:
                total = self.tree.gathered(level, variance)
                sums.append(total)
                variance = 1 / (self.precisions[level] + _inverse(total))
                variance[total == 0] = 0.0
            if self.known:
                variance[self.known[level]] = 0.0
            below.append(variance)
        object.__setattr__(self, "_below", below[::-1])
        object.__setattr__(self, "_sums", sums[::-1])

    @property
    def variances(self) -> list[Floats]:
        """The variance of the estimate of each area, level by level; exact."""
        found = [self._below[0]]
        for level in range(self.tree.levels - 1):
            share = self._shares(level)
            short = self.tree.spread(level, self._sums[level] - found[level])
            found.append(self._below[level + 1] - share**2 * short)
        return found

    def estimates(self, measured: Sequence[Floats | None]) -> list[Floats]:
        """Returns the estimate of each area, level by level, from its measurement at each level.

        A measurement is an array with a row for each area, and a column for each separate problem;
        None for a level of precision 0. The rows of known areas contain their exact numbers.
        """
        upward: list[Floats] = []
        lowest = measured[-1]
        assert lowest is not None, "the last level is measured"
        upward_estimate = lowest
        children: list[Floats] = []
        for level in range(self.tree.levels - 2, -1, -1):
            upward.append(upward_estimate)
            total = self.tree.gathered(level, upward_estimate)
            children.append(total)
            upward_estimate = self._joined(level, measured[level], total)
        upward.append(upward_estimate)
        return self._downward(upward[::-1], children[::-1])

    def _joined(
        self,
        level: int,
        measured: Floats | None,
        total: Floats,
    ) -> Floats:
        """The best estimate from below: that of the sum of the children, and the own one."""
        if measured is None:
            return total
        own = (self.precisions[level] * self._below[level])[:, None]
        joined = total + own * (measured - total)
        if self.known:
            known = self.known[level]
            joined[known] = measured[known]
        return joined

    def _downward(self, upward: list[Floats], children: list[Floats]) -> list[Floats]:
        """Returns the estimates from all measurements."""
        found = [upward[0]]
        for level, total in enumerate(children):
            gap = self.tree.spread(level, found[level] - total)
            share = self._shares(level)[:, None]
            found.append(upward[level + 1] + share * gap)
        return found

    def _shares(self, level: int) -> Floats:
        """For each child of a level, its share of the variance of the sum of its siblings."""
        return self._below[level + 1] * self.tree.spread(level, _inverse(self._sums[level]))


def _inverse(variance: Floats) -> Floats:
    """One over each number; 0 for 0."""
    inverse: Floats = np.divide(
        1.0,
        variance,
        out=np.zeros_like(variance),
        where=variance > 0,
    )
    return inverse
