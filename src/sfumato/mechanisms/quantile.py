# SPDX-License-Identifier: Apache-2.0
"""Quantiles of rows in memory: one, the median, or several together.

One: the exponential mechanism on every lattice point between declared bounds, by data
intervals (Smith, STOC 2011). Several: ApproximateQuantiles (Kaplan, Schnapp, Stemmer, ICML
2022), which answers the middle one, splits the rows at the answer and goes on in each part.
Both are drawn exactly. Proof: quantile.proof.md.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, zip_longest
from typing import TypeAlias

import numpy as np

from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.exact.rational import Number, positive, to_fraction
from sfumato.mechanisms.rows import Rows, on_lattice, rows_apart
from sfumato.mechanisms.selection import union
from sfumato.metadata.column import Integer
from sfumato.noise import SYSTEM, Entropy, Integers
from sfumato.noise.entropy import below, words
from sfumato.noise.select import exponential
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import Composed, Rule, Selection

Candidates: TypeAlias = tuple[Integers, Integers, Integers]

# Ranks are counted in parts of a row: so many, that a rank times this stays an int64.
_PARTS = 10**6
# Equal rows are told apart by a random label, so that a split can fall between them.
_LABELS = 20
_POINTS = 1 << 42

_NO_NUMBER = re.compile(r"[^0-9.eE/+\- ]")


@dataclass(frozen=True, slots=True)
class Quantile:
    """A lattice point v chosen with probability proportional to exp(-rate x rank error of v).

    The rank error is how far q n is from the ranks that v takes among the n rows: from
    #(rows < v) to #(rows <= v). Without rows every point is equally likely. ``rate`` is per row
    of rank error.

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
        """What happens to rows of which neighbours differ in at most ``distance`` (L1)."""
        return _selection(self.rate, max(self.q, 1 - self.q), distance)

    def release(self, rows: Rows, entropy: Entropy = SYSTEM) -> int:
        """The chosen point. Rows are put on the integers within the bounds, missing ones dropped."""
        codes = np.sort(on_lattice(rows, self.within))
        return _choose(
            codes, (self.within.lower_code, self.within.upper_code), self.q, self.rate, entropy
        )

    def error(self, confidence: Number) -> int:
        """Ranks within which the answer is a q-quantile, with probability >= confidence, for any rows."""
        others = self.within.upper_code - self.within.lower_code
        return math.ceil(union(others, confidence) / self.rate)


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Several quantiles, in order, by halving: each row has a say in one choice a level.

    The middle one is chosen as by ``Quantile`` from all rows; then those before it from the
    rows below the answer, those after it from the rows above. So it costs one choice for each of the
    log2 levels and not for each quantile. Rows that are equal get a random label of 20 bits
    and are split by it: a value that holds many rows can be several quantiles.

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
        object.__setattr__(self, "q", tuple(to_fraction("q", each) for each in self.q))
        object.__setattr__(self, "rate", positive("rate", self.rate))
        _ordered(self.q)
        if self.within.size > _POINTS:
            raise InvalidDeclaration(
                f"{self.within.size} lattice points between the bounds.",
                allowed="at most 2^42 for several quantiles",
            )

    def event(self, distance: Distance) -> Composed:
        """One selection a level, of the row's part: all parts of a level are one choice."""
        return Composed(tuple(_selection(self.rate, reach, distance) for reach in _reaches(self.q)))

    def release(self, rows: Rows, entropy: Entropy = SYSTEM) -> tuple[int, ...]:
        """The chosen points, in order. Rows are taken as by ``Quantile.release``."""
        codes = on_lattice(rows, self.within) - self.within.lower_code
        labels = (words(len(codes), entropy) >> np.uint64(64 - _LABELS)).astype(np.int64)
        fine = np.sort((codes << _LABELS) | labels)
        found = _halve(
            fine, (0, (self.within.size << _LABELS) - 1), _relative(self.q), self.rate, entropy
        )
        return tuple(self.within.lower_code + (each >> _LABELS) for each in found)

    def error(self, confidence: Number) -> int:
        """Ranks within which each answer is its quantile, all together, with probability >= confidence.

        For any rows of which no two that are equal get the same label; r more that do add at
        most r a level.
        """
        others, depth = (self.within.size << _LABELS) - 1, len(_reaches(self.q))
        return depth * math.ceil(union(others * len(self.q), confidence) / self.rate) + depth - 1


def quantile(distance: Distance, epsilon: Number, *, q: Number, lower: int, upper: int) -> Quantile:
    """The q-quantile, epsilon-DP, of integer rows between declared bounds; ``distance`` in rows (L1).

    Raises:
        InvalidNumber: q outside (0, 1) or not a multiple of 1/d with d <= 10^6, or no epsilon.
        InvalidDeclaration: bounds that are none, or a distance that is not in rows.

    >>> quantile(Distance(Norm.L1, Fraction(1)), 1, q="0.9", lower=0, upper=120).error(0.95)
    15
    """
    level = to_fraction("q", q)
    _ordered([level])
    rate = _rate(epsilon, max(level, 1 - level), distance)
    return Quantile(Integer(lower, upper), level, rate)


