# SPDX-License-Identifier: Apache-2.0
"""The ids of reports that were counted, eight bytes each, so that a duplicate is noticed."""

import numpy as np
from numpy.typing import NDArray

from sfumato.telemetry.oracles.oracle import Mask

Ids = NDArray[np.uint64]


class Seen:
    """A set of 64-bit ids in sorted runs, each at least twice as long as the next.

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

    def fresh(self, ids: Ids) -> Mask:
        """Which of the ids are new; the first of equals is. They are known from now on."""
        different, first = np.unique(ids, return_index=True)
        new = ~self._known(different)
        mask = np.zeros(len(ids), np.bool_)
        mask[first[new]] = True
        self._keep(different[new])
        return mask

    def _known(self, ids: Ids) -> Mask:
        """Which of the ids are in some run."""
        known = np.zeros(len(ids), np.bool_)
        for run in self._runs:
            places = np.minimum(np.searchsorted(run, ids), len(run) - 1)
            known |= run[places] == ids
        return known

    def _keep(self, run: Ids) -> None:
        """Adds a sorted run, and merges runs that are nearly as long as the one before."""
        if not len(run):
            return
        while self._runs and len(self._runs[-1]) < 2 * len(run):
            # two sorted halves: a stable sort merges them in linear time
            run = np.sort(np.concatenate((self._runs.pop(), run)), kind="stable")
        self._runs.append(run)

    @property
    def all(self) -> Ids:
        """All ids, sorted."""
        if not self._runs:
            return np.empty(0, np.uint64)
        return np.sort(np.concatenate(self._runs), kind="stable")
