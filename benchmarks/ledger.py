# SPDX-License-Identifier: Apache-2.0
"""How many durable charges a second, and how a large ledger behaves: ``make bench-ledger``.

A charge is reserved, marked executing and committed with its answer: three durable steps, for
ours and for the naive ledgers alike. The time of one flush of the bare disk stands beside each
figure, since it decides most of them; so charges are counted twice, on this disk as it is and
where each flush is made to take 4 ms. ``small`` among the words makes all of it
smaller, and writes nothing.
"""

import sys
from collections.abc import Iterator, Sequence

from benchmarks.compare import Bar, Case, Kind, Peer, Unit, Work, at_most, faster
from benchmarks.driver import OURS, ROOT, SLOW_DISK
from benchmarks.report import bench

RESULTS = ROOT / "benchmarks" / "results" / "ledger.json"
NAIVE, SERVER = "naive_sqlite", "ledger_server"
PEERS = (NAIVE, SERVER, *(f"{system}{SLOW_DISK}" for system in (OURS, NAIVE, SERVER)))

CHARGE = Unit("us a charge", 1e6, each=True)
ROUND = Unit("us a charge", 1e6, each=True, kind=Kind.VALUE)
P99 = Unit("ms, p99", 1e3, kind=Kind.VALUE)
SYNCS = Unit("flushes a charge", 1, kind=Kind.VALUE)
SECONDS = Unit("s", 1, kind=Kind.VALUE)
MILLI = Unit("ms", 1e3, kind=Kind.VALUE)

# callers: how many charges a repetition, how many times as fast as the naive one
_CALLERS = {1: (20, None), 8: (80, None), 32: (320, faster(15))}
_SERVED, _SERVER_CHARGES = 8, 320
_LARGE = 10**6
_SMALL = 16
_REPETITIONS, _FEW = 5, 3
# 500 charges a second, where a flush takes 4 ms
_RATE = at_most(2000)


def cases(*, small: bool = False) -> Iterator[Case]:
    """All of them; small ones to try them out."""
    part = _SMALL if small else 1
    for disk in ("", SLOW_DISK):
        yield from _in_a_file(disk, part)
    for disk in ("", SLOW_DISK):
        yield from _on_a_server(disk, part)
    large = _LARGE // (part * part)
    for name, unit, work, bar, often in (
        ("opening", SECONDS, "opening", 1, _FEW),
        ("what is left", MILLI, "left", 1, _FEW),
        ("verify", SECONDS, "verify", 60, 1),
    ):
        yield Case(
            f"{name}, {large:,} charges",
            unit,
            Work(OURS, work, 1, large),
            (_flush(),),
            at_most(bar),
            often,
        )


def _in_a_file(disk: str, part: int) -> Iterator[Case]:
    ours, theirs, on = f"{OURS}{disk}", f"{NAIVE}{disk}", _on(disk)
    flush = Peer("one fdatasync", Work(theirs, "fdatasync", 1, 50))
    for callers, (n, bar) in _CALLERS.items():
        many = max(n // part, callers)
        naive = Peer("naive SQLite", Work(theirs, "charges", callers, many), bar)
        alone: Bar | None = _RATE if bar and disk else None
        name = f"SQLite{on}, {callers} caller{'s' if callers > 1 else ''}"
        yield Case(
            name, CHARGE, Work(ours, "charges", callers, many), (naive, flush), alone, _REPETITIONS
        )
    p99 = Work(ours, "charges p99", 32, max(640 // part, 128))
    yield Case(f"SQLite{on}, 32 callers", P99, p99, (_flush(disk),), at_most(150), _FEW)
    if not disk:
        yield Case("SQLite, 1 caller", SYNCS, Work(ours, "syncs", 1, 51), (), at_most(3), 1)


def _on_a_server(disk: str, part: int) -> Iterator[Case]:
    n = _SERVER_CHARGES // part
    for kind in ("processes", "threads"):
        ours, naive = (
            Work(f"{SERVER}{disk}", f"{store}, {kind}", _SERVED, n)
            for store in ("ours", "one chain")
        )
        peers = (Peer("one global chain", naive, faster(3)), _flush(disk))
        yield Case(
            f"PostgreSQL{_on(disk)}, {_SERVED} {kind}", ROUND, ours, peers, None, _REPETITIONS
        )


def _flush(disk: str = "") -> Peer:
    """The bare disk."""
    return Peer("one fdatasync", Work(f"{NAIVE}{disk}", "one fdatasync", 50))


def _on(disk: str) -> str:
    return ", a 4 ms disk" if disk else ""


def main(words: Sequence[str]) -> None:
    """Runs those cases that hold one of the words."""
    small = "small" in words
    chosen = [word for word in words if word != "small"]
    bench(chosen, list(cases(small=small)), PEERS, None if small else RESULTS)


if __name__ == "__main__":
    main(sys.argv[1:])
