# SPDX-License-Identifier: Apache-2.0
"""Private mean and variance of rows in memory, with declared or with private bounds.

One noisy release of the sums of ``bernstein`` determines the count, the mean and the variance; its
L1 sensitivity is 1 per row, as for a count. Proof: moments.proof.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from sfumato.accounting.account import account
from sfumato.errors import InvalidDeclaration, InvalidNumber, shown
from sfumato.exact.rational import Number, positive
from sfumato.mechanisms.additive import AdditiveMechanism, laplace
from sfumato.mechanisms.bernstein import Interval, Statistic, share, share_error, sums
from sfumato.mechanisms.bounds import ApproximateBounds
from sfumato.mechanisms.quantile import Quantiles
from sfumato.mechanisms.rows import Rows, on_lattice, rows_apart
from sfumato.metadata.column import Integer
from sfumato.noise import SYSTEM, Entropy, Integers
from sfumato.noise.law import open_unit
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import AdditiveNoise, Composed

Clip: TypeAlias = ApproximateBounds | Quantiles

# The number of steps between private bounds is fixed, so that the event does not depend on them.
_STEPS = 1 << 20
_ROUNDING = Fraction(1, 2 * _STEPS)
_SPAN = 1 << 42


@dataclass(frozen=True, slots=True)
class Moment:
    """The private mean or variance (divided by n) of rows clipped to declared bounds.

    A release returns noisy sums. ``estimate`` computes the statistic and its interval from them, in
    lattice steps (squared for a variance).

    Guarantees:
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
    def _width(self) -> int:
        return self.within.upper_code - self.within.lower_code

    def event(self, distance: Distance) -> AdditiveNoise:
        """Returns the event of a release; neighbours differ in at most ``distance`` rows (L1)."""
        return self.additive.event(_moved(distance, self._width, self.statistic))

    def draw(self, entropy: Entropy = SYSTEM) -> tuple[int, ...]:
        """Returns a noise sample for the sums."""
        return self.additive.draw(self.statistic.amounts, entropy)

    def release(
        self, rows: Rows, drawn: Sequence[int] | None = None, entropy: Entropy = SYSTEM
    ) -> tuple[int, ...]:
        """Returns the noisy sums of the rows; missing rows are dropped.

        ``drawn`` is noise that was sampled before the data was read.
        """
        parts = on_lattice(rows, self.within) - self.within.lower_code
        noise = self.draw(entropy) if drawn is None else drawn
        exact = sums(parts, self._width, self.statistic)
        return self.additive.release(exact, noise)

    def estimate(self, noisy: Sequence[int], confidence: Number) -> Interval:
        """Returns the estimate, with an interval that covers the statistic OF THE CLIPPED ROWS.

        The interval uses a joint region of all sums. It is the whole range if there may be no rows.
        """
        reach = _reach(self.additive, self.statistic, confidence)
        shares = share(noisy, reach, self.statistic)
        return _in_range(shares, self.within.lower_code, self._width, self.statistic)

    def error(self, confidence: Number, *, size: int) -> Fraction:
        """Returns an error bound of the estimate for ``size`` clipped rows, with this confidence."""
        scale = self._width**self.statistic.value
        reach = _reach(self.additive, self.statistic, confidence)
        return scale * share_error(size * scale, reach, self.statistic)


