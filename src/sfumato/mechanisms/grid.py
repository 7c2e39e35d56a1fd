# SPDX-License-Identifier: Apache-2.0
"""Quantiles of each group on a public grid, from the weights of its intervals ("leaves").

The exponential mechanism over the leaves, scored by rank error (Smith, STOC 2011; RULES 17). A
unit may be in several groups; each group is a selection of its own, and their costs compose.
Proof: grid.proof.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.exact.rational import Number, positive, to_fraction
from sfumato.exact.rounding import sqrt_down
from sfumato.mechanisms.selection import count, union
from sfumato.noise import SYSTEM, Entropy
from sfumato.noise.select import exponential
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import Composed, Repeated, Rule, Selection
from sfumato.privacy.unit import Relation

_FINEST = 10**6
_ADDABLE = 2**61


@dataclass(frozen=True, slots=True)
class GridQuantiles:
    """Private quantiles of a group: for each level q one leaf, by the exponential mechanism.

    Leaf j has probability proportional to exp(-rate x rank error of j / max(q, 1 - q)). Its rank
    error is the distance of q N from the interval of its ranks, where N is the weight of the
    group: from the weight before the leaf to the weight up to its end. Without any weight all
    leaves are equally likely. ``rate`` is the rate per weight that one unit may move. The levels
    are selected one after the other, each at the same cost.

    Guarantees:
        a leaf follows the exponential mechanism
        a weight moves a rank error by at most q or one minus q
        the rank error of a leaf is as stated

    >>> one = Distance(Norm.LINF, Fraction(1))
    >>> grid_quantiles(one, groups=1, epsilon=4, levels=["0.5"]).release([0, 50, 1])
    (1,)
    """

    levels: tuple[Fraction, ...]
    rate: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", positive("rate", self.rate))
        levels = tuple(to_fraction("a level", level) for level in self.levels)
        object.__setattr__(self, "levels", levels)
        valid = [0 < level < 1 and level.denominator <= _FINEST for level in levels]
        if not levels or not all(valid):
            raise InvalidNumber(
                "Levels of quantiles.",
                allowed="between 0 and 1, multiples of a millionth or coarser",
            )

    def event(self, distance: Distance, groups: int) -> Composed:
        """The event of the quantiles of all groups, if a unit is in at most ``groups`` of them.

        ``distance`` (Linf) bounds the weight of any set of leaves of a group that one unit moves.
        A replaced unit leaves as many groups as it enters, or stays in them.
        """
        _require(distance)
        parts = []
        for rate, level in zip(self.rates, self.levels, strict=True):
            times, steps = _selections(level, count("groups", groups), distance.relation)
            step = _reach(level) * distance.value
            moved = Distance(Norm.LINF, steps * step, distance.relation)
            parts.append(Repeated(Selection(Rule.EXPONENTIAL, rate, moved), times))
        return Composed(tuple(parts))

    def release(self, weights: Sequence[int], entropy: Entropy = SYSTEM) -> tuple[int, ...]:
        """The selected leaf of one group for each level; ``weights`` are those of its leaves."""
        kinds = set(map(type, weights))
        integral = all(issubclass(kind, int) and kind is not bool for kind in kinds)
        if not integral or min(weights, default=-1) < 0:
            raise InvalidDeclaration(
                "Weights of leaves.", allowed="integers, 0 or greater, one a leaf"
            )
        leaves = []
        for rate, level in zip(self.rates, self.levels, strict=True):
            scores = rank_scores(weights, level)
            leaves.append(exponential(scores, rate / level.denominator, entropy))
        return tuple(leaves)

    @property
    def rates(self) -> tuple[Fraction, ...]:
        """The rate of the exponential mechanism for each level, per rank error of 1."""
        return tuple(self.rate / _reach(level) for level in self.levels)

    def error(self, confidence: Number, leaves: int) -> tuple[Fraction, ...]:
        """For each level a rank error that its leaf exceeds with probability <= 1 - confidence.

        For one group with this number of leaves.
        """
        others = union(count("leaves", leaves) - 1, confidence)
        return tuple(others / rate for rate in self.rates)


def grid_quantiles(
    distance: Distance,
    groups: int,
    epsilon: Number,
    levels: Sequence[Number],
) -> GridQuantiles:
    """Quantiles of every group, together epsilon-DP.

    ``distance`` (Linf) bounds the weight of any set of leaves of a group that one unit moves; a
    unit is in at most ``groups`` groups.

    Raises:
        InvalidNumber: a level outside (0, 1), or an invalid epsilon.
        InvalidDeclaration: a distance that is not in Linf.
    """
    wanted = tuple(to_fraction("a level", level) for level in levels)
    _require(distance)
    steps = 0
    for level in wanted:
        times, moved = _selections(level, groups, distance.relation)
        steps += times * moved
    # at rate 1 a selection costs twice the distance for each step
    total = positive("epsilon", epsilon)
    return GridQuantiles(wanted, total / (2 * distance.value * steps))


def concentrated_grid_quantiles(
    distance: Distance,
    groups: int,
    rho: Number,
    levels: Sequence[Number],
) -> GridQuantiles:
    """Quantiles of every group, together rho-zCDP; arguments as in ``grid_quantiles``.

    An epsilon-DP selection costs rho = epsilon^2 / 8 (Cesar and Rogers 2021).
    """
    wanted = tuple(to_fraction("a level", level) for level in levels)
    _require(distance)
    squares = 0
    for level in wanted:
        times, moved = _selections(level, groups, distance.relation)
        squares += times * moved**2
    # an epsilon-DP selection costs epsilon^2 / 8
    rate_squared = positive("rho", rho) / (distance.value**2 * Fraction(squares, 2))
    return GridQuantiles(wanted, sqrt_down(rate_squared))


def rank_scores(weights: Sequence[int], level: Fraction) -> NDArray[Any]:
    """The negative rank error of each leaf, times the denominator of the level, as integers.

    >>> rank_scores([1, 2, 1], Fraction(1, 2)).tolist()
    [-2, 0, -2]
    """
    part = level.numerator
    whole = level.denominator
    total = sum(weights)
    # int64 if no difference can overflow, else Python integers
    array = np.array(weights, np.int64 if whole * total < _ADDABLE else object)
    ends = whole * np.cumsum(array)
    starts = ends - whole * array
    aim = part * total
    outside = np.maximum(starts - aim, aim - ends)
    errors: NDArray[Any] = np.maximum(outside, 0)
    return -errors


def _selections(level: Fraction, groups: int, relation: Relation) -> tuple[int, int]:
    """The number of selections of one level that a unit changes, and by how many steps each.

    A step is a change of the rank error by ``_reach(level)``. A replaced unit may stay in its
    group; then one selection moves by two steps, which costs more in zCDP than two selections
    that move by one, unless the level is far from 1/2.
    """
    if relation is Relation.ADD_REMOVE:
        return groups, 1
    if 2 * _reach(level) ** 2 >= 1:
        return 2 * groups, 1
    return groups, 2


def _reach(level: Fraction) -> Fraction:
    """The largest change of a rank error if a weight of 1 moves."""
    return max(level, 1 - level)


def _require(distance: Distance) -> None:
    if distance.norm is not Norm.LINF:
        raise InvalidDeclaration(
            f"Weights bounded in {distance.norm.value}.", allowed="Linf, a group at a time"
        )
