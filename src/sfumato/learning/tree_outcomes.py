# SPDX-License-Identifier: Apache-2.0
"""The statistics that count right predictions of a tree and of a forest. Proof:
outcomes.proof.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.learning.features import Features
from sfumato.learning.outcomes import Outcomes
from sfumato.learning.splits import Candidates, coordinates_of
from sfumato.noise import Integers
from sfumato.plan.show import form

# The number of rows that are predicted at once.
_AT_ONCE = 1 << 17


@dataclass(frozen=True, slots=True)
class TreeOutcomes(Outcomes):
    """A statistic of a decision tree on private rows: the numbers of its right and of its wrong
    predictions.

    ``classes`` has the class index of each leaf.
    """

    features: Features
    places: tuple[int, ...]
    levels: tuple[Integers, ...]
    classes: Integers

    @property
    def at_once(self) -> int:
        """The number of rows that are predicted in one batch, a constant."""
        return _AT_ONCE

    @property
    def read(self) -> str:
        """A canonical string of the plan, the columns and the label, for the answer's cache key."""
        return f"{form(self.plan)} {self.places} {form(self.label)}"

    def predicted(self, codes: Integers) -> Integers:
        """Returns the index of the predicted class of each row: the class of the leaf that the row
        reaches.
        """
        columns = [codes[:, place] for place in self.places]
        coordinates = coordinates_of(self.features, columns)
        return self.classes[Candidates(self.features).leaves(coordinates, self.levels)]


@dataclass(frozen=True, slots=True)
class ForestOutcomes(Outcomes):
    """A statistic of a forest on private rows: the numbers of its right and of its wrong
    predictions.

    ``levels`` are the tests of each tree; ``votes`` are what each of its leaves adds to the score
    of each class.
    """

    features: Features
    places: tuple[int, ...]
    levels: tuple[tuple[Integers, ...], ...]
    votes: tuple[Integers, ...]

    @property
    def at_once(self) -> int:
        """The number of rows that are predicted in one batch, a constant."""
        return _AT_ONCE

    @property
    def read(self) -> str:
        """A canonical string of the plan, the columns and the label, for the answer's cache key."""
        return f"{form(self.plan)} {self.places} {form(self.label)}"

    def predicted(self, codes: Integers) -> Integers:
        """Returns the index of the predicted class of each row: the class with most votes, the
        first of equal ones.
        """
        columns = [codes[:, place] for place in self.places]
        coordinates = coordinates_of(self.features, columns)
        votes = votes_of(self.features, coordinates, self.levels, self.votes)
        found: Integers = votes.argmax(axis=1)
        return found


def votes_of(
    features: Features,
    coordinates: Sequence[Integers],
    levels: Sequence[Sequence[Integers]],
    votes: Sequence[Integers],
) -> Integers:
    """Returns a forest's integer votes for each class, row by row: the sum over the leaves that the
    row reaches.
    """
    candidates = Candidates(features)
    total = np.zeros((len(coordinates[0]), votes[0].shape[1]), np.int64)
    for tests, leaves in zip(levels, votes, strict=True):
        total += leaves[candidates.leaves(coordinates, tests)]
    return total
