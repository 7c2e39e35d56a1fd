# SPDX-License-Identifier: Apache-2.0
"""Diffprivlib, which draws one at a time."""

from functools import partial
from typing import Any

import numpy as np
from diffprivlib.mechanisms import GaussianDiscrete, Geometric, Laplace  # type: ignore[import-not-found]
from diffprivlib.tools import histogram  # type: ignore[import-not-found]
from numpy.typing import NDArray

from benchmarks.systems import Call, Make, diffprivlib_models
from benchmarks.systems.range_errors import over_all_ranges


def _histogram(scale: float, n: int) -> Call:
    """Its histogram, of the same rows."""

    def release(counts: NDArray[Any]) -> NDArray[Any]:
        rows = np.repeat(np.arange(n), counts)
        found, _ = histogram(rows, epsilon=1 / scale, bins=n, range=(-0.5, n - 0.5))
        return np.asarray(found)

    return partial(over_all_ranges, release, n)


PACKAGES = ("diffprivlib", "scikit-learn")

WORKS: dict[str, Make] = {
    **diffprivlib_models.WORKS,
    "laplace one": lambda scale, n: partial(
        Laplace(epsilon=1 / scale, sensitivity=1).randomise, 0.0
    ),
    "geometric one": lambda scale, n: partial(
        Geometric(epsilon=1 / scale, sensitivity=1).randomise, 0
    ),
    "gaussian one": lambda scale, n: partial(
        GaussianDiscrete(epsilon=min(1.0, 1 / scale), delta=1e-6).randomise, 0
    ),
    "range errors": _histogram,
}
