# SPDX-License-Identifier: Apache-2.0
"""k-ary randomised response: the value itself, or another one. Proof: category.proof.md.

Best for few values. Source: Kairouz, Oh, Viswanath, "Extremal Mechanisms for Local Differential
Privacy" (JMLR 2016).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato.exact.rational import Number, positive
from sfumato.noise import Entropy, Integers
from sfumato.noise.entropy import words as drawn_words
from sfumato.privacy.event import CategoryReport
from sfumato.telemetry.oracles.oracle import (
    WHOLE,
    Mask,
    Payloads,
    bytes_for,
    least_weight,
    odds_of,
    packed,
    require_domain,
    require_useful,
    unpacked,
)


@dataclass(frozen=True, slots=True)
class CategoryOracle:
    """The k-ary randomised response: reports the true value, or with some probability another one.

    The true value has the weight ``truth`` and each other value ``other_weight``.

    Guarantees:
        a category has exactly the stated weights

    >>> oracle = category(4, "1.5")
    >>> oracle.encode(2, [0]), oracle.encode(2, [(1 << 64) - 1])
    (b'\\x02', b'\\x03')
    """

    kind: ClassVar[str] = "category"
    values: int
    truth: int
    other_weight: int

    def __post_init__(self) -> None:
        require_domain(self.values)
        require_useful(self.own, self.other)

    @property
    def event(self) -> CategoryReport:
        """The privacy event of a report."""
        return CategoryReport(self.truth, self.other_weight, self.values)

    @property
    def draws(self) -> int:
        """The number of 64-bit random words that a report needs: 1."""
        return 1

    @property
    def size(self) -> int:
        """The number of bytes of a report."""
        return bytes_for(self.values - 1)

    @property
    def cells(self) -> int:
        """The number of counts that the aggregator keeps: one for each value."""
        return self.values

    @property
    def own(self) -> Fraction:
        """The probability that the report is the true value."""
        return Fraction(self.truth, WHOLE)

    @property
    def other(self) -> Fraction:
        """The probability that a report names one given value that is not the true one."""
        return Fraction(self.other_weight, WHOLE)

    def encode(self, value: int, words: Sequence[int]) -> bytes:
        """Returns the report of a value; the random word is compared with ``truth``."""
        said = value
        if words[0] >= self.truth:
            place = (words[0] - self.truth) // self.other_weight
            said = place + (place >= value)
        return said.to_bytes(self.size, "big")

    def encode_many(self, values: Integers, entropy: Entropy) -> Payloads:
        """Returns the reports of many devices, given their values."""
        words = drawn_words(len(values), entropy)
        said = values.astype(np.uint64)
        lies = np.flatnonzero(words >= np.uint64(self.truth))
        places = (words[lies] - np.uint64(self.truth)) // np.uint64(self.other_weight)
        said[lies] = places + (places >= said[lies])
        return packed(said, self.size)

    def valid(self, payloads: Payloads) -> Mask:
        """Returns a mask of the payloads that are possible reports: they name a value of the
        domain.
        """
        return unpacked(payloads) < np.uint64(self.values)

    def tally(self, payloads: Payloads) -> Integers:
        """Returns the number of reports of each value."""
        return np.bincount(unpacked(payloads).astype(np.int64), minlength=self.values)

    def support(self, tally: Integers, reports: int) -> Integers:
        """Returns how many reports support each value: those that name it, so the tally itself."""
        return tally


def category(values: int, epsilon: Number) -> CategoryOracle:
    """Returns the k-ary randomised response of at most this epsilon, with the best integers.

    >>> from sfumato.accounting import account
    >>> 0.999999 < account(category(10, 1).event).epsilon <= 1
    True
    """
    require_domain(values)
    odds = odds_of(positive("epsilon", epsilon))
    lie = least_weight(odds + values - 1)
    return CategoryOracle(values, WHOLE - (values - 1) * lie, lie)
