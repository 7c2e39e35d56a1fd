# SPDX-License-Identifier: Apache-2.0
"""Census tables down a geography: errors of each level, and a spine of 100,000 blocks.

``make bench-census`` writes results/census.json and the picture of docs/census.md. Errors are those
of real noise on known tables: of the census extract, which is published, and of a made-up country.
"""

import math
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import TypeVar

import duckdb
import numpy as np
import pyarrow as pa

import sfumato as sf
from benchmarks.compare import Row, line
from benchmarks.driver import ROOT
from benchmarks.figures import FOLDER, Axis, _document, _text
from benchmarks.report import document, machine
from sfumato.examples.census import census
from sfumato.examples.demo_census import AGE_GROUP, SPINE
from sfumato.examples.made_up_census import made_up
from sfumato.metadata.column import ColumnType
from sfumato.metadata.table import Table
from sfumato.noise import Integers
from sfumato.synopsis import Spine
from sfumato.synopsis.geography.census import measure_census, topdown
from sfumato.synopsis.geography.estimates import Estimates
from sfumato.synopsis.geography.plan import CensusPlan, Split, census_plan
from sfumato.synopsis.geography.quality import quality

RESULTS = ROOT / "benchmarks" / "results" / "census.json"
RHO = "0.05"
RUNS, RELEASES = 20, 1000
BUDGET = sf.Budget(10**6, "1e-6")
RACE = "CASE WHEN RAC1P = '1' THEN 'white' WHEN RAC1P = '2' THEN 'black' ELSE 'other' END"
COUNTRIES = {"extract": "census extract", "made-up": "made-up country"}
WAYS = {
    "alone": ("each table a question of its own", "#8a8a8a"),
    "even by level": ("census, even split", "#5b9a68"),
    "least error": ("census, split of least error", "#3b6ea5"),
}
Tables = Mapping[str, Sequence[Sequence[str]]]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Known:
    """A planned census of a table whose true counts are known."""

    plan: CensusPlan
    truth: list[Integers]

    def errors(self, way: str) -> dict[str, float]:
        """The mean absolute error of a cell at each level, averaged over its tables."""
        design = self.plan.design
        names = [self.plan.spine.levels[level] for level, _ in design.tables]
        found = [self._alone] * len(names)
        if way != "alone":
            split = self.plan.named(way)
            exact = [counts.astype(float) for counts in self.truth]
            estimates = Estimates(self.plan, split, exact, self.truth)
            report = quality(estimates, topdown=topdown(self.plan), runs=RUNS)
            found = [table.published for table in report.tables]
        levels = {}
        for level in dict.fromkeys(names):
            inside = [each for name, each in zip(names, found, strict=True) if name == level]
            levels[level] = float(np.mean(inside))
        return levels

    @property
    def _alone(self) -> float:
        """The mean absolute error of Gaussian noise at the share of one table."""
        share = self.plan.allowance.amount / len(self.plan.design.tables)
        return math.sqrt(2 / math.pi / float(2 * share))


