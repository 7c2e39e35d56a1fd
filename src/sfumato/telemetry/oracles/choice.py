# SPDX-License-Identifier: Apache-2.0
"""Oracles that report one of several parts of a value, drawn before the device reads the value.

A part is an attribute, a level, or a prefix length. The drawn part is public, so a report costs no
more than that of the part with the largest epsilon. Proof: choice.proof.md.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import Generic, TypeVar, overload

import numpy as np

from sfumato.noise import Entropy, Integers
from sfumato.noise.entropy import words as drawn_words
from sfumato.privacy.event import ChosenReport
from sfumato.telemetry.oracles.frequency import FrequencyOracle
from sfumato.telemetry.oracles.oracle import WHOLE, Mask, Payloads
from sfumato.telemetry.oracles.sketch import SketchOracle

P = TypeVar("P", bound=FrequencyOracle | SketchOracle)
# The number of a part is one byte of a report.
MOST_PARTS = 256


class ChoiceOracle(ABC, Generic[P]):
    """A local mechanism that draws one of several parts of a value at random, and reports only that
    part by the part's own oracle.

    The part of a value (its node) is reported by the oracle that ``parts`` has for it.

    Guarantees:
        a part is drawn without the value and costs no more than the dearest
    """

    __slots__ = ()
    parts: tuple[P, ...]

    @overload
    def node(self, value: int, place: int) -> int: ...
    @overload
    def node(self, value: Integers, place: int) -> Integers: ...
    @abstractmethod
    def node(self, value: int | Integers, place: int) -> int | Integers:
        """Returns a value's number within the part with index ``place`` (its node); also for an
        array of values.
        """

    @property
    def event(self) -> ChosenReport:
        """The privacy event of a report."""
        events = tuple(part.event for part in self.parts)
        return ChosenReport(events, self._weights)

    @property
    def _starts(self) -> list[int]:
        """The least word of each part, and the end: word x parts // 2^64 is the part."""
        count = len(self.parts)
        return [-(-WHOLE * place // count) for place in range(count + 1)]

    @property
    def _weights(self) -> tuple[int, ...]:
        """How many words lead to each part."""
        pairs = pairwise(self._starts)
        return tuple(end - start for start, end in pairs)

    @property
    def chances(self) -> list[float]:
        """The probability of each part, to the nearest float."""
        return [weight / WHOLE for weight in self._weights]

    @property
    def draws(self) -> int:
        """The number of 64-bit random words that a report needs: one to draw the part, and those of
        the part.
        """
        return 1 + max(part.draws for part in self.parts)

    @property
    def size(self) -> int:
        """The number of bytes of a report: one for the part, and those of the largest part's
        report.

        Smaller reports are zero-padded.
        """
        return 1 + max(part.size for part in self.parts)

    @property
    def cells(self) -> int:
        """The number of counts that the aggregator keeps: for each part its reports and its own
        counts.
        """
        return sum(1 + part.cells for part in self.parts)

    def encode(self, value: int, words: Sequence[int]) -> bytes:
        """Returns the report of a value: the number of the drawn part, and the report of its node
        in it.
        """
        place = words[0] * len(self.parts) >> 64
        part = self.parts[place]
        end = 1 + part.draws
        payload = part.encode(self.node(value, place), words[1:end])
        report = bytes([place]) + payload
        return report.ljust(self.size, b"\0")

    def encode_many(self, values: Integers, entropy: Entropy) -> Payloads:
        """Returns the reports of many devices, given their values."""
        words = drawn_words(len(values), entropy)
        ends = np.array(self._starts[1:-1], np.uint64)
        chosen = np.searchsorted(ends, words, side="right")
        payloads = np.zeros((len(values), self.size), np.uint8)
        payloads[:, 0] = chosen
        for place, part in enumerate(self.parts):
            rows = np.flatnonzero(chosen == place)
            nodes = self.node(values[rows], place)
            end = 1 + part.size
            payloads[rows, 1:end] = part.encode_many(nodes, entropy)
        return payloads

    def valid(self, payloads: Payloads) -> Mask:
        """Returns a mask of the payloads that are possible reports: an existing part, a valid
        report of it, zero padding.
        """
        good = np.zeros(len(payloads), np.bool_)
        for place, part in enumerate(self.parts):
            rows = np.flatnonzero(payloads[:, 0] == place)
            inner = payloads[rows]
            end = 1 + part.size
            report = np.ascontiguousarray(inner[:, 1:end])
            padded = (inner[:, end:] == 0).all(axis=1)
            good[rows] = padded & part.valid(report)
        return good

    def tally(self, payloads: Payloads) -> Integers:
        """Returns the aggregator's counts over many reports: for each part, the number of its
        reports followed by its own tally.
        """
        sums = []
        for place, part in enumerate(self.parts):
            rows = payloads[payloads[:, 0] == place]
            end = 1 + part.size
            report = np.ascontiguousarray(rows[:, 1:end])
            sums.append(np.array([len(rows)], np.int64))
            sums.append(part.tally(report))
        return np.concatenate(sums)

    def split(self, tally: Integers) -> list[tuple[int, Integers]]:
        """Returns, for each part, the number of its reports and how many of these support each
        node.
        """
        pieces = zip(self.parts, self.pieces(tally), strict=True)
        return [(reports, part.support(inner, reports)) for part, (reports, inner) in pieces]

    def pieces(self, tally: Integers) -> list[tuple[int, Integers]]:
        """Splits a tally by part: the number of reports of each part, and the part's own tally."""
        pieces = []
        start = 0
        for part in self.parts:
            first = start + 1
            start = first + part.cells
            pieces.append((int(tally[first - 1]), tally[first:start]))
        return pieces
