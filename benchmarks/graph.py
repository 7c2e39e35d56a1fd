# SPDX-License-Identifier: Apache-2.0
"""Graphs: errors of each question on two published graphs, a million edges, and blurred places.

``make bench-graph`` writes results/graph.json. AS 2000 is the graph of the demo; ca-GrQc is read
from shared/data/graphs, where it is there. A run goes through the steps of the question itself,
without a ledger. The large graph is asked through a session, each question in a process of its own.
"""

import json
import math
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import sfumato as sf
from benchmarks.compare import Row, line
from benchmarks.driver import ROOT
from benchmarks.report import document, machine
from sfumato import examples
from sfumato.graph.degree_counts import degrees_of
from sfumato.graph.questions import Degrees, Edges, Question, Shape, Triangles
from sfumato.graph.reading import graph_of
from sfumato.graph.synthesis import drawn_graph
from sfumato.graph.task import ask
from sfumato.graph.triangles import count_triangles, most_common_neighbours
from sfumato.graph.ways import TrianglesOfEdges, way_of
from sfumato.mechanisms import Blur
from sfumato.metadata.dataset import Dataset
from sfumato.plan.graph import BoundedGraph
from sfumato.query.allowance import allowance
from sfumato.query.statistic import Graph, Opened
from sfumato.query.task import Stored

RESULTS = ROOT / "benchmarks" / "results" / "graph.json"
RUNS, DRAWN = 40, 6
CO_AUTHORS = ROOT.parent / "shared" / "data" / "graphs" / "ca-GrQc.edges"
ROUTERS = Path(examples.__file__).parent / "ties" / "routers.parquet"
PEOPLE = sf.Table("people.csv", unit=sf.Unit("id", name="person"))
DECLARED = Dataset(
    "graph",
    {
        "people": PEOPLE,
        "ties": sf.Table("ties.csv", unit=sf.Edge("a", "b")),
        "friends": sf.Table("friends.csv", unit=sf.Node("a", "b", of="people")),
    },
)
BY_EDGE, BY_NODE = (graph_of(DECLARED, table, None) for table in ("ties", "friends"))
LARGE: Mapping[str, Question] = {"edges": Edges(), "degrees": Degrees(), "triangles": Triangles()}


class Steps:
    """Answers the steps of a question from an open graph, without a reserved event."""

    charge = "c" * 32

    def __init__(self, opened: Opened) -> None:
        self._opened = opened

    def measure(self, statistic: Any, mechanism: Any) -> Any:
        """The integers plus noise."""
        exact = statistic.exact(self._opened)
        if isinstance(exact, np.ndarray):
            return mechanism.release_many(exact)
        return mechanism.release(exact)

    def select(self, statistic: Any, mechanism: Any) -> int:
        """The index of a candidate."""
        return int(mechanism.release(statistic.exact(self._opened)))

    def ladder(self, statistic: Any, mechanism: Any) -> int:
        """An integer drawn by rungs."""
        return int(mechanism.release(*statistic.exact(self._opened)))


def facts(
    plan: BoundedGraph, opened: Opened, question: Question, epsilon: str
) -> Mapping[str, Any]:
    """What one run of a question releases."""
    steps: Any = Steps(opened)
    return way_of(plan, question, allowance(epsilon=epsilon)).run(steps)


def graphs() -> dict[str, Graph]:
    """The published graphs that are there."""
    table = parquet.read_table(ROUTERS)
    found = {"AS": _graph(np.column_stack([table["a"].to_numpy(), table["b"].to_numpy()]))}
    if CO_AUTHORS.exists():
        found = {"GrQc": _graph(np.loadtxt(CO_AUTHORS, dtype=np.int64)), **found}
    else:
        print(f"ca-GrQc is left out: there is no {CO_AUTHORS.name} in shared/data/graphs")
    return found


def _graph(pairs: Any) -> Graph:
    names, numbers = np.unique(pairs, return_inverse=True)
    return Graph(numbers.reshape(-1, 2).astype(np.int64), len(names))


def opened_as(plan: BoundedGraph, graph: Graph, seed: int = 0) -> Opened:
    """The graph, with its edges in an order of their own."""
    pairs = np.random.default_rng(seed).permutation(graph.pairs)
    return Opened(plan, graph=lambda: Graph(pairs, graph.nodes))


def limit(case: str, metric: str, value: float, most: float, runs: int) -> Row:
    """A row whose number may be so large."""
    value = float(f"{value:.4g}")
    return Row(case, metric, value, None, None, None, None, f"<= {most:g}", value <= most, runs)


def _histogram_gap(histogram: Mapping[int, int], degrees: Any) -> float:
    """The sum of all differences of two histograms, by the number of nodes."""
    true = dict(
        zip(*(each.tolist() for each in np.unique(degrees, return_counts=True)), strict=True)
    )
    gaps = [abs(true.get(each, 0) - histogram.get(each, 0)) for each in {*true, *histogram}]
    return float(sum(gaps) / len(degrees))


