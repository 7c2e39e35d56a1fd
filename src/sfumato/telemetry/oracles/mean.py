# SPDX-License-Identifier: Apache-2.0
"""The mean of a number on a lattice: a bit, or a position near the number. Proof: mean.proof.md.

The hybrid of Wang et al., "Collecting and Analyzing Multidimensional Data with Local Differential
Privacy" (ICDE 2019): a public coin chooses between the bit of Duchi, Jordan and Wainwright (JASA
2018) and a window of positions around the number. Here numbers and positions are integers, so the
probabilities are exact.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidDeclaration
from sfumato.exact.rational import Number, positive
from sfumato.exact.rounding import exp_down
from sfumato.noise import Entropy, Integers
from sfumato.noise.entropy import words as drawn_words
from sfumato.privacy.event import ChosenReport, LineReport, WindowReport
from sfumato.telemetry.oracles.oracle import (
    WHOLE,
    Mask,
    Payloads,
    bytes_for,
    least_weight,
    odds_of,
    packed,
    require_domain,
    unpacked,
)

Floats: TypeAlias = NDArray[np.float64]
_Words: TypeAlias = NDArray[np.uint64]

_MOST_NUMBERS = (1 << 16) + 1


@dataclass(frozen=True, slots=True)
class MeanOracle:
    """The local mechanism for a mean: reports a position near the number with weight ``share``,
    else a single bit.

    The mean of either report is linear in the number. The bit is 1 with a weight from ``low`` for
    the least to ``high`` for the largest number. A position has weight ``near`` in the window of
    the number and ``far`` elsewhere. With a ``share`` of 0 there is no window (1, 1, 1).

    Guarantees:
        a place and a bit have exactly the stated weights
        a report is unbiased for its number

    >>> oracle = mean(1025, 1)
    >>> round(4 * oracle.worst, 2), oracle.size
    (4.29, 2)
    """

    kind: ClassVar[str] = "mean"
    values: int
    share: int
    low: int
    high: int
    near: int
    far: int
    window: int

    def __post_init__(self) -> None:
        require_domain(self.values)
        LineReport(self.low, self.high)
        if self.share:
            WindowReport(self.near, self.far, self.window, self._moves)
        rises = self.low < self.high and (self.high - self.low) % self._moves == 0
        unused = (self.near, self.far, self.window) == (1, 1, 1)
        if not rises or not 0 <= self.share < WHOLE or not (self.near > self.far or unused):
            raise InvalidDeclaration(
                "Weights of a mean that tell nothing.",
                allowed="high - low a multiple of values - 1, near > far, share below 2^64",
            )
        if bool(self.share) == unused:
            raise InvalidDeclaration("A window without a share.", allowed="1, 1, 1 with share 0")

    @property
    def _moves(self) -> int:
        """How far the window moves."""
        return self.values - 1

    @property
    def places(self) -> int:
        """The number of positions that a window report can name."""
        return self.window + self._moves if self.share else 0

    @property
    def event(self) -> ChosenReport | LineReport:
        """The privacy event of a report."""
        line = LineReport(self.low, self.high)
        if not self.share:
            return line
        window = WindowReport(self.near, self.far, self.window, self._moves)
        return ChosenReport((window, line), (self.share, WHOLE - self.share))

    @property
    def draws(self) -> int:
        """The number of 64-bit random words that a report needs: one to choose between bit and
        position, one for the report.
        """
        return 2

    @property
    def size(self) -> int:
        """The number of bytes of the largest report."""
        return bytes_for(self.places + 1)

    @property
    def cells(self) -> int:
        """The number of possible reports: the two bits, and the positions."""
        return self.places + 2

    def encode(self, value: int, words: Sequence[int]) -> bytes:
        """Returns the report of a number: 0 or 1 for a bit, 2 and more for a position."""
        coin, word = words
        said = self._place(value, word) if coin < self.share else self._bit(value, word)
        return said.to_bytes(self.size, "big")

    def _bit(self, value: int, word: int) -> int:
        step = (self.high - self.low) // self._moves
        return int(word < self.low + step * value)

    def _place(self, value: int, word: int) -> int:
        border = self.near * self.window
        if word < border:
            return 2 + value + word // self.near
        place = (word - border) // self.far
        return 2 + place + (self.window if place >= value else 0)

    def encode_many(self, values: Integers, entropy: Entropy) -> Payloads:
        """Returns the reports of many devices, given their numbers."""
        coins, words = drawn_words(2 * len(values), entropy).reshape(2, -1)
        numbers = values.astype(np.uint64)
        step = np.uint64((self.high - self.low) // self._moves)
        said = (words < np.uint64(self.low) + step * numbers).astype(np.uint64)
        chosen = np.flatnonzero(coins < np.uint64(self.share))
        said[chosen] = self._places(numbers[chosen], words[chosen])
        return packed(said, self.size)

    def _places(self, numbers: _Words, words: _Words) -> _Words:
        """``_place`` of many numbers."""
        border = self.near * self.window
        inside = numbers + words // np.uint64(self.near)
        place = (words - np.uint64(border)) // np.uint64(self.far)
        outside = place + np.where(place >= numbers, np.uint64(self.window), np.uint64(0))
        return np.uint64(2) + np.where(words < np.uint64(border), inside, outside)

    def valid(self, payloads: Payloads) -> Mask:
        """Returns which payloads are possible reports."""
        return unpacked(payloads) < np.uint64(self.cells)

    def tally(self, payloads: Payloads) -> Integers:
        """Returns the number of reports of each bit and each position."""
        return np.bincount(unpacked(payloads).astype(np.int64), minlength=self.cells)

    def readings(self) -> list[Fraction]:
        """Returns, for each possible report, the unbiased estimate of the device's number that it
        gives, as a share of the range.
        """
        rise = self.high - self.low
        readings = [Fraction(-self.low, rise), Fraction(WHOLE - self.low, rise)]
        if not self.share:
            return readings
        whole = Fraction(self.far * self.places * (self.places - 1), 2)
        slope = (self.near - self.far) * self.window
        middle = Fraction(self.window - 1, 2)
        for place in range(self.places):
            number = (place * WHOLE - whole) / slope - middle
            readings.append(number / self._moves)
        return readings

    def variances(self) -> Floats:
        """Returns, for each number that a device may hold, the variance of the estimate from one
        report, in squared shares of the range.
        """
        readings = np.array([float(reading) for reading in self.readings()])
        numbers = np.arange(self.values) / self._moves
        one = (self.low + (self.high - self.low) * numbers) / WHOLE
        bit = (1 - one) * readings[0] ** 2 + one * readings[1] ** 2
        place = np.zeros(self.values)
        if self.share:
            squares = np.concatenate(([0.0], np.cumsum(readings[2:] ** 2)))
            inside = squares[self.window :] - squares[: self.values]
            place = (self.far * squares[-1] + (self.near - self.far) * inside) / WHOLE
        share = self.share / WHOLE
        variances: Floats = share * place + (1 - share) * bit - numbers**2
        return variances

    @property
    def worst(self) -> float:
        """The largest variance, over all numbers, of the estimate from one report."""
        return float(self.variances().max())


def mean(values: int, epsilon: Number) -> MeanOracle:
    """Returns the local mechanism for a mean with at most this epsilon and the least worst-case
    variance.

    Raises:
        InvalidDeclaration: more than 65,537 numbers; a coarser step loses nothing beside the noise.

    >>> mean(101, "0.5").share
    0
    """
    require_domain(values)
    if values > _MOST_NUMBERS:
        raise InvalidDeclaration(
            f"A mean of {values:,} numbers.",
            allowed=f"at most {_MOST_NUMBERS:,}",
            remedy="Declare a coarser step=: it is small beside the noise.",
        )
    exact = positive("epsilon", epsilon)
    line = _line(values, exact)
    if values < 3:
        return line
    return min((line, _hybrid(line, exact)), key=lambda oracle: oracle.worst)


def _line(values: int, epsilon: Fraction) -> MeanOracle:
    """Returns the bit alone."""
    low = least_weight(odds_of(epsilon) + 1)
    rise = (WHOLE - 2 * low) // (values - 1) * (values - 1)
    return MeanOracle(values, 0, low, low + rise, 1, 1, 1)


def _hybrid(line: MeanOracle, epsilon: Fraction) -> MeanOracle:
    """Returns the bit, or, with probability 1 - e^(-epsilon / 2), a place near the number."""
    odds = odds_of(epsilon)
    moves = line.values - 1
    fade = exp_down(-min(epsilon, Fraction(50)) / 2)
    window = max(int(moves * fade), 1)
    while math.gcd(window, moves) > 1:
        window += 1
    least = least_weight(odds * window + moves)
    # what is left for the window must be a multiple of it
    target = WHOLE * pow(moves, -1, window) % window
    far = least + (target - least) % window
    near = (WHOLE - far * moves) // window
    share = int(WHOLE * (1 - fade))
    return MeanOracle(line.values, share, line.low, line.high, near, far, window)
