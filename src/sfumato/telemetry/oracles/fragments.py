# SPDX-License-Identifier: Apache-2.0
"""Discovers strings without a list of candidates, by Apple's sequence fragment puzzle.

A device reports its whole string by one sketch. By a second sketch it reports one fragment of the
string, at a random position, together with a hash of 8 bits of the whole string: the puzzle piece.
The aggregator joins fragments of all positions that have the same piece, and looks the joined
strings up in the sketch of whole strings (``puzzle``). Source: Apple, "Learning with Privacy at
Scale" (2017), section 3.3. Proof: fragments.proof.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar, overload

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidDeclaration, shown
from sfumato.exact.rational import Number, positive, to_fraction
from sfumato.noise import Entropy, Integers
from sfumato.noise.entropy import words as drawn_words
from sfumato.privacy.event import JointReport
from sfumato.telemetry.oracles.oracle import WHOLE, Mask, Payloads
from sfumato.telemetry.oracles.prefixes import require_texts
from sfumato.telemetry.oracles.sketch import SketchOracle, hash_of, hash_of_many, sketch

# The numbers of a puzzle piece: one byte.
PIECES = 256
_PIECE_BITS = 8
# The hash function that no row of a sketch has: rows end before it.
_PIECE_ROW = 1 << 16
# Fragments of one piece that are tried at each place.
_FRAGMENTS = 1 << 13
# Rows of the two sketches; of the whole texts, collisions are in the estimates.
_ROWS = 512
_LAST_ROWS = 1024
# What of epsilon is for the whole text: its sketch tells few candidates apart.
_SHARE = Fraction(1, 4)


@dataclass(frozen=True, slots=True)
class FragmentsOracle:
    """Reports a fragment of a string with a puzzle piece, and the whole string, each by a sketch.

    The fragment's position is drawn at random. Equal puzzle pieces (a hash of the whole string)
    tell which fragments belong together. The number of a string has ``length`` digits to the base
    ``symbols``, the first one the most significant. The fragment with index i has the ``step``
    digits from ``step`` x i on, or those that are left; ``parts`` are the sketch of fragments and
    that of whole strings.

    Guarantees:
        a place is drawn without the text
        fragment and whole text are drawn with words of their own

    >>> oracle = fragments(27, 5, 2)
    >>> oracle.places, [oracle.fragment(oracle.values - 2, place) for place in range(3)]
    (3, [728, 728, 25])
    """

    kind: ClassVar[str] = "fragments"
    symbols: int
    length: int
    step: int
    parts: tuple[SketchOracle, ...]

    def __post_init__(self) -> None:
        require_texts(self.symbols, self.length, self.step)
        if self.symbols**self.step > _FRAGMENTS:
            raise InvalidDeclaration(
                f"Fragments of {self.step} symbols of {self.symbols}.",
                allowed=f"at most {_FRAGMENTS:,} fragments",
            )
        known = all(isinstance(part, SketchOracle) for part in self.parts)
        if not known or len(self.parts) != 2:
            raise InvalidDeclaration(
                "Parts that are not those of fragments.",
                allowed="a sketch for the fragments, and one for the whole texts",
            )

    @property
    def values(self) -> int:
        """The number of strings."""
        return int(self.symbols**self.length)

    @property
    def places(self) -> int:
        """The number of positions, and so of fragments of a string."""
        return -(-self.length // self.step)

    def width(self, place: int) -> int:
        """Returns the number of digits of the fragment with this index."""
        return min(self.step, self.length - place * self.step)

    @overload
    def fragment(self, value: int, place: int) -> int: ...
    @overload
    def fragment(self, value: Integers, place: int) -> Integers: ...
    def fragment(self, value: int | Integers, place: int) -> int | Integers:
        """Returns the code of the fragment with index ``place`` of a string, or of each string of
        an array.
        """
        width = self.width(place)
        after = self.length - place * self.step - width
        below, size = int(self.symbols**after), int(self.symbols**width)
        if isinstance(value, int):
            return value // below % size
        numbers = value.astype(np.uint64)
        found: Integers = numbers // np.uint64(below) % np.uint64(size)  # type: ignore[assignment]
        return found

    def piece(self, value: int) -> int:
        """Returns the puzzle piece of a string: an 8-bit hash that tells which fragments belong
        together.
        """
        return hash_of(value, _PIECE_ROW) >> 64 - _PIECE_BITS

    def pieces_of(self, values: NDArray[np.integer]) -> Integers:
        """Returns the puzzle piece of each string of an array."""
        right = np.uint64(64 - _PIECE_BITS)
        found: Integers = hash_of_many(values, _PIECE_ROW) >> right  # type: ignore[assignment]
        return found

    def marked(self, piece: int, fragment: int) -> int:
        """Returns the number that is reported by the sketch of fragments: a puzzle piece and a
        fragment combined.
        """
        return int(piece * self.symbols**self.step + fragment)

    @property
    def event(self) -> JointReport:
        """The privacy event of a report: one sketch of a fragment, one of the whole string.

        The position is drawn without looking at the string.
        """
        return JointReport(tuple(part.event for part in self.parts))

    @property
    def draws(self) -> int:
        """The number of 64-bit random words that a report needs: one for the position, and those of
        the sketches.
        """
        return 1 + sum(part.draws for part in self.parts)

    @property
    def size(self) -> int:
        """The number of bytes of a report: one for the position, and those of both sketches."""
        return 1 + sum(part.size for part in self.parts)

    @property
    def cells(self) -> int:
        """The number of integers of a tally: sums of fragments by position, of whole strings."""
        return self.places * self.parts[0].cells + self.parts[1].cells

    @property
    def _starts(self) -> list[int]:
        """The least word of each place, and the end: word x places // 2^64 is the place."""
        count = self.places
        return [-(-WHOLE * place // count) for place in range(count + 1)]

    @property
    def chances(self) -> list[float]:
        """The probability of each position, to the nearest float."""
        return [(end - start) / WHOLE for start, end in pairwise(self._starts)]

    def encode(self, value: int, words: Sequence[int]) -> bytes:
        """Returns the report of a string: a position, its fragment there, and the whole string."""
        few, whole = self.parts
        place = words[0] * self.places >> 64
        piece = self.piece(value)
        marked = self.marked(piece, self.fragment(value, place))
        end = 1 + few.draws
        first = few.encode(marked, words[1:end])
        second = whole.encode(value, words[end:])
        return bytes([place]) + first + second

    def encode_many(self, values: Integers, entropy: Entropy) -> Payloads:
        """Returns the reports of many devices, given their strings."""
        few, whole = self.parts
        words = drawn_words(len(values), entropy)
        ends = np.array(self._starts[1:-1], np.uint64)
        chosen = np.searchsorted(ends, words, side="right")
        pieces = self.pieces_of(values)
        marked = pieces * np.uint64(self.symbols**self.step)
        for place in range(self.places):
            rows = np.flatnonzero(chosen == place)
            marked[rows] += self.fragment(values[rows], place)
        payloads = np.empty((len(values), self.size), np.uint8)
        end = 1 + few.size
        payloads[:, 0] = chosen
        payloads[:, 1:end] = few.encode_many(marked, entropy)
        payloads[:, end:] = whole.encode_many(values, entropy)
        return payloads

    def valid(self, payloads: Payloads) -> Mask:
        """Returns a mask of the payloads that have an existing position and valid reports of both
        sketches.
        """
        first, second = self._inner(payloads)
        few, whole = self.parts
        good: Mask = payloads[:, 0] < self.places
        return good & few.valid(first) & whole.valid(second)

    def tally(self, payloads: Payloads) -> Integers:
        """Returns the aggregator's sums over many reports: the sketch sums of fragments by
        position, then those of whole strings.
        """
        first, second = self._inner(payloads)
        few, whole = self.parts
        found = []
        for place in range(self.places):
            rows = payloads[:, 0] == place
            found.append(few.tally(np.ascontiguousarray(first[rows])))
        return np.concatenate((*found, whole.tally(second)))

    def split(self, tally: Integers) -> tuple[list[Integers], Integers]:
        """Splits a tally into the sums of fragments by position and those of whole strings."""
        end = self.places * self.parts[0].cells
        return list(tally[:end].reshape(self.places, -1)), tally[end:]

    def _inner(self, payloads: Payloads) -> tuple[Payloads, Payloads]:
        """Returns the reports of fragments, and those of whole texts."""
        end = 1 + self.parts[0].size
        return np.ascontiguousarray(payloads[:, 1:end]), np.ascontiguousarray(payloads[:, end:])


def fragments(
    symbols: int,
    length: int,
    epsilon: Number,
    *,
    whole: Number = _SHARE,
) -> FragmentsOracle:
    """Returns the local mechanism for unknown strings that reports fragments of two symbols, with
    at most this epsilon.

    ``symbols`` and ``length`` are those of ``telemetry.Words``; ``whole`` is the share of epsilon
    that the report of the whole string uses. With more than 90 symbols, fragments have one.

    >>> oracle = fragments(17, 12, 4)
    >>> oracle.step, oracle.size, [round(float(part.event.epsilon), 3) for part in oracle.parts]
    (2, 9, [3.0, 1.0])
    """
    exact = positive("epsilon", epsilon)
    share = to_fraction("whole", whole)
    if not 0 < share < 1:
        raise InvalidDeclaration(
            f"A share {shown(whole)} of epsilon for the whole text.", allowed="between 0 and 1"
        )
    step = 1
    if type(symbols) is int and type(length) is int and length > 1 and symbols**2 <= _FRAGMENTS:
        step = 2
    few = sketch(exact * (1 - share), rows=_ROWS)
    last = sketch(exact * share, rows=_LAST_ROWS)
    return FragmentsOracle(symbols, length, step, (few, last))
