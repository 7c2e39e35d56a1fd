# SPDX-License-Identifier: Apache-2.0
"""A fit of a million units, and what a checkpoint writes: a part of ``make bench-learning``.

Each is measured in a process of its own: ``python -m benchmarks.learning_scale fit FILE`` prints
the CPU seconds and the peak megabytes of a fit as JSON, ``train N`` trains with N checkpoints.
"""

import json
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

import sfumato as sf
from benchmarks.compare import Row, line, rounded
from benchmarks.driver import ROOT
from benchmarks.report import document, machine
from sfumato import learning as ln

RESULTS = ROOT / "benchmarks" / "results" / "learning_scale.json"
UNITS, COLUMNS, STEPS = 1_000_000, 100, 100
_VALUES = 100
# The most CPU seconds, megabytes and calls that flush a disk.
SECONDS, MEGABYTES, FLUSHES = 60.0, 2000.0, 2.0
# Of the difference of the flushes between trainings with so many checkpoints.
_FEW, _MANY = 2, 12
_FLUSH = re.compile(r"\bf(?:data)?sync\(")
_PEAK = 1e6 if sys.platform == "darwin" else 1e3


class Skipped(Exception):
    """What cannot be measured here, and why."""


def made(units: int, columns: int) -> pa.Table:
    """Columns of whole numbers; the label follows from the first two and chance."""
    random = np.random.default_rng(1)
    found = {}
    for place in range(columns):
        found[f"x{place}"] = random.integers(0, _VALUES, units).astype(np.int8)
    score = found["x0"].astype(int) + found["x1"] + random.integers(0, _VALUES, units)
    return pa.table(found | {"y": score > 3 * _VALUES // 2})


def trained(source: pa.Table | Path, recipe: ln.Additive, ledger: Path) -> ln.Model:
    """A model of all columns of ``made``."""
    schema = source.schema if isinstance(source, pa.Table) else parquet.read_schema(source)
    declared = {name: sf.Integer(0, _VALUES - 1) for name in schema.names if name != "y"}
    tables = {"data": sf.Table(source, columns=declared | {"y": sf.Boolean()})}
    listed = f"SELECT {', '.join(schema.names)} FROM data"
    budget = sf.Budget(10, "1e-5")
    with sf.connect(tables, dataset="bench", budget=budget, ledger=ledger) as session:
        return ln.fit(session, recipe, listed, label="y", epsilon=1, delta="1e-6")


def scale() -> Iterator[Row]:
    """The CPU seconds and the peak memory of a fit with the default number of checkpoints."""
    with tempfile.TemporaryDirectory(prefix="sfumato-bench-") as folder:
        path = Path(folder) / "data.parquet"
        _child("make", str(path))
        found = json.loads(_child("fit", str(path)))
    case = f"Additive, {UNITS:,} units x {COLUMNS} columns, {STEPS} steps"
    yield _row(case, "CPU s", found["cpu"], SECONDS)
    yield _row(case, "peak MB", found["peak"], MEGABYTES)


def checkpoint() -> Iterator[Row]:
    """The system calls with which a checkpoint waits for the disk.

    Raises:
        Skipped: they cannot be counted here.
    """
    strace = shutil.which("strace")
    if strace is None:
        raise Skipped("strace is not installed")
    few, many = flushes(strace, _FEW), flushes(strace, _MANY)
    yield _row("fsyncs of a checkpoint", "calls", (many - few) / (_MANY - _FEW), FLUSHES)


def flushes(strace: str, checkpoints: int) -> int:
    """The flushes of a training, of all its threads."""
    with tempfile.TemporaryDirectory(prefix="sfumato-bench-") as folder:
        out = Path(folder) / "trace"
        before = (strace, "-f", "-e", "trace=fsync,fdatasync", "-o", str(out))
        try:
            _child("train", str(checkpoints), before=before)
        except subprocess.CalledProcessError as failure:
            raise Skipped("strace may not trace here") from failure
        return len(_FLUSH.findall(out.read_text(encoding="utf-8", errors="replace")))


def _child(*words: str, before: tuple[str, ...] = ()) -> str:
    """What a step prints, in a process of its own."""
    command = [*before, sys.executable, "-m", "benchmarks.learning_scale", *words]
    ran = subprocess.run(  # noqa: S603 - our own steps
        command, cwd=ROOT, capture_output=True, text=True, check=True
    )
    return ran.stdout


def _row(case: str, metric: str, ours: float, bar: float) -> Row:
    """A figure beside its bar."""
    told, holds = rounded(ours), ours <= bar
    return Row(case, metric, told, None, None, None, None, f"<= {bar:g}", holds, 1)


def step(name: str, place: str) -> None:
    """One step, in a process of its own."""
    if name == "make":
        parquet.write_table(made(UNITS, COLUMNS), place)
        return
    with tempfile.TemporaryDirectory() as folder:
        ledger = Path(folder) / "ledger.db"
        if name == "train":
            recipe = ln.Additive(steps=40, checkpoints=int(place))
            trained(made(2000, 3), recipe, ledger)
            return
        before = time.process_time()
        trained(Path(place), ln.Additive(steps=STEPS), ledger)
        spent = time.process_time() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _PEAK
    print(json.dumps({"cpu": spent, "peak": peak}))


def main() -> None:
    """Measures, prints and writes."""
    before, rows, skipped = machine(), [], {}
    for figures in (checkpoint, scale):
        try:
            for row in figures():
                rows.append(row)
                print(line(row), flush=True)
        except Skipped as reason:
            skipped[figures.__name__] = str(reason)
            print(f"skipped: {figures.__name__}: {reason}")
    versions = {name: metadata.version(name) for name in ("sfumato", "numpy", "duckdb")}
    RESULTS.write_text(document(rows, before, {"ours": versions}, skipped), encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:]:
        step(*sys.argv[1:])
    else:
        main()
