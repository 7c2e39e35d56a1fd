# SPDX-License-Identifier: Apache-2.0
"""Fits the maximum-entropy distribution to noisy marginals.

Source: McKenna, Sheldon and Miklau (2019), "Graphical-model based estimation and inference for
differential privacy". Their mirror descent is scaled here like iterative proportional fitting,
which needs a tenth of the steps. It stops when the residual is as large as the noise explains
(Morozov's discrepancy principle).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Protocol

import numpy as np

from sfumato.synthetic.schema import Floats
from sfumato.synthetic.tree import Clique, JunctionTree, Part, Tables, summed_over

# The share of the expected squared residual at which a fit stops.
EXPLAINED = 0.75
FIRST_STEP, GROWTH, SHRINKING = 0.3, 1.1, 0.5
# A step as short moves nothing: no direction is left that lowers the residual.
LEAST_STEP = 1e-3
# Counts below so many standard deviations of their noise are fitted more slowly.
_DAMPING = 100.0


@dataclass(frozen=True, eq=False)
class Measurement:
    """A noisy marginal: its columns, its counts, and the standard deviation of each count.

    >>> Measurement((0,), np.array([30.0, 70.0]), np.array([5.0, 5.0])).columns
    (0,)
    """

    columns: Clique
    counts: Floats
    sigma: Floats


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted distribution: a junction tree, the marginals of its cliques, and the potentials.

    There is one potential per measurement.

    >>> tree = JunctionTree.over([2], [(0,)])
    >>> Fitted(tree, (), [np.array([1.0, 2.0])], 3.0).total
    3.0
    """

    tree: JunctionTree
    potentials: tuple[Floats, ...]
    marginals: Tables
    total: float

    def marginal(self, columns: Clique) -> Floats:
        """Returns the marginal of some columns of one clique, in ascending order of columns.

        >>> tree = JunctionTree.over([2, 2], [(0, 1)])
        >>> fit = Fitted(tree, (), [np.array([[1.0, 2.0], [3.0, 4.0]])], 10.0)
        >>> fit.marginal((1,)).tolist()
        [4.0, 6.0]
        """
        home = self.tree.home(columns)
        return self.tree.projected(home, columns, self.marginals[home]).copy()

    def rooted(self, columns: Clique) -> "Fitted":
        """Returns the same distribution on a tree rooted at a clique that contains these columns.

        >>> tree = JunctionTree.over([2, 3, 2], [(0, 1), (1, 2)])
        >>> Fitted(tree, (), tree.summed([]), 0.0).rooted((2,)).tree.cliques
        ((1, 2), (0, 1))
        """
        tree, order = self.tree.rooted(self.tree.home(columns))
        return replace(self, tree=tree, marginals=[self.marginals[each] for each in order])


class Estimator(Protocol):
    """The interface of an algorithm that fits a distribution to noisy marginals.

    It never sees private data. ``start`` are initial potentials of the first measurements.
    ``fixed`` are tables of logarithms that are added to the potentials, such as those of impossible
    cells.

    >>> estimator: Estimator = MaximumEntropy(steps=10)
    """

    def __call__(
        self,
        tree: JunctionTree,
        measurements: Sequence[Measurement],
        total: float,
        start: Sequence[Floats] = (),
        fixed: Sequence[Part] = (),
    ) -> Fitted: ...


@dataclass(frozen=True)
class MaximumEntropy:
    """The built-in estimator: fits the distribution of maximum entropy that explains the
    measurements.

    ``steps`` is the largest number of steps of a fit.

    >>> tree = JunctionTree.over([2], [(0,)])
    >>> seen = Measurement((0,), np.array([30.0, 70.0]), np.full(2, 0.1))
    >>> MaximumEntropy()(tree, [seen], 100.0).marginals[0].round().tolist()
    [30.0, 70.0]
    """

    steps: int = 60

    def __call__(
        self,
        tree: JunctionTree,
        measurements: Sequence[Measurement],
        total: float,
        start: Sequence[Floats] = (),
        fixed: Sequence[Part] = (),
    ) -> Fitted:
        """Fits the distribution."""
        target = TreeTarget(tree, measurements, total, tree.summed(fixed))
        zeros = [np.zeros(each.counts.shape) for each in measurements[len(start) :]]
        potentials, marginals = descended(target, [*start, *zeros], self.steps)
        return Fitted(tree, tuple(potentials), marginals, total)


class Target(Protocol):
    """A fit problem: expected counts as a function of potentials, and the measurements to match."""

    @property
    def measurements(self) -> Sequence[Measurement]: ...

    def marginals(self, potentials: Sequence[Floats]) -> Tables:
        """Returns the expected counts, given one potential per measurement."""
        ...

    def residual(self, marginals: Tables) -> tuple[float, list[Floats]]:
        """Returns the misfit and the descent direction of each potential.

        The misfit is half the sum of the squared residuals in standard deviations.
        """
        ...


