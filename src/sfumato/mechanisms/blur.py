# SPDX-License-Identifier: Apache-2.0
"""Noise on a place in the plane, by the Euclidean distance, drawn exactly on a lattice.

Source: Andres, Bordenabe, Chatzikokolakis, Palamidessi (CCS 2013), here on a lattice.
Proof: blur.proof.md.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from math import isqrt

import numpy as np

from sfumato.errors import InvalidNumber
from sfumato.exact.exponential import exp_scaled
from sfumato.exact.rational import Number, to_fraction
from sfumato.noise import SYSTEM, DiscreteLaplace, Entropy
from sfumato.noise.law import open_unit
from sfumato.noise.lazy_uniform import is_below
from sfumato.privacy.relaxations import MetricDP, metres

# Below sqrt(1/2), so that proposals are wider than the law in every direction.
_SHARE = Fraction(7, 10)
# Below this rate of a lattice step the law is the one of the plane, within 1e-3.
_FINE = 0.05


@dataclass(frozen=True, slots=True, init=False)
class Blur:
    """Reports a place as a point of a lattice: P(z) proportional to exp(-epsilon |z - x| / per).

    x is the lattice point next to the place; |z - x| is the Euclidean distance. Places are pairs
    of metres, in a map that keeps distances; ``step`` is the lattice constant. Snapping moves a
    place by up to step / sqrt(2), so two places at distance d are as hard to tell apart as lattice
    points at up to d + sqrt(2) step. Past reports are not remembered: k reports of one place cost k
    epsilon, and their mean comes near the place; a repeated report shows that nothing changed.

    Guarantees:
        a place is reported with exactly the probability of its distance
        lattice points are as hard to tell apart as stated

    Raises:
        InvalidNumber: epsilon, per or step is not above 0, or the step is above per.

    >>> blur = Blur(1, per="200m", step="10m")
    >>> x, y = blur.release((1203, -77))
    >>> x % 10, y % 10
    (0.0, 0.0)
    >>> blur.guarantee
    MetricDP(epsilon=Fraction(1, 1), per=Fraction(200, 1))
    >>> round(blur.error("0.95"), -1)
    950.0
    """

    epsilon: Fraction
    per: Fraction
    step: Fraction
    _proposal: DiscreteLaplace = field(repr=False, compare=False)

    def __init__(self, epsilon: Number, per: Number, step: Number) -> None:
        promise = MetricDP(epsilon, per)
        object.__setattr__(self, "epsilon", promise.epsilon)
        object.__setattr__(self, "per", promise.per)
        object.__setattr__(self, "step", metres("step", step))
        if self.step > self.per:
            raise InvalidNumber(
                f"step = {self.step} m above per = {self.per} m.", allowed="a step up to per"
            )
        object.__setattr__(self, "_proposal", DiscreteLaplace(1 / (_SHARE * self.rate)))

    @property
    def rate(self) -> Fraction:
        """The privacy loss (epsilon) between two lattice points one step apart."""
        return self.epsilon * self.step / self.per

    @property
    def guarantee(self) -> MetricDP:
        """The metric privacy guarantee for lattice points; for places see the description of the
        class.
        """
        return MetricDP(self.epsilon, self.per)

    def release(
        self,
        place: tuple[Number, Number],
        entropy: Entropy = SYSTEM,
    ) -> tuple[float, float]:
        """Returns the report of a place: a random lattice point near it, in metres.

        Raises:
            InvalidNumber: a coordinate that is not finite.
        """
        east, north = place
        first = round(to_fraction("x", east) / self.step)
        second = round(to_fraction("y", north) / self.step)
        away = self._drawn_offset(entropy)
        return float((first + away[0]) * self.step), float((second + away[1]) * self.step)

    def _drawn_offset(self, entropy: Entropy) -> tuple[int, int]:
        """How many steps the reported point is from the snapped one, in both directions."""
        while True:
            first = self._proposal.sample_one(entropy)
            second = self._proposal.sample_one(entropy)
            square = first * first + second * second
            proposed = _SHARE * (abs(first) + abs(second))

            def bounds(
                precision: int, square: int = square, proposed: Fraction = proposed
            ) -> tuple[int, int]:
                # rate (sqrt(square) - proposed) >= 0, between two fractions
                root = isqrt(square << 2 * precision)
                least = max(self.rate * (Fraction(root, 1 << precision) - proposed), Fraction(0))
                most = self.rate * (Fraction(root + 1, 1 << precision) - proposed)
                lower, _ = exp_scaled(most.numerator, most.denominator, precision)
                _, upper = exp_scaled(least.numerator, least.denominator, precision)
                return lower, min(upper, 1 << precision)

            if square == 0 or is_below(bounds, entropy):
                return first, second

    def error(self, confidence: Number = "0.95") -> float:
        """Returns the radius in metres about the snapped place within which a report is, with this
        confidence.

        It is computed in floating point, from public numbers alone.
        """
        covered = float(open_unit("confidence", confidence))
        rate = float(self.rate)
        # in the plane P(r > u / rate) = (1 + u) e^-u
        low, high = 0.0, 60.0
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (
                (middle, high) if 1 - (1 + middle) * math.exp(-middle) < covered else (low, middle)
            )
        radius = high / rate
        if rate > _FINE:
            radius = _lattice_radius(rate, covered)
        return radius * float(self.step)


def _lattice_radius(rate: float, covered: float) -> float:
    """The radius, in steps, that a drawn offset is within with a probability."""
    reach = math.ceil(40 / rate)
    side = np.arange(-reach, reach + 1, dtype=np.float64)
    distances = np.sqrt(side[:, None] ** 2 + side[None, :] ** 2).ravel()
    ordered = np.sort(distances)
    sums = np.cumsum(np.exp(-rate * ordered))
    return float(ordered[np.searchsorted(sums, covered * sums[-1])])
