# SPDX-License-Identifier: Apache-2.0
"""Private quantiles of rows in memory: one, the median, or several together.

One quantile: the exponential mechanism on every lattice point between declared bounds, computed
on the intervals between rows (Smith, STOC 2011). Several: ApproximateQuantiles (Kaplan, Schnapp,
Stemmer, ICML 2022), which answers the middle one, splits the rows at the answer and recurses into
both parts. Both are sampled exactly. Proof: quantile.proof.md.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, zip_longest

import numpy as np

from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.exact.rational import Number, positive, to_fraction
from sfumato.mechanisms.rank_runs import Runs, draw_point, rank_runs
from sfumato.mechanisms.rows import Rows, on_lattice, rows_apart
from sfumato.mechanisms.selection import union
from sfumato.metadata.column import Integer
from sfumato.noise import SYSTEM, Entropy, Integers
from sfumato.noise.entropy import words
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import Composed, Rule, Selection

# The largest denominator of q: a rank times this fits an int64.
_PARTS = 10**6
# Bits of a random label that orders equal rows, so that a split can fall between them.
_LABELS = 20
_POINTS = 1 << 42

_NO_NUMBER = re.compile(r"[^0-9.eE/+\- ]")


@dataclass(frozen=True, slots=True)
class Quantile:
    """The mechanism of a private q-quantile: point v has probability proportional to exp(-rate x
    its rank error).

    The rank error of v is the distance of q n from the interval of its ranks among the n rows, from
    #(rows < v) to #(rows <= v). Without rows every point is equally likely. ``rate`` is per row of
    rank error.

    Guarantees:
        a quantile follows the exponential mechanism on every point
        a row moves a rank error by at most q or one minus q
        the rank error is as stated

    >>> median(Distance(Norm.L1, Fraction(1)), epsilon=4, lower=0, upper=100).release([50] * 101)
    50
    """

    within: Integer
    q: Fraction
    rate: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "q", to_fraction("q", self.q))
        object.__setattr__(self, "rate", positive("rate", self.rate))
        _ordered([self.q])

    def event(self, distance: Distance) -> Selection:
        """Returns the event of a release; neighbours differ in at most ``distance`` rows (L1)."""
        reach = max(self.q, 1 - self.q)
        return _selection(self.rate, reach, distance)

    def release(self, rows: Rows, entropy: Entropy = SYSTEM) -> int:
        """Returns the privately selected point.

        Rows are rounded and clipped to the bounds; missing values are dropped.
        """
        codes = np.sort(on_lattice(rows, self.within))
        ends = (self.within.lower_code, self.within.upper_code)
        return _choose(codes, ends, self.q, self.rate, entropy)

    def error(self, confidence: Number) -> int:
        """Returns a rank error, in rows, that the answer exceeds with probability <= 1 -
        confidence, for any rows.
        """
        others = self.within.upper_code - self.within.lower_code
        return math.ceil(union(others, confidence) / self.rate)


@dataclass(frozen=True, slots=True)
class Quantiles:
    """The mechanism of several private quantiles in increasing order, by recursive halving.

    The middle quantile is selected as by ``Quantile`` from all rows. Then those before it are
    selected from the rows below the answer, and those after it from the rows above. So a row is
    part of one selection per level of the recursion, and the cost grows with the number of levels
    (log2 of the number of quantiles). Equal rows are ordered by a random label of 20 bits, so
    that a value of many rows can be several quantiles.

    Guarantees:
        several quantiles follow the recursion
        a row has a say in one choice a level
        several rank errors are as stated

    >>> ages = quantiles(Distance(Norm.L1, Fraction(1)), 8, q=[0.25, 0.5, 0.75], lower=0, upper=8)
    >>> ages.release([1] * 500 + [2] * 600 + [7] * 500)
    (1, 2, 7)
    """

    within: Integer
    q: tuple[Fraction, ...]
    rate: Fraction

    def __post_init__(self) -> None:
        levels = tuple(to_fraction("q", level) for level in self.q)
        object.__setattr__(self, "q", levels)
        object.__setattr__(self, "rate", positive("rate", self.rate))
        _ordered(self.q)
        if self.within.size > _POINTS:
            raise InvalidDeclaration(
                f"{self.within.size} lattice points between the bounds.",
                allowed="at most 2^42 for several quantiles",
            )

    def event(self, distance: Distance) -> Composed:
        """Returns the event of a release: one selection per level of the recursion.

        A row is in only one part of the rows of a level.
        """
        parts = [_selection(self.rate, reach, distance) for reach in _reaches(self.q)]
        return Composed(tuple(parts))

    def release(self, rows: Rows, entropy: Entropy = SYSTEM) -> tuple[int, ...]:
        """Returns the selected points, in order; rows are treated as in ``Quantile.release``."""
        codes = on_lattice(rows, self.within) - self.within.lower_code
        label_words = words(len(codes), entropy) >> np.uint64(64 - _LABELS)
        labels = label_words.astype(np.int64)
        labelled = np.sort((codes << _LABELS) | labels)
        ends = (0, (self.within.size << _LABELS) - 1)
        levels = _relative(self.q)
        points = _halve(labelled, ends, levels, self.rate, entropy)
        return tuple(self.within.lower_code + (point >> _LABELS) for point in points)

    def error(self, confidence: Number) -> int:
        """Returns a bound of the rank errors of all quantiles, which holds with this confidence.

        For any rows, if no two equal rows get the same label. Every r rows with equal labels add at
        most r per level.
        """
        others = (self.within.size << _LABELS) - 1
        depth = len(_reaches(self.q))
        logarithm = union(others * len(self.q), confidence)
        ranks = math.ceil(logarithm / self.rate)
        return depth * ranks + depth - 1


def quantile(
    distance: Distance,
    epsilon: Number,
    *,
    q: Number,
    lower: int,
    upper: int,
) -> Quantile:
    """The q-quantile of integer rows between declared bounds, epsilon-DP.

    ``distance`` is in rows (L1).

    Raises:
        InvalidNumber: q is outside (0, 1) or not a multiple of 1/d with d <= 10^6, or epsilon is
            invalid.
        InvalidDeclaration: the bounds are invalid, or the distance is not in rows (L1).

    >>> quantile(Distance(Norm.L1, Fraction(1)), 1, q="0.9", lower=0, upper=120).error(0.95)
    15
    """
    level = to_fraction("q", q)
    _ordered([level])
    rate = _rate(epsilon, max(level, 1 - level), distance)
    return Quantile(Integer(lower, upper), level, rate)


def median(
    distance: Distance,
    epsilon: Number,
    *,
    lower: int,
    upper: int,
) -> Quantile:
    """The median of integer rows between declared bounds, epsilon-DP; ``distance`` in rows (L1).

    >>> median(Distance(Norm.L1, Fraction(1)), 1, lower=0, upper=120).rate
    Fraction(1, 1)
    """
    half = Fraction(1, 2)
    return quantile(distance, epsilon, q=half, lower=lower, upper=upper)


def quantiles(
    distance: Distance,
    epsilon: Number,
    *,
    q: Sequence[Number],
    lower: int,
    upper: int,
) -> Quantiles:
    """Several increasing quantiles, together epsilon-DP; otherwise like ``quantile``.

    >>> len(quantiles(Distance(Norm.L1, Fraction(1)), 1, q=[0.1, 0.5, 0.9], lower=0, upper=9).q)
    3
    """
    if any(isinstance(level, str) and _NO_NUMBER.search(level) for level in q):
        # the error quotes no string, as a list of strings may be rows
        raise InvalidNumber("q holds a text that is no number.", allowed="numbers between 0 and 1")
    levels = tuple(to_fraction("q", level) for level in q)
    _ordered(levels)
    reach = sum(_reaches(levels), Fraction(0))
    rate = _rate(epsilon, reach, distance)
    return Quantiles(Integer(lower, upper), levels, rate)


def _ordered(levels: Sequence[Fraction]) -> None:
    """Refuses levels that do not increase within (0, 1), or have no common denominator <= 10^6."""
    increasing = all(one < other for one, other in pairwise(_relative(levels)))
    denominators = [level.denominator for level in levels]
    if not levels or not increasing or math.lcm(*denominators) > _PARTS:
        raise InvalidNumber(
            f"q = {', '.join(map(str, levels)) or 'nothing'}.",
            allowed="one or more increasing numbers between 0 and 1, "
            "all multiples of one 1/d with d <= 10^6",
        )


def _selection(rate: Fraction, reach: Fraction, distance: Distance) -> Selection:
    moved = Distance(Norm.LINF, rows_apart(distance) * reach, distance.relation)
    return Selection(Rule.EXPONENTIAL, rate, moved)


def _rate(epsilon: Number, reach: Fraction, distance: Distance) -> Fraction:
    """The rate at which selections cost epsilon, if a row moves all scores by ``reach`` in sum."""
    moved = rows_apart(distance) * reach
    return positive("epsilon", epsilon) / (2 * moved)


def _relative(levels: Sequence[Fraction]) -> list[Fraction]:
    """The levels with the ends 0 and 1."""
    return [Fraction(0), *levels, Fraction(1)]


def _middle(levels: Sequence[Fraction]) -> tuple[int, Fraction]:
    """The index of the middle level, and its relative position between the first and the last."""
    at = len(levels) // 2
    span = levels[-1] - levels[0]
    return at, (levels[at] - levels[0]) / span


def _reaches(q: Sequence[Fraction]) -> list[Fraction]:
    """The largest change of a rank error by one row, for each level of the recursion."""

    def reaches(levels: Sequence[Fraction]) -> list[Fraction]:
        if len(levels) == 2:
            return []
        at, share = _middle(levels)
        lower = reaches(levels[: at + 1])
        upper = reaches(levels[at:])
        parts = zip_longest(lower, upper, fillvalue=Fraction(0))
        return [max(share, 1 - share), *map(max, parts)]

    return reaches(_relative(q))


def _halve(
    rows: Integers,
    ends: tuple[int, int],
    levels: Sequence[Fraction],
    rate: Fraction,
    entropy: Entropy,
) -> list[int]:
    """The quantiles between the first and the last of ``levels``, whose values are ``ends``."""
    if len(levels) == 2:
        return []
    at, share = _middle(levels)
    point = _choose(rows, ends, share, rate, entropy)
    below_point = rows[: np.searchsorted(rows, point)]
    above_point = rows[np.searchsorted(rows, point, side="right") :]
    lower_ends = ends[0], point
    upper_ends = point, ends[1]
    lower = _halve(below_point, lower_ends, levels[: at + 1], rate, entropy)
    upper = _halve(above_point, upper_ends, levels[at:], rate, entropy)
    return [*lower, point, *upper]


def _choose(
    rows: Integers,
    ends: tuple[int, int],
    q: Fraction,
    rate: Fraction,
    entropy: Entropy,
) -> int:
    """Draws a point between ``ends`` with probability proportional to exp(-rate x rank error)."""
    return draw_point(_pieces(rows, ends, q), rate / q.denominator, entropy)


def _pieces(rows: Integers, ends: tuple[int, int], q: Fraction) -> Runs:
    """The runs of points with equal rank errors, each row having the weight 1."""
    values, counts = np.unique(rows, return_counts=True)
    return rank_runs(values, counts, ends, q)
