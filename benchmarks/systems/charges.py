# SPDX-License-Identifier: Apache-2.0
"""What is done with a ledger in a file: durable charges by many callers, and a large ledger at work."""

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from typing import TypeVar

import apsw

from benchmarks.systems import Call, Make
from sfumato.ledger import Ledger, Request, verify
from sfumato.ledger.spend import INTERRUPTED
from sfumato.ledger.store.base import Rows
from sfumato.ledger.verified import Verified
from sfumato.metadata.contract import Contract
from sfumato.noise import DiscreteLaplace
from sfumato.privacy import AdditiveNoise, Budget, Distance, Norm

T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[2]
BODY = b"x" * 500
_BUDGET = Budget(1_000_000)
_EVENTS = [
    AdditiveNoise(DiscreteLaplace(scale), Distance(Norm.L1, Fraction(1))) for scale in range(10, 60)
]
# a ledger with so many charges takes minutes to make
_KEPT = 100_000
# how many charges are made in one unit of work
_BLOCK = 5000
# by the identity of a ledger: what was verified of it
_VERIFIED: dict[str, Verified] = {}
_CONTRACT = Contract("d", "add-remove", {"t": "(row)"}, str(_BUDGET.epsilon), "0")
_FRESH = count(1)
# numbers of requests that no other case makes
_FORFEITED = 10**9
_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []


