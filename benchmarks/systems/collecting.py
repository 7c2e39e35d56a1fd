# SPDX-License-Identifier: Apache-2.0
"""What sfumato is asked of the collector: a process of its own, over HTTP, to disk."""

import atexit
import http.client
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from benchmarks.systems import Call, Make
from sfumato.telemetry import ReportTask, SignedTask, opened, report_task, sealed, signed_task
from sfumato.telemetry.report import Layout

# reports of a batch, and bytes of the id of a report
_BATCH, _ID = 1000, 16
_PATIENCE = 20.0


def _task(**fields: object) -> ReportTask:
    """A task whose first period is now."""
    start = int(time.time()) - 3600
    return report_task("speed", "?", ["a", "b"], epsilon=1, start=start, periods=9, **fields)  # type: ignore[arg-type]


def _batch(task: ReportTask) -> bytes:
    """Reports of as many devices, all new."""
    layout = Layout.of(task)
    alike = layout.report(0, bytes(_ID), b"\x01") * _BATCH
    reports = np.frombuffer(alike, np.uint8).reshape(_BATCH, layout.size).copy()
    header = len(layout.report(0, bytes(_ID), b"")) - _ID
    ids = np.frombuffer(secrets.token_bytes(_ID * _BATCH), np.uint8)
    reports[:, header : header + _ID] = ids.reshape(_BATCH, _ID)
    return reports.tobytes()


def _started(signed: SignedTask, key: ec.EllipticCurvePublicKey) -> http.client.HTTPConnection:
    """A connection to a collector that ends with this process."""
    folder = Path(tempfile.mkdtemp(prefix="sfumato-collector-"))
    (folder / "speed.task").write_bytes(signed.to_bytes())
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    (folder / "owner.pem").write_bytes(key.public_bytes(serialization.Encoding.PEM, form))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (folder / "telemetry.toml").write_text(
        f'[collector]\nfolder = "r"\ntasks = ["speed.task"]\nkey = "owner.pem"\nport = {port}\n'
    )
    command = [sys.executable, "-m", "sfumato", "collect"]
    # this process answers the benchmark on its own standard output
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)  # noqa: S603
    atexit.register(_ended, process, folder)
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port)
            connection.connect()
            atexit.register(connection.close)
            return connection
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def _ended(process: subprocess.Popen[bytes], folder: Path) -> None:
    """Ends a collector, and removes what it kept."""
    process.kill()
    process.wait()
    shutil.rmtree(folder)


def _sent(connection: http.client.HTTPConnection, body: bytes) -> int:
    """Waits until the collector has acknowledged a batch."""
    connection.request("POST", "/v1/tasks/speed/reports", body)
    answer = connection.getresponse()
    answer.read()
    if answer.status != 202:
        raise RuntimeError(f"status {answer.status}")
    return answer.status


def _collect(_: float, __: int) -> Call:
    """One batch of 1,000 new reports, on disk."""
    task, key = _task(), ec.generate_private_key(ec.SECP256R1())
    connection = _started(signed_task(task, key, signed_at=0), key.public_key())
    waiting = [_batch(task) for _ in range(400)]
    return lambda: _sent(connection, waiting.pop())


def _slowest(_: float, n: int) -> Call:
    """Of n batches, the seconds within which 99% are acknowledged."""
    task, key = _task(), ec.generate_private_key(ec.SECP256R1())

    def call() -> object:
        connection = _started(signed_task(task, key, signed_at=0), key.public_key())
        taken = []
        for _ in range(n):
            body = _batch(task)
            start = time.perf_counter()
            _sent(connection, body)
            taken.append(time.perf_counter() - start)
        return float(np.quantile(taken, 0.99))

    return call


def _sealing(_: float, __: int) -> Call:
    """Seals one report."""
    task = _task(aggregator=ec.generate_private_key(ec.SECP256R1()).public_key())
    report = bytes(Layout.of(task).size)
    return lambda: sealed(task, report)


def _opening(_: float, n: int) -> Call:
    """Opens n reports."""
    key = ec.generate_private_key(ec.SECP256R1())
    task = _task(aggregator=key.public_key())
    reports = [sealed(task, bytes(Layout.of(task).size)) for _ in range(n)]
    return lambda: list(opened(task, key, reports))


COLLECTING: dict[str, Make] = {
    "telemetry collect": _collect,
    "telemetry slowest batch": _slowest,
    "telemetry seal": _sealing,
    "telemetry open": _opening,
}
