# SPDX-License-Identifier: Apache-2.0
"""The dominating pair of a secret sample of fixed size under replace-one.

Proof: replaced.proof.md.
"""

import math
from dataclasses import dataclass

import numpy as np

from sfumato.accounting.loss.atoms import Atoms
from sfumato.accounting.loss.edges import (
    ULPS,
    Edges,
    Floats,
    Reach,
    Rounding,
    no_cells,
    plain_doubt,
)
from sfumato.accounting.loss.pair import Gaussian, Ramp, Sampled


@dataclass(frozen=True, slots=True)
class Replaced:
    """The dominating pair of a mechanism on a random sample of fixed size, if one unit is replaced
    by another.

    ``rate`` is the share of units in the sample. Losses above 0 are those of ``Sampled``, losses
    below 0 mirror them, and the remaining mass has loss 0. No neighbours attain it: it is the worst
    of both directions together.

    Guarantees:
        a replaced unit has the worst of both directions
    """

    pair: Atoms | Ramp | Gaussian
    rate: float

    @property
    def one_way(self) -> Sampled:
        """The dominating pair that two neighbours attain, in one direction."""
        return Sampled(self.pair, self.rate)

    @property
    def symmetric(self) -> bool:
        return True

    @property
    def continuous(self) -> bool:
        return self.pair.continuous

    @property
    def spacing(self) -> float | None:
        return None

    @property
    def rounding(self) -> Rounding:
        # a mirrored edge is a quotient of two rounded numbers
        one_way = self.one_way.rounding
        return Rounding(one_way.fixed, one_way.relative + 2 * ULPS)

    @property
    def worst(self) -> float:
        return self.one_way.worst

    def atoms(self) -> tuple[Floats, Floats]:
        losses, masses = self.one_way.atoms()
        up = losses > 0
        gains = losses[up]
        weights = masses[up]
        mirrored = weights * np.exp(gains)
        still = masses[losses == 0].sum()
        rest = still + (1 - self.rate) * _total_variation(self.pair)
        both = np.concatenate([-gains, [0.0], gains])
        return both, np.concatenate([mirrored, [rest], weights])

    def reach(self, outside: float) -> Reach:
        there = self.one_way.reach(outside)
        return Reach(-there.upper, there.upper, 2 * there.outside)

    def cells(self, edges: Edges) -> tuple[Floats, Floats]:
        """Returns the mass of each cell under Q, and the share of it that goes to the cell's upper
        edge.

        Each cell must lie on one side of ratio 1; all cells of ``edges`` do.
        """
        mass, share = no_cells(edges)
        above, below = _split_at_one(edges)
        if len(above.gap):
            first = -len(above.gap)
            mass[first:], share[first:] = self.one_way.cells(above)
        if len(below.gap):
            end = len(below.gap)
            lower = below.ratio[:-1]
            there, part = self.one_way.cells(below)
            mean = lower + part * below.gap
            mirrored = (1 - part) * lower / mean
            mass[:end] = (there * mean)[::-1]
            share[:end] = mirrored[::-1]
        return mass, share

    def doubt(self, edges: Edges) -> Floats:
        """Returns the relative error bound of each cell's computed mass.

        The mass of a mirrored cell is a product with a mean ratio, and so as exact as a loss.
        """
        doubt = plain_doubt(edges)
        above, below = _split_at_one(edges)
        if len(above.gap):
            doubt[-len(above.gap) :] = self.one_way.doubt(above)
        if len(below.gap):
            rounding = self.rounding
            mean = rounding.fixed + rounding.relative * np.abs(below.losses()[1:])
            mirrored = self.one_way.doubt(below) + 2 * mean + 2 * ULPS
            doubt[: len(below.gap)] = mirrored[::-1]
        return doubt


def _split_at_one(edges: Edges) -> tuple[Edges, Edges]:
    """The edges from ratio 1 on, and those below it mirrored: x becomes 1 / x."""
    first = int(np.searchsorted(edges.gain, 0.0))
    above = Edges(edges.ratio[first:], edges.gain[first:], edges.gap[first:])
    last = int(np.searchsorted(edges.gain, 0.0, side="right"))
    ratio = edges.ratio[:last][::-1]
    gain = edges.gain[:last][::-1]
    gap = edges.gap[: max(last - 1, 0)][::-1]
    below = Edges(1 / ratio, -gain / ratio, gap / ratio[1:] / ratio[:-1])
    return above, below


def _total_variation(pair: Atoms | Ramp | Gaussian) -> float:
    """The total variation distance: the mass of P minus that of Q where the loss is above 0."""
    if isinstance(pair, Gaussian):
        return math.erf(pair.mu / math.sqrt(8))
    losses, masses = pair.atoms()
    apart = float((masses * np.expm1(np.maximum(losses, 0.0))).sum())
    if isinstance(pair, Ramp):
        # the integral of c (e^(l/2) - e^(-l/2)) from 0 to epsilon
        apart += 8 * pair.density * math.sinh(pair.epsilon / 4) ** 2
    return apart
