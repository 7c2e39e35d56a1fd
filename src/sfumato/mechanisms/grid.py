# SPDX-License-Identifier: Apache-2.0
"""Quantiles of groups on a public grid, from the weights of its leaves.

The exponential mechanism over the leaves, by rank error (Smith, STOC 2011; RULES 17). A
unit may be in several groups: each of them is a selection of its own, and they compose.
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
    """For each level q a leaf j, with probability proportional to exp(-rate x rank error of j / max(q, 1 - q)).

    The rank error of a leaf is how far q N is from the ranks that it takes in the weight N
    of its group: from the weight before it to the weight up to its end. Without weight every
    leaf is equally likely. ``rate`` is per unit of weight that a unit may move; the levels of
    a group are chosen one after the other, each at the same cost.

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
        if not levels or not all(
            0 < level < 1 and level.denominator <= _FINEST for level in levels
        ):
            raise InvalidNumber(
                "Levels of quantiles.",
                allowed="between 0 and 1, multiples of a millionth or coarser",
            )

    def event(self, distance: Distance, groups: int) -> Composed:
        """What happens to groups of which neighbours differ in the weight of any leaves by at most ``distance``.

        ``groups``: in how many groups a unit is. A replaced unit leaves as many as it enters, or stays in them.
        """
        _require(distance)
        parts = []
        for rate, level in zip(self.rates, self.levels, strict=True):
            times, steps = _selections(level, count("groups", groups), distance.relation)
            moved = Distance(Norm.LINF, steps * _reach(level) * distance.value, distance.relation)
            parts.append(Repeated(Selection(Rule.EXPONENTIAL, rate, moved), times))
        return Composed(tuple(parts))

    def release(self, weights: Sequence[int], entropy: Entropy = SYSTEM) -> tuple[int, ...]:
        """The chosen leaf for each level, of one group."""
        kinds = set(map(type, weights))
        if (
            not all(issubclass(each, int) and each is not bool for each in kinds)
            or min(weights, default=-1) < 0
        ):
            raise InvalidDeclaration(
                "Weights of leaves.", allowed="integers, 0 or greater, one a leaf"
            )
        return tuple(
            exponential(rank_scores(weights, level), rate / level.denominator, entropy)
            for rate, level in zip(self.rates, self.levels, strict=True)
        )

    @property
    def rates(self) -> tuple[Fraction, ...]:
        """For each level the rate per unit of rank error."""
        return tuple(self.rate / _reach(level) for level in self.levels)

    def error(self, confidence: Number, leaves: int) -> tuple[Fraction, ...]:
        """For each level the weight within which its leaf's ranks hold it, with probability >= confidence, in a group."""
        others = union(count("leaves", leaves) - 1, confidence)
        return tuple(others / rate for rate in self.rates)


def grid_quantiles(
    distance: Distance, groups: int, epsilon: Number, levels: Sequence[Number]
) -> GridQuantiles:
    """The quantiles of every group, epsilon-DP in all (pure).

    Raises:
        InvalidNumber: a level outside (0, 1), no epsilon.
        InvalidDeclaration: a distance that is not Linf, the weight of any set of leaves of a group.
    """
    wanted = tuple(to_fraction("a level", level) for level in levels)
    _require(distance)
    # at rate 1 a selection loses 2 x the distance for each step
    steps = sum(
        times * each
        for times, each in (_selections(level, groups, distance.relation) for level in wanted)
    )
    return GridQuantiles(wanted, positive("epsilon", epsilon) / (2 * distance.value * steps))


def concentrated_grid_quantiles(
    distance: Distance, groups: int, rho: Number, levels: Sequence[Number]
) -> GridQuantiles:
    """The same, rho-zCDP in all: each selection of pure loss e costs e^2 / 8 (Cesar and Rogers 2021)."""
    wanted = tuple(to_fraction("a level", level) for level in levels)
    _require(distance)
    # one that loses e costs e^2 / 8
    squares = sum(
        times * each**2
        for times, each in (_selections(level, groups, distance.relation) for level in wanted)
    )
    return GridQuantiles(
        wanted, sqrt_down(positive("rho", rho) / (distance.value**2 * squares / 2))
    )


def rank_scores(weights: Sequence[int], level: Fraction) -> NDArray[Any]:
    """Minus the rank error of each leaf, times the denominator of the level: integers.

    >>> rank_scores([1, 2, 1], Fraction(1, 2)).tolist()
    [-2, 0, -2]
    """
    part, whole, total = level.numerator, level.denominator, sum(weights)
    # 64 bits where they hold every difference, else integers of any size
    held = np.array(weights, np.int64 if whole * total < _ADDABLE else object)
    ends, aim = whole * np.cumsum(held), part * total
    errors: NDArray[Any] = np.maximum(np.maximum(ends - whole * held - aim, aim - ends), 0)
    return -errors


def _selections(level: Fraction, groups: int, relation: Relation) -> tuple[int, int]:
    """How many selections of one level a unit is in, and how many times the reach it moves each.

    A unit that is replaced may stay in its group: there its two steps are one, which is dearer
    in zCDP than two selections apart, unless the level is far from the middle.
    """
    if relation is Relation.ADD_REMOVE:
        return groups, 1
    return (2 * groups, 1) if 2 * _reach(level) ** 2 >= 1 else (groups, 2)


def _reach(level: Fraction) -> Fraction:
    """How far a rank error moves for each unit of weight that is moved."""
    return max(level, 1 - level)


def _require(distance: Distance) -> None:
    if distance.norm is not Norm.LINF:
        raise InvalidDeclaration(
            f"Weights bounded in {distance.norm.value}.", allowed="Linf, a group at a time"
        )
