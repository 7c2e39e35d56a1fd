# SPDX-License-Identifier: Apache-2.0
"""What audits notice, and what they take: ``make bench-audit``. CPU seconds of one thread.

The census area is read where the file of NIST is beside the repository; else it is left out.
"""

import csv
import json
import math
import platform
import time
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as parquet
from numpy.typing import NDArray

import sfumato as sf
from sfumato.audit import Verdict, guesses, membership, one_run, published, residuals, system
from sfumato.metadata.column import ColumnType
from sfumato.metadata.dataset import Dataset
from sfumato.privacy import GaussianDP, PureDP

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "audit.json"
NIST = ROOT.parent / "shared" / "data" / "acs_nist" / "ma2019.csv"
ADULT = ROOT / "benchmarks" / "data" / "adult.parquet"
CANARIES, RUNS, SOUND = 100_000, 60, 1_000
# mu of (epsilon, delta = 1e-5), by bisection of the delta of N(0, 1) against N(mu, 1)
MU = {1: 0.26805, 3: 0.71911}
COLUMNS: dict[str, ColumnType] = {
    "w": sf.Category("a", "A", "b", "B", "\u00e9", "E\u0301"),
    "n": sf.Integer(0, 10),
    "x": sf.Real(0, 1, step="0.25"),
    "d": sf.Date("2000-01-01", "2000-12-31"),
    "f": sf.Boolean(),
}
STATEMENTS = (
    "SELECT COUNT(*) AS n FROM t",
    "SELECT w, COUNT(*) AS n, SUM(n) AS s FROM t GROUP BY w",
    "SELECT COUNT(w) AS n, COUNT(DISTINCT who) AS u, AVG(x) AS m FROM t",
    "SELECT COUNT(*) AS n FROM t WHERE w = 'a' OR w LIKE 'B%'",
    "SELECT MONTH(d) AS m, COUNT(*) AS n FROM t GROUP BY MONTH(d)",
    "SELECT f, MEDIAN(n) AS m FROM t GROUP BY f",
)
Told = tuple[str, float, str, bool]


def forms() -> Iterator[Told]:
    """All forms with six statements, and one pair of neighbours."""
    unit = sf.Unit("who", max_rows=2, max_groups=2)
    dataset = Dataset("bench", {"t": sf.Table("none.csv", columns=COLUMNS, unit=unit)})
    start = time.process_time()
    result = system(dataset, STATEMENTS, rounds=1)
    spent = time.process_time() - start
    sound = not result.findings and len(result.statements) == len(STATEMENTS)
    yield f"{len(result.forms)} forms x 6 statements: findings", len(result.findings), "0", sound
    yield "forms, CPU s", spent, "at most 60", spent <= 60


def canaries() -> Iterator[Told]:
    """A clip left out by 3, and the square root of 60 steps forgotten."""
    generator = np.random.default_rng(1)
    for epsilon, mu in MU.items():
        claim = GaussianDP(Fraction(str(mu)) ** 2)
        for name, factor in (("a clip left out by 3", 3.0), ("60 steps forgotten", math.sqrt(60))):
            start = time.process_time()
            violated = 0
            for _ in range(RUNS):
                coins = generator.random(CANARIES) < 0.5
                scores = generator.normal(size=CANARIES) + mu * factor * coins
                violated += guesses(scores, coins, claim=claim).verdict is Verdict.VIOLATED
            spent = (time.process_time() - start) / RUNS
            what = f"epsilon {epsilon}, {name}"
            yield f"{what}: VIOLATED of {RUNS}", violated, f"{RUNS}", violated == RUNS
            yield f"{what}: CPU s a run", spent, "at most 1", spent <= 1


def sound_runs() -> Iterator[Told]:
    """Mechanisms that keep their claim exactly."""
    generator = np.random.default_rng(2)
    violated = 0
    for _ in range(SOUND):
        coins = generator.random(1000) < 0.5
        scores = generator.normal(size=1000) + 0.5 * coins
        result = guesses(scores, coins, claim=GaussianDP("0.25"), confidence="0.95")
        violated += result.verdict is Verdict.VIOLATED
    share = 100 * violated / SOUND
    yield f"{SOUND} sound runs at 95%: % VIOLATED", share, "at most 5", share <= 5


def noises() -> Iterator[Told]:
    """Noise that is too small."""
    generator = np.random.default_rng(3)
    for ratio, count in ((0.85, 2_000), (0.95, 20_000), (0.975, 120_000)):
        runs = 200
        found = sum(
            residuals(generator.normal(0, 2 * ratio, count), sigma=2).verdict is Verdict.VIOLATED
            for _ in range(runs)
        )
        yield f"noise x {ratio}, {count:,} numbers: of {runs}", found, f"{runs}", found == runs


