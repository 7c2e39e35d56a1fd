# SPDX-License-Identifier: Apache-2.0
"""Ledgers on a PostgreSQL server: ours, and the same with one global chain, as one would first write it.

Eight callers, each on an analyst's account of its own below one dataset, as processes or as
threads of one process. The other ledger holds one lock until an ordinary commit is on disk, and
makes a round trip for each statement. The server is a fresh one on a socket, for this process.
"""

import atexit
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import TypeVar

from benchmarks.systems import Call, Make
from sfumato.ledger import Ledger, Request
from sfumato.ledger.store.base import AccountRow, Rows
from sfumato.ledger.store.postgres import Postgres
from sfumato.ledger.store.postgres_rows import CLOCK, Connection, PostgresRows, placed
from sfumato.ledger.store.postgres_schema import PATH
from sfumato.ledger.store.rows import PUT_ACCOUNT, Cell
from sfumato.metadata.contract import Contract
from sfumato.noise import DiscreteLaplace
from sfumato.privacy import AdditiveNoise, Budget, Distance, Norm
from tools.postgres import Cluster, programs

T = TypeVar("T")
PACKAGES = ("psycopg",)
_BUDGET = Budget(10**6)
_EVENT = AdditiveNoise(DiscreteLaplace(100), Distance(Norm.L1, Fraction(1)))
_FRESH = count(1)
# charges after which each statement is prepared on its connection
_WARM = 6
_FOUND = programs()
if _FOUND is None:
    raise ImportError("PostgreSQL (initdb, postgres) is not installed")
_PROGRAMS: Path = _FOUND


class PlainRows(PostgresRows):
    """Each statement is sent as it comes."""

    def put_account(self, row: AccountRow) -> None:
        self._connection.execute(placed(PUT_ACCOUNT), row)

    def _run(self, sql: str, values: tuple[Cell, ...] = ()) -> None:
        self._connection.execute(placed(sql), values)


class OneChain(Postgres):
    """The same ledger as one would first write it: all charges of all accounts in one line."""

    def _written(self, connection: Connection, unit: Callable[[Rows], T]) -> T:
        with connection.transaction():
            connection.execute("SELECT set_config('search_path', $1, true)", (PATH,))
            connection.execute("SELECT pg_advisory_xact_lock(1)")
            return unit(
                PlainRows(
                    connection,
                    lambda: None,
                    lambda: self._later(connection.execute(f"SELECT {CLOCK}").fetchone()),
                )
            )


_STORES: dict[str, type[Postgres]] = {"ours": Postgres, "one chain": OneChain}


def _charge(ledger: Ledger, caller: int, many: int, tag: str) -> None:
    """So many charges of one caller, one after the other."""
    for number in range(many):
        question = f"{tag} {caller} {number}"
        name = ledger.reserve(Request("d", f"analyst {caller}", question, question, _EVENT))
        ledger.execute(name)
        ledger.commit(name, b"answer")


def _threads(url: str, store: str, callers: int, each: int) -> float:
    """The callers are threads of this process, each with a connection when the clock is started."""
    ledger, tag = Ledger(_STORES[store](url)), str(next(_FRESH))
    ready, begun = threading.Barrier(callers + 1), threading.Barrier(callers + 1)

    def call(caller: int) -> None:
        ready.wait()
        _charge(ledger, caller, _WARM, f"{tag} warm")
        begun.wait()
        _charge(ledger, caller, each, tag)

    workers = [threading.Thread(target=call, args=(caller,)) for caller in range(callers)]
    for worker in workers:
        worker.start()
    ready.wait()
    begun.wait()
    before = time.perf_counter()
    for worker in workers:
        worker.join()
    taken = time.perf_counter() - before
    ledger.close()
    return taken


def _processes(url: str, store: str, callers: int, each: int) -> float:
    """The callers are processes, which are ready before the clock is started."""
    ends, tag = _callers(callers), str(next(_FRESH))
    _told(ends, [json.dumps([url, store, caller, each, tag]) for caller in range(callers)], "ready")
    before = time.perf_counter()
    _told(ends, ["go"] * callers, "done")
    return time.perf_counter() - before


def _told(ends: Sequence["subprocess.Popen[str]"], words: Sequence[str], answer: str) -> None:
    """Tells each caller something, and waits until all have answered."""
    for end, word in zip(ends, words, strict=True):
        print(word, file=end.stdin, flush=True)
    heard = [end.stdout.readline() for end in ends if end.stdout]
    assert heard == [f"{answer}\n"] * len(ends), "every caller is served"


@cache
def _callers(many: int) -> "list[subprocess.Popen[str]]":
    """Processes that end with this one."""
    command = [sys.executable, "-m", "benchmarks.systems.ledger_server"]
    return [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603 - ourselves
        for _ in range(many)
    ]


def _be_caller() -> None:
    """One of the processes: makes ready for a round, begins when it is told, and says that it is done."""
    for line in sys.stdin:
        url, store, caller, each, tag = json.loads(line)
        ledger = Ledger(_STORES[store](url))
        _charge(ledger, caller, _WARM, f"{tag} warm")
        print("ready", flush=True)
        sys.stdin.readline()
        _charge(ledger, caller, each, tag)
        print("done", flush=True)
        ledger.close()


@cache
def _server() -> str:
    """The address of a ledger on a server that lives as long as this process."""
    folder = Path(tempfile.mkdtemp(prefix="sfumato-bench-"))
    atexit.register(shutil.rmtree, folder)
    cluster = Cluster(_PROGRAMS, folder)
    cluster.start()
    atexit.register(cluster.stop)
    url = cluster.url("postgres")
    ledger = Ledger.open(url)
    ledger.adopt(Contract("d", "add-remove", {"t": "(row)"}, str(_BUDGET.epsilon), "0"), _BUDGET)
    ledger.close()
    return url


def _round(run: Callable[[str, str, int, int], float], store: str, scale: float, n: int) -> Call:
    url = _server()
    return lambda: run(url, store, int(scale), n // int(scale))


WORKS: dict[str, Make] = {
    f"{store}, {name}": partial(_round, run, store)
    for store in _STORES
    for name, run in (("processes", _processes), ("threads", _threads))
}


if __name__ == "__main__":
    _be_caller()
