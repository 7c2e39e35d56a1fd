# SPDX-License-Identifier: Apache-2.0
"""How many durable charges a second, and how a large ledger behaves: ``make bench-ledger``.

A charge is reserved, marked executing and committed with its answer: three durable steps, for ours
and for the naive ledger alike. The time of one flush of the bare disk stands beside each figure, since it
decides most of them. PostgreSQL has a benchmark of its own (``ledger_postgres``).
"""

import sys
from collections.abc import Iterator

from benchmarks.compare import Case, Kind, Peer, Unit, Work, at_most, faster
from benchmarks.driver import OURS, ROOT
from benchmarks.report import bench

RESULTS = ROOT / "benchmarks" / "results" / "ledger.json"
NAIVE = "naive_sqlite"
PEERS = (NAIVE,)

EACH = Unit("us a charge", 1e6, each=True)
P99 = Unit("ms, p99", 1e3, kind=Kind.VALUE)
SYNCS = Unit("flushes a charge", 1, kind=Kind.VALUE)
SECONDS = Unit("s", 1, kind=Kind.VALUE)
MILLI = Unit("ms", 1e3, kind=Kind.VALUE)

# callers: how many charges a repetition, how many times as fast as the naive one
_CALLERS = {1: (20, None), 8: (80, None), 32: (320, 15)}
_LARGE = 10**6
_REPETITIONS, _FEW = 5, 3
# 500 charges a second, where a flush takes 4 ms
_RATE = 2000


def cases() -> Iterator[Case]:
    """All of them."""
    for callers, (n, times) in _CALLERS.items():
        flush = Peer("one fdatasync", Work(NAIVE, "fdatasync", 1, 50))
        naive = Peer("naive SQLite", Work(NAIVE, "charges", callers, n), faster(times) if times else None)
        name = f"SQLite, {callers} caller{'s' if callers > 1 else ''}"
        bar = at_most(_RATE) if callers > 8 else None
        yield Case(name, EACH, Work(OURS, "charges", callers, n), (naive, flush), bar, _REPETITIONS)
    yield Case("SQLite, 32 callers", P99, Work(OURS, "charges p99", 32, 640), (), at_most(150), _FEW)
    yield Case("SQLite, 1 caller", SYNCS, Work(OURS, "syncs", 1, 51), (), at_most(3), 1)
    yield Case(f"opening, {_LARGE:,} charges", SECONDS, Work(OURS, "opening", 1, _LARGE), (), at_most(1), _FEW)
    yield Case(f"what is left, {_LARGE:,} charges", MILLI, Work(OURS, "left", 1, _LARGE), (), at_most(1), _FEW)
    yield Case(f"verify, {_LARGE:,} charges", SECONDS, Work(OURS, "verify", 1, _LARGE), (), at_most(60), 1)


if __name__ == "__main__":
    bench(sys.argv[1:], list(cases()), PEERS, RESULTS)
