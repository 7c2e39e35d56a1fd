# SPDX-License-Identifier: Apache-2.0
"""Dominating pairs whose loss takes finitely many values. Proof: pair.proof.md."""

import math
from dataclasses import dataclass

import numpy as np

from sfumato.accounting.loss.edges import (
    MAX_LOSS,
    ULPS,
    Edges,
    Floats,
    Reach,
    Rounding,
    losing,
    no_cells,
    plain_doubt,
)
from sfumato.errors import InvalidNumber

_DISCRETE_REACH = 13.0


@dataclass(frozen=True, slots=True)
class Atoms:
    """A privacy loss distribution with finitely many values (``losses``), and their ``masses``
    under Q.

    Each mass has a relative error below 2^-42. ``spacing``: all losses are integer multiples of it;
    None if not. ``outside``: mass that is left out. ``fixed``: the absolute error of each loss,
    besides about an ulp.

    Guarantees:
        a pure loss is dominated by two atoms
        a response has three atoms
        laplace noise on integers dominates its parts
    """

    losses: tuple[float, ...]
    masses: tuple[float, ...]
    spacing: float | None
    outside: float = 0.0
    fixed: float = 0.0

    def __post_init__(self) -> None:
        if not self.losses or max(abs(loss) for loss in self.losses) > MAX_LOSS:
            raise InvalidNumber("A loss that large in one step.", allowed=f"at most {MAX_LOSS:.0f}")

    @classmethod
    def pure(cls, epsilon: float) -> "Atoms":
        """Returns the dominating pair of all epsilon-DP mechanisms (Kairouz, Oh, Viswanath 2015)."""
        return cls.response(epsilon, 2)

    @classmethod
    def response(cls, epsilon: float, categories: int) -> "Atoms":
        """Returns the pair of randomised response among ``categories``, for two different true
        values.
        """
        losing(epsilon)
        total = 1.0 + math.exp(-epsilon) * (categories - 1)
        low, high = math.exp(-epsilon) / total, 1.0 / total
        if categories == 2:
            return cls((-epsilon, epsilon), (high, low), epsilon)
        return cls((-epsilon, 0.0, epsilon), (high, (categories - 2) * low, low), epsilon)

    @classmethod
    def discrete_laplace(cls, step: float, shift: int) -> "Atoms":
        """Returns the pair of discrete Laplace noise on integers that are ``shift`` apart in total
        (L1).

        ``step`` is the loss per integer, 1 / scale.
        """
        losing(step * shift)
        moved = np.arange(shift + 1)
        masses = -math.expm1(-step) / (1 + math.exp(-step)) * np.exp(-step * moved)
        masses[0] = masses[0] / -math.expm1(-step)
        masses[-1] = masses[-1] / -math.expm1(-step)
        losses = (2 * moved - shift) * step
        return cls(
            tuple(losses.tolist()), tuple(masses.tolist()), step if shift > 1 else step * shift
        )

    @classmethod
    def discrete_gaussian(cls, variance: float, shift: int) -> "Atoms":
        """Returns the pair of discrete Gaussian noise (sigma^2 = ``variance``) on integers
        ``shift`` apart.
        """
        reach = math.ceil(_DISCRETE_REACH * math.sqrt(variance))
        points = np.arange(-reach, reach + shift + 1, dtype=np.float64)
        weights = np.exp(-(points**2) / (2 * variance))
        spacing = shift / (2 * variance)
        losses, masses = spacing * (2 * points - shift), weights / weights.sum()
        return cls(
            tuple(losses.tolist()),
            tuple(masses.tolist()),
            spacing,
            2 * math.exp(-(_DISCRETE_REACH**2) / 2),
        )

    @property
    def symmetric(self) -> bool:
        return True

    @property
    def continuous(self) -> bool:
        return False

    @property
    def rounding(self) -> Rounding:
        return Rounding(self.fixed, ULPS)

    @property
    def worst(self) -> float:
        return max(self.losses)

    def atoms(self) -> tuple[Floats, Floats]:
        return np.array(self.losses), np.array(self.masses)

    def reach(self, outside: float) -> Reach:
        return Reach(min(self.losses), max(self.losses), self.outside)

    def cells(self, edges: Edges) -> tuple[Floats, Floats]:
        return no_cells(edges)

    def doubt(self, edges: Edges) -> Floats:
        return plain_doubt(edges)
