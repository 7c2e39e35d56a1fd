# SPDX-License-Identifier: Apache-2.0
"""Least squares over all tables of all levels of a census, and the exact variance of each cell.

``plan`` computes planned errors with it, ``Census`` the unbiased estimates.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.synopsis.geography.design import (
    Axes,
    Design,
    residual_of,
    spread_over,
)
from sfumato.synopsis.geography.tree import (
    Floats,
    Numbers,
)
from sfumato.synopsis.geography.tree_squares import (
    Mask,
    TreeSquares,
)


@dataclass(frozen=True, eq=False)
class PublicTotals:
    """Areas whose total number of rows is public: for each level, a mask of them and the totals.

    The totals of other areas are 0.
    """

    known: tuple[Mask, ...]
    totals: tuple[Floats, ...]


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """The least-squares problem of a census: its design, the precision of each table, public
    totals.
    """

    design: Design
    precisions: tuple[float, ...]
    public: PublicTotals | None = None

    def estimates(self, noisy: Sequence[Floats | None]) -> list[Floats]:
        """Returns the estimate of each level's detail table, given the noisy tables.

        ``noisy`` has an array for each table, with a row for each area and a dimension for each
        axis; None for a table of precision 0, which is not measured. Residuals that no table
        determines are 0 in the estimate.
        """
        design = self.design
        estimates = []
        for level, size in enumerate(design.tree.sizes):
            shape = [design.sizes[axis] for axis in design.detail(level)]
            estimates.append(np.zeros([size, *shape]))
        for residual in design.deepest:
            self._add(estimates, residual, noisy)
        return estimates

    def variances(self, level: int, axes: Axes) -> Floats:
        """Returns the exact variance of the cells of a table, for each area of a level.

        All cells of one table of an area have one variance.

        Raises:
            KeyError: axes that no table of the level or below has together.
        """
        found = np.zeros(self.design.tree.sizes[level])
        for residual in self._parts(axes):
            counted = self.design.counted(residual, axes)
            found += counted * self.residual_variances(residual, level)
        return found

    def residual_variances(self, residual: Axes, level: int) -> Floats:
        """Returns the exact variance of a residual's coordinates, for each area of a level."""
        return self._squares(residual).variances[level]

    def _parts(self, axes: Axes) -> list[Axes]:
        wanted = set(axes)
        return [part for part in self.design.deepest if set(part) <= wanted]

    def _squares(self, residual: Axes) -> TreeSquares:
        """Returns the problem on the tree of a residual."""
        given = self.design.precisions(residual, self.precisions)
        tree = self.design.tree.upto(len(given) - 1)
        known: tuple[Mask, ...] = ()
        if self.public is not None and not residual:
            known = self.public.known[: len(given)]
        return TreeSquares(tree, given, known)

    def _add(
        self,
        estimates: list[Floats],
        residual: Axes,
        noisy: Sequence[Floats | None],
    ) -> None:
        """Adds a residual to the estimates of all levels at which it is determined."""
        design = self.design
        squares = self._squares(residual)
        shape = [design.sizes[axis] for axis in residual]
        measured: list[Floats | None] = []
        for level in range(squares.tree.levels):
            measured.append(self._measured(level, residual, noisy))
        for level, values in enumerate(squares.estimates(measured)):
            axes = design.detail(level)
            outside = design.outside(residual, axes)
            estimates[level] += spread_over(
                values.reshape(-1, *shape),
                residual,
                axes,
                outside,
            )

    def _measured(
        self,
        level: int,
        residual: Axes,
        noisy: Sequence[Floats | None],
    ) -> Floats | None:
        """Returns the mean of a residual over the tables of a level, weighted by precision."""
        total: Floats | None = None
        weight = 0.0
        for place, (at, axes) in enumerate(self.design.tables):
            table = noisy[place]
            if table is None or at != level or not set(residual) <= set(axes):
                continue
            one = self.precisions[place] / self.design.outside(residual, axes)
            part = one * residual_of(table, axes, residual)
            weight += one
            total = part if total is None else total + part
        size = self.design.tree.sizes[level]
        if total is not None:
            total = (total / weight).reshape(size, -1)
        if self.public is None or residual:
            return total
        return self._with_public(level, total)

    def _with_public(self, level: int, totals: Floats | None) -> Floats:
        """Returns the totals of a level, with those that are public in their places."""
        assert self.public is not None, "asked where there are public totals"
        known = self.public.known[level]
        stated = self.public.totals[level]
        if totals is None:
            return stated[:, None]
        return np.where(known[:, None], stated[:, None], totals)


def by_axes(values: Numbers, detail: Axes, axes: Axes) -> Numbers:
    """Sums detail tables over all their axes except ``axes``; ``detail`` are the axes that they
    have.
    """
    dropped = [place + 1 for place, axis in enumerate(detail) if axis not in axes]
    if not dropped:
        return values
    found: Numbers = values.sum(axis=tuple(dropped))
    return found
