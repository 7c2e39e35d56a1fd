# SPDX-License-Identifier: Apache-2.0
"""Replaces losses far above epsilon by two values, a cap and infinity, to save lattice points.

A loss above the cap is moved to the cap or to infinity such that both distributions keep their
mass. As long as the sum of the other losses does not fall below epsilon minus the cap, this does
not change delta, which is linear in e^-loss there. So the lattice needs to be fine only up to the
cap. The probability that the sum falls that low is bounded, and subtracted from the lower bound.
Proof: cap.proof.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato.accounting.loss.edges import MASS_ERROR, Edges, Floats, Reach, Rounding
from sfumato.accounting.loss.lattice import Cap, Lattice
from sfumato.accounting.loss.pair import Gaussian, Sampled

# Rates of the Chernoff bound to try, in multiples of 1 / (cap - epsilon).
_RATES = np.geomspace(1.0, 300.0, 24)
_UP = 1 + 2.0**-40
_LARGEST_LOG = 700.0
_STEEPEST = 500.0


@dataclass(frozen=True, slots=True)
class Capped:
    """The dominating pair of a sampled Gaussian with its losses above ``top`` replaced by ``top``
    or infinity.

    ``mass`` is the mass of Q at ``top``; ``least`` and ``most`` bound that of P at infinity.

    Guarantees:
        a cap keeps the mass of both laws
        losses below the cap stay as they are
    """

    pair: Sampled
    top: float
    mass: float
    least: float
    most: float

    @classmethod
    def at(cls, pair: Sampled, top: float, outside: float) -> "Capped":
        """Returns a dominating pair with its privacy losses capped at ``top``.

        P and Q have at most the mass ``outside`` beyond the range of losses that is considered.
        """
        highest = max(pair.reach(outside).upper, top) + 1.0
        ends = np.array([top, highest])
        gap = np.array([math.exp(top) * math.expm1(highest - top)])
        edges = Edges(np.exp(ends), np.expm1(ends), gap)
        mass, share = (float(cell[0]) for cell in pair.cells(edges))
        doubt = float(pair.doubt(edges)[0]) + MASS_ERROR
        infinite = mass * share * float(gap[0])
        whole = infinite + mass * math.exp(top)
        # the share is computed at a loss with this rounding error
        off = pair.rounding.at(1 + highest)
        error = (infinite * doubt + 1.01 * off * whole) * _UP
        least = max(infinite - error, 0.0) / _UP
        most = (infinite + error) * _UP
        return cls(pair, top, mass, least, most)

    def on(self, step: float, outside: float) -> "Capped":
        """Returns the pair with its cap moved up to the next multiple of ``step``."""
        top = step * math.ceil(self.top / step)
        if top == self.top:
            return self
        return Capped.at(self.pair, top, outside)

    @property
    def symmetric(self) -> bool:
        return False

    @property
    def spacing(self) -> float | None:
        return None

    @property
    def continuous(self) -> bool:
        return True

    @property
    def rounding(self) -> Rounding:
        return self.pair.rounding

    @property
    def worst(self) -> float:
        return self.top

    @property
    def above(self) -> float:
        """Returns an upper bound of the P-mass of the considered losses above the cap."""
        at_top = self.mass * math.exp(self.top) * (1 + 2 * MASS_ERROR)
        return (self.most + at_top) * _UP

    def atoms(self) -> tuple[Floats, Floats]:
        return np.array([self.top]), np.array([self.mass])

    def reach(self, outside: float) -> Reach:
        there = self.pair.reach(outside)
        return Reach(there.lower, self.top, there.outside, self.most)

    def cells(self, edges: Edges) -> tuple[Floats, Floats]:
        """Returns the Q-masses of the cells between edges below the cap, and their shares (see
        ``Pair``); the cap is an edge.
        """
        mass, share = self.pair.cells(edges)
        below = edges.gain[:-1] + edges.gap / 2 < math.expm1(self.top)
        return np.where(below, mass, 0.0), share

    def doubt(self, edges: Edges) -> Floats:
        return self.pair.doubt(edges)


def cappable(pair: object) -> bool:
    """Whether a dominating pair is of a kind whose large losses ``Capped`` can replace."""
    return isinstance(pair, Sampled) and isinstance(pair.pair, Gaussian)


def with_cap(
    whole: Lattice, pair: Capped, steps: Sequence[Lattice], times: int, epsilon: float
) -> Lattice:
    """Returns a sum of ``times`` capped privacy losses with the corrections that its lower bound
    needs.

    ``whole`` is the sum. ``steps``: the single loss, in one part or in several that add up to it.
    ``epsilon`` is about where delta will be read; it affects only how tight the bound is.

    Guarantees:
        a capped sum is too large only where the others fall low
    """
    best = Cap(0.0, 0.0, math.inf)
    span = max(pair.top - epsilon, 1e-300)
    start = -_LARGEST_LOG
    if pair.above > 0:
        start = math.log(times * (pair.above + steps[0].hidden))
    for multiple in _RATES:
        rate = max(float(multiple) / span, 1.0)
        fall = rate * pair.top
        grown = (times - 1) * _log_mean(steps, pair, rate)
        size = 1 + abs(start) + abs(grown) + fall
        log_chance = (start + grown - fall) + 2.0**-40 * size
        if log_chance + rate * epsilon < best.log_chance + best.rate * epsilon:
            best = Cap(0.0, rate, log_chance)
    log_finite = times * math.log1p(-min(pair.least, 0.5))
    infinite = -math.expm1(log_finite) / _UP
    return replace(whole, cap=replace(best, infinite=infinite))


def _log_mean(steps: Sequence[Lattice], pair: Capped, rate: float) -> float:
    """An upper bound of ln of the mean of e^(-rate min(loss, cap)) under P, for rate >= 1."""
    lowest = -math.log1p(-pair.pair.rate) * (1 + 2.0**-30)
    if not rate * max(lowest, pair.top * 2.0**-21) < _STEEPEST:
        return math.inf
    # the mass that the lattices leave out counts at the lowest loss
    total = sum(step.hidden for step in steps) * math.exp(rate * lowest)
    for step in steps:
        falls = step.tilt + rate
        exponents = step.log_mass - falls * step.losses
        largest = float(exponents.max())
        if not largest + rate * step.moved < _STEEPEST:
            return math.inf
        shown = float((step.weights * np.exp(exponents)).sum())
        shown += step.error * math.exp(largest)
        size = 8 + abs(step.log_mass) + falls * float(np.abs(step.losses).max())
        off = 2.0**-50 * size
        total += shown * math.exp(rate * step.moved + off)
    return math.log(total) + 2.0**-48
