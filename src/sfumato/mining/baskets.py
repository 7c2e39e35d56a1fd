# SPDX-License-Identifier: Apache-2.0
"""Counts of the units that have all items of a set. Proof: baskets.proof.md."""

from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InvalidDeclaration
from sfumato.mining.unit_keys import Keys, Reading, differing, kept_keys
from sfumato.noise import Integers
from sfumato.privacy.distance import Distance, Norm
from sfumato.query.statistic import BoundedStatistic, Opened

# The most cells of a table of items by units, and the most bytes of candidates at once.
_CELLS, _BYTES = 1 << 26, 1 << 25


@dataclass(frozen=True, slots=True)
class BasketCounts(BoundedStatistic[Integers]):
    """The statistic that counts, for each candidate set of ``size`` items, the distinct units that
    have all of its items.

    A unit's items are those of ``items`` that it has, at most ``keep``; so it counts in at most
    C(keep, size) candidates. Where ``width`` is less, there are at most so many candidates.
    ``candidates`` are ascending indices of ``items``.

    Guarantees:
        counts of sets of items move by at most their proved distance

    Raises:
        InvalidDeclaration: a candidate twice, of another size, or more of them than ``width``.
    """

    reading: Reading
    keep: int
    width: int
    size: int
    items: Keys
    candidates: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if not 1 <= self.size <= self.keep:
            raise InvalidDeclaration(f"Sets of {self.size} items.", allowed="1 to keep")
        for items in self.candidates:
            is_ascending = items == tuple(sorted(set(items)))
            # an index below zero would name an item a second time
            inside = is_ascending and items and items[0] >= 0 and items[-1] < len(self.items)
            if not inside or len(items) != self.size:
                raise InvalidDeclaration("A candidate.", allowed="ascending indices of items")
        for each in (self.candidates, self.items):
            if len(set(each)) != len(each):
                raise InvalidDeclaration("A candidate or an item twice.", allowed="each once")
        if self.most == self.width < len(self.candidates):
            raise InvalidDeclaration(f"More than {self.width:,} candidates.")

    @property
    def most(self) -> int:
        """The largest number of candidate sets in which one unit is counted."""
        return min(comb(self.keep, self.size), self.width)

    def distance(self, norm: Norm) -> Distance:
        """Returns the sensitivity (L1, or squared L2), if one unit changes at most ``most`` counts
        by one.
        """
        return differing(self.most, norm, self.reading.plan)

    def exact(self, opened: Opened) -> Integers:
        """Returns the exact count of each candidate set, in their order."""
        counts = np.zeros(len(self.candidates), np.int64)
        chosen = np.array(self.candidates, np.int64).reshape(len(self.candidates), self.size)
        for units, unit, key in kept_keys(self.reading, opened, self.keep, self.items):
            step = max(_CELLS // max(len(self.items), 1), 8)
            for first in range(0, units, step):
                there = (unit >= first) & (unit < first + step)
                table = np.zeros((len(self.items), min(step, units - first)), np.bool_)
                table[key[there], unit[there] - first] = True
                counts += _counted(np.packbits(table, axis=1), chosen)
        return counts


def _counted(bits: NDArray[np.uint8], chosen: Integers) -> Integers:
    """Returns the number of units of each candidate; ``bits`` has a row of units for each item."""
    step = max(_BYTES // max(bits.shape[1], 1), 1)
    counts = [np.zeros(0, np.int64)]
    for first in range(0, len(chosen), step):
        some = chosen[first : first + step]
        both = bits[some[:, 0]]
        for place in range(1, chosen.shape[1]):
            both &= bits[some[:, place]]
        counts.append(np.bitwise_count(both).sum(axis=1, dtype=np.int64))
    return np.concatenate(counts)
