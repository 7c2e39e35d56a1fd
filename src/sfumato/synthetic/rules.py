# SPDX-License-Identifier: Apache-2.0
"""Constraints: combinations of values that no row has. They are public, and never violated."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.noise import Integers
from sfumato.synthetic.merging import Merging
from sfumato.synthetic.schema import Floats
from sfumato.synthetic.tree import Clique

# The logarithm of what cannot occur; its exponential is 0.
IMPOSSIBLE = -1e6


@dataclass(frozen=True, eq=False)
class Rule:
    """Which combinations of cells of some columns can occur.

    >>> rule = Rule((0, 1), np.array([[True, False], [True, True], [True, True]]))
    >>> rule.classes(0).tolist()
    [0, 1, 1]
    """

    columns: Clique
    allowed: npt.NDArray[np.bool_]

    def classes(self, column: int) -> Integers:
        """A number for each cell of a column, the same where the rule treats cells alike."""
        rows = np.moveaxis(self.allowed, self.columns.index(column), 0)
        flat = rows.reshape(len(rows), -1)
        return np.unique(flat, axis=0, return_inverse=True)[1].ravel()

    def logarithms(self, merges: Sequence[Merging]) -> Floats:
        """The logarithm of 1 or 0 for each combination of blocks; cells of a block are alike."""
        table = self.allowed
        for axis, column in enumerate(self.columns):
            firsts = [cells[0] for cells in merges[column].members]
            table = table.take(firsts, axis=axis)
        return np.where(table, 0.0, IMPOSSIBLE)
