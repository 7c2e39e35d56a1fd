# SPDX-License-Identifier: Apache-2.0
"""A stream of sums over batches of units that take turns. Proof: cycle.proof.md.

It is the mechanism of private network training with correlated noise: ``Curator.turn`` begins a
``Turning`` of a ``Cycle``. Source: Choquette-Choo, Ganesh, McKenna, McMahan, Rush, Thakurta, Xu,
"(Amplified) Banded Matrix Factorization" (NeurIPS 2023), for banded encoders and units that take
part periodically.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn

import numpy as np

from sfumato.errors import InvalidDeclaration
from sfumato.exact.rounding import sqrt_up
from sfumato.exact.values import copied
from sfumato.mechanisms.additive import AdditiveMechanism
from sfumato.mechanisms.encoder import LOW_BITS, SquareRoot, most_times
from sfumato.noise import Integers
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import Stream
from sfumato.query.statistic import BoundedStatistic, Opened

# A coefficient 1 of the encoder is 2^18.
_BITS = SquareRoot.unit.bit_length() - 1
_HALF = SquareRoot.unit >> 1


@dataclass(frozen=True, slots=True)
class Cycle:
    """A stream of ``steps`` noisy sums of ``size`` integers over random batches of units; step t
    reads batch t mod ``separation``.

    Each unit is in one batch, so it takes part once in any ``separation`` consecutive steps. A row
    is a weighted sum of the sums of the last ``bands`` steps, rounded; the weights are the
    coefficients of ``SquareRoot`` (1 for the newest). ``apart`` is the distance of the sum of one
    step between neighbours.

    Guarantees:
        all rows of a cycle together move by at most their proved distance
        a unit takes part once in a separation

    Raises:
        InvalidDeclaration: a size or number of steps below 1; a distance that is not in L2.
    """

    apart: Distance
    size: int
    steps: int
    separation: int
    bands: int

    def __post_init__(self) -> None:
        counts = (self.size, self.separation)
        if self.apart.norm is not Norm.L2 or not all(type(n) is int and n >= 1 for n in counts):
            raise InvalidDeclaration("A cycle of such sums.", allowed="sums with an L2 distance")
        # it refuses other steps and bands
        self.encoder.begin(0)

    @property
    def encoder(self) -> SquareRoot:
        """The encoder (matrix mechanism) that makes the rows from the sums."""
        return SquareRoot(self.steps, self.bands)

    @property
    def participations(self) -> int:
        """The largest number of steps in which one unit takes part."""
        return most_times(self.steps, self.steps, self.separation)

    def distance(self, participations: int) -> Distance:
        """Returns the sensitivity of all rows together (squared L2), for a unit that takes part in
        ``participations`` steps.
        """
        moved = self.encoder.sensitivity(participations, self.separation)
        squared = self.apart.value * moved / self.encoder.unit**2
        if self.bands > 1:
            # each integer that moves at all is rounded once
            rows = min(self.steps, participations * self.bands)
            squared = (sqrt_up(squared) + sqrt_up(Fraction(rows * self.size))) ** 2
        return Distance(Norm.L2, squared, self.apart.relation)

    def event(self, mechanism: AdditiveMechanism) -> Stream:
        """Returns the privacy event of all rows together."""
        noise = mechanism.event(self.distance(self.participations))
        column = self.distance(1).value
        return Stream(noise, self.steps, column, self.participations, self.separation)

    def row(
        self,
        memory: Integers,
        sums: Integers,
    ) -> tuple[Integers, Integers]:
        """Returns the new memory of the encoder and the exact row of one step, from the sums of its
        batch.
        """
        kept, high, low = self.encoder.weighed(memory, sums)
        return kept, (high << LOW_BITS - _BITS) + (low + _HALF >> _BITS)


class Turning:
    """The secret state of a running cycle: the batches of units, and the exact sums that later rows
    need.

    Only a curator holds it, in memory alone; it ends with the curator's run.
    """

    __slots__ = ("_batches", "_cycle", "_mechanism", "_memory", "_noise", "_step")

    def __init__(
        self,
        cycle: Cycle,
        mechanism: AdditiveMechanism,
        opened: Opened,
        noise: Integers | None,
    ) -> None:
        self._cycle = cycle
        self._mechanism = mechanism
        self._batches: Callable[[int], Opened] = opened.batches(cycle.separation)
        self._memory = cycle.encoder.begin(cycle.size)
        self._noise = noise
        self._step = 0

    def next(self, statistic: BoundedStatistic[Integers]) -> Integers:
        """Returns the noisy row of the next step; ``statistic`` is the sum over its batch.

        Raises:
            InvalidDeclaration: no step is left, or the sums have another distance or size.
        """
        cycle, step = self._cycle, self._step
        if step == cycle.steps or copied(statistic.distance(Norm.L2)) != cycle.apart:
            raise InvalidDeclaration("A sum that the cycle does not have.")
        self._step += 1
        sums = statistic.exact(self._batches(step % cycle.separation))
        if sums.shape != (cycle.size,) or sums.dtype != np.int64:
            raise InvalidDeclaration("Sums of another size.")
        self._memory, row = cycle.row(self._memory, sums)
        noise = self._noise
        if noise is not None:
            noise = noise[step * cycle.size :][: cycle.size]
        return self._mechanism.release_many(row, noise)

    def __repr__(self) -> str:
        return "Turning()"

    def __reduce__(self) -> NoReturn:
        raise TypeError("exact integers are not pickled")
