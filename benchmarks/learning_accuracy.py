# SPDX-License-Identifier: Apache-2.0
"""How accurate models are, beside those of diffprivlib: ``make bench-learning``.

Every figure is the mean of some runs with exact noise, and the 95% interval of that mean. One
setting serves every epsilon. ``python -m benchmarks.learning_accuracy Adult`` measures the cases
whose names hold a word, and writes nothing.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from statistics import fmean, stdev

import numpy as np
import pyarrow.parquet as parquet

from benchmarks.compare import Kind, Work, rounded
from benchmarks.driver import ROOT, Unavailable, Worker, start
from benchmarks.report import machine
from benchmarks.systems.persons import DATA, LABEL, UNUSED
from benchmarks.systems.pictures import mnist

RESULTS = ROOT / "benchmarks" / "results" / "learning_accuracy.json"
OURS, PEER = "models", "diffprivlib"
RUNS = 5
# Two-sided 95% points of Student's law, by the number of runs.
STUDENT = {2: 12.71, 3: 4.303, 4: 3.182, 5: 2.776}


@dataclass(frozen=True, slots=True)
class Measure:
    """What is taken of a fit, and whether more of it is better."""

    name: str
    more: bool = True


@dataclass(frozen=True, slots=True)
class Asked:
    """A model at one epsilon: its bars by measure, and models of the peer beside it."""

    case: str
    epsilon: float
    model: str
    bars: tuple[tuple[Measure, float | None], ...]
    peers: tuple[str, ...] = ()
    runs: int = RUNS

    def named(self, words: Sequence[str]) -> bool:
        """Whether its name holds one of the words; without words every case is asked for."""
        return not words or any(word in f"{self.case}, {self.model}" for word in words)


@dataclass(frozen=True, slots=True)
class Found:
    """The mean of some runs, with the ends of its interval; None: it could not be measured."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Found":
        """The mean and its 95% interval, by Student's law."""
        mean, reach = fmean(values), 0.0
        if len(values) > 1:
            reach = STUDENT[len(values)] * stdev(values) / len(values) ** 0.5
        return cls(rounded(mean), rounded(mean - reach), rounded(mean + reach))


@dataclass(frozen=True, slots=True)
class Row:
    """A model beside one of a peer; ``ratio`` is the peer's figure over ours."""

    case: str
    metric: str
    ours: Found
    peer: Found | None
    peer_name: str | None
    ratio: float | None
    bar: str | None
    holds: bool | None
    runs: int


ACCURACY, AREA = Measure("accuracy"), Measure("AUC")
COST = Measure("cost / best", more=False)
SHARE = Measure("share of the best")
PICTURES = "MNIST"


def cases() -> Iterator[Asked]:
    """All of them."""
    bars = {0.1: (83.0, 0.875), 0.3: (85.2, 0.902), 1.0: (85.7, 0.908), 3.0: (85.8, 0.909)}
    for epsilon, (right, area) in bars.items():
        both = ((ACCURACY, right), (AREA, area))
        peers = ("logistic", "logistic, our bins")
        yield Asked("Adult", epsilon, "Additive", both, peers)
        free = ((ACCURACY, None), (AREA, None))
        yield Asked("Adult", epsilon, "Additive, equal bins", free)
        yield Asked("Adult", epsilon, "LogisticRegression", free)
    for epsilon, right in ((0.3, 83.8), (1.0, 84.3), (3.0, 84.8)):
        tree = ((ACCURACY, right), (AREA, None))
        yield Asked("Adult, pure", epsilon, "DecisionTree", tree, ("forest",))

    for epsilon, most in ((0.3, 1.12), (1.0, 1.03)):
        yield Asked("8 clusters, pure", epsilon, "KMeans", ((COST, most),), ("KMeans",))

    for count, epsilon, least in ((10, 0.3, 0.98), (10, 1.0, 0.997), (50, 1.0, 0.96)):
        model = f"{count} directions"
        peers = (f"PCA, {model}", f"PCA, mended, {model}")
        yield Asked(PICTURES, epsilon, f"PCA, {model}", ((SHARE, least),), peers)


