# SPDX-License-Identifier: Apache-2.0
"""pure-ldp, which encodes and adds up one device at a time."""

from typing import Any

from pure_ldp.frequency_oracles.direct_encoding import (  # type: ignore[import-not-found]
    DEClient,
    DEServer,
)
from pure_ldp.frequency_oracles.local_hashing import (  # type: ignore[import-not-found]
    LHClient,
    LHServer,
)
from pure_ldp.frequency_oracles.unary_encoding import (  # type: ignore[import-not-found]
    UEClient,
    UEServer,
)

from benchmarks.systems import Call, Make

PACKAGES = ("pure-ldp", "numpy", "xxhash")
K = 1024


def _added(client: Any, server: Any, **how: bool) -> Make:
    def make(epsilon: float, n: int) -> Call:
        def call() -> object:
            device, sums = client(epsilon, K, **how), server(epsilon, K, **how)
            for value in range(n):
                sums.aggregate(device.privatise(value % K + 1))
            return sums.estimate_all(range(1, K + 1))

        return call

    return make


WORKS: dict[str, Make] = {
    "category": _added(DEClient, DEServer),
    "hashed": _added(LHClient, LHServer, use_olh=True),
    "unary": _added(UEClient, UEServer, use_oue=True),
}
