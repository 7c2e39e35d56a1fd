# SPDX-License-Identifier: Apache-2.0
"""Brackets of epsilon and delta from the loss on a lattice.

Rounding only increases delta, so the sum over the lattice is an upper bound. It increases delta by
at most what a kernel of the same width removes, so the sum without the kernel is a lower bound.
Proof: solve.proof.md.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from sfumato.accounting.loss.edges import ROUNDOFF, Floats
from sfumato.accounting.loss.lattice import Cap, Lattice
from sfumato.exact.bracket import Bracket

Reader: TypeAlias = Callable[[float], float]

# The variance of the smoothing bell in multiples of the blur; with a larger blur no lower bound is
# computed.
_BELL = 1.2
# A probability of e^-14 delta is negligible.
_RARELY = 14.0
# A safety factor, which the interval proof needs (tests/accounting/loss/test_solve.py).
_MARGIN = 1.02
_MAX_BLUR = 1 / 16
_HUGE = 700.0
# Above everything that underflows (2^-1022), weights included.
_FAINT = 2.0**-1010
_STEPS = 80
_PRECISION = 1e-8


def delta_at(x: Lattice, epsilon: float) -> Bracket:
    """Returns proved bounds of the least delta at ``epsilon`` >= 0, from a distribution of the
    privacy loss.

    Guarantees:
        delta lies between its bounds
    """
    reading = _Reading.of(x)
    off = reading.shift + 4 * ROUNDOFF * epsilon
    lower = reading.lower(epsilon + off)
    upper = reading.upper(epsilon - off)
    return Bracket(_clip_to_probability(lower), _clip_to_probability(upper))


def epsilon_at(x: Lattice, delta: float) -> Bracket:
    """Returns proved bounds of the least epsilon >= 0 at ``delta``, from a distribution of the
    privacy loss; the upper one may be infinite.

    Guarantees:
        epsilon lies between its bounds
    """
    reading = _Reading.of(x)
    top = max(float(reading.losses[-1]), 0.0) + 1.0
    # the requested delta is itself a rounded number
    more = delta * (1 + 4 * ROUNDOFF)
    less = delta * (1 - 4 * ROUNDOFF)
    if reading.upper(0.0) <= less:
        upper = 0.0
    elif reading.upper(top) <= less:
        _, upper = _crossing(reading.upper, less, 0.0, top)
    else:
        upper = math.inf
    lower = _last_epsilon_above(reading.lower, more, min(upper, top))
    least = math.nextafter(lower - reading.shift, -math.inf)
    most = math.nextafter(upper + reading.shift, math.inf)
    return Bracket(max(least, 0.0), max(most, 0.0))


def _clip_to_probability(bound: float) -> float:
    """The bound, cut to the range from 0 to 1."""
    return min(max(bound, 0.0), 1.0)


def widths_at(x: Lattice, epsilon: float) -> tuple[float, float]:
    """Returns estimates (no bounds) of the two causes of the distance between the bounds of
    epsilon: rounding to the lattice, and computing errors.
    """
    return _Reading.of(x).moved(epsilon)


@dataclass(frozen=True, slots=True)
class _Reading:
    """A lattice prepared to be read at several epsilons."""

    losses: Floats
    weights: Floats
    tilt: float
    log_mass: float
    blur: float
    shift: float
    error: float
    hidden: float
    cap: Cap | None

    @classmethod
    def of(cls, x: Lattice) -> "_Reading":
        losses = x.losses
        # the points themselves, and their distance from an epsilon, are rounded too
        shift = x.moved + 8 * ROUNDOFF * float(np.abs(losses).max())
        return cls(losses, x.weights, x.tilt, x.log_mass, x.blur, shift, x.error, x.hidden, x.cap)

    def upper(self, epsilon: float) -> float:
        """An upper bound of delta at epsilon, before the shift."""
        if self.error == math.inf:
            return math.inf
        scale, slack = self._scale(epsilon)
        spent = self._spent(epsilon) + _largest(self.tilt) * self.error
        shown = scale * spent
        return (shown + self.hidden) * (1 + slack) + _FAINT

    def lower(self, epsilon: float) -> float:
        """A lower bound of delta at epsilon, before the shift."""
        shown = self._shown_lower(epsilon)
        if self.cap is None:
            return shown
        return shown + self.cap.infinite - self.cap.added(epsilon)

    def _shown_lower(self, epsilon: float) -> float:
        """The lower bound from the weights alone."""
        if self.blur > _MAX_BLUR:
            return self._far_lower(epsilon)
        scale, slack = self._scale(epsilon)
        if scale < _FAINT or self.error == math.inf:
            return 0.0
        spent = self._spent(epsilon)
        bell = self._bell(epsilon)
        tilted = min(self.tilt**2 * _BELL * self.blur / 2, _HUGE)
        most = _largest(self.tilt) + self._height() * math.exp(tilted)
        least = spent - bell - most * self.error - (spent + bell) * slack
        return scale * least * (1 - slack)

    def _far_lower(self, epsilon: float) -> float:
        """The lower bound where rounding is wide: all of it, except with negligible probability,
        counts as shift.
        """
        most = self.upper(epsilon)
        if not 0 < most < math.inf:
            return 0.0
        chance = -math.log(min(most, 1.0)) + _RARELY
        shift = self.blur / 2 + math.sqrt(2 * self.blur * chance)
        beyond = epsilon + shift * (1 + 2.0**-40)
        scale, slack = self._scale(beyond)
        if scale < _FAINT or self.error == math.inf:
            return 0.0
        spent = self._spent(beyond) * (1 - slack)
        shown = scale * (spent - _largest(self.tilt) * self.error) * (1 - slack)
        return shown - math.exp(-chance) * (1 + 2.0**-30)

    def moved(self, epsilon: float) -> tuple[float, float]:
        """Estimates of how far the blur, and how far errors, move epsilon: the error over the slope
        of delta.
        """
        weights, above = self._above(epsilon)
        falls = float((weights * np.exp(-(1 + self.tilt) * above)).sum())
        if not falls > 0:
            return 0.0, math.inf
        blurred = self._bell(epsilon)
        missed = 2 * _largest(self.tilt) * self.error
        return blurred / falls, missed / falls

    def _bell(self, epsilon: float) -> float:
        """The sum of weight e^(-tilt y) B(y) over all points."""
        if self.blur == 0:
            return 0.0
        distance = self.losses - epsilon
        exponent = -(distance**2) / (2 * _BELL * self.blur) - self.tilt * distance
        bells = np.exp(np.minimum(exponent, _HUGE))
        return self._height() * float((self.weights * bells).sum())

    def _height(self) -> float:
        """B(0)."""
        width = math.sqrt(self.blur)
        return _height(width) * width

    def _spent(self, epsilon: float) -> float:
        """The sum of weight e^(-tilt y) (1 - e^-y) over the points y > 0 above epsilon."""
        weights, above = self._above(epsilon)
        tilted = weights * np.exp(-self.tilt * above)
        return float((tilted * -np.expm1(-above)).sum())

    def _above(self, epsilon: float) -> tuple[Floats, Floats]:
        """The weights of the points above epsilon, and their distances from it."""
        first = int(np.searchsorted(self.losses, epsilon, side="right"))
        return self.weights[first:], self.losses[first:] - epsilon

    def _scale(self, epsilon: float) -> tuple[float, float]:
        """e^(log_mass - tilt epsilon), and the relative error of everything computed with it."""
        farthest = abs(epsilon) + float(np.abs(self.losses).max())
        size = 8 + abs(self.log_mass) + self.tilt * farthest
        slack = ROUNDOFF * (16 * size + 2 * len(self.losses))
        log_scale = self.log_mass - self.tilt * epsilon
        return math.exp(min(log_scale, _HUGE)), slack


def _largest(tilt: float) -> float:
    """The largest value of e^(-tilt y) (1 - e^-y), y >= 0, rounded up."""
    if tilt == 0:
        return 1.0
    log_largest = tilt * math.log(tilt / (1 + tilt)) - math.log1p(tilt)
    return math.exp(log_largest) * (1 + 2.0**-40)


def _height(width: float) -> float:
    """The height of the kernel, in multiples of its width, that covers what rounding adds (width <=
    1/4).
    """
    middle = (math.sqrt(1 + width**2 / 4) + width / 2) / 2
    exponent = (1 + width + width**2 / 4) / (2 * _BELL)
    return _MARGIN * middle * math.exp(exponent)


def _last_epsilon_above(delta_of: Reader, delta: float, start: float) -> float:
    """The last epsilon read at which the bound is above delta; 0 if there is none."""
    high = start
    gap = start * _PRECISION
    while gap < start:
        low = start - gap
        if delta_of(low) > delta:
            last, _ = _crossing(delta_of, delta, low, high)
            return last
        high = low
        gap *= 4
    return 0.0


def _crossing(delta_of: Reader, delta: float, low: float, high: float) -> tuple[float, float]:
    """Bisects to adjacent epsilons, the bound being above delta at the first and not at the
    second.
    """
    value_low = delta_of(low)
    value_high = delta_of(high)
    for step in range(_STEPS):
        if high - low <= _PRECISION * high:
            break
        middle = (low + high) / 2
        if step % 3:
            middle = _secant_crossing(low, high, value_low, value_high, delta)
        value = delta_of(middle)
        if value > delta:
            low = middle
            value_low = value
        else:
            high = middle
            value_high = value
    return low, high


def _secant_crossing(
    low: float, high: float, value_low: float, value_high: float, delta: float
) -> float:
    """Where the secant of the logarithms crosses, slightly inside."""
    if value_high <= 0 or not value_low < math.inf:
        return (low + high) / 2
    top = math.log(value_low)
    fall = max(top - math.log(value_high), 1e-300)
    part = (top - math.log(delta)) / fall
    inside = min(max(part, 1e-4), 1 - 1e-4)
    return low + (high - low) * inside
