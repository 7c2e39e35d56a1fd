# SPDX-License-Identifier: Apache-2.0
"""Local hashing: randomised response on a few buckets of a random hash. Proof: hashed.proof.md.

Source: Wang, Blocki, Li, Jha, "Locally Differentially Private Protocols for Frequency Estimation"
(USENIX Security 2017). The hash functions are those of Dietzfelbinger, "Universal hashing and
k-wise independent random variables via integer arithmetic without primes" (STACS 1996): with
them, what the paper assumes of a hash holds exactly.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidDeclaration
from sfumato.exact.rational import Number, positive
from sfumato.noise import Entropy, Integers
from sfumato.noise.entropy import words as drawn_words
from sfumato.privacy.event import HashedReport
from sfumato.telemetry.oracles.oracle import (
    WHOLE,
    Mask,
    Payloads,
    bytes_for,
    least_weight,
    odds_of,
    require_domain,
    require_useful,
    unpacked,
)

Words = NDArray[np.uint64]

_LOW = WHOLE - 1
_HALF = 1 << 32
_SEED = 16
_MOST_BUCKETS = 1 << 16
# Reports whose hashes fit the cache of a core.
_BLOCK = 1 << 12


@dataclass(frozen=True, slots=True)
class HashedOracle:
    """Local hashing: reports a random hash function, and a bucket, which is that of the value with
    weight ``truth``.

    Guarantees:
        a bucket has exactly the stated weights
        two values share a bucket exactly as often as stated

    >>> oracle = hashed(1000, 1)
    >>> oracle.buckets, len(oracle.encode(7, [1, 2, 3])), oracle.size
    (4, 17, 17)
    """

    kind: ClassVar[str] = "hashed"
    values: int
    buckets: int
    truth: int
    other_weight: int

    def __post_init__(self) -> None:
        require_domain(self.values)
        if type(self.buckets) is not int or not 2 <= self.buckets <= _MOST_BUCKETS:
            raise InvalidDeclaration(f"{self.buckets} buckets.", allowed="2 to 65,536")
        require_useful(self.own, self.other)

    @property
    def event(self) -> HashedReport:
        """The privacy event of a report: that of the bucket, as the hash function does not depend
        on the value.
        """
        return HashedReport(self.truth, self.other_weight, self.buckets)

    @property
    def draws(self) -> int:
        """The number of 64-bit random words that a report needs: two for the hash function, one for
        the bucket.
        """
        return 3

    @property
    def size(self) -> int:
        """The number of bytes of a report: sixteen for the hash function, plus those of the
        bucket.
        """
        return _SEED + bytes_for(self.buckets - 1)

    @property
    def cells(self) -> int:
        """The number of counts that the aggregator keeps: one for each value."""
        return self.values

    @property
    def own(self) -> Fraction:
        """The probability that a report supports the device's own value."""
        return Fraction(self.truth, WHOLE)

    @property
    def other(self) -> Fraction:
        """The probability that a report supports one given value that is not the true one."""
        ends = [-(-_HALF * bucket // self.buckets) for bucket in range(self.buckets + 1)]
        sizes = [after - before for before, after in pairwise(ends)]
        together = Fraction(sum(size * size for size in sizes), _HALF * _HALF)
        lie = Fraction(self.other_weight, WHOLE)
        return lie + (self.own - lie) * together

    def encode(self, value: int, words: Sequence[int]) -> bytes:
        """Returns the report of a value: the words of the hash function, and the bucket."""
        slope, shift, word = words
        mixed = (slope * value + shift & _LOW) >> 32
        said = mixed * self.buckets >> 32
        if word >= self.truth:
            place = (word - self.truth) // self.other_weight
            said = place + (place >= said)
        seed = slope.to_bytes(8, "big") + shift.to_bytes(8, "big")
        return seed + said.to_bytes(self.size - _SEED, "big")

    def encode_many(self, values: Integers, entropy: Entropy) -> Payloads:
        """Returns the reports of many devices, given their values."""
        slope, shift, word = drawn_words(3 * len(values), entropy).reshape(3, -1)
        half = np.uint64(32)
        mixed = (slope * values.astype(np.uint64) + shift) >> half
        said = mixed * np.uint64(self.buckets) >> half
        lies = np.flatnonzero(word >= np.uint64(self.truth))
        places = (word[lies] - np.uint64(self.truth)) // np.uint64(self.other_weight)
        said[lies] = places + (places >= said[lies])
        columns = np.stack((slope, shift, said), axis=1).astype(">u8").view(np.uint8)
        payloads = np.empty((len(values), self.size), np.uint8)
        payloads[:, :_SEED] = columns[:, :_SEED]
        payloads[:, _SEED:] = columns[:, _SEED + 8 - (self.size - _SEED) :]
        return payloads

    def valid(self, payloads: Payloads) -> Mask:
        """Returns a mask of the payloads that are possible reports: they name an existing
        bucket.
        """
        return unpacked(payloads[:, _SEED:]) < np.uint64(self.buckets)

    def tally(self, payloads: Payloads) -> Integers:
        """Returns how many reports name the bucket of each value; it takes time for each report and
        value.
        """
        counts = np.zeros(self.values, np.int64)
        for start in range(0, len(payloads), _BLOCK):
            self._add(payloads[start : start + _BLOCK], counts)
        return counts

    def _add(self, payloads: Payloads, counts: Integers) -> None:
        """Adds the reports of a block to the counts, one value after another.

        The hash of a value lies in its bucket if the mixed word, less the start of the bucket, is
        below its width. From one value to the next the mixed word grows by the slope.
        """
        ends = np.array(
            [-(-_HALF * bucket // self.buckets) << 32 for bucket in range(self.buckets)], np.uint64
        )
        widths = np.append(ends[1:], np.uint64(0)) - ends
        slope = unpacked(payloads[:, :8])
        said = unpacked(payloads[:, _SEED:]).astype(np.int64)
        above = unpacked(payloads[:, 8:_SEED]) - ends[said]
        width = widths[said]
        within = np.empty(len(payloads), np.bool_)
        for value in range(self.values):
            np.less(above, width, out=within)
            counts[value] += np.count_nonzero(within)
            above += slope

    def support(self, tally: Integers, reports: int) -> Integers:
        """Returns the tally: a report supports the values that its hash maps to its bucket."""
        return tally


def hashed(values: int, epsilon: Number) -> HashedOracle:
    """Returns the local hashing mechanism with at most this epsilon, with the number of buckets of
    least variance.

    >>> hashed(1024, "2").buckets
    8
    """
    require_domain(values)
    odds = odds_of(positive("epsilon", epsilon))
    near = min(int(odds) + 1, _MOST_BUCKETS - 1)
    found = [_with(values, odds, buckets) for buckets in (max(near, 2), near + 1)]
    return min(found, key=_variance)


def _with(values: int, odds: Fraction, buckets: int) -> HashedOracle:
    """Local hashing into so many buckets."""
    lie = least_weight(odds + buckets - 1)
    return HashedOracle(values, buckets, WHOLE - (buckets - 1) * lie, lie)


def _variance(oracle: HashedOracle) -> Fraction:
    """Returns the variance of the estimate of an absent value, for one report."""
    other = oracle.other
    return other * (1 - other) / (oracle.own - other) ** 2
