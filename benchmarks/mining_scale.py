# SPDX-License-Identifier: Apache-2.0
"""10^8 words of 10^6 people and 10^6 pictures, each mined in a process of its own.

``make bench-mining-scale`` measures both; they take minutes, so ``make bench-mining`` leaves the
results as they were. The process that is measured reads a Parquet file that another one wrote.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sfumato as sf
from sfumato import mining as mn

ROOT = Path(__file__).parent
MNIST = ROOT.parents[1] / "shared" / "data" / "mnist" / "mnist.npz"
PEOPLE, PART = 10**6, 10**5
WORDS, NOTES, LENGTH = 10**5, 4, 25
# What the engine may take; what it sorts beyond that goes to disk.
LIMIT = "1GB"


def write_notes(path: Path) -> None:
    """Four notes of 25 words of each person, of a Zipf(1.1) distribution over 10^5 words."""
    chances = np.arange(1, WORDS + 1) ** -1.1
    rng, names = np.random.default_rng(0), np.array([f"w{rank}" for rank in range(WORDS)])
    kinds = pa.schema([("who", pa.int64()), ("note", pa.string())])
    with pq.ParquetWriter(path, kinds) as writer:
        for first in range(0, PEOPLE * NOTES, PART):
            words = names[rng.choice(WORDS, (PART, LENGTH), p=chances / chances.sum())]
            who = np.arange(first, first + PART) % PEOPLE
            notes = [" ".join(row) for row in words.tolist()]
            writer.write_table(pa.table({"who": who, "note": notes}, kinds))


def write_pictures(path: Path) -> None:
    """The 60,000 digits of MNIST again and again, each in a place of its own."""
    data = np.load(MNIST)
    pictures, digits = data["x_train"].reshape(-1, 784), data["y_train"]
    rng = np.random.default_rng(0)
    kinds = pa.schema([("picture", pa.list_(pa.uint8())), ("digit", pa.uint8())])
    with pq.ParquetWriter(path, kinds) as writer:
        for _ in range(0, PEOPLE, PART):
            chosen = rng.integers(0, len(digits), PART)
            cells = pa.array(pictures[chosen].ravel())
            ends = pa.array(784 * np.arange(PART + 1, dtype=np.int32))
            listed = pa.ListArray.from_arrays(ends, cells)
            writer.write_table(pa.table([listed, digits[chosen]], schema=kinds))


def mine_notes(path: Path, ledger: str) -> dict[str, float]:
    """The words that people use, of all notes of a person."""
    columns: dict[str, Any] = {"note": sf.Text(tokens=sf.Tokens())}
    table = sf.Table(path, unit=sf.Unit("who", max_rows_total=NOTES), columns=columns)
    return measured(table, mn.Terms("note", keep=100), "SELECT note FROM t", ledger)


def mine_pictures(path: Path, ledger: str) -> dict[str, float]:
    """The mean picture of each digit."""
    columns: dict[str, Any] = {"picture": sf.Array((28, 28), 0, 255), "digit": sf.Integer(0, 9)}
    recipe = mn.Means("picture", by="digit")
    return measured(sf.Table(path, columns=columns), recipe, "SELECT picture, digit FROM t", ledger)


def measured(table: sf.Table, recipe: mn.Recipe, statement: str, ledger: str) -> dict[str, float]:
    """The CPU seconds of a question on all threads, and the most memory of the process."""
    budget, limits = sf.Budget(10, "1e-4"), sf.Local(memory_limit=LIMIT)
    with sf.connect(
        {"t": table}, dataset="bench", budget=budget, ledger=ledger, engine=limits
    ) as session:
        begun, clock = time.process_time(), time.monotonic()
        found = mn.mine(session, recipe, statement, epsilon=1, delta="1e-7")
        seconds, wall = time.process_time() - begun, time.monotonic() - clock
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return {"CPU seconds": seconds, "seconds": wall, "gigabytes": memory, "rows": len(found)}


# What is measured: who writes the rows, who mines them, and the most CPU seconds and gigabytes.
SCALES: dict[str, tuple[Callable[[Path], None], Callable[[Path, str], dict[str, float]]]] = {
    "10^8 words": (write_notes, mine_notes),
    "10^6 pictures": (write_pictures, mine_pictures),
}
MOST = {
    "10^8 words: CPU seconds": 300,
    "10^8 words: gigabytes": 3,
    "10^6 pictures: CPU seconds": 200,
    "10^6 pictures: gigabytes": 2,
}


def measure(name: str) -> dict[str, float]:
    """The figures of a scale."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        SCALES[name][0](path)
        command = [sys.executable, "-m", "benchmarks.mining_scale", name, str(path)]
        ran = subprocess.run(  # noqa: S603 - this module
            command, cwd=ROOT.parent, check=True, capture_output=True, text=True
        )
    figures: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
    return {f"{name}: {figure}": number for figure, number in figures.items()}


if __name__ == "__main__":
    name, path = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(SCALES[name][1](Path(path), f"{folder}/ledger.db")))
