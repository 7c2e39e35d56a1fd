# SPDX-License-Identifier: Apache-2.0
"""Splits the cost of a census among its tables so that the exact expected error is least.

The error of a split is a weighted mean of the variances of all cells of all tables. It follows from
the design alone, so choosing a split costs no budget. In L2 it is convex in the shares, and
multiplicative updates never raise it (Yu 2010, "Monotonic convergence of a general algorithm for
computing optimal designs"); in L1, where the precision of a table is its share squared, the best
round is returned.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from sfumato.privacy.distance import Norm
from sfumato.synopsis.geography.design import (
    Design,
    parts,
)
from sfumato.synopsis.geography.families import Families
from sfumato.synopsis.geography.tree import Floats

# Shares are multiples of one over this; a table that would get less than one is not measured.
_PARTS = 2**12
_ROUNDS = 300
# The updates end when ten of them lower the error by less than this share of it.
_SMALL = 1e-5
_NEXT_TO_NONE = 1e-9


@dataclass(frozen=True, eq=False)
class Objective:
    """The error of a split of the cost: a weighted mean variance of the tables of a design.

    ``weights`` has a weight for each table. A table with the whole cost has precision 1.

    >>> from sfumato.synopsis.geography.tree import Tree
    >>> design = Design(Tree(1, (np.array([0, 0]),)), (2,), ((0, ()), (1, (0,))))
    >>> objective = Objective(design, (1.0, 1.0), Norm.L2)
    >>> round(objective.error(np.array([0.0, 1.0])), 9)
    5.0
    """

    design: Design
    weights: tuple[float, ...]
    norm: Norm

    def error(self, shares: Floats) -> float:
        """Returns the error of a split; infinite if it leaves a table undetermined."""
        return float(np.dot(self.weights, self.table_errors(shares)))

    def table_errors(self, shares: Floats) -> Floats:
        """Returns the mean variance of the cells of each table."""
        precisions_of_tables = self._precisions(shares)
        errors = np.zeros(len(self.design.tables))
        for (
            residual,
            deepest,
        ) in self.design.deepest.items():
            precisions = self.design.precisions(residual, precisions_of_tables)
            if not precisions[-1]:
                return np.full(len(errors), np.inf)
            means = self._families[deepest].variances(precisions).means
            for place, (level, axes) in enumerate(self.design.tables):
                if set(residual) <= set(axes):
                    errors[place] += self.design.counted(residual, axes) * means[level]
        return errors

    def falls(self, shares: Floats) -> Floats:
        """Returns, for each table, the rate at which the error falls as its share of the cost
        grows.
        """
        precisions_of_tables = self._precisions(shares)
        falls = np.zeros(len(self.design.tables))
        for (
            residual,
            deepest,
        ) in self.design.deepest.items():
            precisions = self.design.precisions(residual, precisions_of_tables)
            weights = np.zeros(deepest + 1)
            inside = []
            for place, (level, axes) in enumerate(self.design.tables):
                if set(residual) <= set(axes):
                    inside.append(place)
                    weights[level] += self.weights[place] * self.design.counted(residual, axes)
            slopes = self._families[deepest].variances(precisions).slopes(list(weights))
            for place in inside:
                level, axes = self.design.tables[place]
                falls[place] -= slopes[level] / self.design.outside(residual, axes)
        if self.norm is Norm.L1:
            falls *= 2 * shares
        return falls

    def _precisions(self, shares: Floats) -> list[float]:
        """Returns the precision of each table: its share, squared in L1."""
        squared = shares**2 if self.norm is Norm.L1 else shares
        return [float(share) for share in squared]

    @cached_property
    def _families(self) -> list[Families]:
        """The families of the levels up to each one."""
        tree = self.design.tree
        return [Families.of(tree.upto(level)) for level in range(tree.levels)]


def least_error(objective: Objective) -> tuple[Fraction, ...]:
    """Returns the shares of least error, which add up to 1; some may be 0.

    In L1 the error is not convex, so levels are left out one by one as long as that helps.
    """
    levels = {level for level, _ in objective.design.tables}
    dropped: frozenset[int] = frozenset()
    least, best = _descended(objective, dropped)
    while objective.norm is Norm.L1 and len(dropped) < len(levels) - 1:
        tried = []
        for level in sorted(levels - dropped):
            fewer = dropped | {level}
            tried.append((*_descended(objective, fewer), fewer))
        error, shares, fewer = min(tried, key=lambda each: each[0])
        if error >= least:
            break
        least, best, dropped = error, shares, fewer
    return _rounded(best, _needed(objective.design))


def _descended(objective: Objective, dropped: frozenset[int]) -> tuple[float, Floats]:
    """The least error that updates reach from even shares of all but some levels, and its shares.

    The shares of those levels begin next to 0, where in L1 they stay.
    """
    power = 1 / 3 if objective.norm is Norm.L1 else 1 / 2
    begin = [_NEXT_TO_NONE if level in dropped else 1.0 for level, _ in objective.design.tables]
    shares = np.array(begin) / sum(begin)
    best = shares
    least = float("inf")
    before = float("inf")
    for round_ in range(_ROUNDS):
        error = objective.error(shares)
        if error < least:
            best, least = shares, error
        if round_ % 10 == 9:
            if before - least < _SMALL * least:
                break
            before = least
        falls = np.maximum(objective.falls(shares), 1e-300)
        shares = shares * falls**power
        # a share is never quite 0, so that every residual stays determined
        shares = np.maximum(shares / shares.sum(), _NEXT_TO_NONE)
    return least, best


def even(design: Design) -> tuple[Fraction, ...]:
    """Returns equal shares of the cost: for each level with tables, and within it for each table."""
    found = []
    levels = {level for level, _ in design.tables}
    for level, _ in design.tables:
        beside = sum(other == level for other, _ in design.tables)
        found.append(Fraction(1, len(levels) * beside))
    return tuple(found)


def _needed(design: Design) -> list[bool]:
    """Returns which tables alone determine a residual at its deepest level."""
    needed = []
    for place, (level, axes) in enumerate(design.tables):
        others = [each for at, each in enumerate(design.tables) if at != place]
        covered = set()
        for at, other in others:
            if at >= level:
                covered |= set(parts(other))
        needed.append(not set(parts(axes)) <= covered)
    return needed


def _rounded(
    shares: Sequence[float] | Floats,
    needed: Sequence[bool],
) -> tuple[Fraction, ...]:
    """The shares as whole parts that add up to 1, by largest remainders; none needed is 0."""
    exact = np.asarray(shares) / np.sum(shares) * _PARTS
    whole = np.maximum(np.floor(exact), np.asarray(needed))
    # at worst, one part for each needed table is taken from the largest shares
    while whole.sum() > _PARTS:
        whole[np.argmax(whole)] -= 1
    rest = int(_PARTS - whole.sum())
    whole[np.argsort(whole - exact)[:rest]] += 1
    return tuple(Fraction(int(part), _PARTS) for part in whole)
