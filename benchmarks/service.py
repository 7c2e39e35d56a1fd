# SPDX-License-Identifier: Apache-2.0
"""The service over HTTP against the session in process: ``make bench-service``.

The load generator shares the cores with the service; the quantum is 0. A missed bar is reported and
is no error. Many analysts for minutes are in ``service_soak``.
"""

import asyncio
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sfumato as sf
from sfumato.ledger import Ledger
from sfumato.query.session import Session
from sfumato.service.opening import Directory
from sfumato.service.people import Role

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "service.json"
# where the bytecode of one run lies; it is deleted with the folder
_BYTECODE = tempfile.TemporaryDirectory(prefix="sfumato-bench-")
COMPILED = {"PYTHONPYCACHEPREFIX": _BYTECODE.name}
# of the accounts
LIMITS = {"ann": "100000", "bob": "100000"}
COUNT = "SELECT COUNT(*) AS n FROM people"
_ROWS, _MANY_ROWS, _CLIENTS, _TABLES = 20_000, 24_000_000, 32, 200
_ALONE, _TOGETHER, _DISTINCT = 300, 3_000, 320


@dataclass(frozen=True)
class Measured:
    """One figure beside its bar."""

    name: str
    value: float
    unit: str
    bar: float
    at_least: bool = False

    @property
    def holds(self) -> bool:
        return self.value >= self.bar if self.at_least else self.value <= self.bar

    def __str__(self) -> str:
        sign = ">=" if self.at_least else "<="
        word = "holds" if self.holds else "MISSED"
        return f"{self.name:60} {self.value:9.2f} {self.unit:8} {sign} {self.bar:g}  {word}"


def declared(
    folder: Path, rows: int, tables: int = 1, *, limits: Mapping[str, str] = LIMITS
) -> Path:
    """A dataset of tables of persons, with limits of accounts by name; returns its file."""
    draw = np.random.default_rng(1)
    frame = pa.table({"person": np.arange(rows), "age": draw.integers(0, 100, rows)})
    pq.write_table(frame, folder / "people.parquet")
    text = ['dataset = "bench"', 'ledger = "ledger.db"', "[budget]", 'epsilon = "1000000"']
    for number in range(tables):
        name = "people" if not number else f"table_{number}"
        text += [
            f"[tables.{name}]",
            'source = "people.parquet"',
            f"size = {rows}",
            'unit = {column = "person", max_rows_total = 1}',
            'columns.age = {type = "integer", lower = 0, upper = 99}',
        ]
    path = folder / "sfumato.toml"
    path.write_text("\n".join(text), encoding="utf-8")
    sf.load(path).close()
    ledger = Ledger.open(folder / "ledger.db")
    for name, epsilon in limits.items():
        ledger.allocate("bench", sf.Budget(epsilon), purpose="study", analyst=name, reason="bench")
    ledger.close()
    return path


class Running:
    """The service in its own process, with tokens of its analysts; ``log`` takes its errors."""

    def __init__(
        self,
        folder: Path,
        names: Iterable[str] = LIMITS,
        *,
        log: IO[bytes] | int = subprocess.DEVNULL,
        quantum: str = "0s",
    ) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        (folder / "server.toml").write_text(
            f'datasets = ["sfumato.toml"]\nlisten = "127.0.0.1:{self.port}"\n'
            f'quantum = "{quantum}"\n'
            "limits = {waiting = 64, previews_per_minute = 100000}\n",
            encoding="utf-8",
        )
        with Directory(folder / "service.db") as opened:
            self.tokens = {}
            for name in names:
                opened.people.add(name, Role.ANALYST, by="bench")
                self.tokens[name] = opened.people.make_token(name, by="bench").secret
        command = [sys.executable, "-m", "sfumato", "serve", "-c", str(folder / "server.toml")]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", **COMPILED}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        # an installed package has its bytecode
        subprocess.run([*command, "--check"], env=environment, capture_output=True, check=True)  # noqa: S603
        begun = time.perf_counter()
        self._process = subprocess.Popen(  # noqa: S603
            command, stdout=subprocess.PIPE, stderr=log, env=environment
        )
        assert self._process.stdout is not None
        assert b"serving" in self._process.stdout.readline()
        self.ready = time.perf_counter() - begun
        self.process_id = self._process.pid
        self.ready_processor = self.processor

    @property
    def processor(self) -> float:
        """The processor time that the service has taken, in seconds (Linux)."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="utf-8").split()
        return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> int:
        """Ends it in order; returns its exit code."""
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(60)
        assert self._process.stdout is not None
        self._process.stdout.close()
        return code

    def request(self, path: str, form: dict[str, Any], name: str = "ann") -> bytes:
        """The bytes of a POST of one account."""
        body = json.dumps({"purpose": "study", **form}).encode()
        head = (
            f"POST /v1/datasets/bench/{path} HTTP/1.1\r\nHost: bench\r\n"
            f"Authorization: Bearer {self.tokens[name]}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


async def one_client(port: int, requests: Iterator[bytes], times: list[float]) -> None:
    """Sends requests over one connection until there are no more; notes how long each took."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for request in requests:
        begun = time.perf_counter()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        await reader.readexactly(length)
        assert head.startswith(b"HTTP/1.1 200"), head
        times.append(time.perf_counter() - begun)
    writer.close()


def clients(port: int, count: int, requests: Sequence[bytes]) -> tuple[list[float], float]:
    """The times of requests that many clients share, and the time of all."""
    times: list[float] = []
    shared = iter(requests)

    async def together() -> None:
        await asyncio.gather(*(one_client(port, shared, times) for _ in range(count)))

    begun = time.perf_counter()
    asyncio.run(together())
    return sorted(times), time.perf_counter() - begun


