# SPDX-License-Identifier: Apache-2.0
"""Noise of which a step takes away a part of what earlier steps have added (DP-FTRL).

Sums x are released as C x + z, C the square root of the running totals, cut to some bands; steps go
on with C^-1 (C x + z) = x + C^-1 z. The noise of the running totals, which move the weights, is
smaller than that of independent noise. What is private about it is in ``query/cycle.py``; this
file computes with released rows.

Source: Kairouz, McMahan, Song, Thakkar, Thakurta, Xu (2021); Choquette-Choo and others (2023).
"""

from dataclasses import dataclass

import numpy as np

from sfumato.errors import WrongUse, shown
from sfumato.learning.features import Floats
from sfumato.learning.run import checkpointed
from sfumato.mechanisms.encoder import MOST_REMEMBERED, SquareRoot
from sfumato.noise import Integers


@dataclass(frozen=True, slots=True)
class MatrixNoise:
    """Noise that is correlated over ``bands`` steps; for ``torch.Network`` in ``Cyclic`` order.

    The exact sums of the last steps are held in memory only. A checkpoint closes the bands: the
    steps after it begin anew, also in a run that was never interrupted. So the cost and the law
    of a run do not depend on where it was resumed.

    Raises:
        WrongUse: bands that are no whole number from 1 to 4096.

    >>> MatrixNoise(20).bands
    20
    """

    bands: int

    def __post_init__(self) -> None:
        if type(self.bands) is not int or not 1 <= self.bands <= MOST_REMEMBERED:
            raise WrongUse(f"bands={shown(self.bands)}.", allowed=f"from 1 to {MOST_REMEMBERED:,}")


class Decoder:
    """Solves for the noisy sum of each step, one row after the other.

    >>> rows = [np.array([8.0]), np.array([12.0])]
    >>> decoder = Decoder(2)
    >>> [decoder.next(row).tolist() for row in rows]
    [[8.0], [8.0]]
    """

    def __init__(self, bands: int) -> None:
        weights = SquareRoot(bands, bands).coefficients / SquareRoot.unit
        self._weights: Floats = weights[:0:-1]
        self._sums: list[Floats] = []

    def next(self, row: Floats | Integers) -> Floats:
        """The sum of the step of this row."""
        found: Floats = row.astype(np.float64)
        weights = self._weights[len(self._weights) - len(self._sums) :]
        for weight, earlier in zip(weights, self._sums, strict=True):
            found = found - weight * earlier
        self._sums.append(found)
        if len(self._sums) > len(self._weights):
            del self._sums[0]
        return found


def turned(
    steps: int,
    separation: int,
    checkpoints: int,
) -> tuple[int, ...]:
    """Divides steps into pieces of whole turns, all but the last, as units pay for a turn begun.

    >>> turned(50, separation=8, checkpoints=3)
    (24, 16, 10)
    """
    turns = -(-steps // separation)
    sizes = [separation * size for size in checkpointed(turns, checkpoints)]
    sizes[-1] -= turns * separation - steps
    return tuple(sizes)
