# SPDX-License-Identifier: Apache-2.0
"""Private mean and variance of rows in memory, with declared or with automatic bounds.

A row at the share t of its range counts t and 1-t for a mean (RULES 15), t^2, 2t(1-t) and
(1-t)^2 for a variance: amounts that are never negative and add up to one, so that one row
moves one release of all of them by one in L1. Number, mean and variance follow from the
noisy sums. The amounts are Bernstein's polynomials (1912). Proof: moments.proof.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from itertools import product
from typing import TypeAlias

import numpy as np

from sfumato.accounting.account import account
from sfumato.errors import InvalidDeclaration, InvalidNumber
from sfumato.exact.rational import Number, positive
from sfumato.mechanisms.additive import AdditiveMechanism, laplace
from sfumato.mechanisms.bounds import ApproximateBounds
from sfumato.mechanisms.quantile import Quantiles
from sfumato.mechanisms.rows import Rows, on_lattice, rows_apart
from sfumato.metadata.column import Integer
from sfumato.noise import SYSTEM, Entropy, Integers
from sfumato.noise.law import open_unit
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import AdditiveNoise, Composed

Range: TypeAlias = tuple[Fraction, Fraction]
Clip: TypeAlias = ApproximateBounds | Quantiles

# Rows are cut at half of a word, so that products fit an int64 and sums of 2^36 of them too.
_HALF = 27
# With automatic bounds every range has as many steps, so that the event is known before it (RULES 12).
_STEPS = 1 << 20
_SPAN = 1 << 42


class Statistic(Enum):
    """What is estimated; the value is the degree of the amounts that a row counts."""

    MEAN = 1
    VARIANCE = 2


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and the interval around it, in lattice steps (squared for a variance)."""

    value: Fraction
    lower: Fraction
    upper: Fraction


@dataclass(frozen=True, slots=True)
class Moment:
    """The mean or variance (of the rows themselves, over n) of rows clipped to declared bounds.

    Released are noisy sums; ``estimate`` makes the number and its interval of them.

    Guarantees:
        the amounts of a row add up to one
        neighbours move the sums by at most the distance
        the interval covers the clipped statistic
        the error of a moment is as stated

    >>> from sfumato.privacy import Norm
    >>> mechanism = mean(Distance(Norm.L1, Fraction(1)), 1, lower=0, upper=100)
    >>> mechanism.release([10, 20, 60], drawn=[0, 0])
    (90, 210)
    >>> mechanism.estimate((900_000, 2_100_000), 0.95).value
    Fraction(30, 1)
    """

    within: Integer
    statistic: Statistic
    additive: AdditiveMechanism

    @property
    def width(self) -> int:
        """The width of the declared range, in steps."""
        return self.within.upper_code - self.within.lower_code

    def event(self, distance: Distance) -> AdditiveNoise:
        """What happens to rows of which neighbours differ in at most ``distance`` (L1)."""
        return self.additive.event(_moved(distance, self.statistic, self.width))

    def draw(self, entropy: Entropy = SYSTEM) -> tuple[int, ...]:
        """The noise of the sums."""
        return self.additive.draw(self.statistic.value + 1, entropy)

    def release(self, rows: Rows, drawn: Sequence[int] | None = None, entropy: Entropy = SYSTEM) -> tuple[int, ...]:
        """The noisy sums of the amounts; missing rows are dropped. ``drawn``: noise drawn before the read."""
        codes = on_lattice(rows, self.within) - self.within.lower_code
        sums = _sums(codes, self.width, self.statistic)
        return self.additive.release(sums, self.draw(entropy) if drawn is None else drawn)

    def estimate(self, noisy: Sequence[int], confidence: Number) -> Interval:
        """The estimate, with an interval that covers the statistic OF THE CLIPPED ROWS.

        The interval is joint over the sums. With too few rows to tell it is the whole range; the
        statistic of no rows is nothing that an interval could miss.
        """
        share = _share(self.statistic, noisy, _reach(self.additive, self.statistic, confidence))
        return _scaled(share, self.statistic, self.within.lower_code, self.width)

    def error(self, confidence: Number, *, size: int) -> Fraction:
        """How far the estimate is from the statistic of ``size`` clipped rows, with this confidence."""
        share = _share_error(self.additive, self.statistic, confidence, size * self.width**self.statistic.value)
        return share * self.width**self.statistic.value


