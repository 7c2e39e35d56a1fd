# SPDX-License-Identifier: Apache-2.0
"""The published estimates of a census, and the unbiased estimates with their intervals."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.exact.rational import Number
from sfumato.noise import Integers
from sfumato.synopsis.geography.design import Axes
from sfumato.synopsis.geography.least_squares import by_axes
from sfumato.synopsis.geography.plan import (
    CensusPlan,
    Split,
    reach,
)
from sfumato.synopsis.geography.tree import Floats

# Above the rounding error of the floats in an interval.
_UP = 1 + 2.0**-30


@dataclass(frozen=True, eq=False)
class Estimates:
    """The estimates of each level's detail table in a census, with the plan and the split of the
    cost.

    ``squares`` are the least-squares estimates, unbiased and not rounded; ``counts`` are published.
    """

    plan: CensusPlan
    split: Split
    squares: Sequence[Floats]
    counts: Sequence[Integers]

    def published(self, level: int, axes: Axes) -> Integers:
        """Returns the published counts of a table, with a row for each area of the level."""
        return by_axes(
            self.counts[level],
            self.plan.design.detail(level),
            axes,
        )

    def unbiased(self, level: int, axes: Axes) -> Floats:
        """Returns the least-squares estimate of a table, with a row for each area of the level."""
        return by_axes(
            self.squares[level],
            self.plan.design.detail(level),
            axes,
        )

    def errors(self, level: int, axes: Axes) -> Floats:
        """Returns the exact standard error of each cell of a table by least squares."""
        return self.plan.cell_errors(self.split, level, axes)

    def margins(self, level: int, axes: Axes, confidence: Number = "0.95") -> Floats:
        """Returns the bound of the least-squares error of each cell at a confidence."""
        margins: Floats = self.errors(level, axes) * reach(self.plan.allowance.norm, confidence)
        return margins * _UP

    def interval(
        self, level: int, axes: Axes, confidence: Number = "0.95"
    ) -> tuple[Floats, Floats]:
        """Returns the ends of an interval for each cell, which holds with the given confidence.

        The interval is centred on the least-squares estimate and cut at 0; it is 0 for an
        impossible cell.
        """
        margins = self.margins(level, axes, confidence)
        middle = np.where(
            margins > 0,
            self.unbiased(level, axes),
            self.published(level, axes),
        )
        low: Floats = np.maximum(middle - margins, 0.0)
        high: Floats = np.maximum(middle + margins, 0.0)
        return low, high