def shared(callers: int, n: int, charge: Callable[[int], None]) -> list[float]:
    """``n`` charges by so many threads; the seconds of each."""
    taken: list[float] = []
    start = threading.Barrier(callers)

    def run(caller: int) -> None:
        start.wait()
        for _ in range(n // callers):
            before = time.perf_counter()
            charge(caller)
            taken.append(time.perf_counter() - before)

    threads = [threading.Thread(target=run, args=(caller,)) for caller in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return taken


def request(number: int, analyst: object) -> Request:
    """One that nobody has made, where the number is new."""
    event = _EVENTS[number % len(_EVENTS)]
    return Request("d", f"analyst {analyst}", f"{number:064d}", f"{number % 1000:064d}", event)


def charge(ledger: Ledger, caller: object) -> None:
    """Reserved, marked and committed."""
    reserved = ledger.reserve(request(next(_FRESH), caller))
    ledger.execute(reserved)
    ledger.commit(reserved, BODY)


def opened(path: Path) -> Ledger:
    """The ledger in a file, with an account."""
    ledger = Ledger.open(path)
    ledger.adopt(_CONTRACT, _BUDGET)
    return ledger


def folder() -> Path:
    """A folder on a disk (/tmp may lie in memory, where nothing is flushed), until the process ends."""
    (ROOT / ".bench").mkdir(exist_ok=True)
    _FOLDERS.append(tempfile.TemporaryDirectory(dir=ROOT / ".bench", ignore_cleanup_errors=True))
    return Path(_FOLDERS[-1].name)


def _fresh() -> Ledger:
    return opened(folder() / "ledger.db")


def _charges(scale: float, n: int) -> Call:
    ledger = _fresh()
    return lambda: shared(int(scale), n, lambda caller: charge(ledger, caller))


def _p99(scale: float, n: int) -> Call:
    ledger = _fresh()
    return lambda: sorted(shared(int(scale), n, lambda caller: charge(ledger, caller)))[
        n * 99 // 100
    ]


class _Counting(apsw.VFS):
    """The file system of SQLite, counting how often it is told to flush."""

    def __init__(self) -> None:
        self.syncs = 0
        super().__init__("counting", "unix", makedefault=True)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return _Counted(self, name, flags)


class _Counted(apsw.VFSFile):
    def __init__(
        self, owner: _Counting, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> None:
        self._owner = owner
        super().__init__("unix", name, flags)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._owner.syncs += 1
        super().xSync(flags)


@contextmanager
def counting() -> Iterator[_Counting]:
    """A ledger that is opened inside counts the flushes of SQLite."""
    vfs = _Counting()
    try:
        yield vfs
    finally:
        vfs.unregister()


def _syncs(scale: float, n: int) -> Call:
    with counting() as vfs:
        ledger = _fresh()

    def median() -> int:
        each = []
        for _ in range(n):
            before = vfs.syncs
            charge(ledger, 0)
            each.append(vfs.syncs - before)
        return sorted(each)[n // 2]

    return median


class _Bulk(Ledger):
    """A ledger that can do many steps in one unit of work: how a large one comes to be in minutes."""

    rows: Rows | None = None

    def _write(self, unit: Callable[[Rows], T]) -> T:
        return super()._write(unit) if self.rows is None else unit(self.rows)


def _fill(ledger: _Bulk, numbers: range, rows: Rows) -> None:
    """Paid charges, in one unit of work."""
    ledger.rows = rows
    try:
        for number in numbers:
            reserved = ledger.reserve(request(number, number % 8))
            ledger.execute(reserved)
            ledger.commit(reserved, BODY)
    finally:
        ledger.rows = None


def large(n: int) -> Path:
    """A ledger with so many paid charges; a large one is made once and kept."""
    path = (ROOT / ".bench" if n >= _KEPT else folder()) / f"ledger-{n}.db"
    if path.exists():
        return path
    path.parent.mkdir(exist_ok=True)
    building = path.with_suffix(".building")
    opened(building).close()
    ledger = _Bulk.open(building)
    assert isinstance(ledger, _Bulk), "open gives what it is called on"
    for start in range(0, n, _BLOCK):
        numbers = range(start, min(start + _BLOCK, n))
        ledger.store.write(lambda rows, numbers=numbers: _fill(ledger, numbers, rows))  # type: ignore[misc]
    ledger.close()
    for suffix in ("", ".head", ".key"):
        Path(f"{building}{suffix}").replace(f"{path}{suffix}")
    return path


def _timed(work: Callable[[], object]) -> float:
    before = time.perf_counter()
    work()
    return time.perf_counter() - before


def _opening(scale: float, n: int) -> Call:
    path = large(n)

    def opening() -> float:
        ledger: list[Ledger] = []
        taken = _timed(lambda: ledger.append(Ledger.open(path)))
        ledger[0].close()
        return taken

    return opening


def _left(scale: float, n: int) -> Call:
    path = large(n)

    def left() -> float:
        ledger = Ledger.open(path)
        try:
            return _timed(lambda: ledger.standing("d", "unstated", "analyst 1"))
        finally:
            ledger.close()

    return left


def _verify(scale: float, n: int) -> Call:
    path = large(n)

    def check() -> float:
        # as ``sfumato ledger verify`` opens it
        ledger = Ledger.open(path, read_only=True)
        try:
            return _timed(lambda: _VERIFIED.update({ledger.store.identity: _sound(ledger, n)}))
        finally:
            ledger.close()

    return check


def _sound(ledger: Ledger, n: int, since: Verified | None = None) -> Verified:
    report = verify(ledger, since=since)
    assert report.problems == () and report.charges == n and report.verified is not None, (
        "a sound ledger"
    )
    return report.verified


def _verify_more(scale: float, n: int) -> Call:
    """Verification of ``scale`` more charges on a ledger of ``n`` that was verified before."""
    more, path = int(scale), folder() / "more.db"
    kept = large(n)
    for suffix in ("", ".head", ".key"):
        shutil.copyfile(f"{kept}{suffix}", f"{path}{suffix}")
    ledger = _Bulk.open(path)
    assert isinstance(ledger, _Bulk), "open gives what it is called on"
    since = _VERIFIED.get(ledger.store.identity) or _sound(ledger, n)
    ledger.store.write(lambda rows: _fill(ledger, range(n, n + more), rows))
    return lambda: _timed(lambda: _sound(ledger, n + more, since))


def _after_forfeits(scale: float, n: int) -> Call:
    """The median seconds of one charge after ``scale`` others were forfeited, interrupted or not counted."""
    ledger = _Bulk.open(folder() / "forfeits.db")
    assert isinstance(ledger, _Bulk), "open gives what it is called on"
    ledger.adopt(_CONTRACT, _BUDGET)

    def fail(numbers: range, rows: Rows) -> None:
        ledger.rows = rows
        try:
            for number in numbers:
                reserved = ledger.reserve(request(number, 0))
                ledger.execute(reserved)
                ledger.forfeit(reserved, INTERRUPTED)
        finally:
            ledger.rows = None

    for start in range(0, int(scale), _BLOCK):
        numbers = range(_FORFEITED + start, _FORFEITED + min(start + _BLOCK, int(scale)))
        ledger.store.write(lambda rows, numbers=numbers: fail(numbers, rows))  # type: ignore[misc]
    # what made it large is written before anything is measured
    ledger.store.checkpoint()
    os.sync()
    return lambda: median(_timed(lambda: charge(ledger, 0)) for _ in range(n))


def _piecewise(ledger: Ledger, n: int) -> list[float]:
    """Opens a charge of so many instalments, begun together; the seconds of each append."""
    name = ledger.reserve(request(next(_FRESH), 0))
    fence = ledger.start(name, n)
    ledger.begin(name, n, fence=fence)
    appends = (partial(ledger.append, name, place, BODY, fence=fence) for place in range(1, n + 1))
    return [_timed(append) for append in appends]


def _instalments(scale: float, n: int) -> Call:
    ledger = _fresh()
    return lambda: sum(_piecewise(ledger, n)) / n


def _verify_instalments(scale: float, n: int) -> Call:
    ledger = _fresh()
    _piecewise(ledger, n)
    return lambda: _timed(lambda: _sound(ledger, 1))


CHARGES: dict[str, Make] = {
    "charges": _charges,
    "charges p99": _p99,
    "syncs": _syncs,
    "opening": _opening,
    "left": _left,
    "verify": _verify,
    "verify more": _verify_more,
    "after forfeits": _after_forfeits,
    "instalments": _instalments,
    "verify instalments": _verify_instalments,
}
