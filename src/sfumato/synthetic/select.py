# SPDX-License-Identifier: Apache-2.0
"""The scores of the private selection: how far synthetic rows are from private ones, per candidate.

``task`` selects the marginal to measure next by them. Proof: select.proof.md.

Proof: select.proof.md.
"""

from dataclasses import dataclass, replace

import numpy as np

from sfumato.errors import InvalidDeclaration
from sfumato.noise import Integers
from sfumato.privacy.distance import Distance, Norm
from sfumato.query.statistic import BoundedStatistic, Opened
from sfumato.synthetic.counts import BlockCounts, Plan

# The largest weight of a candidate.
MOST_WEIGHT = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A marginal that the private selection may choose to measure next.

    ``synthetic`` are its counts in the current synthetic rows, as a flat array in the units of the
    exact counts. ``penalty``, the expected error of its noise, is subtracted from its score.
    ``weight`` says how much it matters.

    Raises:
        InvalidDeclaration: a weight outside 0 to 1,000, or counts of another marginal.
    """

    counts: BlockCounts
    synthetic: Integers
    penalty: int = 0
    weight: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.weight <= MOST_WEIGHT:
            raise InvalidDeclaration(f"A weight of {self.weight}.", allowed="from 0 to 1,000")
        if self.synthetic.shape != (int(np.prod(self.counts.shape)),):
            raise InvalidDeclaration("Synthetic counts of another marginal.")


@dataclass(frozen=True, slots=True, eq=False)
class Discrepancies(BoundedStatistic[list[int]]):
    """The exact scores of the candidates in the private selection: weight times (sum of |private
    count - synthetic count| - penalty).

    ``heaviest`` is the largest weight that a candidate may have.

    Guarantees:
        scores move by at most their proved distance

    Raises:
        InvalidDeclaration: a heavier candidate, or one of another plan.
    """

    plan: Plan
    candidates: tuple[Candidate, ...]
    heaviest: int = 1

    def __post_init__(self) -> None:
        for each in self.candidates:
            if each.weight > self.heaviest or each.counts.plan != self.plan:
                raise InvalidDeclaration("A heavier candidate, or one of another plan.")

    def distance(self, norm: Norm) -> Distance:
        """Returns the sensitivity of the scores (Linf): that of a marginal's L1 distance from a
        public table, times the largest weight.

        Raises:
            InvalidDeclaration: nothing is proved in another norm.
        """
        if norm is not Norm.LINF:
            raise InvalidDeclaration(f"Scores in {norm.value}.", allowed="Linf")
        apart = self.plan.apart
        return replace(apart, value=apart.value * self.heaviest)

    def exact(self, opened: Opened) -> list[int]:
        """Returns the scores without noise."""
        scores = []
        for each in self.candidates:
            apart = np.abs(each.counts.exact(opened) - each.synthetic).sum()
            scores.append(each.weight * (int(apart) - each.penalty))
        return scores
