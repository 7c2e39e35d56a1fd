# SPDX-License-Identifier: Apache-2.0
"""Adaptive clipping: a clip that follows a quantile of the gradient norms.

``AdaptiveClip`` is the setting of a ``Network``, ``AdaptiveSums`` the statistic that also counts
the units within the clip. Proof: adaptive.proof.md.

Proof: adaptive.proof.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import exp, floor, isqrt

import numpy as np
import torch

from sfumato.errors import InvalidDeclaration, InvalidNumber, shown
from sfumato.exact.rational import Number, to_fraction
from sfumato.learning.features import Floats
from sfumato.learning.torch.blocks import Block
from sfumato.learning.torch.gradients import GradientSums
from sfumato.privacy.distance import Distance, Norm

# A clip stays within this factor of the one that it started with.
WIDEST = 2.0**16
_LEAST_SHARE, _MOST_SHARE = Fraction(1, 1000), Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class AdaptiveClip:
    """A setting of ``torch.Network``: a clipping norm that moves, step by step, towards a quantile
    of the norms of the units' gradients.

    Each release has one additional number: how many units were within the clip. It takes ``share``
    of the squared distance of a release, so gradients have about ``share / 2`` more noise than with
    a fixed clip at the same cost. After each step the clip is multiplied by exp(-``rate`` (within -
    ``quantile``)), where within is the noisy share of units within it; it stays between ``start`` /
    2^16 and ``start`` 2^16.

    Source: Andrew, Thakkar, McMahan, Ramaswamy, "Differentially private learning with adaptive
    clipping" (2021), Algorithm 1; there count and sum have two noises.

    Raises:
        InvalidNumber: a start outside 2^-20 to 2^20; a quantile that is not between 0 and 1; a
            rate that is not above 0 and at most 1; a share outside 1/1000 to 1/2.

    >>> AdaptiveClip(1, "0.5").after(1.0, 0.75) < 1
    True
    """

    start: Number = 1
    quantile: Number = Fraction(1, 2)
    rate: Number = Fraction(1, 5)
    share: Number = Fraction(1, 20)

    def __post_init__(self) -> None:
        for name in ("start", "quantile", "rate", "share"):
            # "0.5", Decimal and Fraction are one setting, with one form
            object.__setattr__(self, name, to_fraction(name, getattr(self, name)))
        self._require("start", at_least=Fraction(1, 2**20), at_most=Fraction(2**20))
        self._require("share", at_least=_LEAST_SHARE, at_most=_MOST_SHARE)
        self._require("rate", at_least=Fraction(1, 10**6), at_most=Fraction(1))
        margin = Fraction(1, 10**6)
        self._require("quantile", at_least=margin, at_most=1 - margin)

    def _require(
        self,
        name: str,
        *,
        at_least: Fraction,
        at_most: Fraction,
    ) -> None:
        """Raises InvalidNumber unless a setting is in its range."""
        value = Fraction(getattr(self, name))
        if not at_least <= value <= at_most:
            raise InvalidNumber(
                f"{name}={shown(str(value))} of an AdaptiveClip.",
                allowed=f"from {float(at_least):g} to {float(at_most):g}",
            )

    def weight(
        self,
        squared: Fraction,
    ) -> int:
        """Returns the integer by which a unit whose gradient is within the clip raises the released
        count of such units.

        ``squared`` is the squared distance of the gradient sums released with it.
        """
        share = Fraction(self.share)
        return isqrt(floor(squared * share / (1 - share)))

    def after(
        self,
        moved: float,
        within: float,
    ) -> float:
        """Returns the clipping norm of the next step, as a multiple of the initial clip ``start``.

        ``moved`` is the current one, and ``within`` the noisy share of units below it.
        """
        error = within - float(self.quantile)
        # so that no noise makes a power overflow
        power = min(max(-float(self.rate) * error, -16.0), 16.0)
        return min(max(moved * exp(power), 1 / WIDEST), WIDEST)


class Within(Block):
    """The block that counts rows within the clip: 1 for each row whose factor is at least ``full``.

    The count is in units of ``unit`` fine steps.
    """

    def __init__(
        self,
        rows: int,
        full: float,
        unit: float,
    ) -> None:
        self.squares = self.amounts = np.zeros(rows)
        self.unit, self.rounding = unit, 0.0
        self._full = full

    def integers(
        self,
        factors: Floats,
    ) -> Sequence[torch.Tensor]:
        """Returns 1 for each row that was not clipped, 0 for the others."""
        return (torch.from_numpy(factors >= self._full).to(torch.int32),)

    def total(
        self,
        integers: Sequence[torch.Tensor],
    ) -> torch.Tensor:
        """Returns the number of rows that were not clipped."""
        return integers[0].sum(dtype=torch.int32).double().reshape(1)


@dataclass(frozen=True, slots=True)
class AdaptiveSums(GradientSums):
    """The statistic of a training step with an adaptive clip: the sum of all units' clipped
    gradients, and the count of units whose gradients are within the clip.

    ``moved`` is the current clip relative to that of the lattice. Gradients are divided by it, then
    clipped to the clip of the lattice, so that the sensitivity stays the same. The count is
    multiplied by ``weight``.

    Guarantees:
        sums and counts of neighbours are as near as their distance says
        a unit whose gradient is not finite is not counted
    """

    clipping: AdaptiveClip = field(kw_only=True)
    moved: float = field(default=1.0, kw_only=True, compare=False)

    def __post_init__(self) -> None:
        GradientSums.__post_init__(self)
        if not 1 / WIDEST <= self.moved <= WIDEST:
            raise InvalidDeclaration("A clip too far from its start.")

    def to(
        self,
        moved: float,
    ) -> "AdaptiveSums":
        """Returns a copy of the statistic whose clipping norm is ``moved`` times the initial
        one.
        """
        return replace(self, moved=moved)

    @property
    def weight(self) -> int:
        """The integer by which a unit whose gradient is within the clip raises the count, which is
        the last entry.
        """
        return self.clipping.weight(self.lattice.distance(self.plan.neighbours).value)

    @property
    def scale(self) -> float:
        """The factor by which gradients are multiplied before they are clipped: the initial clip
        over the current one.
        """
        return 1 / self.moved

    @property
    def widths(self) -> Sequence[int]:
        """The number of released integers of each gradient block, then 1 for the count."""
        if self.whole:
            return (self.lattice.size, 1)
        return (*self.network.sizes, 1)

    def distance(
        self,
        norm: Norm,
    ) -> Distance:
        """Returns the squared L2 sensitivity of the clipped gradient sum and the count together; a
        unit changes the count by at most ``weight``.
        """
        apart = GradientSums.distance(self, norm)
        return Distance(norm, apart.value + self.weight**2, apart.relation)

    def parts(
        self,
        x: torch.Tensor,
        y: torch.Tensor,
    ) -> Sequence[Block]:
        """Returns the gradients of a chunk of rows as blocks, one for each parameter, then the
        block that counts units within the clip.
        """
        return [*GradientSums.parts(self, x, y), self._within(len(x))]

    def blocks(
        self,
        sums: Floats,
    ) -> Sequence[Block]:
        """Returns the gradients of a group of units as a block, then the block that counts units
        within the clip.
        """
        return [*GradientSums.blocks(self, sums), self._within(len(sums))]

    def _within(
        self,
        rows: int,
    ) -> Within:
        """Returns the block that counts units, each as ``weight`` steps of the lattice."""
        steps = self.lattice.step / self.fine
        return Within(rows, self.scale / float(self.fine), float(self.weight * steps))
