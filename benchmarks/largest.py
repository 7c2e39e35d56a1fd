# SPDX-License-Identifier: Apache-2.0
"""What 100,000,000 rows cost on one machine: ``make bench-largest``.

Once each, under a limit of memory (``workloads.limits``) that is the same for all. The rows are
made first, and prepared: minutes and two gigabytes.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

from benchmarks.compare import Case
from benchmarks.driver import ROOT
from benchmarks.engines import OURS, cases
from benchmarks.report import bench

RESULTS = ROOT / "benchmarks" / "results" / "largest.json"
SIZE = {"100M": 10**8}


def once() -> Iterator[Case]:
    """All of them, each asked once (and once before that, to be warm)."""
    return (replace(case, repetitions=1) for case in cases(SIZE))


def main(words: Sequence[str]) -> None:
    """All, or those that hold one of the words."""
    bench(words, list(once()), (OURS,), RESULTS)


if __name__ == "__main__":
    main(sys.argv[1:])
