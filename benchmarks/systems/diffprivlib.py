# SPDX-License-Identifier: Apache-2.0
"""Diffprivlib, which draws one at a time."""

from functools import partial

from diffprivlib.mechanisms import GaussianDiscrete, Geometric, Laplace  # type: ignore[import-not-found]

from benchmarks.systems import Make

PACKAGES = ("diffprivlib", "scikit-learn")

WORKS: dict[str, Make] = {
    "laplace one": lambda scale, n: partial(
        Laplace(epsilon=1 / scale, sensitivity=1).randomise, 0.0
    ),
    "geometric one": lambda scale, n: partial(
        Geometric(epsilon=1 / scale, sensitivity=1).randomise, 0
    ),
    "gaussian one": lambda scale, n: partial(
        GaussianDiscrete(epsilon=min(1.0, 1 / scale), delta=1e-6).randomise, 0
    ),
}
