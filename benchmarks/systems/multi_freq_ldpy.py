# SPDX-License-Identifier: Apache-2.0
"""multi-freq-ldpy, compiled by numba; it clips and normalises inside its aggregators."""

from collections.abc import Callable
from typing import Any

import numpy as np
from multi_freq_ldpy.pure_frequency_oracles.GRR import (  # type: ignore[import-not-found]
    GRR_Aggregator_MI,
    GRR_Client,
)
from multi_freq_ldpy.pure_frequency_oracles.LH import (  # type: ignore[import-not-found]
    LH_Aggregator_MI,
    LH_Client,
)
from multi_freq_ldpy.pure_frequency_oracles.UE import (  # type: ignore[import-not-found]
    UE_Aggregator_MI,
    UE_Client,
)

from benchmarks.systems import Call, Make

PACKAGES = ("multi-freq-ldpy", "numpy", "numba", "xxhash")
K = 1024


def _added(encode: Callable[[int, float], Any], add: Callable[[Any, float], object]) -> Make:
    def make(epsilon: float, n: int) -> Call:
        def call() -> object:
            return add([encode(value % K, epsilon) for value in range(n)], epsilon)

        # numba compiles at the first call
        call()
        return call

    return make


WORKS: dict[str, Make] = {
    "category": _added(
        lambda value, epsilon: GRR_Client(value, K, epsilon),
        lambda reports, epsilon: GRR_Aggregator_MI(np.array(reports), K, epsilon),
    ),
    "hashed": _added(
        lambda value, epsilon: LH_Client(value, K, epsilon),
        lambda reports, epsilon: LH_Aggregator_MI(reports, K, epsilon),
    ),
    "unary": _added(
        lambda value, epsilon: UE_Client(value, K, epsilon),
        lambda reports, epsilon: UE_Aggregator_MI(np.array(reports), epsilon),
    ),
}
