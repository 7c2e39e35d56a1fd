# SPDX-License-Identifier: Apache-2.0
"""Synopses: exact errors beside known figures, errors of real noise, seconds and memory.

``make bench-synopsis`` writes results/synopsis.json. All ranges are beside the exact errors of the
published strategies: a tree of 2 with equal levels (Hay et al. 2010), Privelet (Xiao et al. 2010),
the identity; and beside releases of OpenDP's consistent tree and of diffprivlib's histogram. Running
totals are beside dpcrpy's. Each library is in its environment. ``make bench-census`` has the
geography.
"""

import math
import resource
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
from pyarrow import csv

import sfumato as sf
from benchmarks.compare import Kind, Row, Work, line
from benchmarks.driver import ROOT, start
from benchmarks.report import document, machine
from sfumato.engines.base import UnitRows
from sfumato.metadata.dataset import Dataset
from sfumato.noise import DiscreteGaussian
from sfumato.plan.rows import BoundedRows
from sfumato.privacy.distance import Norm
from sfumato.query.statistic import Opened
from sfumato.synopsis import (
    Stream,
    Synopsis,
    Wanted,
    cells,
    marginals,
    measure,
    plan,
    ranges,
    stream,
)
from sfumato.synopsis.decoders import _squares, _sums
from sfumato.synopsis.denoise import denoise
from sfumato.synopsis.layers import Layer
from sfumato.synopsis.layout import layouts
from sfumato.synopsis.stack import Stack
from sfumato.synopsis.strategy import strategies
from sfumato.synopsis.stream_plan import plan_stream
from sfumato.synopsis.workload import Ranges

RESULTS = ROOT / "benchmarks" / "results" / "synopsis.json"
BUDGET = sf.Budget(10**6, "1e-6")
RANDOM = np.random.default_rng(20)
Task = Callable[[], object]
LIBRARIES = ("opendp", "diffprivlib")
# What the libraries are, and those that do not start, with the reason.
VERSIONS: dict[str, dict[str, str]] = {}
SKIPPED: dict[str, str] = {}


def at_most(case: str, metric: str, ours: float, most: float, times: int = 1) -> Row:
    """A figure of ours that must be at most its bar."""
    return Row(case, metric, ours, None, None, None, None, f"<= {most:g}", ours <= most, times)


def beside(case: str, metric: str, ours: float, peer: float, name: str) -> Row:
    """A figure of ours beside that of a published strategy."""
    return Row(case, metric, ours, peer, name, peer / ours, None, None, None, 1)


def seconds(work: Task, times: int = 1) -> float:
    """The median CPU seconds of a work."""
    spent = []
    for _ in range(times):
        before = time.process_time()
        work()
        spent.append(time.process_time() - before)
    return statistics.median(spent)


