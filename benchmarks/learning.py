# SPDX-License-Identifier: Apache-2.0
"""Steps of networks beside ordinary ones of the same modules, of Opacus and of jax-privacy.

``make bench-learning`` writes results/learning.json. Times are the processor's, of one thread and
256 rows unless it says otherwise; every work is asked in turn. Each step reads its rows from
integers, sets the weights, clips, and steps in float64; an ordinary one has its floats ready. A
step of jax-privacy stands beside an ordinary one in JAX.
"""

from collections.abc import Iterator
from statistics import median

from benchmarks.compare import Kind, Row, Work, line, rounded
from benchmarks.driver import ROOT, Unavailable, Worker, start
from benchmarks.report import document, machine

RESULTS = ROOT / "benchmarks" / "results" / "learning.json"
TIMES = 9
OURS, OPACUS, JAX = "networks", "opacus", "jax-privacy"
# The steps of each system, which "ordinary" ones stand beside them.
KINDS = {
    OURS: ("ordinary", "clipped", "noisy"),
    OPACUS: ("hooks", "ghost"),
    JAX: ("ordinary", "vmap"),
}
# Network, rows, and at most how many times an ordinary step: without noise, and with it.
STEPS: tuple[tuple[str, int, float | None, float | None], ...] = (
    ("MLP", 256, 1.35, 1.9),
    ("MLP", 2048, None, 1.4),
    ("transformer", 256, 1.2, None),
    ("logistic", 256, 1.4, None),
    ("CNN", 256, 1.7, None),
)
# Peers are asked for so many rows alone.
PEER_ROWS = 256
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
        asked = [OURS]
        if rows == PEER_ROWS:
            asked += [peer for peer in (OPACUS, JAX) if peer in workers]
        middle = middles(workers, asked, name, rows)
        bars = {"clipped": clipped, "noisy": noisy}
        for (system, kind), taken in middle.items():
            if kind == "ordinary":
                continue
            case = f"step of {name}, {rows:,} rows, {kind}"
            beside = JAX if system == JAX else OURS
            ordinary = middle[beside, "ordinary"]
            bar = bars.get(kind)
            yield against(case, "CPU ms", taken, ordinary, bar, beside)


def middles(
    workers: dict[str, Worker],
    asked: list[str],
    name: str,
    rows: int,
) -> dict[tuple[str, str], float]:
    """The median of each step that a system can do, all of them asked in turn."""
    found: dict[tuple[str, str], list[float]] = {}
    for _ in range(TIMES):
        for system in asked:
            for kind in KINDS[system]:
                taken = cpu(workers[system], Work(system, f"{name}, {kind}", 1, rows))
                if taken is not None:
                    found.setdefault((system, kind), []).append(taken)
    return {step: median(values) for step, values in found.items()}


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


def against(
    case: str,
    metric: str,
    ours: float,
    ordinary: float,
    bar: float | None,
    beside: str = OURS,
) -> Row:
    """A figure beside that of an ordinary step; ``ratio`` is theirs over ours."""
    text, holds = None, None
    if bar is not None:
        text, holds = f"<= {bar:g}x", ours <= bar * ordinary
    ratio = rounded(ordinary / ours)
    told = "ordinary step in JAX" if beside == JAX else "ordinary step"
    values = (rounded(ours), rounded(ordinary), told)
    return Row(case, metric, *values, ratio, ratio, text, holds, TIMES)


def main() -> None:
    """Measures, prints and writes."""
    before, rows = machine(), []
    workers, skipped = start([OURS, OPACUS, JAX])
    if OURS not in workers:
        print(f"skipped: networks: {skipped[OURS]}")
        return
    for system, why in skipped.items():
        print(f"skipped: {system}: {why}")
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
