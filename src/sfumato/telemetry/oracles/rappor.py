# SPDX-License-Identifier: Apache-2.0
"""RAPPOR: permanent noisy bits of a Bloom filter, with fresh noise in each report.

For strings whose candidates become known only afterwards. Source: Erlingsson, Pihur, Korolova,
"RAPPOR" (CCS 2014). The default parameters are those of its demonstration (1 hash, 32 bits, 64
cohorts, f = 1/2, p = 1/4, q = 3/4). Proof: rappor.proof.md.
"""

import hashlib
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato.errors import InvalidDeclaration
from sfumato.noise import Entropy, Integers
from sfumato.noise.bits import random_bits
from sfumato.noise.entropy import words as drawn_words
from sfumato.privacy.event import UnaryReport
from sfumato.telemetry.oracles.oracle import WHOLE, Mask, Payloads, require_useful

_COHORT = 2
_MOST_HASHES = 8
_KEY = struct.Struct(">IQ")


@dataclass(frozen=True, slots=True)
class RapporOracle:
    """RAPPOR: reports the Bloom filter bits of a string in a random cohort, with noise in two
    steps.

    The permanent step preserves a 1 bit with weight ``kept`` and sets a 0 bit with weight
    ``added``; its result is the answer for an epoch. Each report sends a 1 of the answer as 1 with
    weight ``one``, and a 0 as 1 with weight ``zero``.

    Guarantees:
        permanent bits have exactly the stated weights
        a blurred answer tells no more than the answer

    >>> oracle = rappor()
    >>> oracle.size, round(float(oracle.event.epsilon), 3), round(float(oracle.first_odds), 2)
    (6, 2.197, 2.78)
    """

    kind: ClassVar[str] = "rappor"
    values: ClassVar[int] = WHOLE
    bits: int
    hashes: int
    cohorts: int
    kept: int
    added: int
    one: int
    zero: int

    def __post_init__(self) -> None:
        sizes = (self.bits, self.hashes, self.cohorts)
        small = all(type(size) is int and size >= 1 for size in sizes)
        fits = small and self.bits <= 1024 and self.bits % 8 == 0 and self.cohorts <= 1 << 16
        if not fits or self.hashes > min(_MOST_HASHES, self.bits):
            raise InvalidDeclaration(
                f"RAPPOR of {self.bits} bits, {self.hashes} hashes, {self.cohorts} cohorts.",
                allowed="8 to 1,024 bits (a multiple of 8), 1 to 8 hashes, 1 to 65,536 cohorts",
            )
        UnaryReport(self.kept, self.added, self.bits, self.hashes)
        UnaryReport(self.one, self.zero, self.bits, self.hashes)
        require_useful(self.own, self.other)

    @property
    def event(self) -> UnaryReport:
        """The privacy event of the permanent step; all reports of an epoch are computed from it."""
        return UnaryReport(self.kept, self.added, self.bits, self.hashes)

    @property
    def first_odds(self) -> Fraction:
        """The e^epsilon of a device's first report alone, whose bits have the noise of both
        steps.
        """
        one = self.own * (1 - self.other) / (self.other * (1 - self.own))
        return one**self.hashes

    @property
    def draws(self) -> int:
        """The number of 64-bit random words of the permanent step: one for the cohort, and one for
        each bit.
        """
        return 1 + self.bits

    @property
    def blurs(self) -> int:
        """The number of 64-bit random words of the second step: one for each bit."""
        return self.bits

    @property
    def size(self) -> int:
        """The number of bytes of a report: two for the cohort, and those of the bits."""
        return _COHORT + self.bits // 8

    @property
    def cells(self) -> int:
        """The number of counts that the aggregator keeps: for each cohort its reports, and each
        bit's.
        """
        return self.cohorts * (1 + self.bits)

    @property
    def own(self) -> Fraction:
        """The probability that a bit of the string's Bloom filter is 1 in a report."""
        return self._after(self.kept)

    @property
    def other(self) -> Fraction:
        """The probability that a bit outside the string's Bloom filter is 1 in a report."""
        return self._after(self.added)

    def _after(self, weight: int) -> Fraction:
        """The probability that a bit is 1 in a report, if its permanent one is with a weight."""
        set_ = Fraction(weight, WHOLE)
        return (set_ * self.one + (1 - set_) * self.zero) / WHOLE

    def places(self, number: int, cohort: int) -> Iterator[int]:
        """Yields the indices of a string's bits in a cohort's Bloom filter; two hashes may yield
        the same bit.
        """
        digest = hashlib.sha256(_KEY.pack(cohort, number)).digest()
        for hashed in struct.unpack_from(f">{self.hashes}I", digest):
            yield hashed * self.bits >> 32

    def encode(self, value: int, words: Sequence[int]) -> bytes:
        """Returns the permanent answer of a string: a cohort, and its filter bits after the first
        step of noise.
        """
        cohort = words[0] * self.cohorts >> 64
        own = set(self.places(value, cohort))
        chances = [self.kept if bit in own else self.added for bit in range(self.bits)]
        return cohort.to_bytes(_COHORT, "big") + _drawn(chances, words[1:])

    def blur(self, answer: bytes, words: Sequence[int]) -> bytes:
        """Returns a report of a permanent answer: its bits with the second step of noise."""
        held = np.unpackbits(np.frombuffer(answer[_COHORT:], np.uint8), bitorder="little")
        chances = [self.one if bit else self.zero for bit in held.tolist()]
        return answer[:_COHORT] + _drawn(chances, words)

    def encode_many(self, values: Integers, entropy: Entropy) -> Payloads:
        """Returns first reports of many strings, each of a different device."""
        reports = len(values)
        # exactly the cohort of ``encode``, whose product does not fit 64 bits
        starts = [-(-WHOLE * cohort // self.cohorts) for cohort in range(1, self.cohorts)]
        words = drawn_words(reports, entropy)
        cohorts = np.searchsorted(np.array(starts, np.uint64), words, side="right")
        owned = self._owned(values, cohorts)
        kept = self._bits(self.kept, reports, entropy)
        added = self._bits(self.added, reports, entropy)
        permanent = owned & kept | ~owned & added
        ones = self._bits(self.one, reports, entropy)
        zeros = self._bits(self.zero, reports, entropy)
        payloads = np.empty((reports, self.size), np.uint8)
        payloads[:, :_COHORT] = cohorts.astype(">u2").view(np.uint8).reshape(-1, _COHORT)
        payloads[:, _COHORT:] = permanent & ones | ~permanent & zeros
        return payloads

    def _owned(self, values: Integers, cohorts: Integers) -> Payloads:
        """Returns the bits of the texts, packed as in reports."""
        numbers, which = np.unique(values, return_inverse=True)
        table = np.zeros((len(numbers), self.cohorts, self.bits), np.uint8)
        for row, number in enumerate(numbers.tolist()):
            for cohort in range(self.cohorts):
                table[row, cohort, list(self.places(number, cohort))] = 1
        packed = np.packbits(table, axis=2, bitorder="little")
        return packed[which, cohorts]

    def _bits(self, weight: int, reports: int, entropy: Entropy) -> Payloads:
        """Returns independent bits that are 1 with a weight, packed, for so many reports."""

        def bias(precision: int) -> tuple[int, int]:
            exact, rest = divmod(weight << precision, WHOLE)
            return exact, exact + (rest > 0)

        count = reports * self.bits
        words = random_bits(count, bias, entropy).astype("<u8")
        width = self.bits // 8
        return words.view(np.uint8)[: reports * width].reshape(reports, width)

    def valid(self, payloads: Payloads) -> Mask:
        """Returns which payloads are possible reports: their cohort exists."""
        return _cohorts(payloads) < self.cohorts

    def tally(self, payloads: Payloads) -> Integers:
        """Returns the aggregator's counts over many reports: for each cohort, the number of its
        reports, and how many have each bit.
        """
        bits = np.unpackbits(payloads[:, _COHORT:], axis=1, bitorder="little")
        cohorts = _cohorts(payloads)
        sums = np.zeros((self.cohorts, 1 + self.bits), np.int64)
        sums[:, 0] = np.bincount(cohorts, minlength=self.cohorts)
        order = np.argsort(cohorts, kind="stable")
        ends = np.cumsum(sums[:, 0])
        for cohort, rows in enumerate(np.split(order, ends[:-1])):
            sums[cohort, 1:] = bits[rows].sum(axis=0)
        return sums.ravel()

    def split(self, tally: Integers) -> tuple[Integers, Integers]:
        """Splits a tally into the reports of each cohort and a (cohort, bit) matrix of counts."""
        sums = tally.reshape(self.cohorts, 1 + self.bits)
        return sums[:, 0], sums[:, 1:]


def _drawn(chances: Sequence[int], words: Sequence[int]) -> bytes:
    """Bits that are 1 where a word is below a weight, the lowest bit first."""
    pairs = zip(words, chances, strict=True)
    ones = np.array([word < chance for word, chance in pairs], np.uint8)
    return np.packbits(ones, bitorder="little").tobytes()


def _cohorts(payloads: Payloads) -> Integers:
    """Returns the cohort of each report."""
    pairs = np.ascontiguousarray(payloads[:, :_COHORT])
    return pairs.view(">u2").ravel().astype(np.int64)


def rappor(
    *,
    bits: int = 32,
    hashes: int = 1,
    cohorts: int = 64,
    f: Fraction = Fraction(1, 2),
    p: Fraction = Fraction(1, 4),
    q: Fraction = Fraction(3, 4),
) -> RapporOracle:
    """Returns RAPPOR by its paper's parameters: ``f`` permanent, ``p`` and ``q`` for each report.

    >>> oracle = rappor(hashes=2, bits=128, cohorts=16)
    >>> round(float(oracle.event.epsilon), 3)
    4.394
    """
    weights = [int(WHOLE * share) for share in (1 - f / 2, f / 2, q, p)]
    return RapporOracle(bits, hashes, cohorts, *weights)