def median(distance: Distance, epsilon: Number, *, lower: int, upper: int) -> Quantile:
    """The median, epsilon-DP, of integer rows between declared bounds; ``distance`` in rows (L1).

    >>> median(Distance(Norm.L1, Fraction(1)), 1, lower=0, upper=120).rate
    Fraction(1, 1)
    """
    return quantile(distance, epsilon, q=Fraction(1, 2), lower=lower, upper=upper)


def quantiles(
    distance: Distance, epsilon: Number, *, q: Sequence[Number], lower: int, upper: int
) -> Quantiles:
    """Several increasing quantiles, epsilon-DP together, as ``quantile``.

    >>> len(quantiles(Distance(Norm.L1, Fraction(1)), 1, q=[0.1, 0.5, 0.9], lower=0, upper=9).q)
    3
    """
    if any(isinstance(each, str) and _NO_NUMBER.search(each) for each in q):
        # a list of texts may be rows, and is not quoted
        raise InvalidNumber("q holds a text that is no number.", allowed="numbers between 0 and 1")
    levels = tuple(to_fraction("q", each) for each in q)
    _ordered(levels)
    rate = _rate(epsilon, sum(_reaches(levels), Fraction(0)), distance)
    return Quantiles(Integer(lower, upper), levels, rate)


def _ordered(levels: Sequence[Fraction]) -> None:
    """Refuses what are not increasing quantiles in (0, 1) on a common grid of at most 10^6 parts."""
    inside = levels and all(
        one < other for one, other in pairwise([Fraction(0), *levels, Fraction(1)])
    )
    if not inside or math.lcm(*(level.denominator for level in levels)) > _PARTS:
        raise InvalidNumber(
            f"q = {', '.join(map(str, levels)) or 'nothing'}.",
            allowed="one or more increasing numbers between 0 and 1, all multiples of one 1/d with d <= 10^6",
        )


def _selection(rate: Fraction, reach: Fraction, distance: Distance) -> Selection:
    moved = Distance(Norm.LINF, rows_apart(distance) * reach, distance.relation)
    return Selection(Rule.EXPONENTIAL, rate, moved)


def _rate(epsilon: Number, reach: Fraction, distance: Distance) -> Fraction:
    """The rate at which choices whose scores move by ``reach`` a row, in all, cost epsilon."""
    return positive("epsilon", epsilon) / (2 * rows_apart(distance) * reach)


def _relative(levels: Sequence[Fraction]) -> list[Fraction]:
    return [Fraction(0), *levels, Fraction(1)]


def _middle(levels: Sequence[Fraction]) -> tuple[int, Fraction]:
    """The place of the middle of the levels inside the two ends, and how far between them it is."""
    at = len(levels) // 2
    return at, (levels[at] - levels[0]) / (levels[-1] - levels[0])


def _reaches(q: Sequence[Fraction]) -> list[Fraction]:
    """For each level of the recursion, how far a row moves a rank error at most."""

    def reaches(levels: Sequence[Fraction]) -> list[Fraction]:
        if len(levels) == 2:
            return []
        at, share = _middle(levels)
        parts = zip_longest(reaches(levels[: at + 1]), reaches(levels[at:]), fillvalue=Fraction(0))
        return [max(share, 1 - share), *map(max, parts)]

    return reaches(_relative(q))


def _halve(
    rows: Integers,
    ends: tuple[int, int],
    levels: Sequence[Fraction],
    rate: Fraction,
    entropy: Entropy,
) -> list[int]:
    """The quantiles between the first and the last of ``levels``, which lie at ``ends``."""
    if len(levels) == 2:
        return []
    at, share = _middle(levels)
    found = _choose(rows, ends, share, rate, entropy)
    lower, upper = (
        rows[: np.searchsorted(rows, found)],
        rows[np.searchsorted(rows, found, side="right") :],
    )
    return [
        *_halve(lower, (ends[0], found), levels[: at + 1], rate, entropy),
        found,
        *_halve(upper, (found, ends[1]), levels[at:], rate, entropy),
    ]


def _choose(
    rows: Integers, ends: tuple[int, int], q: Fraction, rate: Fraction, entropy: Entropy
) -> int:
    """A point from ``ends[0]`` to ``ends[1]``, with probability proportional to exp(-rate x rank error)."""
    starts, widths, errors = _pieces(rows, ends, q)
    piece = exponential(-errors, rate / q.denominator, entropy, weights=widths)
    return int(starts[piece]) + below(int(widths[piece]), entropy)


def _pieces(rows: Integers, ends: tuple[int, int], q: Fraction) -> Candidates:
    """Runs of points of the same rank error: their starts, widths, and the error in parts of a row.

    Each value of a row is a piece of one point; the gaps between are pieces too.
    """
    values, counts = np.unique(rows, return_counts=True)
    upto = np.cumsum(counts)
    passed = np.concatenate(([0], upto))
    edges = np.concatenate(([ends[0]], values + 1)), np.concatenate((values, [ends[1] + 1]))
    starts, stops = (np.concatenate(pair) for pair in zip((values, values + 1), edges, strict=True))
    less = np.concatenate((upto - counts, passed))
    more = len(rows) - np.concatenate((upto, passed))
    parts, over = q.denominator, q.numerator
    errors = np.maximum(parts * less - over * len(rows), parts * more - (parts - over) * len(rows))
    kept = stops > starts
    return starts[kept], (stops - starts)[kept], np.maximum(errors, 0)[kept]
