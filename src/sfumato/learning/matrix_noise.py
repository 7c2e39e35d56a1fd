# SPDX-License-Identifier: Apache-2.0
"""Correlated noise for cyclic training (DP-FTRL): a step cancels part of the noise of earlier
steps.

The curator releases C x + z for sums x, where C is the banded square root of the running totals.
The training solves for x + C^-1 z, so the noise of the running totals, which move the weights, is
smaller than with independent noise. Privacy is proved in ``query/cycle.py``; this file computes
with released rows only.

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
    """A noise setting of ``torch.Network``, as in DP-FTRL: the noise of a step is correlated with
    that of up to ``bands`` steps, for ``Cyclic`` order.

    The exact sums of the last steps are kept in memory only. A checkpoint ends the correlation: the
    steps after it start anew, even in a run that is not interrupted. So the cost and the
    distribution of a run do not depend on where it was resumed.

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
    """A decoder of correlated noise: it recovers the noisy gradient sum of each step from the
    released rows, in order.

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
        """Returns the noisy gradient sum of the next step, from the row that was released in it."""
        step_sum: Floats = row.astype(np.float64)
        weights = self._weights[len(self._weights) - len(self._sums) :]
        for weight, earlier in zip(weights, self._sums, strict=True):
            step_sum = step_sum - weight * earlier
        self._sums.append(step_sum)
        if len(self._sums) > len(self._weights):
            del self._sums[0]
        return step_sum


def turned(
    steps: int,
    separation: int,
    checkpoints: int,
) -> tuple[int, ...]:
    """Returns the numbers of steps between the checkpoints of a training run in cyclic order.

    Every piece but the last is a multiple of ``separation``, since a unit pays for each round of
    the batches that a piece begins.

    >>> turned(50, separation=8, checkpoints=3)
    (24, 16, 10)
    """
    turns = -(-steps // separation)
    sizes = [separation * size for size in checkpointed(turns, checkpoints)]
    sizes[-1] -= turns * separation - steps
    return tuple(sizes)
