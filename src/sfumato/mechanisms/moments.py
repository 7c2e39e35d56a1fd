# SPDX-License-Identifier: Apache-2.0
"""Private mean and variance of rows in memory, with declared or with automatic bounds.

One release of the sums that ``bernstein`` defines tells number, mean and variance; its L1
sensitivity is one a row, as for a count. Proof: moments.proof.md.
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

# Between private bounds there are always as many steps, so that the event is known before them.
_STEPS = 1 << 20
_ROUNDING = Fraction(1, 2 * _STEPS)
_SPAN = 1 << 42


@dataclass(frozen=True, slots=True)
class Moment:
    """The mean or variance (over n) of rows clipped to declared bounds.

    Released are noisy sums; ``estimate`` makes a number and its interval of them, in lattice
    steps (squared for a variance).

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
        """What happens to rows of which neighbours differ in at most ``distance`` (L1)."""
        return self.additive.event(_moved(distance, self._width, self.statistic))

    def draw(self, entropy: Entropy = SYSTEM) -> tuple[int, ...]:
        """The noise of the sums."""
        return self.additive.draw(self.statistic.amounts, entropy)

    def release(
        self, rows: Rows, drawn: Sequence[int] | None = None, entropy: Entropy = SYSTEM
    ) -> tuple[int, ...]:
        """The noisy sums; missing rows are dropped. ``drawn``: the noise, where it was drawn before the read."""
        parts = on_lattice(rows, self.within) - self.within.lower_code
        noise = self.draw(entropy) if drawn is None else drawn
        return self.additive.release(sums(parts, self._width, self.statistic), noise)

    def estimate(self, noisy: Sequence[int], confidence: Number) -> Interval:
        """The estimate, with an interval that covers the statistic OF THE CLIPPED ROWS.

        It is joint over the sums, and the whole range where there may be no rows at all.
        """
        found = share(noisy, _reach(self.additive, self.statistic, confidence), self.statistic)
        return _in_range(found, self.within.lower_code, self._width, self.statistic)

    def error(self, confidence: Number, *, size: int) -> Fraction:
        """How far the estimate is at most from the statistic of ``size`` clipped rows, with this confidence."""
        scale = self._width**self.statistic.value
        return scale * share_error(
            size * scale, _reach(self.additive, self.statistic, confidence), self.statistic
        )