def known(table: Table, spine: Spine, tables: Tables, recodes: Mapping[str, str]) -> Known:
    """A plan at ``RHO``, and the truth: a census with hardly any noise."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Path(folder) / "l.db"
        with sf.connect({"people": table}, dataset="d", budget=BUDGET, ledger=ledger) as session:
            planned = partial(
                census_plan,
                session.dataset,
                "people",
                spine,
                tables=tables,
                recodes=recodes,
            )
            truth = measure_census(session, planned(rho=10**5)).counts
            plan = planned(rho=RHO)
    return Known(plan, truth)


def extract() -> Known:
    """The census extract by age, sex and race: every table of three levels."""
    people = census()
    races = sf.Category(*map(str, range(1, 10)))
    people = replace(people, columns={**people.columns, "RAC1P": races})
    spine = Spine("nation > state > PUMA", SPINE)
    wanted = every(("age", "SEX", "race"))
    recodes = {"age": AGE_GROUP, "race": RACE}
    return known(people, spine, dict.fromkeys(spine.levels, wanted), recodes)


def country() -> Known:
    """The made-up country by age, sex and race: 30 tables of four levels."""
    drawn = made_up()
    wanted = every(("age", "sex", "race"))
    tables = dict.fromkeys(drawn.spine.levels, wanted)
    # of the nation all but two
    tables["nation"] = [axes for axes in wanted if len(axes) != 1 or axes == ["race"]]
    return known(drawn.table, drawn.spine, tables, {})


def every(names: Sequence[str]) -> list[list[str]]:
    """Every table by some of the axes."""
    found: list[list[str]] = []
    for size in range(len(names) + 1):
        found += map(list, combinations(names, size))
    return found


def accuracy() -> Iterator[Row]:
    """The errors of each level, three ways."""
    for name, made in (("extract", extract), ("made-up", country)):
        case = made()
        by_way = {way: case.errors(way) for way in WAYS}
        for level, error in by_way["least error"].items():
            for peer in ("alone", "even by level"):
                other = by_way[peer][level]
                title = f"{COUNTRIES[name]}, {level}: mean absolute error"
                bar = "<= 1 x" if peer == "alone" else ""
                holds = not bar or error <= other
                yield _row(title, "persons", error, other, WAYS[peer][0], bar, holds=holds)
        if name == "extract":
            yield from exactness(case.plan)


def exactness(plan: CensusPlan) -> Iterator[Row]:
    """The largest relative deviation of measured from exact errors, over all tables."""
    split = plan.splits[0]
    squares = np.zeros(len(plan.design.tables))
    for _ in range(RELEASES):
        squares += _squared(plan, split)
    wanted = np.array(plan.standard_errors(split))
    apart = np.abs(np.sqrt(squares / RELEASES) / wanted - 1)
    # a table of one cell a level has its error from 1,000 numbers: 2.2% is one deviation
    title = "root mean square error of least squares, 1,000 releases, against the formula"
    mean = float(apart.mean())
    yield _row(title, "share apart", mean, None, "", "<= 0.03", holds=mean <= 0.03)


def _squared(plan: CensusPlan, split: Split) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """The mean squared error of each table in one release: the estimate of nothing but noise."""
    task = plan.of(split)
    noisy: list[np.ndarray | None] = [None] * len(plan.design.tables)
    for place, mechanism in zip(task.measured, task.mechanisms, strict=True):
        level, axes = plan.design.tables[place]
        shape = [plan.design.tree.sizes[level], *(plan.design.sizes[axis] for axis in axes)]
        noisy[place] = mechanism.noise.sample(math.prod(shape)).reshape(shape).astype(float)
    estimates = plan.squares(split).estimates(noisy)
    found = []
    for level, axes in plan.design.tables:
        detail = plan.design.detail(level)
        dropped = tuple(at + 1 for at, axis in enumerate(detail) if axis not in axes)
        found.append((estimates[level].sum(axis=dropped) ** 2).mean())
    return np.array(found)


def _row(
    case: str,
    metric: str,
    ours: float,
    peer: float | None,
    name: str,
    bar: str,
    *,
    holds: bool,
) -> Row:
    """A figure of ours beside another."""
    ratio = None if peer is None else peer / ours
    return Row(case, metric, ours, peer, name or None, ratio, None, bar, holds, RUNS)


def scale() -> Iterator[Row]:
    """A spine of 100,000 blocks, 5 levels, 100 cells each, 10 million persons."""
    spine, frame = _large()
    columns: dict[str, ColumnType] = {
        "block": sf.Category(*spine.codes[-1]),
        "cell": sf.Integer(0, 99),
    }
    people = {"people": sf.Table(frame, columns=columns)}
    with (
        tempfile.TemporaryDirectory() as folder,
        sf.connect(people, dataset="d", budget=BUDGET, ledger=Path(folder) / "l.db") as session,
    ):
        tables = {level: [["cell"], []] for level in spine.levels}
        planned = partial(census_plan, session.dataset, "people", spine)
        plan, seconds = _timed(lambda: planned(tables=tables, rho="0.5"))
        yield _seconds("plan", seconds, 10)
        found, seconds = _timed(lambda: measure_census(session, plan))
        yield _seconds("measure 10 tables", seconds, 120)
        counts, seconds = _timed(lambda: found.counts)
        yield _seconds("estimate consistent integers", seconds, 120)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    title = f"{len(counts[-1]):,} blocks: most memory of the process"
    yield _row(title, "GB", memory, None, "", "<= 4", holds=memory <= 4)


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    """What a call returns, and the seconds it took."""
    start = time.perf_counter()
    found = work()
    return found, time.perf_counter() - start


def _seconds(what: str, seconds: float, most: float) -> Row:
    title = f"100,000 blocks, 5 levels, 100 cells, 10^7 persons: {what}"
    return _row(title, "s", seconds, None, "", f"<= {most:g}", holds=seconds <= most)


def _large() -> tuple[Spine, pa.Table]:
    """The spine and its persons."""
    draws = np.random.default_rng(0)
    parents = np.zeros(1, int)
    levels = [np.array(["all"])]
    rows: list[np.ndarray] = [np.zeros(1, int)]
    for least, most in ((50, 51), (11, 31), (5, 16), (5, 16)):
        fan = draws.integers(least, most, len(levels[-1]))
        parents = np.repeat(np.arange(len(fan)), fan)
        within = np.arange(len(parents)) - np.repeat(np.cumsum(fan) - fan, fan)
        rows = [each[parents] for each in rows] + [np.arange(len(parents))]
        levels.append(
            np.array([f"{levels[-1][p]}.{w:03}" for p, w in zip(parents, within, strict=True)])
        )
    names = ("nation", "state", "county", "tract", "block")
    table = {name: codes[row] for name, codes, row in zip(names, levels, rows, strict=True)}
    size = draws.lognormal(0, 1, len(parents))
    block = draws.choice(len(parents), 10**7, p=size / size.sum())
    cell = draws.choice(100, 10**7, p=draws.dirichlet(np.full(100, 0.3)))
    codes = pa.DictionaryArray.from_arrays(pa.array(block.astype(np.int32)), pa.array(levels[-1]))
    frame = pa.table({"block": codes, "cell": pa.array(cell.astype(np.int8))})
    return Spine(" > ".join(names), pa.table(table)), frame


def chart(rows: Sequence[Row]) -> str:
    """A line for each level, a dot for each way."""
    found: dict[tuple[str, str], float] = {}
    for row in rows:
        if row.metric == "persons":
            level = row.case.partition(":")[0]
            found[level, "least error"] = row.ours
            way = next(way for way, (title, _) in WAYS.items() if title == row.peer_name)
            found[level, way] = float(row.peer or 0)
    levels = list(dict.fromkeys(level for level, _ in found))
    axis = Axis(2, 16, 200, 720)
    parts = []
    for value in (2, 4, 8, 16):
        x = axis(value)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="66" y2="300" class="g"/>')
        parts.append(_text(x, 316, f"{value}", "a", "middle"))
    for place, level in enumerate(levels):
        y = 84 + 32 * place
        parts.append(_text(12, y + 4, level, "a"))
        for way, (_, colour) in WAYS.items():
            x = axis(found[level, way])
            parts.append(f'<circle cx="{x:.1f}" cy="{y}" r="5" fill="{colour}"/>')
    for place, (title, colour) in enumerate(WAYS.values()):
        parts.append(f'<circle cx="{18 + 230 * place}" cy="40" r="5" fill="{colour}"/>')
        parts.append(_text(28 + 230 * place, 44, title, "a"))
    title = f"Mean absolute error of a cell, in persons, at rho = {RHO}"
    parts.append(_text(12, 20, title, "t"))
    return _document(title, "".join(parts))


def main() -> None:
    """Measures, prints, writes and draws."""
    before = machine()
    rows = []
    for part in (scale, accuracy):
        for row in part():
            rows.append(row)
            print(line(row), flush=True)
    versions = {"sfumato": {"sfumato": sf.__version__, "duckdb": duckdb.__version__}}
    RESULTS.write_text(document(rows, before, versions, {}), encoding="utf-8")
    (FOLDER / "census-error.svg").write_text(chart(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