@dataclass(frozen=True, slots=True)
class Clipped:
    """What a ``ClippedMoment`` released: the private bounds and the noisy sums within them."""

    lower: int
    upper: int
    noisy: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ClippedMoment:
    """The mean or variance of rows clipped to private bounds, which are part of the release.

    ``clip`` finds the bounds: approximate bounds, or the first and last of several quantiles.
    The rows are clipped to them and put on 2^20 steps between, whatever they are; so the event
    is known before anything is read.

    Guarantees:
        automatic bounds and sums cost what they cost together
        the interval covers the statistic clipped to private bounds

    >>> from sfumato.mechanisms.bounds import bounds
    >>> from sfumato.privacy import Norm
    >>> row = Distance(Norm.L1, Fraction(1))
    >>> clip = bounds(row, "0.25", lower=0, upper=2**30, failure="1e-6")
    >>> mechanism = clipped_mean(row, 1, clip=clip)
    >>> account(mechanism.event(row)).epsilon
    Fraction(1, 1)
    """

    clip: Clip
    statistic: Statistic
    additive: AdditiveMechanism

    def __post_init__(self) -> None:
        within = self.clip.within
        if within.upper_code - within.lower_code > _SPAN:
            raise InvalidDeclaration(
                f"{within!r} is too wide to find bounds in for a moment.",
                allowed="at most 2^42 steps from the lower to the upper",
            )

    def event(self, distance: Distance) -> Composed:
        """The search for the bounds, then the sums between them."""
        moved = _moved(distance, self.statistic, _STEPS)
        return Composed((self.clip.event(distance), self.additive.event(moved)))

    def release(self, rows: Rows, entropy: Entropy = SYSTEM) -> Clipped:
        """The bounds and the noisy sums; missing rows are dropped."""
        codes = on_lattice(rows, self.clip.within)
        found = self.clip.release(codes, entropy=entropy)
        lower, upper = found[0], found[-1]
        sums = _sums(_steps(np.clip(codes, lower, upper) - lower, upper - lower), _STEPS, self.statistic)
        return Clipped(lower, upper, self.additive.release(sums, self.additive.draw(len(sums), entropy)))

    def estimate(self, released: Clipped, confidence: Number) -> Interval:
        """The estimate, with an interval that covers the statistic OF ROWS CLIPPED to the released bounds."""
        share = _share(self.statistic, released.noisy, _reach(self.additive, self.statistic, confidence))
        most, slack = _most(self.statistic), Fraction(1, 2 * _STEPS)
        wider = Interval(share.value, max(share.lower - slack, Fraction(0)), min(share.upper + slack, most))
        return _scaled(wider, self.statistic, released.lower, released.upper - released.lower)

    def error(self, confidence: Number, *, size: int) -> Fraction:
        """As ``Moment.error``, as a share of the width of the released range (of its square for a variance)."""
        share = _share_error(self.additive, self.statistic, confidence, size * _STEPS**self.statistic.value)
        return min(share + Fraction(1, 2 * _STEPS), _most(self.statistic))


def mean(distance: Distance, epsilon: Number, *, lower: int, upper: int) -> Moment:
    """The mean, epsilon-DP, of integer rows between declared bounds; ``distance`` in rows (L1).

    Raises:
        InvalidNumber: no epsilon.
        InvalidDeclaration: bounds that are none, or a distance that is not in rows.

    >>> from sfumato.privacy import Norm
    >>> float(mean(Distance(Norm.L1, Fraction(1)), 1, lower=0, upper=100).error(0.95, size=1000))
    0.37...
    """
    return _moment(distance, epsilon, Integer(lower, upper), Statistic.MEAN)


def variance(distance: Distance, epsilon: Number, *, lower: int, upper: int) -> Moment:
    """The variance (over n), epsilon-DP, of integer rows between declared bounds, as ``mean``.

    >>> from sfumato.privacy import Norm
    >>> variance(Distance(Norm.L1, Fraction(1)), 1, lower=0, upper=10).release([2, 8], drawn=[0, 0, 0])
    (68, 64, 68)
    """
    return _moment(distance, epsilon, Integer(lower, upper), Statistic.VARIANCE)


def clipped_mean(distance: Distance, epsilon: Number, *, clip: Clip) -> ClippedMoment:
    """The mean with private bounds, epsilon-DP in all: ``clip``'s cost and the rest for the sums.

    Raises:
        InvalidNumber: no epsilon left after the bounds.

    >>> from sfumato.mechanisms.quantile import quantiles
    >>> from sfumato.privacy import Norm
    >>> row = Distance(Norm.L1, Fraction(1))
    >>> clip = quantiles(row, "0.5", q=["0.01", "0.99"], lower=0, upper=10**6)
    >>> clipped_mean(row, "1.5", clip=clip).additive.noise.scale == 2**20
    True
    """
    return _clipped(distance, epsilon, clip, Statistic.MEAN)


def clipped_variance(distance: Distance, epsilon: Number, *, clip: Clip) -> ClippedMoment:
    """The variance (over n) with private bounds, as ``clipped_mean``."""
    return _clipped(distance, epsilon, clip, Statistic.VARIANCE)


def _moment(distance: Distance, epsilon: Number, within: Integer, statistic: Statistic) -> Moment:
    moved = _moved(distance, statistic, within.upper_code - within.lower_code)
    return Moment(within, statistic, laplace(moved, epsilon))


def _clipped(distance: Distance, epsilon: Number, clip: Clip, statistic: Statistic) -> ClippedMoment:
    total, spent = positive("epsilon", epsilon), account(clip.event(distance)).epsilon
    if spent is None or spent >= total:
        raise InvalidNumber(f"Bounds that cost {spent} of an epsilon of {total}.", allowed="less than epsilon")
    return ClippedMoment(clip, statistic, laplace(_moved(distance, statistic, _STEPS), total - spent))


