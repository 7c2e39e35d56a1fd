# SPDX-License-Identifier: Apache-2.0
"""Whether stated errors hold, and errors that are asked for are kept: a part of ``make bench-query``.

Medians of incomes, subtotals for an ``error=``, and means of synthetic rows of Adult.
"""

import statistics
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as parquet

import sfumato as sf
from benchmarks.compare import Row
from benchmarks.driver import ROOT
from benchmarks.report import write_measured
from sfumato import synthetic

RESULTS = ROOT / "benchmarks" / "results" / "numbers_that_hold.json"
RELEASES, FITS = 200, 40
# Incomes about a median of 60,000: a range of ten times the largest, and of a hundred times.
PERSONS, NARROW, WIDE = 45_000, 3_000_000, 10_000_000
MEDIAN = "SELECT MEDIAN(income) AS m FROM people"
SUBTOTALS = ("ROLLUP(e, s)", "CUBE(e, s)", "GROUPING SETS ((e, s), (e), ())")
ERROR = 40
# Columns of Adult with empty tails; a code is the value itself.
TAILS = ("hours-per-week", "age")


def connected(table: sf.Table, folder: str, budget: float) -> sf.Session:
    """A session with a ledger of its own."""
    return sf.connect(
        {"people": table},
        dataset="d",
        budget=sf.Budget(budget, "1e-6"),
        ledger=Path(folder) / "ledger.db",
    )


def medians(upper: int) -> list[tuple[float, float]]:
    """The true and the stated rank error of many releases."""
    incomes = np.rint(np.exp(np.random.default_rng(1).normal(11, 0.7, PERSONS))).astype(int)
    table = sf.Table(pa.table({"income": incomes}), columns={"income": sf.Integer(0, upper)})
    errors = []
    with tempfile.TemporaryDirectory() as folder, connected(table, folder, 10**4) as session:
        for release in range(RELEASES):
            answer = session.asking_as(f"asker {release}").query(MEDIAN, epsilon="0.2")
            ((median,),) = answer.rows
            stated = cast(Any, answer.error()[0]["m"])["rank_error"]
            errors.append((abs(float((incomes < median).sum()) - PERSONS / 2), float(stated)))
    return errors


def subtotals(grouping: str) -> tuple[float, float]:
    """The largest half-width for an error that is asked for; its cost over that of the groups."""
    rows = pa.table({"e": list("abcd") * 5000, "s": list("xyzxy") * 4000})
    columns = {"e": sf.Category(*"abcd"), "s": sf.Category(*"xyz")}
    with (
        tempfile.TemporaryDirectory() as folder,
        connected(sf.Table(rows, columns=columns), folder, 10) as session,
    ):
        statement = "SELECT e, s, COUNT(*) AS n FROM people GROUP BY "
        plain = session.preview(statement + "e, s", error=ERROR, max_epsilon=1)
        answer = session.query(statement + grouping, error=ERROR, max_epsilon=1)
    widths = [cast(Any, row["n"])["half_width"] for row in answer.error()]
    return max(widths), float(Fraction(answer.cost.rho) / Fraction(plain.cost.rho))


def means() -> list[bool]:
    """Whether the interval of each mean of synthetic rows holds that of the table."""
    whole = parquet.read_table(ROOT / "benchmarks" / "data" / "adult.parquet")
    rows = whole.filter(pc.equal(whole["split"], 0)).select([*TAILS, "sex", "income"])
    tops = {name: int(pc.max(rows[name]).as_py()) for name in rows.column_names}
    table = sf.Table(rows, columns={name: sf.Integer(0, top) for name, top in tops.items()})
    holds = []
    for _ in range(FITS):
        with tempfile.TemporaryDirectory() as folder, connected(table, folder, 10) as session:
            model = synthetic.fit(session, "people", epsilon="0.1", delta="1e-9")
        items = ", ".join(f'AVG("{name}") AS "{name}"' for name in TAILS)
        (row,) = model.query(f"SELECT {items} FROM people").to_pylist()
        for name in TAILS:
            truth = float(pc.mean(rows[name]).as_py())
            holds.append(row[f"{name}_low"] <= truth <= row[f"{name}_high"])
    return holds


def measured() -> Iterator[Row]:
    """Every figure with its bar."""
    narrow, wide = medians(NARROW), medians(WIDE)
    held = statistics.fmean(true <= stated for true, stated in (*narrow, *wide))
    yield judged("medians whose stated rank error holds", "share", held, 0.95, RELEASES)
    ranks = [statistics.fmean(true for true, _ in errors) for errors in (wide, narrow)]
    case = "median, range of 10^7 over one of 3*10^6"
    yield judged(case, "rank error", ranks[0] / ranks[1], -1.2, RELEASES)
    for grouping in SUBTOTALS:
        width, cost = subtotals(grouping)
        yield judged(f"{grouping}, error={ERROR}", "half-width", width, -ERROR, 1)
        yield Row(grouping, "cost / groups", cost, None, None, None, None, None, None, 1)
    case = "means of synthetic Adult, epsilon 0.1"
    yield judged(case, "intervals hold", statistics.fmean(means()), 0.93, FITS)


def judged(case: str, metric: str, ours: float, bar: float, repetitions: int) -> Row:
    """A figure that must be at least its bar; at most that of a negative one."""
    is_most = bar < 0
    shown = f"{'<=' if is_most else '>='} {abs(bar):g}"
    holds = ours <= -bar if is_most else ours >= bar
    return Row(case, metric, ours, None, None, None, None, shown, holds, repetitions)


def main() -> None:
    """Measures, prints and writes."""
    write_measured(measured(), RESULTS)


if __name__ == "__main__":
    main()
