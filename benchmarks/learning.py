# SPDX-License-Identifier: Apache-2.0
"""Steps of networks beside ordinary steps of the same modules, and beside those of Opacus.

``make bench-learning`` writes results/learning.json. Times are the processor's, of one thread and
256 rows unless it says otherwise; every work is asked in turn. Each step reads its rows from
integers, sets the weights, clips, and steps in float64; an ordinary one has its floats ready.
"""

from collections.abc import Iterator
from statistics import median

from benchmarks.compare import Kind, Row, Work, line, rounded
from benchmarks.driver import ROOT, Unavailable, Worker, start
from benchmarks.report import document, machine

RESULTS = ROOT / "benchmarks" / "results" / "learning.json"
TIMES = 9
OURS = "networks"
# Network, rows, and at most how many times an ordinary step: without noise, and with it.
STEPS: tuple[tuple[str, int, float | None, float | None], ...] = (
    ("MLP", 256, 1.35, 1.9),
    ("MLP", 2048, None, 1.4),
    ("transformer", 256, 1.2, None),
    ("logistic", 256, 1.4, None),
    ("CNN", 256, 1.7, None),
)
MOST_MEMORY = 1.4


def cpu(worker: Worker, work: Work) -> float | None:
    """The processor's milliseconds of one call; None if the system cannot do it."""
    try:
        return 1000 * (worker.ask(work, Kind.TIME).cpu or 0)
    except Unavailable:
        return None


def steps(workers: dict[str, Worker]) -> Iterator[Row]:
    """Clipped and noisy steps against ordinary ones; the rows of peers have no bar."""
    for name, rows, clipped, noisy in STEPS:
        asked = {kind: (OURS, f"{name}, {kind}") for kind in ("ordinary", "clipped", "noisy")}
        if "opacus" in workers and rows == 256:
            asked |= {kind: ("opacus", f"{name}, {kind}") for kind in ("hooks", "ghost")}
        found: dict[str, list[float]] = {kind: [] for kind in asked}
        for _ in range(TIMES):
            for kind, (system, work) in asked.items():
                taken = cpu(workers[system], Work(system, work, 1, rows))
                if taken is not None:
                    found[kind].append(taken)
        middle = {kind: median(values) for kind, values in found.items() if values}
        bars = {"clipped": clipped, "noisy": noisy}
        for kind in ("clipped", "noisy", "hooks", "ghost"):
            if kind in middle:
                case = f"step of {name}, {rows:,} rows, {kind}"
                yield against(case, "CPU ms", middle[kind], middle["ordinary"], bars.get(kind))


def memory() -> Iterator[Row]:
    """The most memory of a process that does one step."""
    for name in ("MLP", "transformer", "CNN"):
        found = {}
        for kind in ("ordinary", "clipped"):
            workers, _ = start([OURS])
            work = Work(OURS, f"{name}, {kind}", 1, 256)
            found[kind] = workers[OURS].ask(work, Kind.PROCESS).value / 1e6
            workers[OURS].close()
        case = f"process of a step of {name}"
        yield against(case, "peak MB", found["clipped"], found["ordinary"], MOST_MEMORY)


def against(case: str, metric: str, ours: float, ordinary: float, bar: float | None) -> Row:
    """A figure beside that of an ordinary step; ``ratio`` is theirs over ours."""
    text, holds = None, None
    if bar is not None:
        text, holds = f"<= {bar:g}x", ours <= bar * ordinary
    ratio = rounded(ordinary / ours)
    values = (rounded(ours), rounded(ordinary), "ordinary step")
    return Row(case, metric, *values, ratio, ratio, text, holds, TIMES)


def main() -> None:
    """Measures, prints and writes."""
    before, rows = machine(), []
    workers, skipped = start([OURS, "opacus"])
    if OURS not in workers:
        print(f"skipped: networks: {skipped[OURS]}")
        return
    for figures in (steps(workers), memory()):
        for row in figures:
            rows.append(row)
            print(line(row), flush=True)
    versions = {system: worker.versions for system, worker in workers.items()}
    for worker in workers.values():
        worker.close()
    RESULTS.write_text(document(rows, before, versions, skipped), encoding="utf-8")


if __name__ == "__main__":
    main()
