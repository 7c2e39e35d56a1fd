# SPDX-License-Identifier: Apache-2.0
"""Encoders of a stream: lower triangular maps from the inputs of ticks to integers to release.

A tick adds its input to a memory, and returns a row: exact integers, to which a stream mechanism
adds noise. The input of a tick is a vector of counts, one for each cell; each cell is encoded
alike. Source: Dwork, Naor, Pitassi, Rothblum (2010) and Chan, Shi, Song (2011) for trees;
Fichtenberger, Henzinger, Upadhyay (2023) for the square root. Proof: encoder.proof.md.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import isqrt
from typing import ClassVar, Protocol

import numpy as np

from sfumato.errors import InvalidDeclaration
from sfumato.noise import Integers
from sfumato.privacy.distance import Norm

# The most ticks of a stream, and the most that an encoder remembers one by one.
MOST_TICKS, MOST_REMEMBERED = 2**21, 2**12
# A coefficient 1 of the square root is this many lattice steps.
_BITS = 18
# Inputs are weighed in two parts, of which the lower one has so many bits.
LOW_BITS = 31
# More bits while coefficients are computed.
_WORKING = 128


class Encoder(Protocol):
    """The interface of an encoder (matrix mechanism) of a stream: a linear map from the inputs of
    the ticks so far to the integers that are released, with noise, at a tick.

    The map is linear and lower triangular. ``memory`` is an int64 array whose last axis is the
    cells; it is all that later rows depend on.
    """

    @property
    def steps(self) -> int:
        """The number of ticks of the stream."""
        ...

    @property
    def norm(self) -> Norm:
        """The norm of ``sensitivity``: L1, or L2 (whose value is squared)."""
        ...

    @property
    def most_numbers(self) -> int:
        """The largest number of integers, for each cell, that a tick releases."""
        ...

    @property
    def slack(self) -> int:
        """A bound of the change of one cell's released integers by rounding, over all ticks, as a
        squared L2 norm.

        An integer; 0 for a linear encoder.
        """
        ...

    def sensitivity(
        self,
        participations: int,
        separation: int,
    ) -> int:
        """Returns the largest change, in ``norm``, of all released integers that one unit can
        cause.

        The unit changes the inputs of at most ``participations`` ticks, at least ``separation``
        apart, each by a vector of L1 norm 1.
        """
        ...

    def numbers(self, tick: int) -> int:
        """Returns the number of integers, for each cell, that a tick releases; ticks count from
        1.
        """
        ...

    def begin(self, cells: int) -> Integers:
        """Returns the memory before the first tick."""
        ...

    def row(
        self,
        tick: int,
        memory: Integers,
        counts: Integers,
    ) -> tuple[Integers, list[int]]:
        """Returns the memory after a tick, and the tick's row of ``numbers(tick)`` times the cells."""
        ...


@dataclass(frozen=True, slots=True)
class SquareRoot:
    """An encoder of a stream by the square root of the matrix of running totals, in integers, with
    few bands.

    The coefficient of an input k ticks old is C(2k, k) / 4^k, rounded down to steps of 2^-18, and 0
    for k >= ``bands``. With one band each tick is released by itself.

    Guarantees:
        coefficients never rise
        a row is the stated sum of inputs

    >>> SquareRoot(8, 8).coefficients[:4] / 2**18
    array([1.    , 0.5   , 0.375 , 0.3125])
    """

    steps: int
    bands: int

    norm: ClassVar[Norm] = Norm.L2
    slack: ClassVar[int] = 0
    most_numbers: ClassVar[int] = 1
    unit: ClassVar[int] = 2**_BITS

    def __post_init__(self) -> None:
        require_steps(self.steps)
        most = min(self.steps, MOST_REMEMBERED)
        if type(self.bands) is not int or not 1 <= self.bands <= most:
            raise InvalidDeclaration(f"{self.bands} bands.", allowed=f"from 1 to {most:,}")

    @property
    def coefficients(self) -> Integers:
        """The integer coefficient of an input, by its age in ticks."""
        return _central(self.bands)

    def sensitivity(
        self,
        participations: int,
        separation: int,
    ) -> int:
        """Returns the squared L2 sensitivity: the squared norm of the sum of the matrix columns of
        the earliest possible ticks.
        """
        return _sensitivity(self, participations, separation)

    def numbers(self, tick: int) -> int:
        """Returns 1: the number of integers that a tick releases for each cell."""
        return 1

    def begin(self, cells: int) -> Integers:
        """Returns the memory before the first tick: zeros. Each of its rows is an earlier input,
        the latest last.
        """
        return np.zeros((0, cells), np.int64)

    def row(
        self,
        tick: int,
        memory: Integers,
        counts: Integers,
    ) -> tuple[Integers, list[int]]:
        """Returns the memory after a tick, and the tick's row: the weighted sum of the inputs of
        the last ``bands`` ticks.
        """
        kept, high, low = self.weighed(memory, counts)
        sums = zip(high.tolist(), low.tolist(), strict=True)
        return kept, [(upper << LOW_BITS) + lower for upper, lower in sums]

    def weighed(
        self,
        memory: Integers,
        counts: Integers,
    ) -> tuple[Integers, Integers, Integers]:
        """Returns the memory after a tick, and h and l of the row h 2^31 + l; inputs are below
        2^62.
        """
        inputs = np.concatenate([memory, counts[None]])[-self.bands :]
        weights = self.coefficients[: len(inputs)][::-1]
        # 2^12 products of 18 and 31 bits fit 64 bits
        high, low = weights @ (inputs >> LOW_BITS), weights @ (inputs & (1 << LOW_BITS) - 1)
        kept = inputs[len(inputs) - min(len(inputs), self.bands - 1) :]
        return kept, high, low


