# SPDX-License-Identifier: Apache-2.0
"""The outcomes of a fitted tree. Proof: outcomes.proof.md."""

from dataclasses import dataclass

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
