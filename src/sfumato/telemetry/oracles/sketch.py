# SPDX-License-Identifier: Apache-2.0
"""Sketches: strings without a list, hashed to the buckets of one of many rows.

A device draws a row, and reports the bucket to which that row's hash function maps its string, by
an oracle over the buckets. Any string can be looked up afterwards. Apple's count-mean sketch uses
the symmetric unary encoding there, its Hadamard form one bit; projective reports are as accurate as
the best unary encoding in four bytes. Source: Apple, "Learning with Privacy at Scale" (2017). The
hash functions are those of Dietzfelbinger (STACS 1996). Proof: sketch.proof.md.
"""

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidDeclaration
from sfumato.exact.rational import Number, positive
from sfumato.noise import Entropy, Integers
from sfumato.noise.entropy import words as drawn_words
from sfumato.privacy.event import BitReport, CategoryReport, ProjectiveReport, UnaryReport
from sfumato.telemetry.oracles.bit import BitOracle, bit
from sfumato.telemetry.oracles.category import CategoryOracle
from sfumato.telemetry.oracles.incidence import incidence
from sfumato.telemetry.oracles.oracle import WHOLE, Mask, Payloads, least_weight, odds_of
from sfumato.telemetry.oracles.projective import ProjectiveOracle, projective
from sfumato.telemetry.oracles.unary import UnaryOracle

# What is reported of a bucket; their event is that of the sketch, whose row no value enters.
BucketOracle: TypeAlias = CategoryOracle | ProjectiveOracle | BitOracle | UnaryOracle
BucketReport: TypeAlias = CategoryReport | ProjectiveReport | BitReport | UnaryReport

_ROW = 2
_MOST_ROWS = 1 << 16
_MOST_BUCKETS = 1 << 16
# More sums would not fit the memory of a server.
_MOST_CELLS = 1 << 28
# A larger table of points and buckets is slower than a transform of each row.
_MOST_INCIDENCE = 1 << 24
_LABEL = b"sfumato telemetry sketch 1"
_LOW = WHOLE - 1
_HALF = 32
# Texts whose buckets fit the cache of a core.
_BLOCK = 1 << 14