@dataclass(frozen=True, slots=True)
class Tree:
    """An encoder of a stream by a tree: it releases the sum of each block of base^level ticks, when
    complete, times a weight.

    ``weights`` has one positive integer for each level, from single ticks up.

    Guarantees:
        each tick is in one block of each level

    >>> Tree(8, 2, (1, 2, 1, 1)).sensitivity(1, 1)
    5
    """

    steps: int
    base: int
    weights: tuple[int, ...]

    norm: ClassVar[Norm] = Norm.L1
    slack: ClassVar[int] = 0

    def __post_init__(self) -> None:
        require_steps(self.steps)
        whole = all(type(weight) is int and 1 <= weight <= 2**20 for weight in self.weights)
        if not whole or not self.weights or type(self.base) is not int or self.base < 2:
            raise InvalidDeclaration(f"A tree of base {self.base}.", allowed="base >= 2")

    @property
    def most_numbers(self) -> int:
        """The largest number of integers that a tick releases for each cell: the number of levels."""
        return len(self.weights)

    def sensitivity(
        self,
        participations: int,
        separation: int,
    ) -> int:
        """Returns the L1 sensitivity: the sum of the level weights, times the possible number of
        participations.
        """
        return most_times(self.steps, participations, separation) * sum(self.weights)

    def complete(self, tick: int) -> list[int]:
        """Returns the levels of the tree at which a block ends with the tick."""
        return [level for level in range(len(self.weights)) if tick % self.base**level == 0]

    def numbers(self, tick: int) -> int:
        """Returns the number of blocks that end with the tick, which is the number of integers that
        it releases for each cell.
        """
        return len(self.complete(tick))

    def begin(self, cells: int) -> Integers:
        """Returns the memory before the first tick: zeros, as no block has inputs yet."""
        return np.zeros((len(self.weights), cells), np.int64)

    def row(
        self,
        tick: int,
        memory: Integers,
        counts: Integers,
    ) -> tuple[Integers, list[int]]:
        """Returns the memory after a tick, and the weighted sums of the blocks that end with it."""
        sums = memory + counts
        released: list[int] = []
        for level in self.complete(tick):
            released += [self.weights[level] * each for each in sums[level].tolist()]
            sums[level] = 0
        return sums, released


def require_steps(steps: object) -> None:
    """Raises InvalidDeclaration for a number of ticks that encoders do not support."""
    if type(steps) is not int or not 1 <= steps <= MOST_TICKS:
        raise InvalidDeclaration(f"{steps} ticks.", allowed=f"from 1 to {MOST_TICKS:,}")


def most_times(
    steps: int,
    participations: int,
    separation: int,
) -> int:
    """Returns the largest number of ticks in which a unit can take part: at most ``participations``
    of ``steps``, ``separation`` apart.
    """
    return min(participations, 1 + (steps - 1) // separation)


def squared(
    heights: Integers,
    participations: int,
    separation: int,
) -> int:
    """Returns the squared L2 norm of the sum of the columns 0, s, 2s, ... of a Toeplitz matrix.

    ``heights`` is its first column, which is not negative and never rises; s is ``separation``. No
    other ``participations`` columns, at least s apart, have a larger sum.

    >>> squared(np.array([4, 2, 1]), participations=2, separation=1)
    61
    """
    steps = len(heights)
    times = most_times(steps, participations, separation)
    padded = np.zeros(-(-steps // separation) * separation, np.int64)
    padded[:steps] = heights
    sums = padded.reshape(-1, separation).cumsum(axis=0)
    sums[times:] -= sums[:-times].copy()
    # as integers of Python, which cannot overflow; one by one, to save memory
    return sum(height * height for height in map(int, sums.ravel()[:steps]))


def root_up(number: int) -> int:
    """Returns the least integer whose square is at least the number."""
    root = isqrt(number)
    return root + (root * root < number)


@lru_cache(maxsize=256)
def _sensitivity(
    encoder: SquareRoot,
    participations: int,
    separation: int,
) -> int:
    times = most_times(encoder.steps, participations, separation)
    if encoder.bands <= separation:
        # columns that share no row
        return times * squared(encoder.coefficients, 1, 1)
    reached = min(encoder.steps, (times - 1) * separation + encoder.bands)
    heights = np.zeros(reached, np.int64)
    heights[: encoder.bands] = encoder.coefficients
    return squared(heights, participations, separation)


@lru_cache(maxsize=64)
def _central(bands: int) -> Integers:
    """The coefficients C(2k, k) / 4^k for k < bands, in steps of 2^-18, rounded down."""
    fine = 1 << _WORKING
    found = []
    for age in range(1, bands + 1):
        found.append(fine >> (_WORKING - _BITS))
        fine = fine * (2 * age - 1) // (2 * age)
    coefficients = np.array(found, np.int64)
    coefficients.flags.writeable = False
    return coefficients