def area() -> Iterator[Told]:
    """All tables of three columns of one census area: exact, suppressed, rounded."""
    names = ("SEX", "AGE", "MSP", "RAC1P")
    with NIST.open(encoding="utf-8", newline="") as lines:
        persons = [
            {**row, "AGE": str(int(row["AGEP"]) // 10)}
            for row in csv.DictReader(lines)
            if row["PUMA"] == "25-01000"
        ]
    tables = []
    for chosen in combinations(names, 3):
        counts = Counter(tuple(row[name] for name in chosen) for row in persons)
        tables.append((chosen, counts))
    options: tuple[tuple[str, Any, dict[str, Any], tuple[int, int], int], ...] = (
        ("exact", lambda n: n, {}, (916, 50), 10),
        ("1 to 9 suppressed", lambda n: "" if n < 10 else n, {"suppressed": (1, 9)}, (655, 19), 10),
        ("rounded to 5", lambda n: 5 * round(n / 5), {"rounded": 5}, (0, 0), 60),
    )
    for name, change, given, expected, most in options:
        rows = [
            [{**dict(zip(chosen, key, strict=True)), "n": change(n)} for key, n in counts.items()]
            for chosen, counts in tables
        ]
        start = time.process_time()
        result = published(rows, **given)
        spent = time.process_time() - start
        found = result.determined, result.unique
        bar = f"{expected[0]} and {expected[1]} unique"
        yield f"census area, {name}: determined", found[0], bar, found == expected
        yield f"census area, {name}: CPU s", spent, f"at most {most}", spent <= most


def reconstruction() -> Iterator[Told]:
    """200 bits from 1,000 random subset counts, without noise and with epsilon 1 in all."""
    generator = np.random.default_rng(4)
    bits = generator.random(200) < 0.5
    subsets = generator.random((1000, 200)) < 0.5
    for name, scale in (("plain", 0.0), ("epsilon 1 in all", 1000.0)):
        counts = subsets.astype(float) @ bits + (generator.laplace(0, scale, 1000) if scale else 0)
        guessed = np.linalg.lstsq(subsets.astype(float), counts, rcond=None)[0] > 0.5
        right = int((guessed == bits).sum())
        share = 100 * right / 200
        if scale:
            verdict = one_run(right=right, made=200, coins=200, claim=PureDP(1)).verdict
            yield f"bits, {name}: % right", share, "not refuted", verdict is Verdict.UNDECIDED
        else:
            yield f"bits, {name}: % right", share, "at least 99", share >= 99


def attacked_training() -> Iterator[Told]:
    """LiRA on a ridge regression of random features that fits its rows of Adult exactly."""
    generator = np.random.default_rng(5)
    table = parquet.read_table(ADULT).slice(0, 2000).to_pandas()
    label = 2.0 * table.pop("income").to_numpy() - 1
    plain = table.drop(columns="split").to_numpy(np.float64)
    plain = (plain - plain.mean(axis=0)) / (plain.std(axis=0) + 1e-9)
    turned = plain @ generator.normal(size=(plain.shape[1], 3000)) * 0.3
    features = np.cos(turned + generator.uniform(0, 2 * np.pi, 3000))
    kernel = 2 * features @ features.T / 3000

    def fit(included: NDArray[np.bool_]) -> NDArray[np.float64]:
        inner = kernel[np.ix_(included, included)] + 1e-6 * np.eye(int(included.sum()))
        weights = np.linalg.solve(inner, label[included])
        margins: NDArray[np.float64] = label * (kernel[:, included] @ weights)
        return margins

    start = time.process_time()
    result = membership(fit, rows=2000, claim=PureDP(1))
    found = 100 * result.found("0.01")
    yield "LiRA: % found at 1% false alarms", found, "at least 30", found >= 30
    violated = result.verdict is Verdict.VIOLATED
    yield "LiRA, epsilon 1 claimed: VIOLATED", float(violated), "1", violated
    yield "LiRA, CPU s", time.process_time() - start, "none", True


def main() -> None:
    """Measures, writes the results, and says which bars hold."""
    rows: list[dict[str, Any]] = []
    parts = [forms, canaries, sound_runs, noises, reconstruction, attacked_training]
    if NIST.exists():
        parts.append(area)
    for part in parts:
        for what, value, bar, holds in part():
            rows.append({"what": what, "value": round(value, 3), "bar": bar, "holds": holds})
            print(f"{'holds ' if holds else 'MISSED'} {what}: {value:.3g} ({bar})", flush=True)
    form = {"machine": platform.machine(), "rows": rows}
    RESULTS.write_text(json.dumps(form, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
