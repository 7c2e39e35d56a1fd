# SPDX-License-Identifier: Apache-2.0
"""The distribution of maximum entropy among those that fit noisy marginals.

Source: McKenna, Sheldon and Miklau (2019), "Graphical-model based estimation and inference for
differential privacy". Its mirror descent is scaled here as iterative proportional fitting is, which
takes a tenth of the steps. It stops when the residual is as large as the noise explains (Morozov's
discrepancy principle).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from sfumato.synthetic.schema import Floats
from sfumato.synthetic.tree import Clique, JunctionTree, Part, Tables

# The share of the expected squared residual at which a fit stops.
_EXPLAINED = 0.75
_FIRST_STEP, _GROWTH, _SHRINKING = 0.3, 1.1, 0.5
# A step as short moves nothing: no direction is left that lowers the residual.
_LEAST_STEP = 1e-3
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
    """A junction tree with the marginals of its cliques, and one potential for each measurement.

    >>> tree = JunctionTree.over([2], [(0,)])
    >>> Fitted(tree, (), [np.array([1.0, 2.0])], 3.0).total
    3.0
    """

    tree: JunctionTree
    potentials: tuple[Floats, ...]
    marginals: Tables
    total: float

    def marginal(self, columns: Clique) -> Floats:
        """The marginal of columns of one clique, in their ascending order.

        >>> tree = JunctionTree.over([2, 2], [(0, 1)])
        >>> fit = Fitted(tree, (), [np.array([[1.0, 2.0], [3.0, 4.0]])], 10.0)
        >>> fit.marginal((1,)).tolist()
        [4.0, 6.0]
        """
        home = self.tree.home(columns)
        found: Floats = self.marginals[home].sum(axis=self.tree.others(home, columns))
        return found

    def rooted(self, columns: Clique) -> "Fitted":
        """The same distribution on a tree whose first clique has some columns of one clique.

        >>> tree = JunctionTree.over([2, 3, 2], [(0, 1), (1, 2)])
        >>> Fitted(tree, (), tree.summed([]), 0.0).rooted((2,)).tree.cliques
        ((1, 2), (0, 1))
        """
        tree, order = self.tree.rooted(self.tree.home(columns))
        return replace(self, tree=tree, marginals=[self.marginals[each] for each in order])


class Estimator(Protocol):
    """Fits a distribution to measurements; it is never given private data.

    ``start`` are potentials of the first measurements; ``fixed`` are tables of logarithms that
    are added to the potentials, such as those of cells that cannot occur.

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
    """The built-in estimator; ``steps`` bounds the number of steps of one fit.

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
        """The fit."""
        target = _Target(tree, measurements, total, tree.summed(fixed))
        zeros = [np.zeros(each.counts.shape) for each in measurements[len(start) :]]
        potentials, marginals = descended(target, [*start, *zeros], self.steps)
        return Fitted(tree, tuple(potentials), marginals, total)


class Target(Protocol):
    """What a fit approaches: counts that follow from potentials, and measurements of them."""

    @property
    def measurements(self) -> Sequence[Measurement]: ...

    def marginals(self, potentials: Sequence[Floats]) -> Tables:
        """The counts, for one potential for each measurement."""
        ...

    def residual(self, marginals: Tables) -> tuple[float, list[Floats]]:
        """Half the sum of the squared residuals in standard deviations, and the direction in which
        each potential falls.
        """
        ...


def descended(
    target: Target,
    start: Sequence[Floats],
    steps: int,
) -> tuple[list[Floats], Tables]:
    """The potentials at which the residual is what the noise explains, and their counts."""
    potentials = list(start)
    explained = 0.5 * _EXPLAINED * sum(each.counts.size for each in target.measurements)
    step = _FIRST_STEP
    marginals = target.marginals(potentials)
    loss, slopes = target.residual(marginals)
    for _ in range(steps):
        if loss <= explained or step < _LEAST_STEP:
            break
        moved = [one - step * slope for one, slope in zip(potentials, slopes, strict=True)]
        found = target.marginals(moved)
        new_loss, new_slopes = target.residual(found)
        if new_loss >= loss:
            step *= _SHRINKING
            continue
        potentials, marginals, loss, slopes = moved, found, new_loss, new_slopes
        step *= _GROWTH
    return potentials, marginals


def compared(model: Floats, seen: Measurement) -> tuple[float, Floats]:
    """The part of a residual that one measurement has, and the direction of its potential.

    A potential moves the logarithm of a count. So the direction is the residual over the count
    itself, which fits all counts at one pace, however large; counts far below the noise slow down.
    """
    residual = model - seen.counts
    loss = 0.5 * float(np.square(residual / seen.sigma).sum())
    return loss, residual / (model + _DAMPING * seen.sigma)


@dataclass(frozen=True, eq=False)
class _Target:
    """What a fit approaches: measurements on a tree, and tables that are added as they are."""

    tree: JunctionTree
    measurements: Sequence[Measurement]
    total: float
    fixed: Tables

    @cached_property
    def homes(self) -> list[int]:
        """The clique of each measurement."""
        return [self.tree.home(each.columns) for each in self.measurements]

    def marginals(self, potentials: Sequence[Floats]) -> Tables:
        """The marginals of the cliques, for one potential for each measurement."""
        tables = list(self.fixed)
        parts = zip(self.measurements, self.homes, potentials, strict=True)
        for each, home, potential in parts:
            tables[home] = tables[home] + self.tree.spread(home, each.columns, potential)
        return self.tree.marginals(tables, self.total)

    def residual(self, marginals: Tables) -> tuple[float, list[Floats]]:
        """How far the marginals are from the measurements, and where each potential falls."""
        loss, slopes = 0.0, []
        for each, home in zip(self.measurements, self.homes, strict=True):
            others = self.tree.others(home, each.columns)
            lost, slope = compared(marginals[home].sum(axis=others), each)
            loss += lost
            slopes.append(slope)
        return loss, slopes
