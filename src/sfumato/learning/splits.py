# SPDX-License-Identifier: Apache-2.0
"""The possible tests of a tree, and the leaf that a row reaches. Proof: split_scores.proof.md."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.learning.features import Features, Listed
from sfumato.noise import Integers


@dataclass(frozen=True, slots=True)
class Candidates:
    """The candidate tests by which a node of a decision tree can split rows: one for each
    coordinate of the features.

    For a numeric feature a row passes if its coordinate is at least that of the test (missing is
    the last coordinate); for a feature of declared values, if both are equal.

    >>> from sfumato.learning.features import Binned
    >>> Candidates(Features((Listed("sex", 0, 2), Binned("age", (30, 60))))).count
    7
    """

    features: Features

    @property
    def count(self) -> int:
        """The number of candidate tests: one for each coordinate."""
        return self.features.width

    @property
    def listed(self) -> list[bool]:
        """Whether each feature has unordered values, so that a test compares for equality with one
        value.
        """
        return [isinstance(part, Listed) for part in self.features.parts]

    def leaves(
        self,
        coordinates: Sequence[Integers],
        levels: Sequence[Integers],
    ) -> Integers:
        """Returns the number of the tree node that each row reaches, which depends on that row and
        the tests only.

        ``levels`` has, for each level, the test of each node. From node v a row that passes goes to
        node 2 v + 1, any other to node 2 v.
        """
        reached = np.zeros(len(coordinates[0]), np.int64)
        starts = np.array(self.features.starts, np.int64)
        is_listed = np.array(self.listed)
        matrix = np.stack(coordinates, axis=1)
        row = np.arange(len(reached))
        for level in levels:
            test = level[reached]
            feature = np.searchsorted(starts, test, side="right") - 1
            own = matrix[row, feature]
            passed = np.where(is_listed[feature], own == test, own >= test)
            reached = 2 * reached + passed
        return reached


def coordinates_of(features: Features, codes: Sequence[Integers]) -> list[Integers]:
    """Returns, for each feature, the coordinate of every row, numbered over the coordinates of all
    features.
    """
    return [at.astype(np.int64) for at, _ in features.encoded(codes)]