def _moved(distance: Distance, statistic: Statistic, width: int) -> Distance:
    """How far the sums of a range of this width are apart in L1."""
    return Distance(Norm.L1, rows_apart(distance) * width**statistic.value, distance.relation)


def _most(statistic: Statistic) -> Fraction:
    """The largest mean or variance of numbers in [0, 1]."""
    return Fraction(1) if statistic is Statistic.MEAN else Fraction(1, 4)


def _sums(parts: Integers, width: int, statistic: Statistic) -> tuple[int, ...]:
    """The sums of the amounts of rows at ``parts`` of ``width``, 0 <= parts <= width <= 2^53, times width^degree."""
    count, first = len(parts), _total(parts)
    if statistic is Statistic.MEAN:
        return first, count * width - first
    high, low = parts >> _HALF, parts & ((1 << _HALF) - 1)
    second = (_total(high * high) << 2 * _HALF) + (_total(high * low) << _HALF + 1) + _total(low * low)
    return second, 2 * (width * first - second), count * width**2 - 2 * width * first + second


def _total(values: Integers) -> int:
    """The sum of integers in [0, 2^54], of any size."""
    return (int((values >> _HALF).sum()) << _HALF) + int((values & ((1 << _HALF) - 1)).sum())


def _steps(parts: Integers, width: int) -> Integers:
    """Parts of ``width`` as the nearest of the 2^20 steps, half to even; 0 in a range of no width."""
    if width == 0:
        return np.zeros_like(parts)
    down, rest = np.divmod(parts * _STEPS, width)
    steps: Integers = down + ((2 * rest > width) | ((2 * rest == width) & (down % 2 == 1)))
    return steps


def _reach(additive: AdditiveMechanism, statistic: Statistic, confidence: Number) -> int:
    """What the noise of all sums stays within, with this confidence (union bound)."""
    miss = 1 - open_unit("confidence", confidence)
    return additive.error(1 - miss / (statistic.value + 1))


def _share(statistic: Statistic, noisy: Sequence[int], reach: int) -> Interval:
    """The statistic of the shares of the range, where each true sum is within ``reach`` of the noisy one."""
    box = [(max(each - reach, 0), max(each + reach, 0)) for each in noisy]
    sums = [max(each, 0) for each in noisy]
    return _mean_of(sums, box) if statistic is Statistic.MEAN else _variance_of(sums, box)


def _ratio(part: int | Fraction, whole: int | Fraction, otherwise: Fraction) -> Fraction:
    return Fraction(part) / whole if whole else otherwise


def _mean_of(sums: Sequence[int], box: Sequence[tuple[int, int]]) -> Interval:
    (low, high), (rest_low, rest_high) = box
    return Interval(
        _ratio(sums[0], sum(sums), Fraction(1, 2)),
        _ratio(low, low + rest_high, Fraction(0)),
        _ratio(high, high + rest_low, Fraction(1)),
    )


def _variance_of(sums: Sequence[int], box: Sequence[tuple[int, int]]) -> Interval:
    """Extremes of a function that falls with the middle sum and rises then falls with each outer one."""
    most = _most(Statistic.VARIANCE)
    value = _variance_at(*sums) if any(sums) else most / 2
    if not any(low for low, _ in box):
        return Interval(value, Fraction(0), most)
    (first, middle, last) = box
    corners = list(product(first, last))
    lower = min(_variance_at(a, middle[1], c) for a, c in corners)
    peaks = [(_peak(c, middle[0], first), Fraction(c)) for c in last] + [
        (Fraction(a), _peak(a, middle[0], last)) for a in first
    ]
    upper = max(_variance_at(a, middle[0], c) for a, c in [*corners, *peaks])
    return Interval(value, lower, upper)


def _variance_at(a: int | Fraction, b: int | Fraction, c: int | Fraction) -> Fraction:
    """t^2 on average less the square of t on average, not below 0; the sums are not all 0."""
    return max(Fraction(4 * a * c - b * b) / (4 * (a + b + c) ** 2), Fraction(0))


def _peak(other: int, middle: int, ends: tuple[int, int]) -> Fraction:
    """Where between its ends an outer sum makes the variance largest, given the other two."""
    peak = other + middle + Fraction(middle * middle, 2 * other) if other else Fraction(ends[1])
    return min(max(peak, Fraction(ends[0])), Fraction(ends[1]))


def _share_error(additive: AdditiveMechanism, statistic: Statistic, confidence: Number, whole: int) -> Fraction:
    """A bound of the error of a share, where the true sums add up to ``whole``."""
    reach, most = _reach(additive, statistic, confidence), _most(statistic)
    left = whole - (statistic.value + 1) * reach
    worst = reach if statistic is Statistic.MEAN else 5 * reach
    return min(Fraction(worst, left), most) if left > 0 else most


def _scaled(share: Interval, statistic: Statistic, lower: int, width: int) -> Interval:
    scale, start = Fraction(width) ** statistic.value, lower if statistic is Statistic.MEAN else 0
    return Interval(start + scale * share.value, start + scale * share.lower, start + scale * share.upper)
