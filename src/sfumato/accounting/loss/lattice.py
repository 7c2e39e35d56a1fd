# SPDX-License-Identifier: Apache-2.0
"""A privacy loss rounded to a lattice, with bounds of all its errors: the type that ``loss`` adds.

Its weights are exponentially tilted, so that the floats are most exact near the epsilon asked for.
Proof: lattice.proof.md.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from sfumato.accounting.loss.edges import ROUNDOFF, Floats
from sfumato.errors import InvalidNumber

# The share of the weight that truncation may lose in all, by default.
LOST = 5e-7


def norm(values: Floats) -> float:
    """Returns an upper bound of the Euclidean norm of an array."""
    # sums, not dot products: those start threads that cost more than they save
    return math.sqrt(float((values * values).sum())) * (1 + 2.0**-40)


@dataclass(frozen=True, slots=True)
class Cap:
    """A bound of the effect on delta of privacy losses that were moved to a cap or to infinity
    (module ``cap``).

    At least the mass ``infinite`` of P got an infinite loss. Delta at epsilon grew by at most
    e^(log_chance + rate epsilon).
    """

    infinite: float
    rate: float
    log_chance: float

    def added(self, epsilon: float) -> float:
        """Returns an upper bound of the amount by which the cap raised delta at epsilon."""
        return math.exp(min(self.log_chance + self.rate * epsilon, 0.0)) * (1 + 2.0**-20)


@dataclass(frozen=True, slots=True)
class Lattice:
    """The distribution under P of a privacy loss S that was rounded to a lattice.

    The lattice represents S by R = S + N + E, a whole multiple of ``step``, from ``start`` steps
    on. The value r of R has a probability of about weight e^(log_mass - tilt r). N is the rounding:
    fair to both laws (the mean of e^-N is 1 given all earlier rounding), and of variance proxy
    ``blur`` (Hoeffding). E is the error of computed losses: |E| is at most ``shift``, and
    ``relative`` of the sum of all single losses' sizes, which is at most ``travel``. At most
    ``hidden`` of the mass of P is left out. The weights are within ``error`` of the true ones, in
    total absolute difference. A ``cap`` says how S differs from the loss that was asked for.
    """

    step: float
    start: int
    weights: Floats
    tilt: float
    log_mass: float
    blur: float
    shift: float
    error: float
    hidden: float
    relative: float = 0.0
    travel: float = 0.0
    cap: Cap | None = None

    def __post_init__(self) -> None:
        sound = (
            self.step > 0
            and self.tilt >= 0
            and math.isfinite(self.log_mass)
            and self.blur >= 0
            and self.shift >= 0
            and self.error >= 0
            and self.hidden >= 0
            and self.relative >= 0
            and self.travel >= 0
            and self.weights.size > 0
            and float(self.weights.min()) >= 0
        )
        if not sound:
            raise InvalidNumber(
                "A lattice of losses that cannot be.", allowed="weights and errors from 0 on"
            )

    @property
    def losses(self) -> Floats:
        index = np.arange(self.start, self.start + len(self.weights), dtype=np.float64)
        return index * self.step

    @property
    def moved(self) -> float:
        """A bound of the absolute error of the represented losses (E)."""
        return self.shift + self.relative * self.travel

    @property
    def total(self) -> float:
        """An upper bound of the sum of the weights, and of the true weights."""
        return float(self.weights.sum()) * (1 + 2.0**-40) + self.error

    @property
    def norm(self) -> float:
        """An upper bound of the Euclidean norm of the weights."""
        return norm(self.weights)

    def moments(self) -> tuple[float, float]:
        """The mean and variance under the weights; they guide choices and prove nothing."""
        index = np.arange(len(self.weights))
        total = float(self.weights.sum())
        moment = self.weights * index
        mean = float(moment.sum()) / total
        variance = max(float((moment * index).sum()) / total - mean**2, 0.0)
        return (self.start + mean) * self.step, variance * self.step**2

    def cropped(self, most: float) -> "Lattice":
        """Returns the lattice without its outer points: at each end, points with ``most`` of the
        weight in all.
        """
        ups = np.cumsum(self.weights)
        downs = np.cumsum(self.weights[::-1])
        below, above = int(np.searchsorted(ups, most)), int(np.searchsorted(downs, most))
        if below + above >= len(self.weights):
            return self
        lost = (float(ups[below - 1]) if below else 0.0) + (
            float(downs[above - 1]) if above else 0.0
        )
        kept = self.weights[below : len(self.weights) - above]
        return replace(
            self, start=self.start + below, weights=kept, error=self.error + lost * (1 + 2.0**-30)
        )

    def scaled(self) -> "Lattice":
        """Returns the same lattice with weights that sum to about 1."""
        total = float(self.weights.sum())
        log_mass = self.log_mass + math.log(total)
        slack = 4 * ROUNDOFF * (2 + abs(log_mass) + abs(self.log_mass))
        return replace(
            self,
            weights=self.weights / total,
            log_mass=log_mass,
            error=(self.error / total) * (1 + 2.0**-30) + slack,
        )