@dataclass(frozen=True, slots=True)
class SketchOracle:
    """A count sketch under local privacy, for strings from an unlimited set: hashes the string to a
    bucket of a random row, and reports the bucket.

    One of ``rows`` hash functions (rows) is drawn at random; ``part`` is the oracle for buckets.
    The number of buckets, ``part.values``, is a power of two.

    Guarantees:
        a row is drawn without the value
        two texts share a bucket of a random row as often as stated

    >>> oracle = sketch(1)
    >>> oracle.rows, oracle.part.values, oracle.size
    (256, 1024, 4)
    """

    kind: ClassVar[str] = "sketch"
    values: ClassVar[int] = WHOLE
    rows: int
    part: BucketOracle

    def __post_init__(self) -> None:
        known = isinstance(self.part, BucketOracle)
        if not known or type(self.rows) is not int or not 1 <= self.rows <= _MOST_ROWS:
            raise InvalidDeclaration(
                "A sketch of other parts, or of too many rows.",
                allowed="1 to 65,536 rows of 'category', 'projective', 'bit' or 'unary'",
            )
        buckets = self.part.values
        power = buckets & (buckets - 1) == 0
        if not power or buckets > _MOST_BUCKETS or self.cells > _MOST_CELLS:
            raise InvalidDeclaration(
                f"A sketch of {self.rows:,} rows of {buckets:,} buckets.",
                allowed="2 to 65,536 buckets, a power of two, and at most 2^28 sums",
            )

    @property
    def event(self) -> BucketReport:
        """The privacy event of the bucket's report, given the row."""
        return self.part.event

    @property
    def draws(self) -> int:
        """The number of 64-bit random words that a report needs: one for the row, plus those of the
        bucket's report.
        """
        return 1 + self.part.draws

    @property
    def size(self) -> int:
        """The number of bytes of a report: two for the row, plus those of the bucket's report."""
        return _ROW + self.part.size

    @property
    def cells(self) -> int:
        """The number of integers of a tally: for each row its reports, and sums of its buckets."""
        return self.rows * (1 + self.part.cells)

    @property
    def own(self) -> Fraction:
        """The probability that a report supports the string of its device."""
        return self.part.own

    @property
    def other(self) -> Fraction:
        """The probability, over random rows, that a report supports one given string that is not
        the true one.
        """
        apart = self.part.own - self.part.other
        return self.part.other + apart / self.part.values

    def bucket(self, value: int, row: int) -> int:
        """Returns the bucket of a string in a row of the sketch: the first bits of the row's
        hash.
        """
        return hash_of(value, row) >> 64 - self._bits

    @property
    def _bits(self) -> int:
        """The base-2 logarithm of the number of buckets."""
        return self.part.values.bit_length() - 1

    def encode(self, value: int, words: Sequence[int]) -> bytes:
        """Returns the report of a string: its row, and the report of its bucket there."""
        row = words[0] * self.rows >> 64
        return row.to_bytes(_ROW, "big") + self.part.encode(self.bucket(value, row), words[1:])

    def encode_many(self, values: Integers, entropy: Entropy) -> Payloads:
        """Returns the reports of many devices, given their strings."""
        # exactly the row of ``encode``, whose product does not fit 64 bits
        starts = [-(-WHOLE * row // self.rows) for row in range(1, self.rows)]
        words = drawn_words(len(values), entropy)
        rows = np.searchsorted(np.array(starts, np.uint64), words, side="right")
        first, second, shift = self._hashes()
        mixed = _mixed(values, first[rows], second[rows], shift[rows])
        buckets = (mixed >> np.uint64(64 - self._bits)).astype(np.int64)
        payloads = np.empty((len(values), self.size), np.uint8)
        payloads[:, :_ROW] = rows.astype(">u2").view(np.uint8).reshape(-1, _ROW)
        payloads[:, _ROW:] = self.part.encode_many(buckets, entropy)
        return payloads

    def _hashes(self) -> NDArray[np.uint64]:
        """Returns the constants of the hash functions of all rows: one column a row."""
        every = [_constants(row) for row in range(self.rows)]
        return np.array(every, np.uint64).T

    def valid(self, payloads: Payloads) -> Mask:
        """Returns a mask of the payloads that have an existing row and a valid report of a
        bucket.
        """
        good: Mask = _rows(payloads) < self.rows
        return good & self.part.valid(np.ascontiguousarray(payloads[:, _ROW:]))

    def tally(self, payloads: Payloads) -> Integers:
        """Returns, for each row, the number of its reports and the sums of its buckets."""
        rows = _rows(payloads)
        order = np.argsort(rows, kind="stable")
        inner = np.ascontiguousarray(payloads[order, _ROW:])
        sums = np.zeros((self.rows, 1 + self.part.cells), np.int64)
        sums[:, 0] = np.bincount(rows, minlength=self.rows)
        ends = np.cumsum(sums[:, 0])
        for row in np.flatnonzero(sums[:, 0]).tolist():
            start = ends[row] - sums[row, 0]
            sums[row, 1:] = self.part.tally(inner[start : ends[row]])
        return sums.ravel()

    def split(self, tally: Integers) -> tuple[Integers, Integers]:
        """Splits a tally into the reports of each row and a (row, bucket) matrix of support."""
        sums = tally.reshape(self.rows, 1 + self.part.cells)
        reports, inner = sums[:, 0], sums[:, 1:]
        if isinstance(self.part, CategoryOracle | UnaryOracle):
            return reports, inner
        small = self.part.values * self.part.cells <= _MOST_INCIDENCE
        if isinstance(self.part, ProjectiveOracle) and small:
            # whole numbers far below 2^53: products and sums of them are exact
            meets = incidence(self.part.space, self.part.values)
            supported = inner.astype(np.float64) @ meets.T
            return reports, np.rint(supported).astype(np.int64)
        pairs = zip(inner, reports.tolist(), strict=True)
        found = [self.part.support(each, count) for each, count in pairs]
        return reports, np.stack(found)

    def support(self, tally: Integers, reports: int) -> Integers:
        """Returns how many reports support each bucket, row by row."""
        return self.split(tally)[1].ravel()

    def supported(self, buckets: Integers, values: "NDArray[np.uint64]") -> Integers:
        """Returns how many reports support each string of ``values``.

        ``buckets`` has the support of each row's buckets, from ``split``.
        """
        first, second, shift = self._hashes()
        flat = np.ascontiguousarray(buckets).ravel()
        support = np.zeros(len(values), np.int64)
        right = np.uint64(64 - self._bits)
        for start in range(0, len(values), _BLOCK):
            part = values[start : start + _BLOCK]
            upper, lower = part >> np.uint64(_HALF), part & np.uint64((1 << _HALF) - 1)
            sums = np.zeros(len(part), np.int64)
            for row in range(self.rows):
                mixed = first[row] * upper + second[row] * lower + shift[row]
                sums += flat[(mixed >> right) + np.uint64(row * self.part.values)]
            support[start : start + _BLOCK] = sums
        return support


def hash_of(value: int, row: int) -> int:
    """Returns the hash of a string in a row: two products of 32 and 64 bits and a sum mod 2^64.

    >>> (hash_of(1, 0) - hash_of(0, 0)) % WHOLE == _constants(0)[1]
    True
    """
    first, second, shift = _constants(row)
    upper, lower = divmod(value, 1 << _HALF)
    return first * upper + second * lower + shift & _LOW


def hash_of_many(values: NDArray[np.integer], row: int) -> "NDArray[np.uint64]":
    """Returns the hash of each string of an array, given by their numbers, in a row of a sketch.

    >>> hash_of_many(np.array([7], np.uint64), 3).tolist() == [hash_of(7, 3)]
    True
    """
    first, second, shift = (np.uint64(each) for each in _constants(row))
    return _mixed(values, first, second, shift)


def _constants(row: int) -> tuple[int, int, int]:
    """Returns the constants of the hash function of a row."""
    digest = hashlib.sha256(_LABEL + row.to_bytes(4, "big")).digest()
    first, second, shift = struct.unpack_from(">3Q", digest)
    return first, second, shift


def _mixed(
    values: NDArray[np.integer],
    first: "NDArray[np.uint64] | np.uint64",
    second: "NDArray[np.uint64] | np.uint64",
    shift: "NDArray[np.uint64] | np.uint64",
) -> "NDArray[np.uint64]":
    """The hashed words of many texts, each in a row of its own; uint64 addition is modulo 2^64."""
    numbers = values.astype(np.uint64)
    upper, lower = numbers >> np.uint64(_HALF), numbers & np.uint64((1 << _HALF) - 1)
    mixed: NDArray[np.uint64] = first * upper + second * lower + shift
    return mixed


def _rows(payloads: Payloads) -> Integers:
    """Returns the row of each report."""
    pairs = np.ascontiguousarray(payloads[:, :_ROW])
    return pairs.view(">u2").ravel().astype(np.int64)


def sketch(epsilon: Number, *, rows: int = 256, buckets: int = 1024) -> SketchOracle:
    """Returns a count sketch whose buckets are reported by projective geometry response: as
    accurate as unary encoding, with short reports.

    >>> from sfumato.accounting import account
    >>> 0.999 < account(sketch(1).event).epsilon <= 1
    True
    """
    return SketchOracle(rows, projective(buckets, epsilon))


def count_mean(epsilon: Number, *, rows: int = 1024, buckets: int = 1024) -> SketchOracle:
    """Returns Apple's count-mean sketch: each bucket bit is flipped with 1/(1 + e^(epsilon/2)).

    Apple's own has 65,536 rows of 1,024 buckets: more rows, more memory, fewer collisions.

    >>> oracle = count_mean(4)
    >>> oracle.size, round(float(oracle.part.own), 4)
    (130, 0.8808)
    """
    root = odds_of(positive("epsilon", epsilon) / 2)
    flipped = least_weight(root + 1)
    return SketchOracle(rows, UnaryOracle(buckets, WHOLE - flipped, flipped))


def hadamard_count_mean(epsilon: Number, *, rows: int = 1024, buckets: int = 1024) -> SketchOracle:
    """Returns Apple's Hadamard count-mean sketch: one bit of the bucket's Hadamard column.

    >>> hadamard_count_mean(4).size
    4
    """
    return SketchOracle(rows, bit(buckets, epsilon))