def in_process(ask: Callable[[str], object], threads: int, statements: Sequence[str]) -> float:
    """The time in which many threads ask statements in process."""
    left = iter(statements)
    lock = threading.Lock()

    def run() -> None:
        while True:
            with lock:
                statement = next(left, None)
            if statement is None:
                return
            ask(statement)

    begun = time.perf_counter()
    workers = [threading.Thread(target=run) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return time.perf_counter() - begun


def p99(times: Sequence[float]) -> float:
    """The 99th percentile of sorted times, in milliseconds."""
    return times[int(len(times) * 0.99) - 1] * 1e3


@contextmanager
def running(rows: int, tables: int = 1) -> Iterator[tuple[Running, Path]]:
    """A running service over new data."""
    with tempfile.TemporaryDirectory(prefix="sfumato-bench-") as name:
        declared(Path(name), rows, tables)
        service = Running(Path(name))
        try:
            yield service, Path(name)
        finally:
            service.stop()


def statements(first: int, count: int) -> list[str]:
    """Distinct statements."""
    numbers = range(first, first + count)
    # the last condition holds up to an age of 49 or more: no statement is known to be empty
    return [f"{COUNT} WHERE age > {n % 47} AND age * {n + 2} < {n * 50 + 99}" for n in numbers]


def session_figures(folder: Path) -> tuple[float, float]:
    """In process: the median time of a stored answer, and distinct questions a second."""
    with sf.load(folder / "sfumato.toml", engine=sf.Local(lanes=2)) as opened:
        session: Session = opened.asking_as("bob", "study")
        session.query(COUNT, epsilon="0.01")
        times = []
        for _ in range(_ALONE):
            begun = time.perf_counter()
            session.query(COUNT, epsilon="0.01")
            times.append(time.perf_counter() - begun)
        asked = statements(0, _DISTINCT)
        taken = in_process(lambda sql: session.query(sql, epsilon="0.01"), _CLIENTS, asked)
    return statistics.median(times), _DISTINCT / taken


def over_http() -> Iterator[Measured]:
    """The figures of stored and of distinct questions."""
    with tempfile.TemporaryDirectory(prefix="sfumato-bench-") as name:
        declared(Path(name), _ROWS)
        median, rate = session_figures(Path(name))
    with running(_ROWS) as (service, _):
        stored = service.request("query", {"sql": COUNT, "epsilon": "0.01"})
        clients(service.port, 1, [stored] * 20)
        alone, _ = clients(service.port, 1, [stored] * _ALONE)
        over = (statistics.median(alone) - median) * 1e3
        yield Measured("stored answer, 1 client: over in process, p50", over, "ms", 3)
        before = service.processor
        times, taken = clients(service.port, _CLIENTS, [stored] * _TOGETHER)
        each = (service.processor - before) / _TOGETHER * 1e3
        yield Measured("stored answer: processor time of the service", each, "ms", 1.67)
        yield Measured(
            f"stored answer, {_CLIENTS} clients", len(times) / taken, "a second", 600, at_least=True
        )
        yield Measured(f"stored answer, {_CLIENTS} clients: p99", p99(times), "ms", 150)
        asked = [
            service.request("query", {"sql": sql, "epsilon": "0.01"})
            for sql in statements(0, _DISTINCT)
        ]
        times, taken = clients(service.port, _CLIENTS, asked)
        ratio = len(times) / taken / rate
        yield Measured(
            f"distinct questions, {_CLIENTS} clients, of threads in process",
            ratio,
            "times",
            0.5,
            at_least=True,
        )


def beside_a_slow_question() -> Iterator[Measured]:
    """How long stored answers and previews take while a long question reads."""
    with running(_MANY_ROWS) as (service, _):
        stored = service.request("query", {"sql": COUNT, "epsilon": "0.01"})
        preview = service.request(
            "preview", {"sql": "SELECT AVG(age) AS a FROM people", "epsilon": 1}
        )
        clients(service.port, 1, [stored, preview] * 5)
        for name, request in (("stored answer", stored), ("preview", preview)):
            slow = [
                service.request("query", {"sql": sql, "epsilon": "0.01"}, "bob")
                for sql in statements(len(name) * 10, 4)
            ]
            slowest: list[float] = []
            other = threading.Thread(
                target=lambda slow=slow, into=slowest: into.extend(
                    clients(service.port, 1, slow)[0]
                )
            )
            other.start()
            times: list[float] = []
            while other.is_alive():
                times += clients(service.port, 1, [request] * 20)[0]
            other.join()
            yield Measured(
                f"{name} beside a question of {statistics.median(slowest):.1f} s: p99",
                p99(sorted(times)),
                "ms",
                50,
            )


def ready() -> Iterator[Measured]:
    """How long the service takes to be ready."""
    with running(1_000, _TABLES) as (service, _):
        yield Measured(f"ready, {_TABLES} tables", service.ready, "s", 3)
        processor = service.ready_processor
        yield Measured(f"ready, {_TABLES} tables: processor time", processor, "s", 3)


def main() -> None:
    """Measures, prints which bars hold, and writes the results."""
    measured: list[Measured] = []
    for part in (over_http, beside_a_slow_question, ready):
        for figure in part():
            print(figure, flush=True)
            measured.append(figure)
    rows = [
        {
            "name": figure.name,
            "value": round(figure.value, 3),
            "unit": figure.unit,
            "bar": figure.bar,
            "holds": figure.holds,
        }
        for figure in measured
    ]
    form = {"cores": os.cpu_count(), "load_before": os.getloadavg()[0], "rows": rows}
    RESULTS.write_text(json.dumps(form, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
