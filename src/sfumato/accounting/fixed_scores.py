# SPDX-License-Identifier: Apache-2.0
"""The privacy curve of equal exponential mechanisms whose scores are all fixed in advance.

Source: Dong, Durfee, Rogers, "Optimal Differential Privacy Composition for Exponential Mechanisms"
(ICML 2020). Proof, including that of the theorem: fixed_scores.proof.md.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sfumato.accounting.closed import loss_of, spare_of
from sfumato.accounting.own_delta import NONE
from sfumato.exact.bracket import Bounds, Bracket
from sfumato.exact.rational import Number
from sfumato.exact.rounding import float_down, float_up

_ROUNDOFF = 2.0**-53
# The probability of the binomial counts that are left out, and how many multiples of sqrt(n) from
# the mean the others are.
_IGNORED = 1e-100
_REACH = math.sqrt(math.log(2 / _IGNORED) / 2) * (1 + 2.0**-30)
# Two maxima with a smaller relative difference count as one.
_CLOSE = 2.0**-17
_STEPS = 60
_FIRST_GAP = 2.0**-22


@dataclass(frozen=True, slots=True)
class FixedScores:
    """The privacy curve of ``times`` mechanisms of bounded range ``eta`` whose scores were fixed
    before the first answer.

    ``eta`` is the float nearest to the range; ``pure``, the exact sum of the ranges, bounds every
    loss. ``reached``: whether neighbours and scores exist that attain the curve, or nearly.

    Guarantees:
        fixed scores lose what the worst shares of candidates lose

    >>> curve = FixedScores(0.1, 100, Fraction(10), reached=True)
    >>> curve.epsilon("1e-6")
    Bracket(lower=2.24..., upper=2.24...)
    """

    eta: float
    times: int
    pure: Fraction
    reached: bool

    def epsilon(self, delta: Number) -> Bounds:
        """Returns bounds of the least epsilon at ``delta``."""
        spare, _ = spare_of(delta, NONE)
        whole = float_up(self.pure)
        if spare == 0:
            return self._shown(float_down(self.pure), whole)
        if Fraction(self._upper(0.0)) <= spare:
            return self._shown(0.0, 0.0)
        near = self._near(float(spare), whole)
        low, gap = near, near * _FIRST_GAP
        while low > 0 and Fraction(self._lower(low)) <= spare:
            low, gap = max(near - gap, 0.0), 2 * gap
        high, gap = near, near * _FIRST_GAP
        while high < whole and Fraction(self._upper(high)) > spare:
            high, gap = near + gap, 2 * gap
        return self._shown(low, min(high, whole))

    def delta(self, epsilon: Number) -> Bounds:
        """Returns bounds of the least delta at ``epsilon`` >= 0."""
        loss = loss_of(epsilon)
        if loss >= self.pure:
            return self._shown(0.0, 0.0)
        return self._shown(self._lower(float_up(loss)), self._upper(float_down(loss)))

    def _shown(self, lower: float, upper: float) -> Bounds:
        return Bracket(lower, upper) if self.reached else Bounds(None, upper)

    def _near(self, delta: float, high: float) -> float:
        """An estimate of the epsilon of ``delta``."""
        low = 0.0
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if self._best(middle)[1] > delta else (low, middle)
        return high

    def _lower(self, loss: float) -> float:
        """A lower bound of delta at ``loss``: the loss of one share of candidates."""
        eta = math.nextafter(self.eta, 0.0)
        top = min(_worst_top(eta, self.times, loss, self._best(loss)[0]), eta)
        bottom = math.nextafter(eta - top, 0.0)
        return max(_excess(self.times, top, bottom, loss, sign=-1), 0.0)

    def _upper(self, loss: float) -> float:
        """An upper bound of delta at ``loss``: ranges of shares, bisected while their bound is too
        large.
        """
        ceiling = self._best(loss)[1] * (1 + _CLOSE)
        most, left = 0.0, [(0, self.times - 1)]
        while left:
            first, last = left.pop()
            bound = self._bound(first, last, loss)
            if bound <= max(ceiling, most) or first == last:
                most = max(most, bound)
            else:
                middle = (first + last) // 2
                left += [(first, middle), (middle + 1, last)]
        return min(most, 1.0)

    def _bound(self, first: int, last: int, loss: float) -> float:
        """An upper bound over shares from the worst one of ``first`` to that of ``last``."""
        eta = math.nextafter(self.eta, math.inf)
        least = _worst_top(eta, self.times, loss, first) * (1 - 16 * _ROUNDOFF)
        top = min(_worst_top(eta, self.times, loss, last) * (1 + 16 * _ROUNDOFF), eta)
        return _excess(self.times, top, math.nextafter(eta - least, math.inf), loss, sign=1)

    def _best(self, loss: float) -> tuple[int, float]:
        """The estimated worst count and its delta; it steers the search and decides nothing."""

        def lost(count: int) -> float:
            top = _worst_top(self.eta, self.times, loss, count)
            return _excess(self.times, top, self.eta - top, loss, sign=0)

        low, high = 0, self.times - 1
        while high - low > 2:
            third = (high - low) // 3
            if lost(low + third) < lost(high - third):
                low += third
            else:
                high -= third
        return max(
            ((count, lost(count)) for count in range(low, high + 1)), key=lambda pair: pair[1]
        )


def _worst_top(eta: float, times: int, loss: float, count: int) -> float:
    """The largest loss of one mechanism if up to ``count`` of them have the least loss."""
    return min((loss + (count + 1) * eta) / (times + 1), eta)


def _excess(times: int, top: float, bottom: float, loss: float, *, sign: int) -> float:
    """E_P (1 - e^(loss - L))_+, where L is the sum of that many losses of ``top`` or -``bottom``.

    ``sign``: 1 rounds up, -1 rounds down, 0 to nearest.
    """
    if top <= 0 or bottom <= 0:
        return 0.0
    odds = -math.expm1(-top) / math.expm1(bottom)
    first, weights = _binomial_weights(times, odds)
    last = first + len(weights) - 1
    spread = top + bottom
    loss -= sign * 8 * _ROUNDOFF * (times * spread + loss)
    # the number of mechanisms with the least loss from which the total is at most ``loss``
    enough = math.floor((times * top - loss) / spread) + 1
    if enough < first:
        return _IGNORED if sign > 0 else 0.0
    count = np.arange(first, min(enough, last) + 1, dtype=np.float64)
    below = loss - (times * top - count * spread)
    gain = np.maximum(-np.expm1(np.minimum(below, 0.0)), 0.0)
    mean = float((weights[: len(count)] * gain).sum() / weights.sum())
    return mean * (1 + sign * 64 * _ROUNDOFF * (len(weights) + 1)) + sign * _IGNORED


def _binomial_weights(times: int, odds: float) -> tuple[int, NDArray[np.float64]]:
    """The probabilities of a binomial law near its mean, relative to that of its mode.

    Returns the first count, and the weights from there on.
    """
    mean = times * odds / (1 + odds)
    reach = _REACH * math.sqrt(times) + 2
    first = max(math.floor(mean - reach), 0)
    last = min(math.ceil(mean + reach), times)
    mode = min(max(round(mean), first), last)
    index = np.arange(first, last, dtype=np.float64)
    ratio = (times - index) / (index + 1) * odds
    below = np.cumprod(1 / ratio[: mode - first][::-1])[::-1]
    above = np.cumprod(ratio[mode - first :])
    return first, np.concatenate([below, [1.0], above])
