# SPDX-License-Identifier: Apache-2.0
"""PyDP, the Python face of Google's library, which draws one at a time."""

from functools import partial

from pydp.algorithms.numerical_mechanisms import (  # type: ignore[import-not-found]
    GaussianMechanism,
    LaplaceMechanism,
)

from benchmarks.systems import Make

PACKAGES = ("python-dp",)

WORKS: dict[str, Make] = {
    "laplace one": lambda scale, n: partial(LaplaceMechanism(1 / scale, 1.0).add_noise, 0),
    "gaussian one": lambda scale, n: partial(
        GaussianMechanism.create_from_standard_deviation(scale).add_noise, 0
    ),
}
