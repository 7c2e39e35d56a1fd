# SPDX-License-Identifier: Apache-2.0
"""A count over HTTP beside lomas-server 0.4.1 with SmartNoise: ``make bench-service-lomas``.

Lomas runs without other servers: datasets and people in a YAML file, data in a
CSV file, no MongoDB, no collector of traces (OTEL_SDK_DISABLED), no delay of replies. Both answer
distinct counts of the same rows, one after the other, to one client that keeps its connection.
Lomas reads the data anew for each question, has one budget for each person, debits after the run,
and in memory: its file is written when it stops. Ours debits on disk before it reads.
"""

import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet as pq

from benchmarks.report import machine
from benchmarks.service import ROOT, Measured, clients, declared, running, statements

PEER = ROOT / ".bench" / "lomas" / "bin" / "python"
RESULTS = ROOT / "benchmarks" / "results" / "service_lomas.json"
_ROWS, _QUESTIONS = 20_000, 40

_RUNTIME = """\
runtime_args:
  settings:
    develop_mode: false
    submit_limit: 300
    server: {{time_attack: {{method: stall, magnitude: 0}}, host_ip: 127.0.0.1, host_port: {port},
             log_level: warning, reload: false, workers: 1}}
    admin_database: {{db_type: yaml, db_file: {folder}/admin.yaml}}
    private_db_credentials: []
    dp_libraries: {{opendp: {{contrib: true, floating_point: true, honest_but_curious: true}}}}
"""
_ADMIN = """\
users:
  - user_name: ann
    may_query: true
    datasets_list:
      - {{dataset_name: bench, initial_epsilon: 10000, initial_delta: 1,
          total_spent_epsilon: 0, total_spent_delta: 0}}
datasets:
  - dataset_name: bench
    dataset_access: {{database_type: PATH_DB, path: {folder}/people.csv}}
    metadata_access: {{database_type: PATH_DB, path: {folder}/people.yaml}}
queries: []
"""
_METADATA = """\
max_ids: 1
rows: {rows}
row_privacy: true
censor_dims: false
columns:
  person: {{private_id: false, nullable: false, type: int, precision: 64, lower: 0, upper: {rows}}}
  age: {{private_id: false, nullable: false, type: int, precision: 64, lower: 0, upper: 99}}
"""


def written(folder: Path, port: int) -> None:
    """The files of Lomas, over the rows that ours has."""
    declared(folder, _ROWS)
    pyarrow.csv.write_csv(pq.read_table(folder / "people.parquet"), folder / "people.csv")
    (folder / "runtime.yaml").write_text(_RUNTIME.format(port=port, folder=folder), "utf-8")
    (folder / "secrets.yaml").write_text("{}\n", "utf-8")
    (folder / "admin.yaml").write_text(_ADMIN.format(folder=folder), "utf-8")
    (folder / "people.yaml").write_text(_METADATA.format(rows=_ROWS), "utf-8")


@contextmanager
def lomas() -> Iterator[int]:
    """A running lomas-server; gives its port."""
    with socket.socket() as probe, tempfile.TemporaryDirectory(prefix="sfumato-bench-") as made:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
        probe.close()
        folder = Path(made)
        written(folder, port)
        environment = {
            **os.environ,
            "LOMAS_CONFIG_PATH": str(folder / "runtime.yaml"),
            "LOMAS_SECRETS_PATH": str(folder / "secrets.yaml"),
            "OTEL_SDK_DISABLED": "true",
        }
        log = (folder / "log.txt").open("wb")
        process = subprocess.Popen(  # noqa: S603
            [str(PEER), "-m", "lomas_server.uvicorn_serve"],
            env=environment, stdout=log, stderr=log, cwd=folder,
        )  # fmt: skip
        try:
            ends = time.monotonic() + 300
            while process.poll() is None and time.monotonic() < ends:
                with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                time.sleep(0.2)
            assert process.poll() is None, (folder / "log.txt").read_text("utf-8")[-2000:]
            yield port
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)
            log.close()


def of_lomas(sql: str) -> bytes:
    """The request of a count to Lomas."""
    form = {
        "dataset_name": "bench", "query_str": sql.replace("people", "df"), "epsilon": 0.01,
        "delta": 0, "mechanisms": {}, "postprocess": True,
    }  # fmt: skip
    body = json.dumps(form).encode()
    head = (
        "POST /smartnoise_sql_query HTTP/1.1\r\nHost: bench\r\nuser-name: ann\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def median(port: int, requests: Sequence[bytes]) -> float:
    """The median time of requests, in milliseconds, after three that do not count."""
    clients(port, 1, requests[:3])
    times, _ = clients(port, 1, requests[3:])
    return statistics.median(times) * 1e3


def main() -> int:
    """Measures, prints whether the bar holds, and writes the results."""
    if not PEER.exists():
        print("skipped: lomas does not install here (make .bench/lomas/.done)")
        return 0
    before = machine()
    asked = statements(0, _QUESTIONS)
    with lomas() as port:
        theirs = median(port, [of_lomas(sql) for sql in asked])
    with running(_ROWS) as (service, _):
        forms = [{"sql": sql, "epsilon": "0.01"} for sql in asked]
        ours = median(service.port, [service.request("query", form) for form in forms])
    print(f"a count over HTTP: lomas-server {theirs:.1f} ms, sfumato {ours:.1f} ms")
    figure = Measured("a count over HTTP, of the time of lomas-server", ours / theirs, "times", 0.1)
    print(figure)
    form = {
        "machine": before,
        "rows_of_data": _ROWS,
        "questions": _QUESTIONS,
        "lomas_ms": round(theirs, 2),
        "sfumato_ms": round(ours, 2),
        "bar": figure.bar,
        "holds": figure.holds,
    }
    RESULTS.write_text(json.dumps(form, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
