# SPDX-License-Identifier: Apache-2.0
"""Discovers strings without a list of candidates: each device reports a prefix of its string.

A device draws one of several lengths before it reads its string, and reports the prefix of that
length by a sketch. The aggregator goes down the tree of prefixes and extends at each length only
the most frequent ones (``discovery``). The last part reports the whole string and is used for the
estimates only. Source: Wang, Li, Jha, "Locally Differentially Private Heavy Hitter Identification"
(TDSC 2019). Proof: choice.proof.md, sketch.proof.md.
"""

from dataclasses import dataclass
from typing import ClassVar, overload

import numpy as np

from sfumato.errors import InvalidDeclaration, shown
from sfumato.exact.rational import Number
from sfumato.noise import Integers
from sfumato.telemetry.oracles.choice import ChoiceOracle
from sfumato.telemetry.oracles.oracle import WHOLE
from sfumato.telemetry.oracles.sketch import SketchOracle, sketch

_MOST_SYMBOLS = 256
# No text of two symbols or more that fits 64 bits is longer.
_LONGEST = 64
# Continuations of a prefix that are tried; the aggregator tries them for each prefix that it kept.
_CONTINUATIONS = 1 << 15
# Rows of the parts that are searched; heavy texts that collide there hide others.
_ROWS = 512
# Rows of the last part, whose collisions are in the estimates.
_LAST_ROWS = 1024


@dataclass(frozen=True, slots=True)
class PrefixesOracle(ChoiceOracle[SketchOracle]):
    """The local mechanism for unknown strings by prefixes: draws a length at random, and reports
    the prefix of that length.

    The number of a string has ``length`` digits to the base ``symbols``, the first one the most
    significant; part i reports the first ``step`` x (i + 1) of them, the last two parts report all.

    >>> oracle = prefixes(27, 10, 2)
    >>> oracle.lengths, oracle.size
    ((3, 6, 9, 10, 10), 5)
    """

    kind: ClassVar[str] = "prefixes"
    symbols: int
    length: int
    step: int
    parts: tuple[SketchOracle, ...]

    def __post_init__(self) -> None:
        require_texts(self.symbols, self.length, self.step)
        if self.symbols**self.step > _CONTINUATIONS and self.step > 1:
            raise InvalidDeclaration(
                f"Steps of {self.step} symbols of {self.symbols}.",
                allowed=f"at most {_CONTINUATIONS:,} continuations of a prefix",
            )
        known = all(isinstance(part, SketchOracle) for part in self.parts)
        if not known or len(self.parts) != len(self.lengths):
            raise InvalidDeclaration(
                "Parts that are not the prefixes of the texts.",
                allowed="a sketch for each length of the prefixes, and one for the estimates",
            )

    @property
    def values(self) -> int:
        """The number of strings."""
        return int(self.symbols**self.length)

    @property
    def lengths(self) -> tuple[int, ...]:
        """The length in symbols of the prefix that each part reports."""
        grown = tuple(range(self.step, self.length, self.step))
        return (*grown, self.length, self.length)

    @overload
    def node(self, value: int, place: int) -> int: ...
    @overload
    def node(self, value: Integers, place: int) -> Integers: ...
    def node(self, value: int | Integers, place: int) -> int | Integers:
        """Returns the code of a string's prefix in the part with index ``place``; also for an array
        of strings.
        """
        width = int(self.symbols ** (self.length - self.lengths[place]))
        if isinstance(value, int):
            return value // width
        prefix: Integers = value.astype(np.uint64) // np.uint64(width)  # type: ignore[assignment]
        return prefix


def require_texts(symbols: int, length: int, step: int) -> None:
    """Raises an error if codes of strings of this length do not fit in 64 bits, or ``step`` exceeds
    the length.
    """
    small = all(type(size) is int and size >= 1 for size in (symbols, length, step))
    if (
        not small
        or not 2 <= symbols <= _MOST_SYMBOLS
        or not step <= length <= _LONGEST
        or symbols**length > WHOLE
    ):
        raise InvalidDeclaration(
            f"Texts of {shown(length)} symbols of {shown(symbols)}.",
            allowed="2 to 256 symbols, and at most 2^64 texts",
        )


def prefixes(symbols: int, length: int, epsilon: Number) -> PrefixesOracle:
    """Returns the local mechanism for unknown strings by prefixes, with at most this epsilon and
    the longest steps between prefixes.

    ``symbols`` and ``length`` are those of ``telemetry.Words``.

    >>> prefixes(17, 12, 4).step
    3
    """
    step = 1
    if type(symbols) is int and symbols >= 2:
        while symbols ** (step + 1) <= _CONTINUATIONS:
            step += 1
    longest = min(length, _LONGEST) if type(length) is int else 1
    searched = (sketch(epsilon, rows=_ROWS),) * max(1, -(-longest // step))
    last = sketch(epsilon, rows=_LAST_ROWS)
    return PrefixesOracle(symbols, length, min(step, max(longest, 1)), (*searched, last))