def degrees_by_edge(name: str, graph: Graph) -> Iterator[Row]:
    """Squared error of the sequence a node, and the histogram."""
    degrees = np.sort(degrees_of(graph))[::-1]
    opened = opened_as(BY_EDGE, graph)
    squares, gaps = [], []
    for _ in range(RUNS):
        found = dict(map(tuple, facts(BY_EDGE, opened, Degrees(), "1")["degrees"]))
        sequence = np.repeat([*found], [*found.values()])[::-1]
        size = max(len(sequence), len(degrees))
        apart = np.zeros(size)
        apart[: len(sequence)] += sequence
        apart[: len(degrees)] -= degrees
        squares.append(float((apart**2).sum()) / len(degrees))
        gaps.append(_histogram_gap(found, degrees))
    bar = {"GrQc": 0.055, "AS": 0.08}[name]
    yield limit(
        f"{name}, degrees, edge", "squared error a node", statistics.mean(squares), bar, RUNS
    )
    yield limit(f"{name}, degrees, edge", "histogram, L1 / n", statistics.mean(gaps), 0.045, RUNS)


def triangles_by_edge(name: str, graph: Graph) -> Iterator[Row]:
    """The expected error by the exact law, and that of runs in standard errors from it."""
    true, width = count_triangles(graph), most_common_neighbours(graph)
    by_name: Mapping[str, Mapping[str, float]] = {
        "GrQc": {"1": 0.31, "0.5": 0.65, "0.1": 5.2},
        "AS": {"1": 12},
    }
    bars = by_name[name]
    opened = opened_as(BY_EDGE, graph)
    for epsilon, bar in bars.items():
        _, rungs = TrianglesOfEdges(BY_EDGE, allowance(epsilon=epsilon))._steps
        expected = rungs.mean_error(width)
        errors = []
        for _ in range(RUNS):
            drawn = rungs.release(true, width)
            errors.append(abs(drawn - true))
        away = abs(statistics.mean(errors) - expected) / (statistics.stdev(errors) / RUNS**0.5)
        case = f"{name}, triangles, edge, epsilon {epsilon}"
        yield limit(case, "% expected error", 100 * expected / true, bar, RUNS)
        yield limit(case, "runs, standard errors from it", away, 4, RUNS)
    assert facts(BY_EDGE, opened, Triangles(), "1")["low"] >= 0


def edges_by_node(name: str, graph: Graph) -> Iterator[Row]:
    """The median relative error of the number of edges."""
    asked = {"GrQc": {Edges(): 4}, "AS": {Edges(): 45, Edges(max_degree=2048): 15}}[name]
    orders = [opened_as(BY_NODE, graph, seed) for seed in range(5)]
    for question, bar in asked.items():
        errors = []
        for run in range(RUNS):
            value = facts(BY_NODE, orders[run % 5], question, "1")["value"]
            errors.append(100 * abs(value / len(graph.pairs) - 1))
        case = f"{name}, edges, node" + (
            f", limit {question.max_degree}" if question.max_degree else ""
        )
        yield limit(case, "% median error", statistics.median(errors), bar, RUNS)


def degrees_by_node(name: str, graph: Graph) -> Iterator[Row]:
    """The histogram of degrees."""
    degrees = degrees_of(graph)
    orders = [opened_as(BY_NODE, graph, seed) for seed in range(5)]
    gaps = []
    for run in range(RUNS):
        found = dict(map(tuple, facts(BY_NODE, orders[run % 5], Degrees(), "1")["degrees"]))
        gaps.append(_histogram_gap(found, degrees))
    bar = {"GrQc": 0.40, "AS": 0.72}[name]
    yield limit(f"{name}, degrees, node", "histogram, L1 / n", statistics.mean(gaps), bar, RUNS)


def synthetic(name: str, graph: Graph) -> Iterator[Row]:
    """Edges, triangles, clustering and degrees of synthetic graphs at epsilon 2."""
    true = _summary(graph)
    opened = opened_as(BY_EDGE, graph)
    apart: dict[str, list[float]] = {"edges": [], "triangles": [], "clustering": [], "degrees": []}
    for seed in range(DRAWN):
        released = {**facts(BY_EDGE, opened, Shape(), "2"), "drawn_from": seed}
        made = drawn_graph(released, Stored(b"", ""))
        found = _summary(Graph(made.pairs, made.nodes))
        apart["edges"].append(100 * abs(found["edges"] / true["edges"] - 1))
        apart["triangles"].append(100 * abs(found["triangles"] / true["triangles"] - 1))
        apart["clustering"].append(abs(found["clustering"] - true["clustering"]))
        apart["degrees"].append(_largest_gap(made.pairs, graph))
    bars = {"edges": 3, "triangles": 6, "clustering": 0.06, "degrees": 0.01}
    metrics = {
        "edges": "% off",
        "triangles": "% off",
        "clustering": "off",
        "degrees": "largest gap of shares",
    }
    for measure, values in apart.items():
        mean = statistics.mean(values)
        if name == "GrQc":
            yield limit(
                f"{name}, synthetic, {measure}", metrics[measure], mean, bars[measure], DRAWN
            )
        else:
            case, value = f"{name}, synthetic, {measure}", float(f"{mean:.4g}")
            yield Row(case, metrics[measure], value, None, None, None, None, None, None, DRAWN)


