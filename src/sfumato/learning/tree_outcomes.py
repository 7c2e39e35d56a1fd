# SPDX-License-Identifier: Apache-2.0
"""The outcomes of a fitted tree, and of several. Proof: outcomes.proof.md."""

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
    """The outcomes of a tree; ``classes`` has the place of the class of each leaf."""

    features: Features
    places: tuple[int, ...]
    levels: tuple[Integers, ...]
    classes: Integers

    @property
    def at_once(self) -> int:
        """A fixed number."""
        return _AT_ONCE

    @property
    def read(self) -> str:
        """The plan, the places and the label."""
        return f"{form(self.plan)} {self.places} {form(self.label)}"

    def predicted(self, codes: Integers) -> Integers:
        """The class of the leaf that a row reaches."""
        columns = [codes[:, place] for place in self.places]
        coordinates = coordinates_of(self.features, columns)
        return self.classes[Candidates(self.features).leaves(coordinates, self.levels)]


@dataclass(frozen=True, slots=True)
class ForestOutcomes(Outcomes):
    """The outcomes of several trees; ``levels`` and ``votes`` have the tests of each tree, and what
    each of its leaves adds to the score of each class.
    """

    features: Features
    places: tuple[int, ...]
    levels: tuple[tuple[Integers, ...], ...]
    votes: tuple[Integers, ...]

    @property
    def at_once(self) -> int:
        """A fixed number."""
        return _AT_ONCE

    @property
    def read(self) -> str:
        """The plan, the places and the label."""
        return f"{form(self.plan)} {self.places} {form(self.label)}"

    def predicted(self, codes: Integers) -> Integers:
        """The class with most votes, the first of equal ones."""
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
    """The votes for each class, row by row: sums of integers of that row's leaves alone."""
    candidates = Candidates(features)
    total = np.zeros((len(coordinates[0]), votes[0].shape[1]), np.int64)
    for tests, leaves in zip(levels, votes, strict=True):
        total += leaves[candidates.leaves(coordinates, tests)]
    return total