@dataclass(frozen=True, slots=True)
class Clipped:
    """What a ``ClippedMoment`` releases: the private bounds, and the noisy sums of the rows between."""

    lower: int
    upper: int
    noisy: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ClippedMoment:
    """The mean or variance (over n) of rows clipped to private bounds, which are released with it.

    ``clip`` finds the bounds: approximate bounds, or the first and the last of several
    quantiles. Between them the rows are put on 2^20 steps.

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
        """The search for the bounds, then the sums between them; known before either."""
        moved = _moved(distance, _STEPS, self.statistic)
        return Composed((self.clip.event(distance), self.additive.event(moved)))

    def release(self, rows: Rows, entropy: Entropy = SYSTEM) -> Clipped:
        """The private bounds and the noisy sums; missing rows are dropped."""
        codes = on_lattice(rows, self.clip.within)
        found = self.clip.release(codes, entropy=entropy)
        lower, upper = found[0], found[-1]
        parts = _steps(np.clip(codes, lower, upper) - lower, upper - lower)
        noise = self.additive.draw(self.statistic.amounts, entropy)
        return Clipped(
            lower, upper, self.additive.release(sums(parts, _STEPS, self.statistic), noise)
        )

    def estimate(self, released: Clipped, confidence: Number) -> Interval:
        """The estimate, with an interval that covers the statistic OF THE ROWS CLIPPED to the released bounds."""
        found = share(
            released.noisy, _reach(self.additive, self.statistic, confidence), self.statistic
        )
        lower, upper = (
            max(found.lower - _ROUNDING, Fraction(0)),
            min(found.upper + _ROUNDING, self.statistic.most),
        )
        width = released.upper - released.lower
        return _in_range(Interval(found.value, lower, upper), released.lower, width, self.statistic)

    def error(self, confidence: Number, *, size: int) -> Fraction:
        """As ``Moment.error``, but over the width of the released range (over its square for a variance)."""
        whole = size * _STEPS**self.statistic.value
        bound = share_error(
            whole, _reach(self.additive, self.statistic, confidence), self.statistic
        )
        return min(bound + _ROUNDING, self.statistic.most)


def mean(distance: Distance, epsilon: Number, *, lower: int, upper: int) -> Moment:
    """The mean, epsilon-DP, of integer rows between declared bounds; ``distance`` in rows (L1).

    Raises:
        InvalidNumber: no epsilon.
        InvalidDeclaration: bounds that are none, or a distance that is not in rows.

    >>> from sfumato.privacy import Norm
    >>> float(mean(Distance(Norm.L1, Fraction(1)), 1, lower=0, upper=100).error(0.95, size=1000))
    0.37...
    """
    return _declared(distance, epsilon, Integer(lower, upper), Statistic.MEAN)


def variance(distance: Distance, epsilon: Number, *, lower: int, upper: int) -> Moment:
    """The variance (over n), epsilon-DP, of integer rows between declared bounds, as ``mean``.

    >>> from sfumato.privacy import Norm
    >>> variance(Distance(Norm.L1, Fraction(1)), 1, lower=0, upper=10).estimate((6800, 6400, 6800), 0.95).value
    Fraction(9, 1)
    """
    return _declared(distance, epsilon, Integer(lower, upper), Statistic.VARIANCE)


def clipped_mean(distance: Distance, epsilon: Number, *, clip: Clip) -> ClippedMoment:
    """The mean between private bounds, epsilon-DP in all: the sums get what ``clip`` leaves.

    Raises:
        InvalidNumber: no epsilon left after the bounds.
        InvalidDeclaration: a distance that is not in rows.

    >>> from sfumato.mechanisms.quantile import quantiles
    >>> from sfumato.privacy import Norm
    >>> row = Distance(Norm.L1, Fraction(1))
    >>> clip = quantiles(row, "0.5", q=["0.01", "0.99"], lower=0, upper=10**6)
    >>> clipped_mean(row, "1.5", clip=clip).additive.noise.scale == 2**20
    True
    """
    return _private(distance, epsilon, clip, Statistic.MEAN)


def clipped_variance(distance: Distance, epsilon: Number, *, clip: Clip) -> ClippedMoment:
    """The variance (over n) between private bounds, as ``clipped_mean``."""
    return _private(distance, epsilon, clip, Statistic.VARIANCE)


def _declared(distance: Distance, epsilon: Number, within: Integer, statistic: Statistic) -> Moment:
    moved = _moved(distance, within.upper_code - within.lower_code, statistic)
    return Moment(within, statistic, laplace(moved, epsilon))


def _private(
    distance: Distance, epsilon: Number, clip: Clip, statistic: Statistic
) -> ClippedMoment:
    total, spent = positive("epsilon", epsilon), account(clip.event(distance)).epsilon
    if spent is None or spent >= total:
        raise InvalidNumber(
            f"Bounds that cost {spent} of an epsilon of {total}.", allowed="less than epsilon"
        )
    return ClippedMoment(
        clip, statistic, laplace(_moved(distance, _STEPS, statistic), total - spent)
    )


def _moved(distance: Distance, width: int, statistic: Statistic) -> Distance:
    """How far apart the sums of neighbours are, for a range of this width."""
    return Distance(Norm.L1, rows_apart(distance) * width**statistic.value, distance.relation)


def _reach(additive: AdditiveMechanism, statistic: Statistic, confidence: Number) -> int:
    """What the noise of all sums stays within, with this confidence (union bound)."""
    return _reach_of(additive, 1 - (1 - open_unit("confidence", confidence)) / statistic.amounts)


@lru_cache(maxsize=256)
def _reach_of(additive: AdditiveMechanism, confidence: Fraction) -> int:
    """The error of one sum, which many estimates of one mechanism ask for."""
    return additive.error(confidence)


def _steps(parts: Integers, width: int) -> Integers:
    """Parts of ``width`` <= 2^42 as the nearest of 2^20 steps, half to even; 0 in a range of no width."""
    if width == 0:
        return np.zeros_like(parts)
    down, rest = np.divmod(parts * _STEPS, width)
    steps: Integers = down + ((2 * rest > width) | ((2 * rest == width) & (down % 2 == 1)))
    return steps


def _in_range(found: Interval, lower: int, width: int, statistic: Statistic) -> Interval:
    """The statistic of shares as that of the rows."""
    return found.scaled(
        lower if statistic is Statistic.MEAN else 0, Fraction(width) ** statistic.value
    )
