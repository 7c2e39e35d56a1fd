# SPDX-License-Identifier: Apache-2.0
"""Many askers over one session, alone and beside a question that runs for long, and a ledger of many accounts."""

import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache, partial
from itertools import count
from typing import Any
from unittest.mock import patch

import pyarrow as pa

import sfumato as sf
from benchmarks.systems import Call, Make
from benchmarks.systems.charges import charge, counting, folder, opened, shared
from sfumato.engines import duckdb as engine
from sfumato.engines.emit import Statement
from sfumato.errors import Cancelled
from sfumato.ledger import Ledger, Scope
from sfumato.ledger.head_sinks import sink_at
from sfumato.ledger.report import page
from sfumato.ledger.summary import summary

PACKAGES = ("sfumato", "duckdb", "sqlglot", "apsw")
_ROWS, _EACH = 1000, 40
_FRESH = count(1)
# what runs until it is interrupted, in the engine alone
_LONG = "SELECT sum(a.range * b.range) FROM range(10000000) AS a, range(10000000) AS b"


@cache
def _session() -> sf.Session:
    """A small table; each statement runs in the thread of its asker."""
    frame = pa.table({"number": range(_ROWS)})
    people = sf.Table(frame, columns={"number": sf.Integer(0, 10**9)})
    budget, local = sf.Budget(10**6), sf.Local(threads=1, lanes=2)
    return sf.connect(
        {"people": people}, dataset="tiny", budget=budget, ledger=folder() / "l.db", engine=local
    )


def _question() -> str:
    """A small one that nobody has asked."""
    return f"SELECT COUNT(*) AS n FROM people WHERE number > {next(_FRESH)}"


def _ask(_caller: int = 0) -> None:
    if _session().query(_question(), epsilon="0.000001").recalled:
        raise RuntimeError("this was asked before")


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _each(work: Callable[[], object], times: int = _EACH) -> float:
    """The median seconds of a call."""
    return statistics.median(_seconds(work) for _ in range(times))


def _threads(scale: float, n: int) -> Call:
    """So many threads with ``n`` questions among them: seconds a question."""
    _ask()
    return lambda: _seconds(lambda: shared(int(scale), n, _ask)) / n


def _raw_and_planning(scale: float, n: int) -> Call:
    """As many charges of the ledger alone by as many threads, and the planning of one question."""
    ledger, session = opened(folder() / "raw.db"), _session()

    def plan() -> object:
        return session.preview(_question(), epsilon="0.000001")

    def both() -> float:
        raw = _seconds(lambda: shared(int(scale), n, lambda caller: charge(ledger, caller))) / n
        return raw + _each(plan)

    return both


@contextmanager
def _long_question() -> Iterator[None]:
    """While it lasts a question of the same session runs."""
    stop, reads = sf.Stop(), threading.Event()

    def ask() -> None:
        with suppress(Cancelled):
            _session().query(_question(), epsilon="0.000001", stop=stop)

    def emitted(*_: object, **__: object) -> tuple[Statement, ...]:
        reads.set()
        return (Statement(_LONG, (0,)),)

    asker = threading.Thread(target=ask)
    with patch.object(engine, "_statements", emitted):
        asker.start()
        reads.wait()
    # it reads the data by then
    time.sleep(0.2)
    try:
        yield
    finally:
        stop.stop()
        asker.join()


def _beside(work: Callable[[], object]) -> float:
    with _long_question():
        return _each(work)


def _stored() -> Callable[[], object]:
    question = _question()
    ask = partial(_session().query, question, epsilon="0.000001")
    ask()
    return ask


def _stored_alone(scale: float, n: int) -> Call:
    return _stored()


def _stored_beside(scale: float, n: int) -> Call:
    stored = _stored()
    return lambda: _beside(stored)


def _fresh_alone(scale: float, n: int) -> Call:
    _ask()
    return lambda: _each(_ask)


def _fresh_beside(scale: float, n: int) -> Call:
    _ask()
    return lambda: _beside(_ask)


def _asking_as(scale: float, n: int) -> Call:
    session = _session()
    return lambda: session.asking_as("somebody", "research")


@contextmanager
def _direct_flushes() -> Iterator[list[None]]:
    """One item for each flush that is not of SQLite, in any thread: of the mark and of published heads."""
    made: list[None] = []

    def counted(flush: Callable[[Any], None]) -> Callable[[Any], None]:
        def call(file: Any) -> None:
            made.append(None)
            flush(file)

        return call

    with (
        patch.object(os, "fsync", counted(os.fsync)),
        patch.object(os, "fdatasync", counted(os.fdatasync)),
    ):
        yield made


def _flushes(scale: float, n: int) -> Call:
    """The flushes of a charge by all threads; its head is published to ``scale`` files."""
    sinks = [sink_at(f"file://{folder()}/study.head") for _ in range(int(scale))]

    def median() -> int:
        with counting() as vfs:
            ledger = opened(folder() / "counted.db")
        found = []
        with _direct_flushes() as direct, closing(ledger):
            ledger.heads.begin(sinks)
            for _ in range(n):
                before = vfs.syncs + len(direct)
                charge(ledger, 0)
                found.append(vfs.syncs + len(direct) - before)
        if any(sink.newest() is None for sink in sinks):
            raise RuntimeError("a head was not published")
        return sorted(found)[n // 2]

    return median


@cache
def _accounts(n: int) -> tuple[Ledger, float]:
    """A ledger of so many analysts, and the seconds in which they came to be."""
    ledger = opened(folder() / "accounts.db")
    limits = {Scope("d", "unstated", f"analyst {number}"): sf.Budget(1) for number in range(n)}
    took = _seconds(lambda: ledger.allocate_all(limits))
    if len(ledger.accounts()) < n:
        raise RuntimeError("an account could not be opened")
    return ledger, took


def _created(scale: float, n: int) -> Call:
    return lambda: _accounts(n)[1]


def _listed(scale: float, n: int) -> Call:
    ledger, _ = _accounts(n)
    return lambda: _seconds(ledger.accounts)


def _reported(scale: float, n: int) -> Call:
    ledger, _ = _accounts(n)
    return lambda: _seconds(lambda: page(summary(ledger, "d")))


def _report_size(scale: float, n: int) -> Call:
    ledger, _ = _accounts(n)
    return lambda: len(page(summary(ledger, "d")).encode())


def _planned(scale: float, n: int) -> Call:
    """The median seconds of a free preview of ``n`` sums over ``n`` tests that nobody has asked."""
    session, fresh = _session(), count(1)

    def preview() -> object:
        first = n * next(fresh)
        numbers = range(first, first + n)
        sums = ", ".join(f"SUM(CASE WHEN number > {each} THEN number END)" for each in numbers)
        tests = " AND ".join(f"number <> {each}" for each in numbers)
        return session.preview(f"SELECT {sums} FROM people WHERE {tests}", epsilon="0.000001")

    return lambda: _each(preview, 5)


WORKS: dict[str, Make] = {
    "threads": _threads,
    "raw ledger and planning": _raw_and_planning,
    "stored": _stored_alone,
    "stored beside": _stored_beside,
    "fresh": _fresh_alone,
    "fresh beside": _fresh_beside,
    "asking as": _asking_as,
    "flushes": _flushes,
    "planned": _planned,
    "created": _created,
    "listed": _listed,
    "reported": _reported,
    "report size": _report_size,
}
