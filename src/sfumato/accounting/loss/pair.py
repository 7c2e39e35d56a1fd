# SPDX-License-Identifier: Apache-2.0
"""Dominating pairs (P, Q): the worst pair of output distributions of a mechanism.

A pair is given by the distribution of the loss ln(dP/dQ): its atoms, and for cells of the ratio
dP/dQ the mass under Q and the mean ratio in the cell, which suffices to round it to a lattice. Zhu,
Dong, Wang (2022): the product of dominating pairs dominates the composition. Proof: pair.proof.md.
"""

import math
from dataclasses import dataclass

import numpy as np

from sfumato.accounting.loss.atoms import Atoms
from sfumato.accounting.loss.edges import (
    ROUNDOFF,
    ULPS,
    Edges,
    Floats,
    Reach,
    Rounding,
    between,
    losing,
    plain_doubt,
)
from sfumato.errors import InvalidNumber

MAX_MU = 20.0
# A mass so small that every lattice covers all the rest.
_UNSEEN = 1e-300
# The widths of the pieces of a cell, relative to the farthest point: quadrature then errs by less
# than 2^-47.
_WIDE, _NARROW = 1 / 8, 1 / 64


@dataclass(frozen=True, slots=True)
class Ramp:
    """A dominating pair whose loss l has a density proportional to e^(l/2) under P on (-epsilon,
    epsilon).

    With an atom at each end (``tips``) it is that of continuous Laplace noise. Without, it is the
    worst of all mechanisms of bounded range epsilon, such as the exponential mechanism (Dong,
    Durfee, Rogers 2020).

    Guarantees:
        a ramp is laplace noise with its atoms and a bounded range without
    """

    epsilon: float
    tips: bool

    def __post_init__(self) -> None:
        losing(self.epsilon)

    @property
    def symmetric(self) -> bool:
        return True

    @property
    def continuous(self) -> bool:
        return True

    @property
    def spacing(self) -> float | None:
        return self.epsilon

    @property
    def rounding(self) -> Rounding:
        return Rounding(ULPS * (2 + self.epsilon), 0.0)

    @property
    def worst(self) -> float:
        return self.epsilon

    @property
    def density(self) -> float:
        """The constant c of the density c e^(l/2) under P, which is c e^(-l/2) under Q."""
        lowest = math.exp(-self.epsilon / 2)
        if self.tips:
            return lowest / 4
        return lowest / (-2 * math.expm1(-self.epsilon))

    def atoms(self) -> tuple[Floats, Floats]:
        if not self.tips:
            return np.zeros(0), np.zeros(0)
        losses = np.array([-self.epsilon, self.epsilon])
        masses = np.array([0.5, math.exp(-self.epsilon) / 2])
        return losses, masses

    def reach(self, outside: float) -> Reach:
        return Reach(-self.epsilon, self.epsilon, 0.0)

    def cells(self, edges: Edges) -> tuple[Floats, Floats]:
        """Returns the mass 2c (1/sqrt a - 1/sqrt b) and the share of each cell from a to b.

        The mean ratio of a cell inside the support is sqrt(a b).
        """
        ends = between(edges.ratio, math.exp(-self.epsilon), math.exp(self.epsilon))
        gains = between(edges.gain, math.expm1(-self.epsilon), math.expm1(self.epsilon))
        # at the end of the support, the smaller of two differences keeps its digits
        cut = np.where(ends[:-1] < 0.5, np.diff(ends), np.diff(gains))
        inside = (ends == edges.ratio) & (gains == edges.gain)
        width = np.where(inside[1:] & inside[:-1], edges.gap, cut)
        roots = np.sqrt(ends)
        mean = roots[1:] * roots[:-1]
        mass = 2 * self.density * width / (mean * (roots[1:] + roots[:-1]))
        return mass, edges.share(mean)

    def doubt(self, edges: Edges) -> Floats:
        return plain_doubt(edges)