def gigabytes() -> float:
    """The most memory that this process had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def all_ranges() -> Iterator[Row]:
    """The mean variance over all ranges of 1,024 values."""
    workload = Ranges(1024)
    pure = 2 * strategies(workload, Norm.L1)[0].factor
    gauss = strategies(workload, Norm.L2)[0].factor
    yield at_most("all ranges, n = 1,024, pure", "variance x eps^2", pure, 137)
    yield at_most("all ranges, n = 1,024, rho = 0.5", "variance", gauss, 18.6)
    widths = tuple(2**level for level in range(11))
    tree = Stack(1024, widths, tuple(map(Layer, widths[:-1])))
    halves = tuple(Layer(width, halves=True) for width in widths[1:])
    wavelet = Stack(1024, widths, (*halves, Layer(1024)))
    published = {
        "identity": 2 * (1024 + 2) / 3,
        "tree of 2": 2 * tree.error(workload, [0.01] * 10),
        "Privelet": 2 * wavelet.error(workload, [1 / 121] * 11),
    }
    for name, variance in published.items():
        yield beside("all ranges, n = 1,024, pure", "variance x eps^2", pure, variance, name)


def libraries() -> Iterator[Row]:
    """The mean squared error over all ranges of 1,024 values, of 200 releases of a library."""
    ours = 2 * strategies(Ranges(1024), Norm.L1)[0].factor
    workers, skipped = start(list(LIBRARIES))
    for name, worker in workers.items():
        work = Work(name, "range errors", 1.0, 1024)
        found = [worker.ask(work, Kind.VALUE).value for _ in range(5)]
        worker.close()
        yield beside(
            "all ranges, n = 1,024, pure", "variance x eps^2", ours, statistics.median(found), name
        )
        VERSIONS[name] = worker.versions
    SKIPPED.update(skipped)


def automatic_choice() -> Iterator[Row]:
    """The worst ratio of the chosen strategy to the best of all candidates."""
    worst = 0.0
    for power in range(1, 21):
        for norm in (Norm.L1, Norm.L2):
            found = strategies(Ranges(2**power), norm)
            worst = max(worst, found[0].factor / min(one.factor for one in found))
    yield at_most("automatic choice against the best, n = 2 ... 2^20", "ratio", worst, 1.02)


def largest() -> Iterator[Row]:
    """2^20 values: time to measure and reconstruct, and the error of real noise."""
    size = 2**20
    rows = pa.table({"v": pa.array(RANDOM.integers(0, size, 100_000), pa.int32())})
    table = sf.Table(rows, columns={"v": sf.Integer(0, size - 1)})
    found: list[Synopsis] = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "l.db"
        with sf.connect({"t": table}, dataset="d", budget=BUDGET, ledger=place) as session:
            planned = plan(session.dataset, "t", ranges("v"), rho="0.5")

            def once() -> None:
                rho = f"{0.5 + len(found) / 10**6:.6f}"
                measured = measure(session, "t", ranges("v"), rho=rho)
                assert isinstance(measured, Synopsis)
                found.append(measured)
                assert len(measured.counts) == size

            spent = seconds(once, 5)
    yield at_most("n = 2^20: measure and reconstruct", "CPU ms", 1000 * spent, 60, 5)
    truth = np.bincount(rows["v"].to_numpy(), minlength=size)
    squares = []
    for synopsis in found:
        errors = np.concatenate([[0.0], np.cumsum(synopsis.counts - truth)])
        ends = np.sort(RANDOM.integers(0, size + 1, (2, 200_000)), axis=0)
        squares.append(float(((errors[ends[1]] - errors[ends[0]]) ** 2).mean()))
    expected = planned.error(planned.candidates[0])  # type: ignore[arg-type]
    reached = math.sqrt(statistics.fmean(squares))
    yield at_most("n = 2^20: error of five releases", "of expected", reached / expected, 1.05, 5)


def tables() -> Iterator[Row]:
    """Marginals in closed form."""
    sizes = {name: (size, size) for name, size in zip("abcd", (20, 18, 2, 9), strict=True)}
    found = {
        one.name: one.factor for one in layouts(marginals(list("abcd"), up_to=3), sizes, Norm.L2)
    }
    ratio = math.sqrt(found["marginals"] / found["tables alone"])
    yield at_most("<= 3-way marginals of (20, 18, 2, 9)", "of each table alone", ratio, 0.76)


def hundred_columns() -> Iterator[Row]:
    """A hundred columns of ten values."""
    names = [f"c{place}" for place in range(100)]
    declared = {name: sf.Integer(0, 9) for name in names}
    many = Dataset("many", {"t": sf.Table("t.csv", columns=declared)})
    triples, pairs = marginals(names, up_to=3), marginals(names, up_to=2)
    spent = seconds(lambda: plan(many, "t", triples, rho="0.05"))
    yield at_most("100 columns, all <= 3-way tables: plan", "CPU s", spent, 10)
    columns = {name: RANDOM.integers(0, 10, 10**6).astype(np.int8) for name in names}
    table = sf.Table(pa.table(columns), columns=declared)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "l.db"
        with sf.connect({"t": table}, dataset="d", budget=BUDGET, ledger=place) as session:
            spent = seconds(lambda: measure(session, "t", pairs, rho="0.05"))
            yield at_most("4,950 pairs of 10^6 rows: measure", "CPU s", spent, 120)
            found = measure(session, "t", pairs, rho="0.05")
    found.answer("c1 = 1")
    spent = seconds(lambda: found.answer("c3 = 4 AND c77 = 2"), 5)
    yield at_most("one pair answered", "CPU ms", 1000 * spent, 50, 5)
    yield at_most("100 columns: memory of the process", "GB", gigabytes(), 2)


def large_domain() -> Iterator[Row]:
    """Ranges and marginals over 10^9 cells, of 10^7 rows."""
    sizes = {"age": 100, "income": 1000, "hour": 500, "sex": 2, "region": 10}
    declared = {name: sf.Integer(0, size - 1) for name, size in sizes.items()}
    columns = {name: RANDOM.integers(0, size, 10**7, np.int16) for name, size in sizes.items()}
    table = sf.Table(pa.table(columns), columns=declared)
    wanted: Wanted = (
        ranges("age") * ranges("income") * cells("sex")
        + ranges("hour") * cells("sex", "region")
        + marginals(["age", "sex", "region"], up_to=3)
    )
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "l.db"
        with sf.connect({"t": table}, dataset="d", budget=BUDGET, ledger=place) as session:
            spent = seconds(lambda: plan(session.dataset, "t", wanted, rho="0.05"))
            yield at_most("10^9 cells: plan", "CPU s", spent, 10)
            spent = seconds(lambda: measure(session, "t", wanted, rho="0.05"))
            yield at_most("10^9 cells, 10^7 rows: measure", "CPU s", spent, 60)
            found = measure(session, "t", wanted, rho="0.05")
    tests = [f"age < {k % 99 + 1} AND income BETWEEN {k} AND 999 AND sex = 1" for k in range(1000)]
    found.answer(tests[0])
    spent = seconds(lambda: found.answers(tests))
    yield at_most("10^9 cells: 1,000 answers", "CPU s", spent, 1)
    yield at_most("10^9 cells: memory of the process", "GB", gigabytes(), 2)


def releases() -> Iterator[Row]:
    """The root mean square error over all ranges of 1,000 releases, beside the exact one."""
    size, times = 1024, 1000
    truth = RANDOM.integers(0, 20, size)
    rows = pa.table({"v": pa.array(np.repeat(np.arange(size), truth), pa.int32())})
    table = sf.Table(rows, columns={"v": sf.Integer(0, size - 1)})
    for cost, name in ((Fraction(1), "epsilon"), (Fraction(1, 2), "rho")):
        ratios = []
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "l.db"
            with sf.connect({"t": table}, dataset="d", budget=BUDGET, ledger=place) as session:
                for number in range(times):
                    # another cost is another charge, with noise of its own
                    paid = cost + Fraction(number, 10**9)
                    epsilon, rho = (paid, None) if name == "epsilon" else (None, paid)
                    found = measure(session, "t", ranges("v"), epsilon=epsilon, rho=rho)
                    assert isinstance(found, Synopsis)
                    ends = np.concatenate([[0.0], np.cumsum(found.counts - truth)])
                    every = len(ends) * float((ends**2).sum()) - float(ends.sum()) ** 2
                    expected = found.plan.error(found.plan.candidates[0]) ** 2
                    ratios.append(every / (len(ends) * size / 2) / expected)
        # one standard deviation of this is 0.6% under epsilon, where few numbers decide
        off = abs(math.sqrt(statistics.fmean(ratios)) - 1)
        yield at_most(
            f"all ranges, n = 1,024, {name}: 1,000 releases", "off the exact", off, 0.03, times
        )


def one_tick() -> Iterator[Row]:
    """A tick of 1,000 counters of a stream of 2^20 ticks, without the read of the rows."""
    rows = {"day": RANDOM.integers(1, 50, 20_000), "zone": RANDOM.integers(0, 999, 20_000)}
    declared = {"day": sf.Integer(1, 2**20), "zone": sf.Integer(0, 998)}
    table = sf.Table(pa.table(rows), columns=declared)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "l.db"
        with sf.connect({"t": table}, dataset="d", budget=BUDGET, ledger=place) as session:
            opened = partial(stream, session, "t", time="day", by=["zone"], horizon=2**20)
            with opened(rho="0.5") as found:
                spent = _seconds_of_ticks(found)
            _sums.cache_clear()
            _squares.cache_clear()
            tracemalloc.start()
            with opened(rho="0.6") as found:
                found.advance(1)
                planned = tracemalloc.get_traced_memory()[1] / 1e6
                tracemalloc.reset_peak()
                found.advance(2)
                ticked = tracemalloc.get_traced_memory()[1] / 1e6
            tracemalloc.stop()
    case = "one tick of 1,000 counters, T = 2^20"
    yield at_most(case, "CPU ms besides the read", 1000 * statistics.median(spent), 20, len(spent))
    yield at_most(case, "MB of Python and numpy", ticked, 100)
    yield at_most("plan and opening, T = 2^20", "MB of Python and numpy", planned, 100)


def _seconds_of_ticks(found: Stream) -> list[float]:
    """The CPU seconds of some ticks, without the read of their rows."""
    spent, read = [], []
    honest = Opened.unit_rows

    def timed(opened: Opened, rows: BoundedRows) -> UnitRows:
        before = time.process_time()
        result = honest(opened, rows)
        read.append(time.process_time() - before)
        return result

    with mock.patch.object(Opened, "unit_rows", timed):
        for day in range(1, 12):
            before = time.process_time()
            found.advance(day)
            spent.append(time.process_time() - before - read[-1])
    return spent


def births() -> Iterator[Row]:
    """The births of ten years, one birth protected: the denoised day beside the raw one."""
    path = ROOT / "src" / "sfumato" / "examples" / "days" / "births.csv"
    truth = csv.read_csv(path)["births"].to_numpy().astype(float)
    for rho, most in (("1e-6", 0.72), ("1e-7", 0.45)):
        law = DiscreteGaussian(sigma_squared=1 / (2 * Fraction(rho)))
        deviation = math.sqrt(float(law.variance.upper))
        raw = better = 0.0
        for _ in range(40):
            noisy = truth + law.sample(len(truth))
            raw += float(((noisy - truth) ** 2).sum())
            better += float(((np.asarray(denoise(noisy, deviation).values) - truth) ** 2).sum())
        yield at_most(f"births, rho = {rho}, denoised", "of raw", math.sqrt(better / raw), most, 40)


def streams() -> Iterator[Row]:
    """The mean variance of running totals."""
    for steps, most in ((1024, 9.7), (2**20, 28.5)):
        trips = sf.Table("t.csv", columns={"day": sf.Integer(1, steps)})
        city = Dataset("city", {"trips": trips})
        best = plan_stream(city, "trips", time="day", horizon=steps, rho="0.5").best
        yield at_most(f"running totals, T = {steps:,}, rho = 0.5", "variance", best.mean, most)


def counters() -> Iterator[Row]:
    """The mean squared error of running totals of dpcrpy, of 200 releases, at rho = 0.5."""
    trips = sf.Table("t.csv", columns={"day": sf.Integer(1, 1024)})
    city = Dataset("city", {"trips": trips})
    ours = plan_stream(city, "trips", time="day", horizon=1024, rho="0.5").best.mean
    workers, skipped = start(["dpcrpy"])
    for name, worker in workers.items():
        for method in ("binary tree", "tree of Honaker", "BCRG"):
            work = Work(name, method, 1.0, 1024)
            found = statistics.median(worker.ask(work, Kind.VALUE).value for _ in range(5))
            case = "running totals, T = 1,024, rho = 0.5"
            yield beside(case, "variance", ours, found, f"{name}: {method}")
        worker.close()
        VERSIONS[name] = worker.versions
    SKIPPED.update(skipped)


def denoised() -> Iterator[Row]:
    """Made-up series of every shape, of 25 draws each: never above the raw error."""
    worst = 0.0
    ticks = np.arange(700)
    for seed in range(250):
        random = np.random.default_rng(seed)
        shapes = [
            random.normal(size=700).cumsum() * random.uniform(0, 3),
            random.uniform(0, 50) * (ticks % 7 < 5),
            random.uniform(0, 20) * np.sin(ticks / random.uniform(1, 100)),
            np.where(ticks > random.integers(0, 700), random.uniform(0, 30), 0.0),
        ]
        for truth in shapes:
            raw = better = 0.0
            for _ in range(25):
                noisy = truth + random.normal(size=700)
                raw += float(((noisy - truth) ** 2).sum())
                better += float(((np.asarray(denoise(noisy, 1.0).values) - truth) ** 2).sum())
            worst = max(worst, math.sqrt(better / raw))
    yield at_most("1,000 made-up series, denoised", "of raw, at worst", worst, 1.01, 25)


def main() -> None:
    """Measures, prints and writes."""
    before, rows = machine(), []
    cases = (
        all_ranges,
        libraries,
        automatic_choice,
        largest,
        tables,
        hundred_columns,
        large_domain,
    )
    for case in (*cases, releases, streams, counters, one_tick, births, denoised):
        for row in case():
            rows.append(row)
            print(line(row), flush=True)
    asked = [row for row in rows if row.bar]
    missed = [line(row) for row in asked if not row.holds]
    print(f"\n{len(asked) - len(missed)} of {len(asked)} bars hold.", *missed, sep="\n")
    versions = {"sfumato": {"sfumato": sf.__version__, "numpy": np.__version__}}
    RESULTS.write_text(document(rows, before, versions | VERSIONS, SKIPPED), encoding="utf-8")


if __name__ == "__main__":
    main()
