# SPDX-License-Identifier: Apache-2.0
"""The splits of a tree, and which of its leaves a row reaches. Proof: split_scores.proof.md."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.learning.features import Features, Listed
from sfumato.noise import Integers


@dataclass(frozen=True, slots=True)
class Candidates:
    """The tests by which rows may be split: a coordinate of a feature each.

    A row passes the test of a coordinate of a number if its own is that one or a later one (the
    last is that of missing values); that of a declared value, if it is the same.

    >>> from sfumato.learning.features import Binned
    >>> Candidates(Features((Listed("sex", 0, 2), Binned("age", (30, 60))))).count
    7
    """

    features: Features

    @property
    def count(self) -> int:
        """The number of tests: one for each coordinate."""
        return self.features.width

    @property
    def listed(self) -> list[bool]:
        """For each feature, whether its values have no order."""
        return [isinstance(part, Listed) for part in self.features.parts]

    def leaves(
        self,
        coordinates: Sequence[Integers],
        levels: Sequence[Integers],
    ) -> Integers:
        """The node that each row reaches: a function of that row and of the tests alone.

        ``levels`` has for each level the test of each node. A row that passes the test of node v
        goes on to node 2 v + 1, another one to node 2 v.
        """
        reached = np.zeros(len(coordinates[0]), np.int64)
        starts = np.array(self.features.starts, np.int64)
        listed = np.array(self.listed)
        matrix = np.stack(coordinates, axis=1)
        row = np.arange(len(reached))
        for level in levels:
            test = level[reached]
            feature = np.searchsorted(starts, test, side="right") - 1
            own = matrix[row, feature]
            passed = np.where(listed[feature], own == test, own >= test)
            reached = 2 * reached + passed
        return reached


def coordinates_of(features: Features, codes: Sequence[Integers]) -> list[Integers]:
    """The coordinates of columns of codes, among those of all features."""
    return [at.astype(np.int64) for at, _ in features.encoded(codes)]