@dataclass(frozen=True, slots=True)
class Gaussian:
    """The dominating pair of Gaussian noise: two normal distributions of variance 1 whose means are
    ``mu`` apart.

    Guarantees:
        the cells of a gaussian hold its mass and mean
    """

    mu: float
    reached: float = 13.0

    def __post_init__(self) -> None:
        if 0 < self.mu <= MAX_MU:
            return
        scale = 1 / self.mu if self.mu > 0 else math.inf
        raise InvalidNumber(
            f"Gaussian noise of {scale:.3g} times its sensitivity.",
            allowed=f"a scale of at least 1/{MAX_MU:.0f} of the sensitivity",
        )

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
        return Rounding(ULPS * (2 + self.mu * (self.mu + self.reached)), 0.0)

    @property
    def worst(self) -> float:
        return math.inf

    def atoms(self) -> tuple[Floats, Floats]:
        return np.zeros(0), np.zeros(0)

    def reach(self, outside: float) -> Reach:
        """Returns a range of privacy losses outside of which P and Q have at most the mass
        ``outside``, by P(|Z| > r) <= e^(-r^2/2) for a standard normal Z.

        Under Q a point z is standard normal, and its loss is mu z - mu^2 / 2.
        """
        far = min(math.sqrt(-2 * math.log(outside)), self.reached)
        most = self.mu * (far + self.mu / 2)
        beyond = math.exp(-far * far / 2) * 1.001
        return Reach(-most, most, beyond)

    def cells(self, edges: Edges) -> tuple[Floats, Floats]:
        mass, mean = self.intervals(self._points(edges))
        return mass, edges.share(mean)

    def intervals(self, points: Floats) -> tuple[Floats, Floats]:
        """Returns the mass under Q of the intervals between ``points``, and the mean of dP/dQ in
        each.

        The points must lie within mu + ``reached`` of 0.
        """
        far = self.mu + self.reached
        width = np.diff(points)
        mass, mean = self._piece(points[:-1], width, *_FEW_POINTS)
        wide = np.flatnonzero(width * far > _NARROW)
        if wide.size:
            mass[wide], mean[wide] = self._pieces(points[wide], width[wide], far)
        return mass, mean

    def doubt(self, edges: Edges) -> Floats:
        """Returns a bound of the relative error of each cell's computed mass.

        It is that of the exponentials, and of z^2 / 2 in them; the error of the quadrature is far
        below.
        """
        squares = self._points(edges) ** 2
        farthest = np.maximum(squares[:-1], squares[1:])
        doubt: Floats = ROUNDOFF * (16 + 4 * farthest)
        return doubt

    def _points(self, edges: Edges) -> Floats:
        """The points at which the ratio takes the values of the edges, clipped to the reach."""
        points = edges.losses() / self.mu + self.mu / 2
        return between(points, -self.reached, self.mu + self.reached)

    def _pieces(self, start: Floats, width: Floats, far: float) -> tuple[Floats, Floats]:
        """Integrates wide cells piece by piece."""
        count = np.ceil(width * far / _WIDE).astype(np.int64)
        first = np.cumsum(count) - count
        cell = np.repeat(np.arange(len(count)), count)
        piece = (width / count)[cell]
        place = np.arange(len(cell)) - first[cell]
        begin = start[cell] + place * piece
        mass, mean = self._piece(begin, piece, *_MANY_POINTS)
        total = np.add.reduceat(mass, first)
        return total, np.add.reduceat(mass * mean, first) / total

    def _piece(
        self, start: Floats, width: Floats, points: Floats, weights: Floats
    ) -> tuple[Floats, Floats]:
        """The mass under Q of intervals and the mean of the ratio there, by Gauss-Legendre."""
        mass = np.zeros_like(start)
        first = np.zeros_like(start)
        for point, weight in zip(points.tolist(), weights.tolist(), strict=True):
            at = start + point * width
            density = weight * np.exp(-0.5 * at * at)
            mass += density
            first += density * np.exp(self.mu * at - self.mu**2 / 2)
        return mass * width / math.sqrt(2 * math.pi), first / mass


@dataclass(frozen=True, slots=True)
class Sampled:
    """The dominating pair of a mechanism with a symmetric pair on a Poisson sample, for a removed
    unit.

    It is ((1 - rate) Q + rate P, Q). For an added unit the two are exchanged (Zhu, Dong, Wang 2022,
    Theorem 11).

    Guarantees:
        a sample keeps the masses and moves the ratios
    """

    pair: "Atoms | Ramp | Gaussian"
    rate: float

    def __post_init__(self) -> None:
        if not 0 < self.rate < 1:
            raise InvalidNumber(
                f"A sampling rate of {self.rate}.", allowed="greater than 0 and less than 1"
            )

    @property
    def symmetric(self) -> bool:
        return False

    @property
    def continuous(self) -> bool:
        return self.pair.continuous

    @property
    def spacing(self) -> float | None:
        return None

    @property
    def rounding(self) -> Rounding:
        # an error of the inner loss changes the outer loss l by at most (|l| + rate / (1 - rate))
        # times that error
        reach = self.pair.reach(_UNSEEN)
        farthest = max(abs(reach.lower), abs(reach.upper))
        inner = ULPS + self.pair.rounding.at(farthest)
        # with a rate near 1, its rounding error is large relative to 1 - rate
        rest = 1 - self.rate
        return Rounding(2 * inner * self.rate / rest, inner + 2 * ULPS / rest)

    @property
    def worst(self) -> float:
        return self._loss(self.pair.worst)

    def atoms(self) -> tuple[Floats, Floats]:
        losses, masses = self.pair.atoms()
        return np.log1p(self.rate * np.expm1(losses)), masses

    def reach(self, outside: float) -> Reach:
        inner = self.pair.reach(outside)
        return Reach(self._loss(inner.lower), self._loss(inner.upper), inner.outside)

    def cells(self, edges: Edges) -> tuple[Floats, Floats]:
        """Returns the mass of each cell under Q and its share (see ``Pair``), from the cells of the
        pair without sampling: the ratio 1 - rate + rate x corresponds to its ratio x.
        """
        return self.pair.cells(self._inner(edges))

    def doubt(self, edges: Edges) -> Floats:
        return self.pair.doubt(self._inner(edges))

    def _inner(self, edges: Edges) -> Edges:
        gain = edges.gain / self.rate
        return Edges(1 + gain, gain, edges.gap / self.rate)

    def _loss(self, inner: float) -> float:
        if inner == math.inf:
            return inner
        return math.log1p(self.rate * math.expm1(inner))


def _legendre(count: int) -> tuple[Floats, Floats]:
    """Gauss-Legendre points and weights on [0, 1]."""
    points, weights = np.polynomial.legendre.leggauss(count)
    return (points + 1) / 2, weights / 2


_FEW_POINTS, _MANY_POINTS = _legendre(4), _legendre(6)