def _summary(graph: Graph) -> dict[str, float]:
    degrees = degrees_of(graph)
    triangles = count_triangles(graph)
    wedges = float((degrees * (degrees - 1) // 2).sum())
    return {"edges": len(graph.pairs), "triangles": triangles, "clustering": 3 * triangles / wedges}


def _largest_gap(pairs: Any, graph: Graph) -> float:
    """The largest difference of the shares of nodes of at least a degree."""
    mine, true = np.bincount(pairs.ravel()), degrees_of(graph)
    top = int(max(mine.max(initial=0), true.max()))
    gaps = [abs(int((mine >= t).sum()) - int((true >= t).sum())) for t in range(1, top + 1)]
    return max(gaps) / graph.nodes


def large() -> Iterator[Row]:
    """CPU seconds and memory of each question about a million edges between 10^5 nodes."""
    with tempfile.TemporaryDirectory() as folder:
        dice = np.random.default_rng(3)
        weights = np.arange(1, 10**5 + 1) ** -0.6
        ends = dice.choice(10**5, (1_150_000, 2), p=weights / weights.sum())
        ends = np.unique(np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1), axis=0)
        ends = dice.permutation(ends)[: 10**6]
        parquet.write_table(pa.table({"a": ends[:, 0], "b": ends[:, 1]}), f"{folder}/ties.parquet")
        parquet.write_table(
            pa.table({"a": ends[:, 0], "b": ends[:, 1]}), f"{folder}/friends.parquet"
        )
        parquet.write_table(pa.table({"id": np.arange(10**5)}), f"{folder}/people.parquet")
        for table in ("ties", "friends"):
            for name in LARGE:
                if (table, name) == ("friends", "triangles"):
                    continue
                command = [sys.executable, "-m", "benchmarks.graph", "large", folder, table, name]
                told = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
                seconds, megabytes = json.loads(told.stdout.splitlines()[-1])
                unit = "edge" if table == "ties" else "node"
                case = f"{len(ends):,} edges, {name}, {unit}"
                yield limit(case, "CPU s", seconds, 30, 1)
                yield limit(case, "MB", megabytes, 1500, 1)


def asked_of_large(folder: str, table: str, name: str) -> None:
    """One question about the large graph, in this process; prints its seconds and its memory."""
    place = Path(folder)
    tables = {
        "people": sf.Table(place / "people.parquet", unit=sf.Unit("id", name="person")),
        "ties": sf.Table(place / "ties.parquet", unit=sf.Edge("a", "b")),
        "friends": sf.Table(place / "friends.parquet", unit=sf.Node("a", "b", of="people")),
    }
    with (
        tempfile.TemporaryDirectory() as ledger,
        sf.connect(
            tables, dataset="large", budget=sf.Budget(9), ledger=f"{ledger}/l.db"
        ) as session,
    ):
        begun = time.process_time()
        ask(session, table, LARGE[name], epsilon=1)
        seconds = time.process_time() - begun
    print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))


def blurred() -> Iterator[Row]:
    """The mean and the 95% radius of a blurred place, against those of the plane."""
    blur = Blur(1, per="200m", step="20m")
    side = np.arange(-400, 401)
    distances = np.hypot(side[:, None], side[None, :])
    weights = np.exp(-float(blur.rate) * distances)
    mean = float((weights * distances).sum() / weights.sum()) * 20
    drawn = [math.hypot(*blur.release((0, 0))) for _ in range(4000)]
    away = abs(statistics.mean(drawn) - mean) / (statistics.stdev(drawn) / len(drawn) ** 0.5)
    plane = Fraction(4744, 1000) * 200
    yield limit("Blur, step per/10", "% mean off 2 per/epsilon", 100 * abs(mean / 400 - 1), 1, 1)
    radius = 100 * abs(blur.error("0.95") / float(plane) - 1)
    yield limit("Blur, step per/10", "% radius off 4.744 per/epsilon", radius, 1, 1)
    yield limit("Blur, step per/10", "draws, standard errors from the mean", away, 4, 4000)


def main() -> None:
    """Measures, prints and writes."""
    if sys.argv[1:2] == ["large"]:
        asked_of_large(*sys.argv[2:])
        return
    before, rows = machine(), []
    every: list[Iterator[Row]] = [blurred()]
    for name, graph in graphs().items():
        cases = (degrees_by_edge, triangles_by_edge, edges_by_node, degrees_by_node, synthetic)
        every += [case(name, graph) for case in cases]
    for found in (*every, large()):
        for row in found:
            rows.append(row)
            print(line(row), flush=True)
    judged = [row for row in rows if row.bar]
    missed = [line(row) for row in judged if not row.holds]
    print(f"\n{len(judged) - len(missed)} of {len(judged)} bars hold.", *missed, sep="\n")
    versions = {"sfumato": {"sfumato": sf.__version__, "numpy": np.__version__}}
    RESULTS.write_text(document(rows, before, versions, {}), encoding="utf-8")


if __name__ == "__main__":
    main()
