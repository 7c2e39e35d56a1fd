# SPDX-License-Identifier: Apache-2.0
"""Many askers over one session, and a ledger of many accounts or charges: part of ``make bench-query``.

The session has ``sf.Local(threads=1, lanes=2)`` and a table of 1,000 rows, so that a question is
its planning, its charge and little else. ``small`` among the words makes all of it smaller, and
writes nothing.
"""

import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction

from benchmarks.compare import Case, Kind, Peer, Unit, Work, at_most, at_most_times, faster
from benchmarks.driver import OURS, ROOT, SLOW_DISK
from benchmarks.report import bench

RESULTS = ROOT / "benchmarks" / "results" / "askers.json"
ASKERS = "askers"
SLOWLY = f"{ASKERS}{SLOW_DISK}"

EACH = Unit("ms a question", 1e3, kind=Kind.VALUE)
INSTALMENT = Unit("us an instalment", 1e6, kind=Kind.VALUE)
MILLI = Unit("ms", 1e3, kind=Kind.VALUE)
OFTEN = Unit("ms", 1e3)
SECONDS = Unit("s", 1, kind=Kind.VALUE)
MEGABYTES = Unit("MB", 1e-6, kind=Kind.VALUE)
FLUSHES = Unit("flushes a charge", 1, kind=Kind.VALUE)
_THREADS, _QUESTIONS, _ACCOUNTS = 32, 640, 10**5
_CHARGES, _MORE, _FORFEITS = 10**6, 1000, 10**4
_SMALL = 100
_WIDE, _EACH = 200, 40
_PLACES = 10**4
_REPETITIONS = 3


def cases(*, small: bool = False) -> Iterator[Case]:
    """All of them; small ones to try them out."""
    yield from _together(_THREADS if small else _QUESTIONS)
    yield from _beside()
    yield Case("a stored answer, by its text", OFTEN, Work(ASKERS, "stored"), (), at_most(0.3))
    raw = Peer("the ledger alone, and planning", Work(ASKERS, "raw ledger and planning", 1, _EACH))
    yield Case("a small question, alone", MILLI, Work(ASKERS, "fresh"), (raw,), None, _REPETITIONS)
    planned = Work(ASKERS, "planned", 1, _WIDE)
    yield Case(
        f"a preview of {_WIDE} sums over {_WIDE} tests",
        MILLI,
        planned,
        (),
        at_most(100),
        _REPETITIONS,
    )
    yield Case("asking_as", OFTEN, Work(ASKERS, "asking as"), (), at_most(0.2))
    alone = Peer("no published head", Work(ASKERS, "flushes", 0, 51), at_most_times(Fraction(1)))
    flushes = Work(ASKERS, "flushes", 1, 51)
    yield Case(
        "one charge, with the open mark and a published head",
        FLUSHES,
        flushes,
        (alone,),
        at_most(3),
        1,
    )
    part = _SMALL if small else 1
    yield from _accounts(_ACCOUNTS // part)
    yield from _charges(_CHARGES // part, _MORE // part, _FORFEITS // part)
    yield from _in_pieces(_PLACES // part)


def _together(n: int) -> Iterator[Case]:
    alone = Peer("one thread", Work(SLOWLY, "threads", 1, _THREADS), faster(4))
    raw = Work(SLOWLY, "raw ledger and planning", _THREADS, n)
    parts = Peer("the ledger alone, and planning", raw, at_most_times(Fraction(13, 10)))
    ours = Work(SLOWLY, "threads", _THREADS, n)
    yield Case(
        f"small questions of {_THREADS} threads, a 4 ms disk",
        EACH,
        ours,
        (alone, parts),
        None,
        _REPETITIONS,
    )


def _beside() -> Iterator[Case]:
    stored = Work(ASKERS, "stored beside")
    yield Case(
        "a stored answer beside a question that runs", MILLI, stored, (), at_most(20), _REPETITIONS
    )
    alone = Peer("alone", Work(ASKERS, "fresh"), at_most_times(Fraction(3, 2)))
    fresh = Work(ASKERS, "fresh beside")
    yield Case("a small question beside one that runs", MILLI, fresh, (alone,), None, _REPETITIONS)


def _accounts(n: int) -> Iterator[Case]:
    for name, unit, work, bar in (
        ("created together", SECONDS, "created", 15),
        ("listed", SECONDS, "listed", 1),
        ("the report", SECONDS, "reported", 5),
        ("the report", MEGABYTES, "report size", 1),
    ):
        yield Case(f"{n:,} accounts, {name}", unit, Work(ASKERS, work, 1, n), (), at_most(bar), 1)


def _charges(n: int, more: int, forfeits: int) -> Iterator[Case]:
    yield Case(f"verify, {n:,} charges", SECONDS, Work(OURS, "verify", 1, n), (), at_most(56), 1)
    name = f"incremental verify, {more:,} charges after {n:,}"
    yield Case(name, SECONDS, Work(OURS, "verify more", more, n), (), at_most(1), _REPETITIONS)
    before = Peer(
        "no forfeits", Work(OURS, "after forfeits", 0, 200), at_most_times(Fraction(6, 5))
    )
    after = Work(OURS, "after forfeits", forfeits, 200)
    yield Case(
        f"one charge after {forfeits:,} forfeits", MILLI, after, (before,), None, _REPETITIONS
    )


def _in_pieces(n: int) -> Iterator[Case]:
    """Instalments of one charge: each is one durable write, and at most 1 ms besides."""
    name = f"{n:,} instalments of a charge"
    yield Case(name, INSTALMENT, Work(OURS, "instalments", 1, n), (), at_most(1000), 1)
    yield Case(
        f"verify, {n:,} instalments",
        SECONDS,
        Work(OURS, "verify instalments", 1, n),
        (),
        at_most(2),
        1,
    )


def main(words: Sequence[str]) -> None:
    """Runs those cases that hold one of the words."""
    small = "small" in words
    chosen = [word for word in words if word != "small"]
    bench(chosen, list(cases(small=small)), (ASKERS, SLOWLY), None if small else RESULTS)


if __name__ == "__main__":
    main(sys.argv[1:])
