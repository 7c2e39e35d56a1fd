# SPDX-License-Identifier: Apache-2.0
"""SQL over private answers: its time, and whether its intervals hold; for ``make bench-query``."""

import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import sqrt
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa

import sfumato as sf
from benchmarks.compare import Row
from benchmarks.driver import ROOT
from benchmarks.numbers_that_hold import judged
from benchmarks.report import write_measured
from sfumato.noise import DiscreteLaplace

RESULTS = ROOT / "benchmarks" / "results" / "outer.json"
REPETITIONS, RUNS = 15, 2_000
# Rows of each group, the groups of a run, the scale of their noise, and the runs of one answer.
ROWS, GROUPS, SCALE, PARTS = 40, 12, 10, 4
COUNTS = "(SELECT k, COUNT(*) AS n FROM people GROUP BY k)"
WINDOWS = (
    "SELECT k, n, n - LAG(n) OVER (ORDER BY k) AS more, SUM(n) OVER (ORDER BY k) AS so_far "
    f"FROM {COUNTS}"
)
# What is timed: the groups, the statement, and the bar in milliseconds.
TIMED = {
    "50 groups, windows": (50, WINDOWS, 8),
    "10,000 rows, filtered by a key": (10_000, f"SELECT k, n FROM {COUNTS} WHERE k % 2 = 0", 25),
    "10,000 rows, filtered by noise": (10_000, f"SELECT k, n FROM {COUNTS} WHERE n > 2", 25),
    "10,000 rows, windows": (10_000, WINDOWS, 150),
}
# The true values of the last row of each PART; in BY_NOISE n is ROWS in every row. The parts have
# noises of their own, so each is a run.
OVER = f"OVER (PARTITION BY k // {GROUPS} ORDER BY k)"
PLAIN = (
    f"SELECT k, n, n - LAG(n) {OVER} AS difference, SUM(n) {OVER} AS sum, "
    f"AVG(n) OVER (PARTITION BY k // {GROUPS} ORDER BY k ROWS 2 PRECEDING) AS mean, "
    f"n * 1.0 / SUM(n) OVER (PARTITION BY k // {GROUPS}) AS share, ROUND(n, -1) AS rounded, "
    f"COALESCE(n + 2 * LAG(n) {OVER}, 0) AS weighted FROM {COUNTS} ORDER BY k"
)
TRUE: Mapping[str, float] = {
    "n": ROWS, "difference": 0, "sum": ROWS * GROUPS, "mean": ROWS, "share": 1 / GROUPS,
    "rounded": ROWS, "weighted": 3 * ROWS,
}  # fmt: skip
CHOSEN = ("the largest", "above a threshold")
BY_NOISE = (
    f"SELECT 0 AS form, k // {GROUPS} AS part, n FROM {COUNTS} QUALIFY ROW_NUMBER() OVER "
    f"(PARTITION BY k // {GROUPS} ORDER BY n DESC) = 1 UNION ALL "
    f"SELECT 1 AS form, k // {GROUPS} AS part, n FROM {COUNTS} WHERE n > {ROWS + SCALE}"
)


def connected(groups: int, rows: int, folder: str) -> sf.Session:
    """A session over equal groups, with a ledger of its own."""
    keys = pa.table({"k": np.arange(rows * groups) % groups})
    return sf.connect(
        {"people": sf.Table(keys, columns={"k": sf.Integer(0, groups - 1)})},
        dataset="d",
        budget=sf.Budget(10**6, "1e-6"),
        ledger=Path(folder) / "ledger.db",
    )


def milliseconds(groups: int, statement: str) -> float:
    """The CPU time of a statement beyond that of its private answer, which is stored."""
    medians = []
    with tempfile.TemporaryDirectory() as folder, connected(groups, 3, folder) as session:
        for asked in (statement, COUNTS[1:-1]):
            session.query(asked, epsilon=1)
            times = []
            for _ in range(REPETITIONS):
                begin = time.process_time()
                session.query(asked, epsilon=1)
                times.append(time.process_time() - begin)
            medians.append(statistics.median(times))
    outer, inner = medians
    return (outer - inner) * 1e3


def held(cell: object, true: float) -> bool:
    """Whether an interval holds a true number."""
    ends = cast(Any, cell)
    return bool(ends["low"] <= true <= ends["high"])


def coverage() -> dict[str, float]:
    """The share of the runs in which the intervals of each form hold."""
    holds = dict.fromkeys((*TRUE, *CHOSEN), 0)
    epsilon = Fraction(1, SCALE)
    groups = GROUPS * PARTS
    with tempfile.TemporaryDirectory() as folder, connected(groups, ROWS, folder) as session:
        for answer in range(RUNS // PARTS):
            asker = session.asking_as(f"asker {answer}")
            cells = asker.query(PLAIN, epsilon=epsilon).error()
            chosen = asker.query(BY_NOISE, epsilon=epsilon).error()
            for part in range(PARTS):
                last = cells[(part + 1) * GROUPS - 1]
                for name, true in TRUE.items():
                    holds[name] += held(last[name], true)
                for form, name in enumerate(CHOSEN):
                    rows = [row for row in chosen if (row["form"], row["part"]) == (form, part)]
                    holds[name] += all(held(row["n"], ROWS) for row in rows)
    return {name: count / RUNS for name, count in holds.items()}


def narrowest(draws: int) -> int:
    """The smallest bound of a sum of noises that holds with 95%, by convolution of their law."""
    law = DiscreteLaplace(SCALE)
    one = np.array([law.pmf(x).upper for x in range(-20 * SCALE, 20 * SCALE + 1)])
    whole = np.ones(1)
    for _ in range(draws):
        whole = np.convolve(whole, one)
    middle = len(whole) // 2
    inside = np.cumsum(whole[middle:]) * 2 - whole[middle]
    return int(np.flatnonzero(1 - inside <= 0.05)[0])


def widths() -> dict[str, float]:
    """The stated error of a difference and of a sum over the smallest one that holds."""
    with tempfile.TemporaryDirectory() as folder, connected(GROUPS, ROWS, folder) as session:
        last = cast(Any, session.query(PLAIN, epsilon=Fraction(1, SCALE)).error()[-1])
    return {
        "difference": last["difference"]["half_width"] / narrowest(2),
        f"sum of {GROUPS}": last["sum"]["half_width"] / narrowest(GROUPS),
    }


def measured() -> Iterator[Row]:
    """Every figure with its bar."""
    for name, (groups, statement, bar) in TIMED.items():
        took = milliseconds(groups, statement)
        yield judged(f"outer part: {name}", "ms of CPU", took, -bar, REPETITIONS)
    for name, width in widths().items():
        yield judged(name, "width / true width", width, -1.05, 1)
    least = 0.95 - 3 * sqrt(0.05 * 0.95 / RUNS)
    for name, share in coverage().items():
        yield judged(f"intervals: {name}", "share that hold", share, round(least, 4), RUNS)


def main() -> None:
    """Measures, prints and writes."""
    write_measured(measured(), RESULTS)


if __name__ == "__main__":
    main()
