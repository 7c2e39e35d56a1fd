# SPDX-License-Identifier: Apache-2.0
"""Seconds and memory of one fit, or one sample, in a process that does nothing else.

``python -m benchmarks.synthetic_scale CASE FOLDER`` prints the CPU seconds and the peak megabytes
as JSON. The tables are made, or drawn from Adult with replacement, before the clock starts, by
another process.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

import sfumato as sf
from benchmarks.driver import ROOT
from sfumato import synthetic
from sfumato.metadata.column import ColumnType

ADULT = ROOT / "benchmarks" / "data" / "adult.parquet"
# The cases, and the most CPU seconds and megabytes that are asked for.
BARS: Mapping[str, tuple[float, float]] = {
    "one fit of adult": (10, 500),
    "10^6 rows x 30 columns": (60, 1500),
    "10^7 rows x 15 columns, to Parquet": (300, 3000),
    "10^5 rows x 200 columns": (120, 3000),
    "10^7 sampled rows to Parquet": (60, 1000),
    "10^7 sampled rows in memory": (90, 3000),
    "10^5 patients with 10^6 visits": (120, 1500),
}
_AT_ONCE = 1_000_000
# The most visits of a patient, and how many they have in the mean.
_VISITS, _MEAN_VISITS = 16, 10


def adult(rows: int, path: Path) -> None:
    """Rows of Adult drawn with replacement, and the sizes of its columns."""
    whole = parquet.read_table(ADULT)
    sizes = json.loads(whole.schema.metadata[b"sizes"])
    random = np.random.default_rng(1)
    names = pa.schema([(name, pa.int16()) for name in sizes], {"sizes": json.dumps(sizes)})
    with parquet.ParquetWriter(path, names) as writer:
        for start in range(0, rows, _AT_ONCE):
            some = random.integers(0, len(whole), min(_AT_ONCE, rows - start))
            writer.write_table(whole.select(list(sizes)).take(some).cast(names))


def made(rows: int, columns: int, path: Path) -> None:
    """Columns that follow from ten classes, each a little from the column before it."""
    random = np.random.default_rng(1)
    group = random.integers(0, 10, rows)
    found, sizes = {}, {}
    before = group
    for place in range(columns):
        size = 2 + place * 7 % 49
        fresh = random.integers(0, size, rows)
        of_group = (group * 3 + place) % size
        chosen = random.random(rows)
        values = np.where(chosen < 0.3, of_group, np.where(chosen < 0.6, before % size, fresh))
        name = f"column{place}"
        found[name], sizes[name] = pa.array(values.astype(np.int16)), size
        before = values
    table = pa.table(found).replace_schema_metadata({"sizes": json.dumps(sizes)})
    parquet.write_table(table, path)


def clinic(patients: int, path: Path) -> None:
    """Patients, and beside them their visits, with a text of which a few values are frequent."""
    random = np.random.default_rng(1)
    ids, age = np.arange(patients), random.integers(0, 100, patients)
    people = {"pid": ids, "age": age, "region": random.integers(0, 8, patients)}
    parquet.write_table(pa.table(people), path)
    who = np.repeat(ids, np.minimum(random.poisson(_MEAN_VISITS, patients), _VISITS))
    wards = pa.array([f"ward {number}" for number in range(200)])
    chosen = np.minimum(random.zipf(1.5, len(who)), len(wards)) - 1
    cost = random.lognormal(6, 1, len(who)) + 10 * age[who]
    visits = {
        "pid": who,
        "day": random.integers(0, 365, len(who)),
        "ward": wards.take(pa.array(chosen)),
        "cost": np.minimum(cost, 99_999).astype(np.int64),
    }
    parquet.write_table(pa.table(visits), path.with_stem("visits"))


MADE: Mapping[str, Callable[[Path], None]] = {
    "one fit of adult": lambda path: adult(32_561, path),
    "10^6 rows x 30 columns": lambda path: made(1_000_000, 30, path),
    "10^7 rows x 15 columns, to Parquet": lambda path: adult(10_000_000, path),
    "10^5 rows x 200 columns": lambda path: made(100_000, 200, path),
    "10^7 sampled rows to Parquet": lambda path: adult(32_561, path),
    "10^7 sampled rows in memory": lambda path: adult(32_561, path),
    "10^5 patients with 10^6 visits": lambda path: clinic(100_000, path),
}


def fitted_clinic(path: Path, folder: Path) -> synthetic.Model:
    """The model of patients and visits at epsilon 1; wards are found by a charged threshold."""
    patients: dict[str, ColumnType] = {"age": sf.Integer(0, 99), "region": sf.Integer(0, 7)}
    visits: dict[str, ColumnType] = {
        "day": sf.Integer(0, 364),
        "ward": sf.Text(),
        "cost": sf.Integer(0, 99_999),
    }
    tables = {
        "patients": sf.Table(path, unit=sf.Unit("pid", max_rows_total=1), columns=patients),
        "visits": sf.Table(
            path.with_stem("visits"),
            unit=sf.Unit("pid", max_rows_total=_VISITS),
            columns=visits,
        ),
    }
    options = synthetic.Options(
        order={"visits": "day"}, texts={"visits.ward": "(other)"}, bins={"visits.day": 52}
    )
    budget, ledger = sf.Budget(9, "1e-6"), folder / "l.db"
    with sf.connect(tables, dataset="d", budget=budget, ledger=ledger) as session:
        return synthetic.fit(
            session, ["patients", "visits"], epsilon=1, delta="1e-7", options=options
        )


def fitted(path: Path, folder: Path) -> synthetic.Model:
    """The model of a file at epsilon 1."""
    sizes = json.loads(parquet.read_schema(path).metadata[b"sizes"])
    columns = {name: sf.Integer(0, size - 1) for name, size in sizes.items()}
    budget, ledger = sf.Budget(9, "1e-6"), folder / "l.db"
    tables = {"people": sf.Table(path, columns=columns)}
    with sf.connect(tables, dataset="d", budget=budget, ledger=ledger) as session:
        return synthetic.fit(session, "people", epsilon=1, delta="1e-9")


def measured(case: str) -> tuple[float, float]:
    """The CPU seconds and the peak megabytes of a case, in processes of its own."""
    with tempfile.TemporaryDirectory(prefix="sfumato-bench-") as folder:
        found = "{}"
        for step in ("make", "measure"):
            command = [sys.executable, "-m", "benchmarks.synthetic_scale", step, case, folder]
            ran = subprocess.run(  # noqa: S603
                command, cwd=ROOT, capture_output=True, text=True, check=True
            )
            found = ran.stdout
    told = json.loads(found)
    return told["cpu"], told["peak"]


def main() -> None:
    """One step of one case."""
    step, case, place = sys.argv[1:]
    folder = Path(place)
    path = folder / "people.parquet"
    if step == "make":
        MADE[case](path)
        return
    before = time.process_time()
    model = fitted_clinic(path, folder) if "patients" in case else fitted(path, folder)
    if "sampled" in case:
        before = time.process_time()
    if "Parquet" in case:
        model.save(folder / "out", 10_000_000, csv=False)
    elif "10^7" in case:
        model.sample(rows=10_000_000)
    else:
        model.sample()
    spent = time.process_time() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(json.dumps({"cpu": spent, "peak": peak}))


if __name__ == "__main__":
    main()
