# SPDX-License-Identifier: Apache-2.0
"""Estimates from 100,000,000 stored reports: ``make bench-telemetry-stored``.

The folder of 3.3 GB is made once, in minutes, and kept in .bench.
"""

import sys
from collections.abc import Iterator

from benchmarks.compare import Case, Kind, Unit, Work, at_most
from benchmarks.driver import OURS, ROOT
from benchmarks.report import bench

RESULTS = ROOT / "benchmarks" / "results" / "telemetry_stored.json"


def cases() -> Iterator[Case]:
    """The shell's estimates from a folder; one run says both numbers."""
    title = "Estimate from 100,000,000 stored reports, k = 65,536"
    for unit, name, most in (
        (Unit("s", 1, kind=Kind.VALUE), "stored", 90),
        (Unit("MB at most", 1e-6, kind=Kind.VALUE), "stored bytes", 2000),
    ):
        work = Work(OURS, f"telemetry {name}", 1, 10**8)
        yield Case(title, unit, work, bar=at_most(most), repetitions=1)


if __name__ == "__main__":
    bench(sys.argv[1:], list(cases()), (), RESULTS)
