# SPDX-License-Identifier: Apache-2.0
"""How many durable charges a PostgreSQL ledger takes a second: ``python -m benchmarks.ledger_postgres``.

Eight callers, each on an analyst's account of its own below one dataset, as processes and as
threads of one process. Beside ours runs the same ledger with one global chain: a lock that is
held until an ordinary commit is on disk, and a round trip for each statement. The server is
a fresh one on a socket. ``--disk-ms 4`` makes each of its syncs that much slower (through strace), as
on a disk that is slower than this one.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import TypeVar

from sfumato.ledger import Ledger, Request
from sfumato.ledger.store.base import AccountRow, Rows
from sfumato.ledger.store.postgres import Postgres
from sfumato.ledger.store.postgres_rows import CLOCK, Connection, PostgresRows, placed
from sfumato.ledger.store.postgres_schema import PATH
from sfumato.ledger.store.rows import PUT_ACCOUNT, Cell, account_cells
from sfumato.metadata.contract import Contract
from sfumato.noise import DiscreteLaplace
from sfumato.privacy import AdditiveNoise, Budget, Distance, Norm
from tools.postgres import Cluster, programs

T = TypeVar("T")
CALLERS, CHARGES, ROUNDS = 8, 40, 3
BAR = 3.0


class PlainRows(PostgresRows):
    """Each statement is sent as it comes."""

    def put_account(self, row: AccountRow) -> None:
        self._connection.execute(placed(PUT_ACCOUNT), account_cells(row))

    def _run(self, sql: str, values: tuple[Cell, ...] = ()) -> None:
        self._connection.execute(placed(sql), values)


class OneChain(Postgres):
    """The same ledger as one would first write it: all charges of all accounts in one line."""

    def _written(self, connection: Connection, unit: Callable[[Rows], T]) -> T:
        with connection.transaction():
            connection.execute("SELECT set_config('search_path', $1, true)", (PATH,))
            connection.execute("SELECT pg_advisory_xact_lock(1)")
            return unit(PlainRows(connection, lambda: self._later(connection.execute(f"SELECT {CLOCK}"))))


STORES: dict[str, type[Postgres]] = {"one global chain": OneChain, "ours": Postgres}


@dataclass(frozen=True, slots=True)
class Run:
    """A round of all callers."""

    seconds: float
    latencies: list[float]

    @property
    def rate(self) -> float:
        """Charges a second."""
        return len(self.latencies) / self.seconds

    def at(self, share: float) -> float:
        """A quantile of the time of a charge, in milliseconds."""
        return sorted(self.latencies)[int(share * (len(self.latencies) - 1))] * 1e3


def charge(ledger: Ledger, caller: int, count: int, tag: str) -> list[float]:
    """So many charges of one caller, one after the other; the time of each."""
    event = AdditiveNoise(DiscreteLaplace(100), Distance(Norm.L1, Fraction(1)))
    taken = []
    for number in range(count):
        question = f"{tag} {caller} {number}"
        request = Request("d", f"analyst {caller}", question, question, event)
        start = time.perf_counter()
        name = ledger.reserve(request)
        ledger.execute(name)
        ledger.commit(name, b"answer")
        taken.append(time.perf_counter() - start)
    return taken


def threads(url: str, store: str, tag: str) -> Run:
    """The callers are threads of this process."""
    ledger = Ledger(STORES[store](url))
    latencies: list[float] = []
    workers = [
        threading.Thread(target=lambda caller: latencies.extend(charge(ledger, caller, CHARGES, tag)), args=(caller,))
        for caller in range(CALLERS)
    ]
    for caller in range(CALLERS):
        charge(ledger, caller, 1, f"{tag} warm")
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    seconds = time.perf_counter() - start
    ledger.close()
    return Run(seconds, latencies)


def processes(url: str, store: str, tag: str) -> Run:
    """The callers are processes, started before the clock is."""
    command = [sys.executable, "-m", "benchmarks.ledger_postgres", "--caller"]
    workers = [
        subprocess.Popen([*command, json.dumps([url, store, tag, caller])], stdin=-1, stdout=-1, text=True)  # noqa: S603
        for caller in range(CALLERS)
    ]
    ends = [(worker.stdin, worker.stdout) for worker in workers]
    told = [out for _, out in ends if out and out.readline()]
    start = time.perf_counter()
    for give, _ in ends:
        if give:
            give.close()
    latencies = [each for out in told for each in json.loads(out.readline())]
    seconds = time.perf_counter() - start
    for worker in workers:
        worker.wait()
    return Run(seconds, latencies)


def be_caller(url: str, store: str, tag: str, caller: int) -> None:
    """One of the processes: says that it is ready, and begins when it is told."""
    ledger = Ledger(STORES[store](url))
    charge(ledger, caller, 1, f"{tag} warm")
    print("ready", flush=True)
    sys.stdin.read()
    print(json.dumps(charge(ledger, caller, CHARGES, tag)), flush=True)
    ledger.close()


@contextmanager
def server(disk_ms: float) -> Iterator[Cluster]:
    """A fresh server; its syncs take longer by ``disk_ms``."""
    found = programs()
    if found is None:
        raise SystemExit("skipped: PostgreSQL (initdb, postgres) is not installed")
    folder = Path(tempfile.mkdtemp(prefix="sfumato-bench-"))
    try:
        cluster = Cluster(found, folder)
        cluster.start()
        slowed = _slow_down(cluster.pid, disk_ms) if disk_ms else None
        try:
            yield cluster
        finally:
            cluster.stop()
            if slowed:
                slowed.wait()
    finally:
        shutil.rmtree(folder)


def _slow_down(process: int, disk_ms: float) -> "subprocess.Popen[str]":
    delay = f"inject=fdatasync:delay_enter={round(disk_ms * 1000)}"
    command = ["strace", "-f", "-e", "trace=fdatasync", "-e", delay, "-o", os.devnull, "-p", str(process)]
    strace = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)  # noqa: S603
    if strace.stderr:
        strace.stderr.readline()  # it says when it is attached
    return strace


def sync_ms(folder: Path) -> float:
    """The median time of a bare fdatasync here."""
    path, taken = folder / "sync", []
    with path.open("wb", buffering=0) as file:
        for _ in range(100):
            file.write(bytes(4096))
            start = time.perf_counter()
            os.fdatasync(file.fileno())
            taken.append(time.perf_counter() - start)
    path.unlink()
    return median(taken) * 1e3


def compare(url: str, kind: str, call: Callable[[str, str, str], Run]) -> float:
    """Rounds of both in turn; prints them, and gives ours over the other."""
    runs: dict[str, list[Run]] = {store: [] for store in STORES}
    for number in range(ROUNDS):
        for store, found in runs.items():
            found.append(call(url, store, f"{kind} {store} {number}"))
    rates = {store: median(run.rate for run in found) for store, found in runs.items()}
    for store, found in runs.items():
        p50, p99 = (median(run.at(share) for run in found) for share in (0.5, 0.99))
        print(
            f"{CALLERS} {kind:<10} {store:<17} {rates[store]:>6.0f} charges/s  p50 {p50:>4.0f} ms  p99 {p99:>4.0f} ms"
        )
    return rates["ours"] / rates["one global chain"]


def main(arguments: Sequence[str]) -> None:
    """Runs and prints."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--disk-ms", type=float, default=0.0)
    options.add_argument("--caller", help=argparse.SUPPRESS)
    chosen = options.parse_args(arguments)
    if chosen.caller:
        be_caller(*json.loads(chosen.caller))
        return
    with server(chosen.disk_ms) as cluster:
        budget = Budget(10**6)
        ledger = Ledger.open(cluster.emptied())
        ledger.adopt(Contract("d", "add-remove", {"t": "(row)"}, str(budget.epsilon), str(budget.delta)), budget)
        ledger.close()
        print(
            f"a bare fdatasync takes {sync_ms(cluster.folder):.2f} ms here; the server's take {chosen.disk_ms:g} ms more"
        )
        for kind, call in (("processes", processes), ("threads", threads)):
            ratio = compare(cluster.url("postgres"), kind, call)
            print(f"{CALLERS} {kind}: {ratio:.1f} times; the bar is {BAR:g}: {'holds' if ratio >= BAR else 'MISSED'}")


if __name__ == "__main__":
    main(sys.argv[1:])
