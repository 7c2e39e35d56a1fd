# SPDX-License-Identifier: Apache-2.0
"""The buffered encoder of running totals, for a stream of any length in constant memory.

It approximates the square root of the matrix of running totals. Each input is added to a few
buffers, which decay geometrically, each at a rate of its own. Source: McMahan, Xiao, Zhang (2024),
"A hassle-free algorithm for private learning in practice" (buffered linear Toeplitz); here on
integers, with the rounding counted. Proof: buffered.proof.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from sfumato.errors import InvalidDeclaration
from sfumato.mechanisms.encoder import require_steps, squared
from sfumato.noise import Integers
from sfumato.privacy.distance import Norm

# A coefficient 1 is this many lattice steps; rates and weights are in steps of 2^-_FINE.
_BITS, _FINE = 24, 48
# An input 1 in a buffer, as a power of two; buffers are stored in three pieces of 40 bits.
_INPUT, _PIECE, _PIECES = 64, 40, 3
# Powers of rates are computed with this many bits.
_WORKING = 96
# A coefficient stands for those of up to a 512th of its age more.
_EXACT = 1024


@dataclass(frozen=True, slots=True)
class Buffered:
    """An encoder of a stream of counts (see ``Encoder``): rows are weighted sums of buffers, each a
    decaying sum of inputs.

    The coefficient of an input k ticks old is the sum of weight * rate^k over the buffers, up to
    rounding. ``rates`` and ``weights`` are in steps of 2^-48; a rate is at most 1, and the weights
    add up to at most 1.

    Guarantees:
        a coefficient is never above its height
        rounding moves a row by less than two steps

    >>> Buffered(4, rates=(2**48,), weights=(2**48,)).heights.tolist()[-1] == 2**24
    True
    """

    steps: int
    rates: tuple[int, ...]
    weights: tuple[int, ...]

    norm: ClassVar[Norm] = Norm.L2
    most_numbers: ClassVar[int] = 1
    unit: ClassVar[int] = 2**_BITS

    def __post_init__(self) -> None:
        require_steps(self.steps)
        one = 2**_FINE
        inside = all(0 <= rate <= one for rate in self.rates)
        weighed = all(weight >= 0 for weight in self.weights) and 0 < sum(self.weights) <= one
        whole = all(type(each) is int for each in (*self.rates, *self.weights))
        if not (whole and inside and weighed and len(self.rates) == len(self.weights) <= 64):
            raise InvalidDeclaration(
                "Buffers whose coefficients could rise.",
                allowed="as many rates as weights, from 0 to 1, the weights at most 1 in all",
            )

    @property
    def slack(self) -> int:
        """A bound of the change of one cell's rows by rounding, as a squared L2 norm: four per
        row.
        """
        return 4 * self.steps

    @property
    def heights(self) -> Integers:
        """Upper bounds of the coefficients, by the age of an input in ticks; they never rise."""
        values, lengths = zip(*self._heights(), strict=True)
        return np.repeat(np.array(values, np.int64), lengths)

    def sensitivity(
        self,
        participations: int,
        separation: int,
    ) -> int:
        """Returns an upper bound of the squared L2 sensitivity, without rounding."""
        return _sensitivity(self, participations, separation)

    def numbers(self, tick: int) -> int:
        """Returns 1: the number of integers that a tick releases for each cell."""
        return 1

    def begin(self, cells: int) -> Integers:
        """Returns the memory before the first tick: empty buffers."""
        return np.zeros((_PIECES, len(self.rates), cells), np.int64)

    def row(
        self,
        tick: int,
        memory: Integers,
        counts: Integers,
    ) -> tuple[Integers, list[int]]:
        """Returns the memory after a tick, and the tick's row: the weighted sum of the decayed
        buffers with the input added.

        All products are rounded down.
        """
        buffers = np.zeros(memory.shape[1:], object)
        for piece in reversed(memory):
            buffers = (buffers << _PIECE) + piece.astype(object)
        rates, weights = (np.array(each, object)[:, None] for each in (self.rates, self.weights))
        buffers = (buffers * rates >> _FINE) + (counts.astype(object) << _INPUT)
        row = (buffers * weights).sum(axis=0) >> (_FINE + _INPUT - _BITS)
        pieces = []
        for piece in range(_PIECES - 1):
            pieces.append((buffers >> piece * _PIECE) & (2**_PIECE - 1))
        pieces.append(buffers >> (_PIECES - 1) * _PIECE)
        return np.stack(pieces).astype(np.int64), row.tolist()

    def _heights(self) -> Iterator[tuple[int, int]]:
        """Yields bounds of coefficients, each with the number of ages that it covers."""
        powers = [1 << _WORKING] * len(self.rates)
        factors = [rate << (_WORKING - _FINE) for rate in self.rates]
        shift = _WORKING + _FINE - _BITS
        age = 0
        stride = 1
        while age < self.steps:
            if age >= _EXACT * stride:
                stride *= 2
                factors = [_raised(factor, factor) for factor in factors]
            total = sum(map(int.__mul__, powers, self.weights))
            yield -(-total >> shift), min(stride, self.steps - age)
            powers = list(map(_raised, powers, factors))
            age += stride


@lru_cache(maxsize=256)
def _sensitivity(
    encoder: Buffered,
    participations: int,
    separation: int,
) -> int:
    return squared(encoder.heights, participations, separation)


def _raised(power: int, factor: int) -> int:
    """The product of two numbers of 96 bits, rounded up."""
    return -(-power * factor >> _WORKING)
