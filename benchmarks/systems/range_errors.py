# SPDX-License-Identifier: Apache-2.0
"""The error of noisy counts over all ranges, for every system alike."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

# The releases of which the mean is taken.
RELEASES = 40
Counts = NDArray[Any]


def over_all_ranges(release: Callable[[Counts], Counts], n: int) -> float:
    """The mean squared error over all ranges of n values, of some releases."""
    truth = np.random.default_rng(20).integers(0, 20, n)
    squares = []
    for _ in range(RELEASES):
        errors = np.asarray(release(truth), np.float64) - truth
        ends = np.concatenate([[0.0], np.cumsum(errors)])
        # the sum of (x - y)^2 over all pairs of ends
        every = len(ends) * float((ends**2).sum()) - float(ends.sum()) ** 2
        squares.append(every / (len(ends) * n / 2))
    return float(np.mean(squares))
