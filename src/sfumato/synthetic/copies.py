# SPDX-License-Identifier: Apache-2.0
"""Fits of many copies of a model at once: arrays have a row for each copy.

Copies share the junction tree and the columns of all measurements; their counts differ. A step of
all of them takes a fraction of the time of a step of each.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.noise import Integers
from sfumato.synthetic.elimination import Elimination
from sfumato.synthetic.estimate import (
    EXPLAINED,
    FIRST_STEP,
    GROWTH,
    LEAST_STEP,
    SHRINKING,
    Fitted,
    Measurement,
    TreeTarget,
    standardised,
)
from sfumato.synthetic.schema import Floats
from sfumato.synthetic.tree import JunctionTree, Part


@dataclass(frozen=True, eq=False)
class Copies:
    """The bootstrap copies of one model as one batch of fit problems, solved together as arrays.

    ``measurements`` and ``totals`` have an entry for each copy. Potentials are an array with a row
    for each copy, and a column for each cell of each measurement.

    >>> seen = [[Measurement((0,), np.array([n, 100.0 - n]), np.full(2, 0.1))] for n in (30, 60)]
    >>> copies = Copies(JunctionTree.over([2], [(0,)]), seen, np.array([100.0, 100.0]))
    >>> fits = copies.fits(copies.descend(np.zeros((2, 2)), 60))
    >>> [fit.marginals[0].round().tolist() for fit in fits]
    [[30.0, 70.0], [60.0, 40.0]]
    """

    tree: JunctionTree
    measurements: Sequence[Sequence[Measurement]]
    totals: Floats
    fixed: Sequence[Part] = ()

    def descend(self, start: Floats, steps: int) -> Floats:
        """Returns the fitted potentials of all copies, by one gradient descent on the whole batch
        (see ``descended`` for a single copy).

        A copy whose fit has ended leaves the batch. ``start`` has the columns of the first
        measurements; the others start at 0.
        """
        potentials = np.zeros(self._counts.shape)
        potentials[:, : start.shape[1]] = start
        ended = np.empty(potentials.shape)
        explained = 0.5 * EXPLAINED * self._counts[0].size
        running, step = np.arange(len(potentials)), np.full(len(potentials), FIRST_STEP)
        loss, slopes = self._residual(potentials, running)
        for _ in range(steps):
            goes_on = (loss > explained) & (step >= LEAST_STEP)
            if not goes_on.all():
                ended[running] = potentials
                running, step, loss = running[goes_on], step[goes_on], loss[goes_on]
                potentials, slopes = potentials[goes_on], slopes[goes_on]
            if not len(running):
                break
            moved = potentials - step[:, None] * slopes
            new_loss, new_slopes = self._residual(moved, running)
            is_better = new_loss < loss
            potentials[is_better], slopes[is_better] = moved[is_better], new_slopes[is_better]
            loss = np.where(is_better, new_loss, loss)
            step = step * np.where(is_better, GROWTH, SHRINKING)
        ended[running] = potentials
        return ended

    def fits(self, potentials: Floats) -> list[Fitted]:
        """Returns the fitted distribution of each copy, given the potentials from ``descend``."""
        fits = []
        for place, total in enumerate(self.totals):
            tables = [table[0] for table in self._split(potentials[place : place + 1])]
            marginals = [table * total for table in self._shares.marginals(tables)]
            fits.append(Fitted(self.tree, tuple(tables), marginals, float(total)))
        return fits

    @cached_property
    def _counts(self) -> Floats:
        return np.array([_joined([each.counts for each in seen]) for seen in self.measurements])

    @cached_property
    def _sigma(self) -> Floats:
        return np.array([_joined([each.sigma for each in seen]) for seen in self.measurements])

    @cached_property
    def _elimination(self) -> Elimination:
        columns = [each.columns for each in self.measurements[0]]
        return Elimination.of(self.tree, [*columns, *(each for each, _ in self.fixed)])

    @cached_property
    def _shares(self) -> TreeTarget:
        """The marginals of one copy at a time, as shares of its total."""
        return TreeTarget(self.tree, self.measurements[0], 1.0, self.tree.summed(self.fixed))

    def _split(self, potentials: Floats) -> list[Floats]:
        """The potential of each measurement, for each copy."""
        tables, start = [], 0
        for each in self.measurements[0]:
            end = start + each.counts.size
            tables.append(potentials[:, start:end].reshape(-1, *each.counts.shape))
            start = end
        return tables

    def _residual(self, potentials: Floats, running: Integers) -> tuple[Floats, Floats]:
        """The residual of each running copy, and the direction in which its potentials fall."""
        factors, seen = [], len(self.measurements[0])
        for table in self._split(potentials):
            largest = table.max(axis=tuple(range(1, table.ndim)), keepdims=True)
            factors.append(np.exp(table - largest))
        for _, table in self.fixed:
            factors.append(np.broadcast_to(np.exp(table), (len(running), *table.shape)))
        models = self._elimination.marginals(factors, self.totals[running])
        if models is None:
            counts = self._models_by_logarithms(potentials, running)
        else:
            joined = [table.reshape(len(running), -1) for table in models[:seen]]
            counts = np.concatenate(joined, axis=1)
        residuals, direction = standardised(counts, self._counts[running], self._sigma[running])
        return 0.5 * np.square(residuals).sum(axis=1), direction

    def _models_by_logarithms(self, potentials: Floats, running: Integers) -> Floats:
        """The counts of all measurements, copy by copy: for products that are too small."""
        models = []
        for at, total in enumerate(self.totals[running]):
            tables = [table[0] for table in self._split(potentials[at : at + 1])]
            shares = self._shares.models(self._shares.marginals(tables))
            models.append(_joined(shares) * total)
        return np.array(models)


def _joined(tables: Sequence[Floats]) -> Floats:
    """The cells of all tables."""
    return np.concatenate([table.ravel() for table in tables])
