# SPDX-License-Identifier: Apache-2.0
"""The set of the ids of counted reports, eight bytes each, by which duplicates are refused.

The set is exact. A bit filter recognises most new ids at once; the few others are looked up. For
100,000,000 ids both take 1.1 GB.
"""

import numpy as np
from numpy.typing import NDArray

from sfumato.telemetry.oracles.oracle import Mask

Ids = NDArray[np.uint64]

# Longer runs are not merged: a merge needs as much memory again.
_LONGEST = 1 << 24
# Bits of the filter for each id, at least; twice as many when it is made anew.
_BITS = 10
_SMALLEST = 16


class Seen:
    """A set of 64-bit report ids, with which the aggregator drops duplicates, as sorted runs: each
    at least twice as long as the next, or at its longest.

    Two of n honest reports have the same 8 bytes with a probability below n^2 / 2^65: 3 in 10,000
    for 10^8 reports. The later one is then dropped.

    >>> seen = Seen()
    >>> seen.fresh(np.array([5, 7, 5], np.uint64)).tolist()
    [True, True, False]
    >>> seen.fresh(np.array([7, 8], np.uint64)).tolist()
    [False, True]
    """

    def __init__(self) -> None:
        self._runs: list[Ids] = []
        self._count = 0
        self._filter = _Filter(_SMALLEST)

    def fresh(self, ids: Ids) -> Mask:
        """Returns a mask of the ids that are new, the first of equal ones only, and adds them to
        the set.
        """
        ordered = np.sort(ids)
        again = np.zeros(len(ids), np.bool_)
        np.equal(ordered[1:], ordered[:-1], out=again[1:])
        different = ordered[~again] if again.any() else ordered
        known = self._known(different)
        if len(known):
            different = np.setdiff1d(different, known, assume_unique=True)
        self._keep(different)
        if len(different) == len(ids):
            return np.ones(len(ids), np.bool_)
        return _first_of_each(ids, np.concatenate((ordered[again], known)), known)

    def _known(self, ids: Ids) -> Ids:
        """Those of some sorted ids that are in a run."""
        asked = ids[self._filter.may_hold(ids)]
        known = np.zeros(len(asked), np.bool_)
        for run in self._runs:
            places = np.minimum(np.searchsorted(run, asked), len(run) - 1)
            known |= run[places] == asked
        return asked[known]

    def _keep(self, run: Ids) -> None:
        """Adds a sorted run, and merges runs that are nearly as long as the one before."""
        if not len(run):
            return
        self._count += len(run)
        if self._filter.size < _BITS * self._count:
            self._filter = _Filter((2 * _BITS * self._count).bit_length())
            for other in self._runs:
                self._filter.add(other)
        self._filter.add(run)
        while self._runs and self._is_near(len(run)):
            # two sorted halves: a stable sort merges them in linear time
            run = np.sort(np.concatenate((self._runs.pop(), run)), kind="stable")
        self._runs.append(run)

    def _is_near(self, length: int) -> bool:
        """Whether a run is so long that it is merged with the last one."""
        last = len(self._runs[-1])
        return last < 2 * length and last + length <= _LONGEST

    @property
    def all(self) -> Ids:
        """Returns all ids, sorted."""
        if not self._runs:
            return np.empty(0, np.uint64)
        return np.sort(np.concatenate(self._runs), kind="stable")


class _Filter:
    """Bits, one of which is set for each id: for its first bits."""

    def __init__(self, bits: int) -> None:
        self.size = 1 << bits
        self._shift = np.uint64(64 - bits)
        self._bytes = np.zeros(self.size >> 3, np.uint8)

    def may_hold(self, ids: Ids) -> Mask:
        """Whether the bit of each id is set."""
        places, bits = self._places(ids)
        found: Mask = (self._bytes[places] & bits) != 0
        return found

    def add(self, ids: Ids) -> None:
        """Sets the bits of sorted ids."""
        places, bits = self._places(ids)
        is_first = np.ones(len(ids), np.bool_)
        np.not_equal(places[1:], places[:-1], out=is_first[1:])
        starts = np.flatnonzero(is_first)
        self._bytes[places[starts]] |= np.bitwise_or.reduceat(bits, starts)

    def _places(self, ids: Ids) -> tuple[Ids, NDArray[np.uint8]]:
        """Returns the byte of each id, and its bit in it."""
        numbers = ids >> self._shift
        within = (numbers & np.uint64(7)).astype(np.uint8)
        return numbers >> np.uint64(3), np.left_shift(np.uint8(1), within)


def _first_of_each(ids: Ids, doubtful: Ids, known: Ids) -> Mask:
    """Which ids are new, where only the ``doubtful`` may not be: the first of equals, unless it is
    known.
    """
    mask = np.ones(len(ids), np.bool_)
    places = np.flatnonzero(np.isin(ids, doubtful))
    mask[places] = False
    different, first = np.unique(ids[places], return_index=True)
    new = ~np.isin(different, known)
    mask[places[first[new]]] = True
    return mask
