# SPDX-License-Identifier: Apache-2.0
"""Many askers over one session, and a ledger of many accounts: part of ``make bench-query``.

The session has ``sf.Local(threads=1, lanes=2)`` and a table of 1,000 rows, so that a question is
its planning, its charge and little else. ``small`` among the words makes all of it smaller, and
writes nothing.
"""

import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction

from benchmarks.compare import Case, Kind, Peer, Unit, Work, at_most, at_most_times, faster
from benchmarks.driver import ROOT, SLOW_DISK
from benchmarks.report import bench

RESULTS = ROOT / "benchmarks" / "results" / "askers.json"
ASKERS = "askers"
SLOWLY = f"{ASKERS}{SLOW_DISK}"

EACH = Unit("ms a question", 1e3, kind=Kind.VALUE)
MILLI = Unit("ms", 1e3, kind=Kind.VALUE)
OFTEN = Unit("ms", 1e3)
SECONDS = Unit("s", 1, kind=Kind.VALUE)
MEGABYTES = Unit("MB", 1e-6, kind=Kind.VALUE)
FLUSHES = Unit("flushes a charge", 1, kind=Kind.VALUE)
_THREADS, _QUESTIONS, _ACCOUNTS = 32, 640, 10**5
_SMALL = 100
_REPETITIONS = 3


def cases(*, small: bool = False) -> Iterator[Case]:
    """All of them; small ones to try them out."""
    yield from _together(_THREADS if small else _QUESTIONS)
    yield from _beside()
    yield Case("a stored answer, by its text", OFTEN, Work(ASKERS, "stored"), (), at_most(0.3))
    yield Case("asking_as", OFTEN, Work(ASKERS, "asking as"), (), at_most(0.2))
    flushes = Work(ASKERS, "flushes", 1, 51)
    yield Case("one charge, the open mark and the head included", FLUSHES, flushes, (), at_most(3), 1)
    yield from _accounts(_ACCOUNTS // _SMALL if small else _ACCOUNTS)


def _together(n: int) -> Iterator[Case]:
    alone = Peer("one thread", Work(SLOWLY, "threads", 1, _THREADS), faster(4))
    raw = Work(SLOWLY, "raw ledger and planning", _THREADS, n)
    parts = Peer("the ledger alone, and planning", raw, at_most_times(Fraction(13, 10)))
    ours = Work(SLOWLY, "threads", _THREADS, n)
    yield Case(f"small questions of {_THREADS} threads, a 4 ms disk", EACH, ours, (alone, parts), None, _REPETITIONS)


def _beside() -> Iterator[Case]:
    stored = Work(ASKERS, "stored beside")
    yield Case("a stored answer beside a question that runs", MILLI, stored, (), at_most(20), _REPETITIONS)
    alone = Peer("alone", Work(ASKERS, "fresh"), at_most_times(Fraction(3, 2)))
    fresh = Work(ASKERS, "fresh beside")
    yield Case("a small question beside one that runs", MILLI, fresh, (alone,), None, _REPETITIONS)


def _accounts(n: int) -> Iterator[Case]:
    for name, unit, work, bar in (
        ("opened by 32 callers", SECONDS, "created", 15),
        ("listed", SECONDS, "listed", 1),
        ("the report", SECONDS, "reported", 5),
        ("the report", MEGABYTES, "report size", 1),
    ):
        yield Case(f"{n:,} accounts, {name}", unit, Work(ASKERS, work, 1, n), (), at_most(bar), 1)


def main(words: Sequence[str]) -> None:
    """Runs those cases that hold one of the words."""
    small = "small" in words
    chosen = [word for word in words if word != "small"]
    bench(chosen, list(cases(small=small)), (ASKERS, SLOWLY), None if small else RESULTS)


if __name__ == "__main__":
    main(sys.argv[1:])