def prepare() -> None:
    """Writes the rows where every system can read them."""
    DATA.mkdir(parents=True, exist_ok=True)
    rows = parquet.read_table(ROOT / "benchmarks" / "data" / "adult.parquet")
    sizes = json.loads(rows.schema.metadata[b"sizes"])
    arrays = {f"size {name}": np.array(size) for name, size in sizes.items()}
    test = rows["split"].to_numpy() == 1
    for name in rows.column_names:
        if name not in UNUSED or name == LABEL:
            values = rows[name].to_numpy()
            arrays |= {f"train {name}": values[~test], f"test {name}": values[test]}
    np.savez(DATA / "adult.npz", allow_pickle=False, **arrays)


def measured(
    asked: Asked,
    workers: dict[str, Worker],
    skipped: dict[str, str],
) -> Iterator[Row]:
    """The rows of a case: in each run every model is fitted once, in turn."""
    models = [(OURS, asked.model), *[(PEER, name) for name in asked.peers]]
    values: dict[tuple[str, str, str], list[float]] = {}
    for run in range(asked.runs):
        for system, model in models:
            for measure, _ in asked.bars:
                name = f"{model}, {measure.name}"
                value = _value(workers, skipped, Work(system, name, asked.epsilon, run))
                if value is not None:
                    values.setdefault((system, model, measure.name), []).append(value)
    for measure, bar in asked.bars:
        ours = Found.of(values[OURS, asked.model, measure.name])
        theirs = [values.get((PEER, name, measure.name)) for name in asked.peers]
        yield from _rows(asked, measure, bar, ours, theirs)


def _value(
    workers: dict[str, Worker],
    skipped: dict[str, str],
    work: Work,
) -> float | None:
    """The figure of one run; None if a peer cannot, which is said once and not tried again."""
    asked = f"{work.system}: {work.name}, {work.scale:g}"
    if work.system not in workers or asked in skipped:
        return None
    try:
        return workers[work.system].ask(work, Kind.VALUE).value
    except Unavailable as reason:
        if work.system == OURS:
            raise
        skipped[asked] = str(reason)
        return None


def _rows(
    asked: Asked,
    measure: Measure,
    bar: float | None,
    ours: Found,
    theirs: Sequence[Sequence[float] | None],
) -> Iterator[Row]:
    """A row for each peer, or one without; the first has the bar."""
    case = f"{asked.case}, {asked.model}, epsilon {asked.epsilon:g}"
    text, holds = None, None
    if bar is not None:
        text = f"{'>=' if measure.more else '<='} {bar:g}"
        holds = ours.mean >= bar if measure.more else ours.mean <= bar
    beside: list[tuple[str | None, Sequence[float] | None]] = [(None, None)]
    if asked.peers:
        beside = list(zip(asked.peers, theirs, strict=True))
    for name, values in beside:
        peer = Found.of(values) if values else None
        ratio = rounded(peer.mean / ours.mean) if peer else None
        told = f"{PEER}, {name}" if name else None
        yield Row(case, measure.name, ours, peer, told, ratio, text, holds, asked.runs)
        text, holds = None, None


def line(row: Row) -> str:
    """A row as text."""
    verdict = {True: "holds", False: "FAILS", None: ""}[row.holds]
    peer = f"{row.peer_name}: {_short(row.peer)}" if row.peer_name else ""
    asked = f"{row.bar or '':<10} {verdict:<6}"
    return f"{row.case:<46} {row.metric:<10} {_short(row.ours):<28} {asked} {peer}".rstrip()


def _short(found: Found | None) -> str:
    """A mean and its interval."""
    if found is None:
        return "not measured"
    return f"{found.mean:.4g} [{found.low:.4g}, {found.high:.4g}]"


def main(words: Sequence[str]) -> None:
    """Measures, prints and writes."""
    before, rows = machine(), []
    prepare()
    workers, skipped = start([OURS, PEER])
    if mnist() is None:
        skipped[PICTURES] = "shared/data/mnist/mnist.npz is not there"
    for asked in cases():
        if asked.case in skipped or not asked.named(words):
            continue
        for row in measured(asked, workers, skipped):
            rows.append(row)
            print(line(row), flush=True)
    for worker in workers.values():
        worker.close()
    if words:
        return
    head = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": before,
        "versions": {system: worker.versions for system, worker in workers.items()},
        "skipped": skipped,
    }
    lines = ",\n".join(f"    {json.dumps(asdict(row))}" for row in rows)
    text = json.dumps(head, indent=2)[:-2] + f',\n  "rows": [\n{lines}\n  ]\n}}\n'
    RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
