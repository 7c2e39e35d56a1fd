# SPDX-License-Identifier: Apache-2.0
"""The dominating pair of a Poisson sample under replace-one, where one unit replaces another.

Proof: swapped.proof.md.
"""

import math
from dataclasses import dataclass

import numpy as np

from sfumato.accounting.loss.atoms import Atoms
from sfumato.accounting.loss.edges import (
    MAX_LOSS,
    ROUNDOFF,
    ULPS,
    Edges,
    Floats,
    Reach,
    Rounding,
    between,
    no_cells,
    plain_doubt,
)
from sfumato.accounting.loss.pair import Gaussian
from sfumato.errors import InvalidNumber

# The largest rate; closer to 1 the difference 1 - rate has too few digits.
MOST_RATE = 1 - 2.0**-6


@dataclass(frozen=True, slots=True)
class SwappedNormal:
    """The dominating pair of Gaussian noise on a Poisson sample, if one unit is replaced by
    another.

    The unit adds ``mu`` to the sum if it is drawn, its replacement -``mu``.

    Guarantees:
        a swapped unit has a mixture on either side
    """

    mu: float
    rate: float

    def __post_init__(self) -> None:
        _check_rate(self.rate)

    @property
    def pair(self) -> Gaussian:
        """The pair of Gaussian noise for a removed unit, without sampling."""
        return Gaussian(self.mu)

    @property
    def symmetric(self) -> bool:
        return True

    @property
    def continuous(self) -> bool:
        return True

    @property
    def spacing(self) -> float | None:
        return None

    @property
    def rounding(self) -> Rounding:
        inner = self.pair.rounding.fixed
        rest = 1 - self.rate
        return Rounding(4 * inner * self.rate / rest, 4 * inner / rest)

    @property
    def worst(self) -> float:
        return math.inf

    def atoms(self) -> tuple[Floats, Floats]:
        return np.zeros(0), np.zeros(0)

    def reach(self, outside: float) -> Reach:
        """Returns a range of privacy losses outside of which both distributions have at most the
        mass ``outside``.
        """
        there = self.pair.reach(outside)
        far = there.upper / self.mu + self.mu / 2
        gain = self.mu * (far - self.mu / 2)
        other = -self.mu * (far + self.mu / 2)
        most = float(_swapped_loss(gain, other, self.rate))
        return Reach(-most, most, there.outside)

    def cells(self, edges: Edges) -> tuple[Floats, Floats]:
        """Returns the mass of each cell under Q, a mixture of normals, and the share of it that
        goes to the upper edge.
        """
        far = self.mu + self.pair.reached
        points = between(self._points(edges.losses()), -far, far)
        plain, up = self.pair.intervals(points)
        _, mirrored = self.pair.intervals(-points[::-1])
        down = mirrored[::-1]
        least = 1 - self.rate + self.rate * down
        gain = self.rate * (up - down) / least
        share = (gain - edges.gain[:-1]) / edges.gap
        return plain * least, between(share, 0.0, 1.0)

    def doubt(self, edges: Edges) -> Floats:
        """Returns a bound of the relative error of each cell's mass: that of a ``Gaussian`` whose
        points are no farther.
        """
        far = (self.mu + self.pair.reached) ** 2
        relative = ROUNDOFF * (64 / (1 - self.rate) + 8 * far)
        return np.full(len(edges.gap), relative)

    def _points(self, losses: Floats) -> Floats:
        """The points where the ratio is e^loss; sinh(mu z) follows from that of half the loss."""
        half = losses / 2
        scale = (1 - self.rate) / self.rate * math.exp(self.mu**2 / 2)
        points: Floats = (half + np.arcsinh(scale * np.sinh(half))) / self.mu
        return points


@dataclass(frozen=True, slots=True)
class Swapped:
    """The dominating pair of a mechanism with finitely many privacy losses on a Poisson sample, if
    one unit is replaced by another.

    For each outcome, ``masses`` has its mass without the unit, ``gains`` its loss with the unit,
    and ``others`` its loss with the replacement.

    Guarantees:
        a swapped unit has opposite losses
    """

    masses: tuple[float, ...]
    gains: tuple[float, ...]
    others: tuple[float, ...]
    rate: float
    outside: float = 0.0

    def __post_init__(self) -> None:
        _check_rate(self.rate)

    @classmethod
    def laplace(cls, step: float, shift: int, rate: float) -> "Swapped":
        """Returns the pair of discrete Laplace noise whose integer a unit moves by ``shift``.

        ``step`` is the loss per integer; with ``shift`` 1 it is the pair of any epsilon-DP
        mechanism.
        """
        whole = Atoms.discrete_laplace(step, shift)
        least, *upper = whole.losses
        masses = whole.masses[1:]
        still = math.tanh(step / 2)
        lowest = [least] * len(upper)
        return cls(
            masses=(*masses, still, *masses),
            gains=(*upper, least, *lowest),
            others=(*lowest, least, *upper),
            rate=rate,
        )

    @classmethod
    def gaussian(cls, variance: float, rate: float) -> "Swapped":
        """Returns the pair of discrete Gaussian noise on one integer that a unit moves by 1."""
        whole = Atoms.discrete_gaussian(variance, 1)
        # without the outermost point, whose mirror image is not among them
        gains = whole.losses[:-1]
        others = tuple(reversed(gains))
        return cls(whole.masses[:-1], gains, others, rate, 2 * whole.outside)

    @property
    def symmetric(self) -> bool:
        return True

    @property
    def continuous(self) -> bool:
        return False

    @property
    def spacing(self) -> float | None:
        return None

    @property
    def rounding(self) -> Rounding:
        relative = ULPS * (4 + 2 * max(self.gains)) / (1 - self.rate)
        return Rounding(0.0, relative)

    @property
    def worst(self) -> float:
        return float(self.atoms()[0].max())

    def atoms(self) -> tuple[Floats, Floats]:
        gains = np.array(self.gains)
        others = np.array(self.others)
        masses = np.array(self.masses) * (1 + self.rate * np.expm1(others))
        return _swapped_loss(gains, others, self.rate), masses

    def reach(self, outside: float) -> Reach:
        worst = self.worst
        return Reach(-worst, worst, self.outside)

    def cells(self, edges: Edges) -> tuple[Floats, Floats]:
        return no_cells(edges)

    def doubt(self, edges: Edges) -> Floats:
        return plain_doubt(edges)


def _swapped_loss(gain: Floats | float, other: Floats | float, rate: float) -> Floats:
    """ln of (1 - rate + rate e^gain) / (1 - rate + rate e^other); of the two losses at most one is
    above 0.
    """
    high = np.maximum(gain, other)
    low = np.minimum(gain, other)
    below = rate * np.expm1(low)
    apart = np.log1p(rate * np.expm1(high)) - np.log1p(below)
    # both below 0: by their difference, which has more digits
    difference = np.minimum(high - low, MAX_LOSS)
    near = rate * np.exp(low) * np.expm1(difference) / (1 + below)
    size = np.where(high > 0, apart, np.log1p(near))
    swapped: Floats = np.where(high == gain, size, -size)
    return swapped


def _check_rate(rate: float) -> None:
    if not 0 < rate <= MOST_RATE:
        raise InvalidNumber(
            f"A sampling rate of {rate}.", allowed=f"greater than 0 and at most {MOST_RATE}"
        )
