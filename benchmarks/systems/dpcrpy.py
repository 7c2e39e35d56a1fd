# SPDX-License-Identifier: Apache-2.0
"""dpcrpy: running counts by its trees and its bit methods, with Gaussian noise at rho = 0.5."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from dpcrpy.bitMethods.bcrg import BCRG  # type: ignore[import-not-found]
from dpcrpy.framework.noiMech import GaussNoiMech  # type: ignore[import-not-found]
from dpcrpy.treeMethods.binMech import BinMech  # type: ignore[import-not-found]
from dpcrpy.treeMethods.honaker import Honaker  # type: ignore[import-not-found]

from benchmarks.systems import Make

PACKAGES = ("dpcrpy", "numpy", "scipy")
# The releases of which the mean is taken.
RELEASES = 40


def _mean_square(method: Callable[..., Any], releases: int, n: int) -> float:
    """The mean squared error of a running total over all ticks, of some releases."""
    truth = np.random.default_rng(20).integers(0, 20, n)
    squares = []
    for _ in range(releases):
        counter = method(n.bit_length() - 1, GaussNoiMech(sigma0=1))
        # BCRG of this order ends one tick earlier
        ticks = truth[: counter.T]
        # the error that a method expects is beside its total
        released = [np.ravel(counter.dpRelease(int(count)))[0] for count in ticks]
        squares.append(float(((np.array(released) - np.cumsum(ticks)) ** 2).mean()))
    return float(np.mean(squares))


def _totals(method: Callable[..., Any]) -> Make:
    return lambda scale, n: partial(_mean_square, method, RELEASES, n)


WORKS: dict[str, Make] = {
    "binary tree": _totals(BinMech),
    "tree of Honaker": _totals(Honaker),
    "BCRG": _totals(BCRG),
}
