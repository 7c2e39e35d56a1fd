# SPDX-License-Identifier: Apache-2.0
"""A statistic for regressions: rows predicted within a tolerance. Proof: near.proof.md.

``score_within`` measures it.
"""

from dataclasses import dataclass

import numpy as np

from sfumato.errors import InvalidDeclaration
from sfumato.learning.outcomes import WeightOutcomes
from sfumato.noise import Integers
from sfumato.plan.rows import MISSING
from sfumato.plan.show import form

# The steps of a weight (``integer_weights``): a score of so many is the upper end of the label.
STEPS = 1 << 20
# The most codes of a label: products with the steps fit in 63 bits.
MOST_CODES = 1 << 40


@dataclass(frozen=True, slots=True)
class NearOutcomes(WeightOutcomes):
    """A statistic of a regression model: the number of rows whose label is at most ``tolerance``
    codes from the prediction, and the number of all others.

    ``weights`` has a single row: the score gives the position of the label between its two bounds.

    Guarantees:
        near outcomes move by at most their proved distance
    """

    tolerance: int

    def __post_init__(self) -> None:
        size = self.label.upper - self.label.lower
        if len(self.weights) != 1 or not 0 < size < MOST_CODES or self.tolerance < 0:
            raise InvalidDeclaration(
                f"A number of {size:,} codes, within {self.tolerance:,}.",
                allowed=f"one score, fewer than {MOST_CODES:,} codes, a tolerance from 0",
            )

    @property
    def read(self) -> str:
        """A canonical string of the plan, the columns, the label and the tolerance, for the
        answer's cache key.
        """
        return f"{form(self.plan)} {self.places} {form(self.label)} within {self.tolerance}"

    def predicted(self, codes: Integers) -> Integers:
        """Returns the predicted code of each row, counted from the lowest code of the label."""
        columns = [np.asarray(codes[:, place]) for place in self.places]
        total = np.zeros(len(codes), np.int64)
        for places, share in self.features.shares(columns):
            total += self.weights[0][places] * share
        inside: Integers = np.clip(total // self.features.scale, 0, STEPS)
        return (inside * (self.label.upper - self.label.lower) + STEPS // 2) // STEPS

    def _counted(self, codes: Integers) -> Integers:
        """Returns the two counts of some rows."""
        label = np.asarray(codes[:, self.label.place])
        known = (label >= self.label.lower) & (label <= self.label.upper) & (label != MISSING)
        # 0 where the label is missing: its code may be far from all others
        above = np.where(known, label - self.label.lower, 0)
        near = known & (np.abs(self.predicted(codes) - above) <= self.tolerance)
        return np.array([near.sum(), known.sum() - near.sum()], np.int64)
