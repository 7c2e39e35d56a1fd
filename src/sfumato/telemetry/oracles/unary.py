# SPDX-License-Identifier: Apache-2.0
"""Optimal unary encoding (OUE): an independent bit for each value. Proof: unary.proof.md.

The value's own bit is a fair coin, any other bit is 1 with probability 1/(e^epsilon + 1). Reports
are large, but nothing is looked up. Source: Wang, Blocki, Li, Jha (USENIX Security 2017).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato.exact.rational import Number, positive
from sfumato.noise import Entropy, Integers
from sfumato.noise.bits import random_bits
from sfumato.noise.entropy import words as drawn_words
from sfumato.privacy.event import UnaryReport
from sfumato.telemetry.oracles.oracle import (
    WHOLE,
    Mask,
    Payloads,
    least_weight,
    odds_of,
    require_domain,
    require_useful,
)

# As many ones as a byte can count.
_ROWS = 255


@dataclass(frozen=True, slots=True)
class UnaryOracle:
    """Optimal unary encoding: reports one noisy bit for each value of the domain.

    A bit is 1 with weight ``kept`` for the true value, with weight ``added`` for any other.

    Guarantees:
        unary bits have exactly the stated weights

    >>> oracle = unary(12, 1)
    >>> oracle.encode(9, [0] * 12).hex(), oracle.encode(9, [(1 << 64) - 1] * 12).hex()
    ('ff0f', '0000')
    """

    kind: ClassVar[str] = "unary"
    values: int
    kept: int
    added: int

    def __post_init__(self) -> None:
        require_domain(self.values)
        require_useful(self.own, self.other)

    @property
    def event(self) -> UnaryReport:
        """The privacy event of a report: all its bits."""
        return UnaryReport(self.kept, self.added, self.values, 1)

    @property
    def draws(self) -> int:
        """The number of 64-bit random words that a report needs: one for each bit."""
        return self.values

    @property
    def size(self) -> int:
        """The number of bytes of a report: one bit for each value, rounded up to bytes."""
        return -(-self.values // 8)

    @property
    def cells(self) -> int:
        """The number of counts that the aggregator keeps: one for each value."""
        return self.values

    @property
    def own(self) -> Fraction:
        """The probability that a report's bit of the device's value is 1."""
        return Fraction(self.kept, WHOLE)

    @property
    def other(self) -> Fraction:
        """The probability that a report's bit of a given other value is 1."""
        return Fraction(self.added, WHOLE)

    def encode(self, value: int, words: Sequence[int]) -> bytes:
        """Returns the report of a value: a noisy bit for each value; bit v is bit v mod 8 (the
        lowest first) of byte v div 8.
        """
        drawn = np.array(words, np.uint64)
        ones = drawn < np.uint64(self.added)
        ones[value] = words[value] < self.kept
        return np.packbits(ones, bitorder="little").tobytes()

    def encode_many(self, values: Integers, entropy: Entropy) -> Payloads:
        """Returns independent reports of many values, with the same law and fewer random bits."""
        reports = len(values)
        columns = -(-self.values // 64)
        bits = random_bits(64 * columns * reports, self._bias, entropy).reshape(reports, columns)
        own = drawn_words(reports, entropy) < np.uint64(self.kept)
        which, shifts = np.divmod(values.astype(np.uint64), np.uint64(64))
        rows = np.arange(reports)
        mask = np.uint64(1) << shifts
        bits[rows, which] = bits[rows, which] & ~mask | np.where(own, mask, np.uint64(0))
        payloads = bits.astype("<u8").view(np.uint8)[:, : self.size].copy()
        payloads[:, -1] &= np.uint8(self._last)
        return payloads

    def _bias(self, precision: int) -> tuple[int, int]:
        """Bounds of ``added`` / 2^64, equal from 64 bits on."""
        if precision >= 64:
            exact = self.added << (precision - 64)
            return exact, exact
        lower = self.added >> (64 - precision)
        return lower, lower + 1

    @property
    def _last(self) -> int:
        """The bits of the last byte that are values."""
        return (1 << (self.values - 1) % 8 + 1) - 1

    def valid(self, payloads: Payloads) -> Mask:
        """Returns a mask of the payloads that have no bit beyond the last value."""
        rest: Mask = payloads[:, -1] & np.uint8(255 - self._last) == 0
        return rest

    def tally(self, payloads: Payloads) -> Integers:
        """Returns the number of reports in which each bit is 1."""
        counts = np.zeros(self.values, np.int64)
        for start in range(0, len(payloads), _ROWS):
            block = payloads[start : start + _ROWS]
            bits = np.unpackbits(block, axis=1, count=self.values, bitorder="little")
            counts += bits.sum(axis=0, dtype=np.uint8)
        return counts

    def support(self, tally: Integers, reports: int) -> Integers:
        """Returns the tally: a report supports the values whose bits are 1."""
        return tally


def unary(values: int, epsilon: Number) -> UnaryOracle:
    """Returns the optimal unary encoding with at most this epsilon.

    >>> 0.999999 < unary(1000, 1).event.epsilon <= 1
    True
    """
    odds = odds_of(positive("epsilon", epsilon))
    return UnaryOracle(values, WHOLE // 2, least_weight(odds + 1))