@dataclass(frozen=True, slots=True)
class Clipped:
    """The release of a ``ClippedMoment``: the private bounds, and noisy sums of the clipped rows.

    >>> Clipped(lower=16, upper=32, noisy=(900, 2100)).upper
    32
    """

    lower: int
    upper: int
    noisy: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ClippedMoment:
    """The private mean or variance (divided by n) of rows clipped to private bounds.

    ``clip`` computes the bounds, which are released too: ``ApproximateBounds``, or the first and
    the last of several ``Quantiles``. Rows are rounded to 2^20 steps between the bounds.

    Guarantees:
        private bounds and sums cost epsilon together
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
                f"Private bounds within {shown(within)}.", allowed="at most 2^42 steps apart"
            )

    def event(self, distance: Distance) -> Composed:
        """Returns the event of the search for the bounds and of the sums; independent of the data."""
        moved = _moved(distance, _STEPS, self.statistic)
        clip = self.clip.event(distance)
        return Composed((clip, self.additive.event(moved)))

    def release(self, rows: Rows, entropy: Entropy = SYSTEM) -> Clipped:
        """Returns the private bounds and the noisy sums; missing rows are dropped."""
        codes = on_lattice(rows, self.clip.within)
        bounds = self.clip.release(codes, entropy=entropy)
        lower = bounds[0]
        upper = bounds[-1]
        clipped = np.clip(codes, lower, upper)
        parts = _steps(clipped - lower, upper - lower)
        noise = self.additive.draw(self.statistic.amounts, entropy)
        exact = sums(parts, _STEPS, self.statistic)
        noisy = self.additive.release(exact, noise)
        return Clipped(lower, upper, noisy)

    def estimate(self, released: Clipped, confidence: Number) -> Interval:
        """Returns the estimate, with an interval that covers the statistic OF THE CLIPPED ROWS.

        The rows are clipped to the released bounds.
        """
        reach = _reach(self.additive, self.statistic, confidence)
        shares = share(released.noisy, reach, self.statistic)
        lower = max(shares.lower - _ROUNDING, Fraction(0))
        upper = min(shares.upper + _ROUNDING, self.statistic.most)
        rounded = Interval(shares.value, lower, upper)
        width = released.upper - released.lower
        return _in_range(rounded, released.lower, width, self.statistic)

    def error(self, confidence: Number, *, size: int) -> Fraction:
        """Returns ``Moment.error`` as a share of the released range (of its square for a variance)."""
        whole = size * _STEPS**self.statistic.value
        reach = _reach(self.additive, self.statistic, confidence)
        bound = share_error(whole, reach, self.statistic)
        return min(bound + _ROUNDING, self.statistic.most)


def mean(
    distance: Distance,
    epsilon: Number,
    *,
    lower: int,
    upper: int,
) -> Moment:
    """The mean of integer rows between declared bounds, epsilon-DP; ``distance`` in rows (L1).

    Raises:
        InvalidNumber: epsilon is invalid.
        InvalidDeclaration: the bounds are invalid, or the distance is not in rows (L1).

    >>> from sfumato.privacy import Norm
    >>> float(mean(Distance(Norm.L1, Fraction(1)), 1, lower=0, upper=100).error(0.95, size=1000))
    0.37...
    """
    within = Integer(lower, upper)
    return _declared(distance, epsilon, within, Statistic.MEAN)


def variance(
    distance: Distance,
    epsilon: Number,
    *,
    lower: int,
    upper: int,
) -> Moment:
    """The variance (over n) of integer rows between declared bounds; otherwise like ``mean``.

    >>> from sfumato.privacy import Norm
    >>> mechanism = variance(Distance(Norm.L1, Fraction(1)), 1, lower=0, upper=10)
    >>> mechanism.estimate((6800, 6400, 6800), 0.95).value
    Fraction(9, 1)
    """
    within = Integer(lower, upper)
    return _declared(distance, epsilon, within, Statistic.VARIANCE)


def clipped_mean(distance: Distance, epsilon: Number, *, clip: Clip) -> ClippedMoment:
    """The mean of rows clipped to private bounds, epsilon-DP including the bounds.

    The sums get the epsilon that ``clip`` does not use.

    Raises:
        InvalidNumber: ``clip`` costs epsilon or more.
        InvalidDeclaration: the distance is not in rows (L1).

    >>> from sfumato.mechanisms.quantile import quantiles
    >>> from sfumato.privacy import Norm
    >>> row = Distance(Norm.L1, Fraction(1))
    >>> clip = quantiles(row, "0.5", q=["0.01", "0.99"], lower=0, upper=10**6)
    >>> clipped_mean(row, "1.5", clip=clip).additive.noise.scale == 2**20
    True
    """
    return _private(distance, epsilon, clip, Statistic.MEAN)


def clipped_variance(distance: Distance, epsilon: Number, *, clip: Clip) -> ClippedMoment:
    """The variance (over n) of rows clipped to private bounds; otherwise like ``clipped_mean``.

    >>> from sfumato.mechanisms.bounds import bounds
    >>> from sfumato.privacy import Norm
    >>> row = Distance(Norm.L1, Fraction(1))
    >>> clip = bounds(row, "0.25", lower=0, upper=2**30, failure="1e-6")
    >>> clipped_variance(row, 1, clip=clip).statistic
    <Statistic.VARIANCE: 2>
    """
    return _private(distance, epsilon, clip, Statistic.VARIANCE)


def _declared(
    distance: Distance,
    epsilon: Number,
    within: Integer,
    statistic: Statistic,
) -> Moment:
    width = within.upper_code - within.lower_code
    moved = _moved(distance, width, statistic)
    return Moment(within, statistic, laplace(moved, epsilon))


def _private(
    distance: Distance,
    epsilon: Number,
    clip: Clip,
    statistic: Statistic,
) -> ClippedMoment:
    total = positive("epsilon", epsilon)
    spent = account(clip.event(distance)).epsilon
    if spent is None or spent >= total:
        raise InvalidNumber(
            f"Bounds that cost {spent} of an epsilon of {total}.", allowed="less than epsilon"
        )
    moved = _moved(distance, _STEPS, statistic)
    return ClippedMoment(clip, statistic, laplace(moved, total - spent))


def _moved(distance: Distance, width: int, statistic: Statistic) -> Distance:
    """The L1 distance of the sums of neighbours, for a range of this width."""
    value = rows_apart(distance) * width**statistic.value
    return Distance(Norm.L1, value, distance.relation)


def _reach(additive: AdditiveMechanism, statistic: Statistic, confidence: Number) -> int:
    """A bound of the noise that holds for all sums together, with this confidence (union bound)."""
    miss = 1 - open_unit("confidence", confidence)
    return _reach_of(additive, 1 - miss / statistic.amounts)


@lru_cache(maxsize=256)
def _reach_of(additive: AdditiveMechanism, confidence: Fraction) -> int:
    """The error bound of one sum, cached for many estimates of one mechanism."""
    return additive.error(confidence)


def _steps(parts: Integers, width: int) -> Integers:
    """Rounds parts of ``width`` <= 2^42 to the nearest of 2^20 steps, half to even.

    All 0 if the width is 0.
    """
    if width == 0:
        return np.zeros_like(parts)
    down, rest = np.divmod(parts * _STEPS, width)
    above_half = 2 * rest > width
    half_of_odd = (2 * rest == width) & (down % 2 == 1)
    steps: Integers = down + (above_half | half_of_odd)
    return steps


def _in_range(
    shares: Interval,
    lower: int,
    width: int,
    statistic: Statistic,
) -> Interval:
    """Scales the statistic of the shares back to the range of the rows."""
    start = lower if statistic is Statistic.MEAN else 0
    return shares.scaled(start, Fraction(width) ** statistic.value)
