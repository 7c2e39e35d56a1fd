# SPDX-License-Identifier: Apache-2.0
"""What sfumato is asked of stored reports: ``sfumato telemetry estimate`` over a folder of Parquet.

The folder is made once and kept: 3.3 GB for 100,000,000 reports.
"""

import os
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
from cryptography.hazmat.primitives.asymmetric import ec

import sfumato as sf
from benchmarks.driver import ROOT
from benchmarks.systems import Call, Make
from sfumato.collector.folder import COLUMN, PART, where
from sfumato.noise import SYSTEM
from sfumato.telemetry import ReportTask, report_task, signed_task
from sfumato.telemetry.oracles.projective import ProjectiveOracle, projective
from sfumato.telemetry.report import Layout

K = 65_536
# Of so many reports one was stored before.
_AGAIN = 100


def _task() -> ReportTask:
    """Which of 65,536 values does a device hold?"""
    oracle = projective(K, 1)
    values = sf.Integer(0, K - 1)
    return report_task("stored", "?", values, oracle=oracle, start=0, periods=1, min_batch=2)


def _folder(n: int) -> Path:
    """The folder of n reports, a hundredth of which is there twice."""
    folder = ROOT / ".bench" / f"telemetry-{n}"
    if (folder / "stored.task").exists():
        return folder
    task = _task()
    place = where(folder, task, 0)
    place.mkdir(parents=True, exist_ok=True)
    before = np.empty((0, Layout.of(task).size), np.uint8)
    for number, start in enumerate(range(0, n, PART)):
        rows = _reports(task, min(PART, n - start))
        again = len(rows) // _AGAIN
        if number:
            rows[:again] = before[-again:]
        _write(rows, place / f"part-{number}.parquet")
        before = rows
    signed = signed_task(task, ec.generate_private_key(ec.SECP256R1()))
    (folder / "stored.task").write_bytes(signed.to_bytes())
    return folder


def _reports(task: ReportTask, count: int) -> np.ndarray:
    """Reports of so many devices."""
    assert isinstance(task.oracle, ProjectiveOracle), "the oracle of this task"
    payloads = task.oracle.encode_many(np.arange(count) % K, SYSTEM)
    header = Layout.of(task).report(0, bytes(16), b"")[:-16]
    heads = np.tile(np.frombuffer(header, np.uint8), (count, 1))
    ids = np.frombuffer(os.urandom(16 * count), np.uint8).reshape(count, 16)
    return np.hstack((heads, ids, payloads))


def _write(rows: np.ndarray, path: Path) -> None:
    """A part as the collector writes it."""
    size = rows.shape[1]
    data = [None, pa.py_buffer(rows.tobytes())]
    column = pa.Array.from_buffers(pa.binary(size), len(rows), data)
    table = pa.table({COLUMN: column})
    parquet.write_table(table, path, compression="none", use_dictionary=False)


@cache
def _ran(n: int) -> tuple[float, float]:
    """The seconds and the most bytes of the command."""
    folder = _folder(n)
    command = [sys.executable, "-m", "sfumato", "telemetry", "estimate", "stored.task", "."]
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE)  # noqa: S603
    assert process.stdout is not None, "a pipe"
    said = process.stdout.read().decode()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    if process.returncode or " duplicates" not in said:
        raise RuntimeError(said)
    return time.perf_counter() - start, used.ru_maxrss * 1024


def _seconds(_: float, n: int) -> Call:
    return lambda: _ran(n)[0]


def _bytes(_: float, n: int) -> Call:
    return lambda: _ran(n)[1]


STORED: dict[str, Make] = {"telemetry stored": _seconds, "telemetry stored bytes": _bytes}
