# SPDX-License-Identifier: Apache-2.0
"""Fits of other libraries, each once, in an environment and a process of its own.

A fit may take half an hour, so what it gave is kept in .bench/fits and not made again; delete the
folder to measure anew.
"""

import json
import resource
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.driver import ROOT

FITS = ROOT / ".bench" / "fits"
EPSILON, DELTA = "1", "1e-9"
# The most CPU seconds of a fit.
MOST = 1800
# The environment of each fit. Sizes in MB are limits of a model; else the default of the library.
PEERS: Mapping[str, str] = {
    "opendp MST": "opendp-mbi",
    "opendp AIM-1MB": "opendp-mbi",
    "opendp AIM": "opendp-mbi",
    "smartnoise MST": "smartnoise-synth",
    "smartnoise AIM": "smartnoise-synth",
    "dpmm MST": "dpmm",
    "dpmm PrivBayes": "dpmm",
    "dpmm AIM": "dpmm",
}
_ALONE = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


@dataclass(frozen=True)
class PeerFit:
    """What a library gave, and the CPU seconds and peak megabytes that it took."""

    name: str
    rows: pa.Table
    cpu: float
    peak: float


def fits(train: pa.Table, sizes: Mapping[str, int], skipped: dict[str, str]) -> Iterator[PeerFit]:
    """Every fit that ends; why the others do not goes to ``skipped``."""
    for name, environment in PEERS.items():
        folder = FITS / name
        python = ROOT / ".bench" / environment / "bin" / "python"
        if not (folder / "out").exists():
            if not python.exists():
                skipped[name] = "does not install here"
                continue
            _fit(name, python, folder, train, sizes)
        told = (folder / "out").read_text("utf-8").splitlines()
        if not (folder / "rows.npz").exists():
            skipped[name] = f"did not end within {MOST:,} CPU seconds, or failed"
            continue
        found = json.loads(told[-1])
        yield PeerFit(
            name, pa.table(dict(np.load(folder / "rows.npz"))), found["cpu"], found["peak"]
        )
    skipped["mbi"] = "its package (2.0.0) has the estimator alone, no mechanism"


def _fit(name: str, python: Path, folder: Path, train: pa.Table, sizes: Mapping[str, int]) -> None:
    """One fit, ended after its seconds."""
    folder.mkdir(parents=True, exist_ok=True)
    columns: dict[str, Any] = {
        column: train[column].to_numpy().astype(np.int64) for column in sizes
    }
    np.savez(folder / "train.npz", **columns)
    (folder / "sizes.json").write_text(json.dumps(dict(sizes)), encoding="utf-8")
    command = [str(python), "-m", "benchmarks.synthesizers", name, EPSILON, DELTA, str(folder)]
    ran = subprocess.run(  # noqa: S603
        command,
        cwd=ROOT,
        env=_ALONE,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (MOST, MOST)),
    )
    (folder / "out").write_text(ran.stdout, encoding="utf-8")
