# SPDX-License-Identifier: Apache-2.0
"""What user-level privacy costs on DuckDB: ``make bench-engines``.

1,000,000 and 10,000,000 rows; 100,000,000 only with ``ONLY=100M`` (they are made first: minutes and a gigabyte).
"""

import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction

from benchmarks.compare import Case, Kind, Peer, Unit, Work, at_most, at_most_more, at_most_times, faster
from benchmarks.driver import ROOT
from benchmarks.report import bench

RESULTS = ROOT / "benchmarks" / "results" / "engines.json"
OURS, OPENDP = "workloads", "opendp-polars"

SECONDS = Unit("s", 1.0)
MILLI = Unit("ms", 1e3)
PERCENT = Unit("%", 1.0, kind=Kind.VALUE)

TITLES = {
    "W1": "totals",
    "W2": "by 50 regions",
    "W3": "by 10,000 unknown products",
    "W4": "distinct users a day",
    "W5": "quantiles by region",
    "W6": "a mean over a join",
}
# where it can say what we ask, under the same limits
_OPENDP = ("W1", "W2", "W3", "W4", "W5")
_SIZES = {"1M": 10**6, "10M": 10**7}
_LARGEST = {"100M": 10**8}
_NO_SLOWER = at_most_times(Fraction(11, 10))


def cases(sizes: dict[str, int]) -> Iterator[Case]:
    """All of them, of each size; those of a peer that takes long last, and at one million rows only."""
    for size, n in sizes.items():
        for name, title in TITLES.items():
            yield _case(name, f"{size}: {name} {title}", n)
        yield Case(f"{size}: W5 error of p50", PERCENT, Work(OURS, "W5 error of p50", n=n), (), at_most(1.5), 3)
        few = Peer("plain DuckDB", Work(OURS, "W7 plain", n=n), at_most_more(10))
        yield Case(f"{size}: W7 a small filtered count", MILLI, Work(OURS, "W7", n=n), (few,))
    if "1M" in sizes:
        for name in _OPENDP:
            opendp = Peer("OpenDP", Work(OPENDP, name, n=sizes["1M"]), faster(15))
            ours = Work(OURS, name, n=sizes["1M"])
            yield Case(f"1M: {name} {TITLES[name]}", SECONDS, ours, (opendp,), repetitions=2)


def _case(name: str, title: str, n: int) -> Case:
    peers = [Peer("plain DuckDB", Work(OURS, f"{name} plain", n=n))]
    if name != "W5":
        peers.append(Peer("SQL by hand, no noise", Work(OURS, f"{name} by hand", n=n), _NO_SLOWER))
    return Case(title, SECONDS, Work(OURS, name, n=n), tuple(peers), repetitions=5)


def main(words: Sequence[str]) -> None:
    """The usual sizes, or the largest where it is asked for."""
    bench(words, list(cases(_LARGEST if "100M" in words else _SIZES)), (OURS, OPENDP), RESULTS)


if __name__ == "__main__":
    main(sys.argv[1:])
