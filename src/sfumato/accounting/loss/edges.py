# SPDX-License-Identifier: Apache-2.0
"""The interface of a dominating pair, by which ``discretise`` rounds its loss to a lattice.

A pair is atoms (single losses with a mass), and a continuous part that is cut into cells, which are
given by their edges. Proof: pair.proof.md.
"""

from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidNumber

Floats: TypeAlias = NDArray[np.float64]

# The largest loss: e^300 and its inverse are floats, and no protection is left far below.
MAX_LOSS = 300.0
# The relative rounding error of a float.
ROUNDOFF = 2.0**-53
# A relative error bound: numpy states at most 4 ulp for exp, expm1 and log1p; 16 ulp cover several
# operations.
ULPS = 2.0**-48
# The relative error of masses under Q, if no better bound is known.
MASS_ERROR = 2.0**-41
# Up to this size the gain, ratio - 1, has more correct digits than the ratio.
_NEAR = 0.5


@dataclass(frozen=True, slots=True)
class Edges:
    """The edges of the cells into which privacy losses are discretised, as increasing values of the
    ratio dP/dQ.

    ``gain`` is the ratio minus 1 and ``gap`` the difference of neighbours, both without
    cancellation.
    """

    ratio: Floats
    gain: Floats
    gap: Floats

    def losses(self) -> Floats:
        """The losses at the edges: ln of the ratios, near 1 computed from the gains, which are more
        exact.
        """
        losses: Floats = np.log(np.maximum(self.ratio, 1e-300))
        near = np.abs(self.gain) < _NEAR
        losses[near] = np.log1p(self.gain[near])
        return losses

    def share(self, mean: Floats) -> Floats:
        """Returns, for each cell, the share of its mass to move to its upper edge when losses are
        rounded; the rest moves to the lower edge.

        ``mean`` is the mean ratio dP/dQ in each cell; the split keeps it.
        """
        return between((mean - self.ratio[:-1]) / self.gap, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Rounding:
    """An error bound for a computed privacy loss l: ``fixed`` + ``relative`` times |l|."""

    fixed: float
    relative: float

    def at(self, loss: float) -> float:
        """Returns the error bound for all losses whose absolute value is at most ``loss``."""
        return self.fixed + self.relative * loss


@dataclass(frozen=True, slots=True)
class Reach:
    """The range of privacy losses that a lattice covers, from ``lower`` to ``upper``.

    ``outside`` bounds the mass beyond the range, of P and of Q. ``infinite`` bounds the mass of P
    with an infinite loss, which ``outside`` leaves out.
    """

    lower: float
    upper: float
    outside: float
    infinite: float = 0.0


class Pair(Protocol):
    """The interface of a dominating pair (P, Q), by which its privacy loss is rounded to a
    lattice.
    """

    @property
    def symmetric(self) -> bool:
        """Whether the loss of (Q, P) has the same distribution as that of (P, Q)."""
        ...

    @property
    def spacing(self) -> float | None:
        """A number such that all losses of the pair are its integer multiples; None if there is
        none.

        A lattice with this step needs no rounding.
        """
        ...

    @property
    def continuous(self) -> bool:
        """Whether the pair has a continuous part besides its atoms."""
        ...

    @property
    def rounding(self) -> Rounding:
        """The errors of the computed losses, and of the shares of cells."""
        ...

    @property
    def worst(self) -> float:
        """The largest privacy loss of the pair; infinite for Gaussians."""
        ...

    def atoms(self) -> tuple[Floats, Floats]:
        """The losses of the atoms, and their masses under Q."""
        ...

    def reach(self, outside: float) -> Reach:
        """Returns a range of losses beyond which P and Q each have at most the mass ``outside``."""
        ...

    def cells(self, edges: Edges) -> tuple[Floats, Floats]:
        """Returns the mass of each cell under Q, and the share of it that goes to its upper edge."""
        ...

    def doubt(self, edges: Edges) -> Floats:
        """Returns a bound of the relative error of each cell's computed mass."""
        ...


def losing(epsilon: float) -> None:
    """Raises an error for a privacy loss that is too large for floats."""
    if not 0 < epsilon <= MAX_LOSS:
        raise InvalidNumber(
            f"A loss of {epsilon:.6g} in one step.",
            allowed=f"greater than 0 and at most {MAX_LOSS:.0f}",
        )


def between(values: Floats, low: float, high: float) -> Floats:
    """Returns values clipped like np.clip, which takes three times as long for few values."""
    cut: Floats = np.minimum(np.maximum(values, low), high)
    return cut


def plain_doubt(edges: Edges) -> Floats:
    """Returns the relative error of each cell's computed mass where it is a closed formula: the
    same for all cells.
    """
    return np.full(len(edges.gap), MASS_ERROR)


def no_cells(edges: Edges) -> tuple[Floats, Floats]:
    """Returns zero mass for every cell, as a dominating pair that has atoms only needs it."""
    return np.zeros(len(edges.gap)), np.zeros(len(edges.gap))
