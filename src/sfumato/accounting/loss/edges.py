# SPDX-License-Identifier: Apache-2.0
"""What rounding to a lattice asks of a dominating pair: cells by their edges, atoms, a reach.

Proof: pair.proof.md.
"""

from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidNumber

Floats: TypeAlias = NDArray[np.float64]

# floats hold e^300 and its inverse; no protection is left far below
MAX_LOSS = 300.0
# of the rounding of a float
UNIT = 2.0**-53
# numpy states at most 4 ulp for exp, expm1 and log1p; sixteen cover a handful of operations
ULPS = 2.0**-48
# masses under Q, if nothing better is known
MASS_ERROR = 2.0**-41
# ratios of which the gain has more digits
_NEAR = 0.5


@dataclass(frozen=True, slots=True)
class Edges:
    """Rising values of dP/dQ; ``gain`` is the ratio less 1, ``gap`` the differences, both without cancellation."""

    ratio: Floats
    gain: Floats
    gap: Floats

    def losses(self) -> Floats:
        """ln of the ratios; of those near 1 by the gains, which have more digits."""
        losses: Floats = np.log(np.maximum(self.ratio, 1e-300))
        near = np.abs(self.gain) < _NEAR
        losses[near] = np.log1p(self.gain[near])
        return losses

    def share(self, mean: Floats) -> Floats:
        """How much of a cell's mass goes to its upper edge, so that the mean of the ratio stays."""
        return between((mean - self.ratio[:-1]) / self.gap, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Rounding:
    """How far a computed loss l can be from the true one: ``fixed`` + ``relative`` |l|."""

    fixed: float
    relative: float

    def at(self, loss: float) -> float:
        """For losses of at most this size."""
        return self.fixed + self.relative * loss


@dataclass(frozen=True, slots=True)
class Reach:
    """The losses looked at; ``outside`` bounds what P, and what Q, have beyond them.

    Not counted there is what P has at infinity, at most ``infinite``.
    """

    lower: float
    upper: float
    outside: float
    infinite: float = 0.0


class Pair(Protocol):
    """What rounding to a lattice needs to know of a pair."""

    @property
    def symmetric(self) -> bool:
        """Whether the loss of (Q, P) has the law of that of (P, Q)."""
        ...

    @property
    def unit(self) -> float | None:
        """All atoms are whole multiples of it."""
        ...

    @property
    def continuous(self) -> bool:
        """Whether there is anything but atoms."""
        ...

    @property
    def rounding(self) -> Rounding:
        """How far the computed losses, and the shares of cells, can be from the true ones."""
        ...

    @property
    def worst(self) -> float:
        """The largest loss; infinite for Gaussians."""
        ...

    def atoms(self) -> tuple[Floats, Floats]:
        """The losses of the atoms, and their masses under Q."""
        ...

    def reach(self, outside: float) -> Reach:
        """Losses beyond which P and Q have at most ``outside``."""
        ...

    def cells(self, edges: Edges) -> tuple[Floats, Floats]:
        """The continuous part: each cell's mass under Q, and the share of its upper edge."""
        ...

    def doubt(self, edges: Edges) -> Floats:
        """How far the mass of each cell can be from the true one, relatively."""
        ...


def losing(epsilon: float) -> None:
    """Refuses a loss in one step that floats do not hold."""
    if not 0 < epsilon <= MAX_LOSS:
        raise InvalidNumber(
            f"A loss of {epsilon:.6g} in one step.",
            allowed=f"greater than 0 and at most {MAX_LOSS:.0f}",
        )


def between(values: Floats, low: float, high: float) -> Floats:
    """As np.clip, which takes three times as long for a few values."""
    cut: Floats = np.minimum(np.maximum(values, low), high)
    return cut


def plain_doubt(edges: Edges) -> Floats:
    """The same of every cell."""
    return np.full(len(edges.gap), MASS_ERROR)


def no_cells(edges: Edges) -> tuple[Floats, Floats]:
    """Of a law of atoms only."""
    return np.zeros(len(edges.gap)), np.zeros(len(edges.gap))