def descended(
    target: Target,
    start: Sequence[Floats],
    steps: int,
) -> tuple[list[Floats], Tables]:
    """Fits potentials to noisy marginals by gradient descent; stops as soon as the noise explains
    the misfit.

    Returns the potentials, one table of logarithms per measurement, and the expected counts that
    they give. A lower misfit than noise alone would cause is overfitting, so the descent does not
    go on to the minimum. It also ends after ``steps`` steps, or when the step size gets too small.
    """
    potentials = list(start)
    explained = 0.5 * EXPLAINED * sum(each.counts.size for each in target.measurements)
    step = FIRST_STEP
    marginals = target.marginals(potentials)
    loss, slopes = target.residual(marginals)
    for _ in range(steps):
        if loss <= explained or step < LEAST_STEP:
            break
        moved = [one - step * slope for one, slope in zip(potentials, slopes, strict=True)]
        found = target.marginals(moved)
        new_loss, new_slopes = target.residual(found)
        if new_loss >= loss:
            step *= SHRINKING
            continue
        potentials, marginals, loss, slopes = moved, found, new_loss, new_slopes
        step *= GROWTH
    return potentials, marginals


def compared(model: Floats, measurement: Measurement) -> tuple[float, Floats]:
    """Returns the misfit of expected counts to one noisy marginal, and the descent direction of the
    marginal's potential.

    A potential is the logarithm of a factor of the counts. So the direction is the residual divided
    by the count, which moves all counts at the same relative speed; counts far below the noise move
    slowly.
    """
    residuals, direction = standardised(model, measurement.counts, measurement.sigma)
    return 0.5 * float(np.square(residuals).sum()), direction


def standardised(model: Floats, counts: Floats, sigma: Floats) -> tuple[Floats, Floats]:
    """Returns the residuals (expected minus noisy counts) in standard deviations of the noise, and
    the descent direction of the potentials.
    """
    residual = model - counts
    return residual / sigma, residual / (model + _DAMPING * sigma)


@dataclass(frozen=True, eq=False)
class TreeTarget:
    """The objective of fitting a junction tree's distribution to noisy marginals; ``fixed`` are
    tables that are added to the potentials, such as those of impossible cells.
    """

    tree: JunctionTree
    measurements: Sequence[Measurement]
    total: float
    fixed: Tables

    @cached_property
    def homes(self) -> list[int]:
        """For each measured marginal, the index of the clique that contains its columns."""
        return [self.tree.home(each.columns) for each in self.measurements]

    @cached_property
    def _levels(self) -> list["_Level"]:
        """The measurements grouped by clique and first column; the last first column comes
        first.
        """
        columns = [each.columns for each in self.measurements]
        order = sorted(range(len(columns)), key=lambda at: columns[at][-1:])
        order.sort(key=lambda at: columns[at][:1], reverse=True)
        levels: dict[tuple[int, Clique], _Level] = {}
        for at in order:
            home, first, last = self.homes[at], columns[at][:1], columns[at][-1:]
            after = tuple(each for each in self.tree.cliques[home] if (each,) >= first)
            level = levels.setdefault((home, first), _Level(home, after, []))
            level.places.append((at, tuple(each for each in after if (each,) <= last)))
        return [*levels.values()]

    def marginals(self, potentials: Sequence[Floats]) -> Tables:
        """Returns the model's expected counts in each clique, given one potential per measurement."""
        added: dict[int, Floats] = {}
        for level in self._levels:
            parts, home = [], level.home
            for at, _ in level.places:
                columns = self.measurements[at].columns
                parts.append(self.tree.spread(home, columns, potentials[at]))
            one = reduce(np.add, parts)
            added[home] = one + added[home] if home in added else one
        tables = list(self.fixed)
        for home, whole in added.items():
            tables[home] = tables[home] + whole
        return self.tree.marginals(tables, self.total)

    def residual(self, marginals: Tables) -> tuple[float, list[Floats]]:
        """Returns the misfit of the expected clique counts ``marginals`` to all measurements, and
        the descent direction of each measurement's potential.
        """
        loss, slopes = 0.0, []
        for seen, model in zip(self.measurements, self.models(marginals), strict=True):
            lost, slope = compared(model, seen)
            loss += lost
            slopes.append(slope)
        return loss, slopes

    def models(self, marginals: Tables) -> list[Floats]:
        """Returns, for each measured marginal, its expected counts, given those of the cliques."""
        models: list[Floats] = [np.empty(0)] * len(self.measurements)
        tables = [*zip(marginals, self.tree.cliques, strict=True)]
        for level in reversed(self._levels):
            table, columns = summed_over(*tables[level.home], level.columns), level.columns
            tables[level.home] = table, columns
            for at, kept in reversed(level.places):
                table, columns = summed_over(table, columns, kept), kept
                models[at] = summed_over(table, columns, self.measurements[at].columns)
        return models


@dataclass(frozen=True, slots=True)
class _Level:
    """The measurements of one clique with the same first column; it covers the columns from there
    on.

    ``places`` are the indices of the measurements by last column, with the columns up to it.
    Potentials are added level by level, so that most are added while the sum is a small table;
    marginals are summed in reverse, most of them from a small table.
    """

    home: int
    columns: Clique
    places: list[tuple[int, Clique]]
