# SPDX-License-Identifier: Apache-2.0
"""Quantiles of each group on a public grid, from the weights of its cells ("leaves").

The exponential mechanism over the leaves, scored by rank error (Smith, STOC 2011; RULES 17) and
drawn on the runs between those that have a weight, so that a leaf can be a single value. A unit
may be in several groups; each group is a selection of its own, and their costs compose.
Proof: grid.proof.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.exact.rational import Number, positive, to_fraction
from sfumato.exact.rounding import sqrt_down
from sfumato.mechanisms.rank_runs import Runs, Whole, draw_point, rank_runs, total_weight
from sfumato.mechanisms.selection import count, union
from sfumato.noise import SYSTEM, Entropy, Integers
from sfumato.noise.select import integers
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import Composed, Repeated, Rule, Selection
from sfumato.privacy.unit import Relation

_FINEST = 10**6
# The ends of an interval are right, together with the quantile, up to this confidence.
_ENDS = Fraction(99, 100)


@dataclass(frozen=True, slots=True)
class GridQuantiles:
    """The mechanism of private quantiles of a group: for each level q one leaf of a grid, by the
    exponential mechanism.

    A leaf has probability proportional to exp(-rate x its rank error / max(q, 1 - q)). Its rank
    error is the distance of q N from the interval of its ranks, where N is the weight of the group:
    from the weight before the leaf to the weight up to its end. Without any weight all leaves are
    equally likely. ``rate`` is the rate of the exponential mechanism, per weight that one unit may
    move. The levels are selected one after the other, each at the same cost.

    With ``ends``, each level has two more selections at the same rate, of leaves below and above
    it: at the ranks q N - r and q N + r for the r of ``end_shift``. There the ends of the range are
    candidates of their own, so that few rows never leave an interval without its quantile.

    Guarantees:
        a leaf follows the exponential mechanism
        the ends of an interval follow the exponential mechanism
        a weight moves a rank error by at most q or one minus q
        the rank error of a leaf is as stated
        an interval contains the quantile

    >>> weight = Distance(Norm.LINF, Fraction(1))
    >>> mechanism = grid_quantiles(weight, groups=1, epsilon=4, levels=["0.5"])
    >>> mechanism.release(leaves=np.array([500, 900]), weights=np.array([50, 1]), size=1000)
    (500,)
    """

    levels: tuple[Fraction, ...]
    rate: Fraction
    ends: bool = False

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
        """Returns the privacy event of the quantiles of all groups, if a unit is in at most
        ``groups`` of them.

        ``distance`` (Linf) bounds the weight of any set of leaves of a group that one unit moves. A
        replaced unit leaves as many groups as it enters, or stays in them.
        """
        _require(distance)
        parts = []
        for rate, level in zip(self.rates, self.levels, strict=True):
            times, steps = _selections(level, count("groups", groups), distance.relation)
            step = _reach(level) * distance.value
            moved = Distance(Norm.LINF, steps * step, distance.relation)
            selection = Repeated(Selection(Rule.EXPONENTIAL, rate, moved), times)
            parts += [selection] * _each(ends=self.ends)
        return Composed(tuple(parts))

    def release(
        self,
        leaves: Integers,
        weights: Sequence[int] | Whole,
        size: int,
        entropy: Entropy = SYSTEM,
    ) -> tuple[int, ...]:
        """Returns, for one group, the selected leaf of each level; with ``ends``, then the leaves
        below the levels and those above.

        ``leaves`` are the leaves that have a weight, ascending, and ``weights`` their weights;
        ``size`` is the number of all leaves.
        """
        exact = integers("weights", weights) if len(weights) else np.zeros(0, np.int64)
        _require_leaves(leaves, exact, size)
        every = 0, size - 1
        levels = list(zip(self.rates, self.levels, strict=True))
        drawn = []
        for rate, level in levels:
            runs = rank_runs(leaves, exact, every, level)
            drawn.append(draw_point(runs, rate / level.denominator, entropy))
        for sign in (-1, 1):
            for (rate, level), shift in zip(levels, self.shifts(size), strict=False):
                runs = end_runs(leaves, exact, every, level, sign * shift)
                drawn.append(draw_point(runs, rate / level.denominator, entropy))
        return tuple(drawn)

    @property
    def rates(self) -> tuple[Fraction, ...]:
        """The rate of the exponential mechanism for each level, per rank error of 1."""
        return tuple(self.rate / _reach(level) for level in self.levels)

    def shifts(self, leaves: int) -> tuple[int, ...]:
        """Returns, for each level, the rank shift (in weights) at which the ends of its interval
        are selected.

        Empty without ``ends``.
        """
        return tuple(end_shift(rate, leaves) for rate in self.rates) if self.ends else ()

    def error(self, confidence: Number, leaves: int) -> tuple[Fraction, ...]:
        """Returns for each level a rank error that its leaf exceeds with probability <= 1 -
        confidence.

        For one group with this number of leaves. With ``ends``, the interval of the level contains
        its quantile in the same event, if the confidence is at most 99%.
        """
        others = count("leaves", leaves) - 1
        far = union(others * _each(ends=self.ends), confidence)
        return tuple(far / rate for rate in self.rates)


def grid_quantiles(
    distance: Distance,
    groups: int,
    epsilon: Number,
    levels: Sequence[Number],
    *,
    ends: bool = False,
) -> GridQuantiles:
    """Returns the mechanism of quantiles of every group, together epsilon-DP; with ``ends``, those
    of intervals too.

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
        steps += times * moved * _each(ends=ends)
    # at rate 1 a selection costs twice the distance for each step
    total = positive("epsilon", epsilon)
    return GridQuantiles(wanted, total / (2 * distance.value * steps), ends)


