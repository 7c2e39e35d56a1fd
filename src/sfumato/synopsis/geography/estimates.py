# SPDX-License-Identifier: Apache-2.0
"""The estimates of a census: what is published, and the unbiased ones with their intervals."""

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
    """A plan, the split it was measured with, and the estimates of each level in its detail.

    ``squares`` are those of least squares, unbiased and with fractions; ``counts`` are published.
    """

    plan: CensusPlan
    split: Split
    squares: Sequence[Floats]
    counts: Sequence[Integers]

    def published(self, level: int, axes: Axes) -> Integers:
        """The published table of a level, with a row for each area."""
        return by_axes(
            self.counts[level],
            self.plan.design.detail(level),
            axes,
        )

    def unbiased(self, level: int, axes: Axes) -> Floats:
        """The least-squares estimate of a table."""
        return by_axes(
            self.squares[level],
            self.plan.design.detail(level),
            axes,
        )

    def errors(self, level: int, axes: Axes) -> Floats:
        """The standard error of each cell of a table by least squares; exact."""
        return self.plan.cell_errors(self.split, level, axes)

    def margins(self, level: int, axes: Axes, confidence: Number = "0.95") -> Floats:
        """What the error of least squares exceeds with at most the probability 1 - confidence."""
        margins: Floats = self.errors(level, axes) * reach(self.plan.allowance.norm, confidence)
        return margins * _UP

    def interval(
        self, level: int, axes: Axes, confidence: Number = "0.95"
    ) -> tuple[Floats, Floats]:
        """The ends of an interval that holds each cell with at least this probability.

        It is around least squares, and cut at 0. That of an impossible cell is 0.
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
