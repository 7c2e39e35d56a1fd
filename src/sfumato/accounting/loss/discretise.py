# SPDX-License-Identifier: Apache-2.0
"""Rounds a dominating pair to a lattice such that both distributions keep their mass.

Connect the dots (Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022): mass between two lattice
points is divided among both, such that P and Q keep their total mass. The rounded pair dominates,
and by how much is known: rounding is a bounded step with mean zero. Proof: discretise.proof.md.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.accounting.loss.edges import MASS_ERROR, ROUNDOFF, ULPS, Edges, Floats, Pair, Reach
from sfumato.accounting.loss.lattice import Lattice


@dataclass(frozen=True, slots=True)
class Span:
    """A range of privacy losses from ``low`` to ``high`` (lattice points), or all losses outside of
    it.

    ``inside`` says which of the two.
    """

    low: float
    high: float
    inside: bool

    def has(self, losses: Floats) -> NDArray[np.bool_]:
        """Returns whether each loss is in the span; no loss may be one of its ends."""
        within: NDArray[np.bool_] = (losses > self.low) & (losses < self.high)
        return within if self.inside else ~within


def discretise(
    pair: Pair,
    step: float,
    tilt: float,
    *,
    outside: float,
    exchanged: bool = False,
    span: Span | None = None,
) -> Lattice:
    """Returns the privacy loss of (P, Q), or of (Q, P) if ``exchanged``, rounded to multiples of
    ``step``, as a ``Lattice``.

    Guarantees:
        rounding keeps the mass of both laws
        a rounded pair dominates
        atoms on the lattice stay where they are
    """
    reach = pair.reach(outside)
    inside = span is not None and span.inside
    index = _multiples(reach, span, step)
    losses = index * step
    masses = np.zeros(len(index))
    moved = _place_atoms(pair, losses, step, masses, span)
    doubts = MASS_ERROR * masses
    if pair.continuous:
        _place_cells(pair, losses, step, (masses, doubts), span)
        moved = True
    start = int(index[0])
    weights, peak, off = _tilt_masses(losses, masses, doubts, -tilt if exchanged else 1 + tilt)
    if exchanged:
        start = -int(index[-1])
        weights = weights[::-1]
    return Lattice(
        step=step,
        start=start,
        weights=weights,
        tilt=tilt,
        log_mass=peak,
        blur=step**2 / 4 if moved else 0.0,
        shift=pair.rounding.fixed + 2 * ULPS * step,
        error=off,
        hidden=2 * reach.outside + (0.0 if inside else reach.infinite),
        relative=pair.rounding.relative + 2 * ULPS,
        travel=max(abs(reach.lower), abs(reach.upper)) + 2 * step,
    ).scaled()


def _multiples(reach: Reach, span: Span | None, step: float) -> Floats:
    """The multiples of a step from one below the lower end to one above the upper end."""
    ends = (reach.lower, reach.upper)
    if span is not None and span.inside:
        ends = (span.low, span.high)
    low = math.floor(ends[0] / step) - 1
    high = math.ceil(ends[1] / step) + 1
    return np.arange(low, high + 1, dtype=np.float64)


def _tilt_masses(
    losses: Floats, masses: Floats, doubts: Floats, rate: float
) -> tuple[Floats, float, float]:
    """Exponentially tilted masses.

    Returns mass * e^(rate * loss - peak), where ``peak`` makes the largest one 1; ``peak``; and the
    sum of the errors of all of them.
    """
    there = masses > 0
    exponents, logs = rate * losses[there], np.log(masses[there])
    peak = float((exponents + logs).max())
    weights = np.zeros(len(losses))
    weights[there] = np.exp(exponents + logs - peak)
    sizes = 1 + np.abs(exponents) + np.abs(logs) + abs(peak)
    off = weights[there] * (doubts[there] / masses[there] + 16 * ROUNDOFF * sizes)
    return weights, peak, float(off.sum()) * (1 + 2.0**-30)


def _place_cells(
    pair: Pair, losses: Floats, step: float, onto: tuple[Floats, Floats], span: Span | None
) -> None:
    """Divides each cell among its two edges; ``onto``: masses and their errors."""
    ratio = np.exp(losses)
    edges = Edges(ratio, np.expm1(losses), ratio[:-1] * math.expm1(step))
    mass, share = pair.cells(edges)
    if span is not None:
        mass = np.where(span.has(losses[:-1] + step / 2), mass, 0.0)
    for values, placed in zip((mass, mass * pair.doubt(edges)), onto, strict=True):
        placed[:-1] += values * (1 - share)
        placed[1:] += values * share


def _place_atoms(
    pair: Pair, losses: Floats, step: float, masses: Floats, span: Span | None
) -> bool:
    """Puts each atom on its lattice point, or divides it among two; returns whether any was
    divided.
    """
    at, mass = pair.atoms()
    if span is not None:
        at, mass = at[span.has(at)], mass[span.has(at)]
    if not at.size:
        return False
    place = np.rint((at - losses[0]) / step).astype(np.int64)
    beyond = at - losses[place]
    beyond[np.abs(beyond) <= ULPS * np.abs(at)] = 0.0
    if not beyond.any():
        np.add.at(masses, place, mass)
        return False
    below = beyond < 0
    place -= below
    share = np.expm1(beyond + step * below) / math.expm1(step)
    shared = mass * np.minimum(np.maximum(share, 0.0), 1.0)
    np.add.at(masses, place, mass - shared)
    np.add.at(masses, place + 1, shared)
    return True