def concentrated_grid_quantiles(
    distance: Distance,
    groups: int,
    rho: Number,
    levels: Sequence[Number],
    *,
    ends: bool = False,
) -> GridQuantiles:
    """Returns the mechanism of quantiles of every group, together rho-zCDP; the arguments are those
    of ``grid_quantiles``.

    An epsilon-DP selection costs rho = epsilon^2 / 8 (Cesar and Rogers 2021).
    """
    wanted = tuple(to_fraction("a level", level) for level in levels)
    _require(distance)
    squares = 0
    for level in wanted:
        times, moved = _selections(level, groups, distance.relation)
        squares += times * moved**2 * _each(ends=ends)
    # an epsilon-DP selection costs epsilon^2 / 8
    rate_squared = positive("rho", rho) / (distance.value**2 * Fraction(squares, 2))
    return GridQuantiles(wanted, sqrt_down(rate_squared), ends)


def end_shift(rate: Fraction, leaves: int) -> int:
    """Returns how many weights below and above its level the ends of an interval are selected.

    ``rate`` is that of the level (``rates``). The rank error of a selected end is less than this,
    except with a probability of a third of 1%.
    """
    return math.ceil(union(3 * leaves, _ENDS) / rate)


def end_runs(
    leaves: Integers,
    weights: Whole,
    every: tuple[int, int],
    q: Fraction,
    shift: int,
) -> Runs:
    """Returns the runs of leaves for one end of an interval, with the end of the range as one more.

    The further run is before all weights where ``shift`` is negative, after all of them otherwise,
    and stands for the first or the last leaf.

    >>> runs = end_runs(np.array([5]), np.array([2]), (0, 9), Fraction(1, 2), -3)
    >>> [part.tolist() for part in runs]
    [[5, 0, 6, 0], [1, 5, 4, 1], [4, 4, 8, 0]]
    """
    starts, widths, errors = rank_runs(leaves, weights, every, q, shift)
    side = q if shift < 0 else 1 - q
    off = side * total_weight(weights) - abs(shift)
    beyond = max(int(q.denominator * off), 0)
    place = every[0] if shift < 0 else every[1]
    return (
        np.append(starts, place),
        np.append(widths, 1),
        np.append(errors, np.array([beyond], errors.dtype)),
    )


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


def _each(*, ends: bool) -> int:
    """The number of selections of one level: with ends, below and above it too."""
    return 3 if ends else 1


def _require_leaves(leaves: Integers, weights: Whole, size: int) -> None:
    """Raises unless the leaves ascend among ``size`` and each has a weight above 0."""
    bounded = np.concatenate(([-1], leaves, [size]))
    if len(leaves) != len(weights) or size < 1 or not np.all(np.diff(bounded) > 0):
        raise InvalidDeclaration("Leaves.", allowed="ascending, from 0 on, below their number")
    if not np.all(weights > 0):
        raise InvalidDeclaration("Weights of leaves.", allowed="integers above 0, one a leaf")


def _require(distance: Distance) -> None:
    if distance.norm is not Norm.LINF:
        raise InvalidDeclaration(
            f"Weights bounded in {distance.norm.value}.", allowed="Linf, a group at a time"
        )
