# SPDX-License-Identifier: Apache-2.0
"""One-bit Hadamard response: one entry of the value's column of a Hadamard matrix.

A report is a public row and one bit. It is the fastest to aggregate; its variance is the smallest
for small epsilon. Source: Acharya, Sun, Zhang, "Hadamard Response" (AISTATS 2019); Apple, "Learning
with Privacy at Scale" (2017). Proof: bit.proof.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.exact.rational import Number, positive
from sfumato.noise import Entropy, Integers
from sfumato.noise.entropy import words as drawn_words
from sfumato.privacy.event import BitReport
from sfumato.telemetry.oracles.oracle import (
    WHOLE,
    Mask,
    Payloads,
    bytes_for,
    odds_of,
    packed,
    require_domain,
    require_useful,
    unpacked,
)


@dataclass(frozen=True, slots=True)
class BitOracle:
    """The one-bit Hadamard response: reports a random row of the Hadamard matrix, and the sign of
    the value's column in it, which is true with weight ``truth``.

    Guarantees:
        a bit has exactly the stated weight

    >>> bit(1000, 1).encode(5, [3 << 54, 0]).hex()
    '0007'
    """

    kind: ClassVar[str] = "bit"
    values: int
    truth: int

    def __post_init__(self) -> None:
        require_domain(self.values)
        require_useful(self.own, self.other)

    @property
    def _levels(self) -> int:
        """The base-2 logarithm of the number of rows."""
        return (self.values - 1).bit_length()

    @property
    def event(self) -> BitReport:
        """The privacy event of the reported bit; the row is public."""
        return BitReport(self.truth)

    @property
    def draws(self) -> int:
        """The number of 64-bit random words that a report needs: one for the row, one for the
        bit.
        """
        return 2

    @property
    def size(self) -> int:
        """The number of bytes of a report: those of the row and the bit."""
        return bytes_for((2 << self._levels) - 1)

    @property
    def cells(self) -> int:
        """The number of sums that the aggregator keeps: one for each row."""
        return 1 << self._levels

    @property
    def own(self) -> Fraction:
        """The probability that the reported bit is the true sign."""
        return Fraction(self.truth, WHOLE)

    @property
    def other(self) -> Fraction:
        """The probability that a report supports a given value that is not the device's: a half, as
        two columns agree in half of the rows.
        """
        return Fraction(1, 2)

    def encode(self, value: int, words: Sequence[int]) -> bytes:
        """Returns the report of a value: twice the row, plus the bit."""
        row = words[0] >> 64 - self._levels
        sign = (row & value).bit_count() & 1
        said = sign ^ (words[1] >= self.truth)
        return (2 * row + said).to_bytes(self.size, "big")

    def encode_many(self, values: Integers, entropy: Entropy) -> Payloads:
        """Returns the reports of many devices, given their values."""
        first, second = drawn_words(2 * len(values), entropy).reshape(2, -1)
        rows = first >> np.uint64(64 - self._levels)
        signs = np.bitwise_count(rows & values.astype(np.uint64)) & np.uint8(1)
        said = signs ^ (second >= np.uint64(self.truth))
        return packed(rows << np.uint64(1) | said, self.size)

    def valid(self, payloads: Payloads) -> Mask:
        """Returns which payloads are possible reports: their row exists."""
        return unpacked(payloads) < np.uint64(2 << self._levels)

    def tally(self, payloads: Payloads) -> Integers:
        """Returns, for each row, the number of bits 0 minus the number of bits 1."""
        counts = np.bincount(unpacked(payloads).astype(np.int64), minlength=2 * self.cells)
        pairs = counts.reshape(-1, 2)
        return pairs[:, 0] - pairs[:, 1]

    def support(self, tally: Integers, reports: int) -> Integers:
        """Returns how many reports support each value: those whose bit is its sign in their row."""
        return (reports + hadamard(tally)[: self.values]) // 2


def bit(values: int, epsilon: Number) -> BitOracle:
    """Returns the one-bit Hadamard response with at most this epsilon.

    >>> 0.999999 < bit(1000, 1).event.epsilon <= 1
    True
    """
    odds = odds_of(positive("epsilon", epsilon))
    share = odds / (odds + 1)
    return BitOracle(values, WHOLE * share.numerator // share.denominator)


def hadamard(tally: Integers) -> Integers:
    """Returns the Walsh-Hadamard transform: for each x, the sum of tally[j] (-1)^popcount(j & x).

    >>> hadamard(np.array([1, 2, 3, 4])).tolist()
    [10, -2, -4, 0]
    """
    # half the memory to go through, where no sum can be too large
    narrow = int(np.abs(tally).sum()) < 1 << 31
    sums: NDArray[np.signedinteger] = tally.astype(np.int32 if narrow else np.int64)
    step = 1
    while step < len(sums):
        pairs = sums.reshape(-1, 2, step)
        upper, lower = pairs[:, 0], pairs[:, 1]
        difference = upper - lower
        upper += lower
        lower[...] = difference
        step *= 2
    return sums.astype(np.int64)
