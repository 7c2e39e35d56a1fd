# SPDX-License-Identifier: Apache-2.0
"""What user-level privacy costs on DuckDB: ``make bench-engines``.

1,000,000 and 10,000,000 rows, of files and of their prepared layouts; the peers are asked of 1,000,000.
100,000,000: ``largest``.
"""

import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction

from benchmarks.compare import (
    Case,
    Kind,
    Peer,
    Unit,
    Work,
    at_most,
    at_most_more,
    at_most_times,
    faster,
)
from benchmarks.driver import ROOT
from benchmarks.report import bench
from benchmarks.systems import row

RESULTS = ROOT / "benchmarks" / "results" / "engines.json"
OURS, SPARK, CUBES = "workloads", "on-spark", "cubes"
OPENDP, SMARTNOISE, PIPELINEDP, TUMULT = "opendp-polars", "smartnoise", "pipelinedp", "tumult"
PEERS = (OPENDP, SMARTNOISE, PIPELINEDP, TUMULT)

SECONDS = Unit("s", 1.0)
MEGA = Unit("MB at most", 1e-6, kind=Kind.PROCESS)
PERCENT = Unit("%", 1.0, kind=Kind.VALUE)

TITLES = {
    "W1": "totals",
    "W2": "by 50 regions",
    "W3": "by 10,000 unknown products",
    "W4": "distinct users a day",
    "W5": "quantiles by region",
    "W6": "a mean over a join",
}
PLAIN, BY_HAND, BY_UNIT = "plain DuckDB", "SQL by hand, no noise", "plain Spark by (unit, key)"
FEW = "a small filtered count"
# of a prepared layout, as many times as plain DuckDB
_PREPARED = {"W1": 12, "W2": 12, "W3": 40, "W4": 12, "W5": 40, "W6": 20}
# where a peer can say what we ask, under the same limits: its name and bar
_THEIRS = {
    OPENDP: ("OpenDP", 15, ("W1", "W2", "W3", "W4", "W5")),
    SMARTNOISE: ("SmartNoise SQL", 4, ("W1", "W2", "W4")),
    PIPELINEDP: ("PipelineDP", 50, ("W1", "W2", "W3", "W4")),
    TUMULT: ("Tumult", 50, ("W4",)),
}
SIZES = {"1M": 10**6, "10M": 10**7}
_NO_SLOWER = at_most_times(Fraction(11, 10))
# how far the middle group is off the raw data; where all do the same, noise alone tells them apart
_ERRORS = {
    "W1": "error of the count",
    "W2": "error of a count",
    "W4": "error of a number of users",
    "W5": "error of p50",
}
_AS_EXACT = at_most_times(Fraction(102, 100))


def cases(sizes: dict[str, int]) -> Iterator[Case]:
    """All of them, of each size; those of the peers, which take long, last."""
    for size, n in sizes.items():
        for name, title in TITLES.items():
            yield from _cases(name, f"{size}: {name} {title}", n)
        error = Work(OURS, "W5 error", n=n)
        yield Case(
            f"{size}: W5 error of p50",
            PERCENT,
            error,
            (),
            at_most(1.5),
            repetitions=15 if n == 10**6 else 5,
        )
        plain = Work(OURS, "W7 plain", n=n)
        each, long = Unit("ms", 1e3 / row(n)), 5 if n == 10**6 else 3
        ours = Work(OURS, "W7", n=n)
        yield Case(
            f"{size}: W7 {FEW}",
            each,
            ours,
            (Peer(PLAIN, plain, at_most_more(10)),),
            repetitions=long,
        )
        prepared = Work(OURS, "W7 prepared", n=n)
        peer = Peer(PLAIN, plain, at_most_more(6))
        yield Case(f"{size}: W7 {FEW}, prepared", each, prepared, (peer,), repetitions=long)
        yield from _memory(size, n)
        yield from _marginals(size, n)
    yield from _on_spark(sizes)
    if "1M" in sizes:
        yield from _beside_peers(sizes["1M"])


def _beside_peers(n: int) -> Iterator[Case]:
    """Of any table and of a prepared one, and how far both are off the raw data."""
    for system, (title, times, asked) in _THEIRS.items():
        for name in asked:
            case, peer = (
                f"1M: {name} {TITLES[name]}",
                Peer(title, Work(system, name, n=n), faster(times)),
            )
            yield Case(case, SECONDS, Work(OURS, name, n=n), (peer,), repetitions=2)
            yield Case(
                f"{case}, prepared",
                SECONDS,
                Work(OURS, f"{name} prepared", n=n),
                (peer,),
                repetitions=2,
            )
            if name in _ERRORS:
                error = f"{name} error"
                peer = Peer(title, Work(system, error, n=n), _AS_EXACT)
                yield Case(
                    f"1M: {name} {_ERRORS[name]}",
                    PERCENT,
                    Work(OURS, error, n=n),
                    (peer,),
                    repetitions=2,
                )


def _cases(name: str, title: str, n: int) -> Iterator[Case]:
    plain = Work(OURS, f"{name} plain", n=n)
    peers = [Peer(PLAIN, plain)]
    if name != "W5":
        peers.append(Peer(BY_HAND, Work(OURS, f"{name} by hand", n=n), _NO_SLOWER))
    bar = at_most(15) if n == 10**8 and name == "W2" else None
    yield Case(title, SECONDS, Work(OURS, name, n=n), tuple(peers), bar, repetitions=5)
    bar = at_most(2) if n == 10**8 and name == "W2" else None
    times = Peer(PLAIN, plain, at_most_times(Fraction(_PREPARED[name], 10)))
    yield Case(
        f"{title}, prepared",
        SECONDS,
        Work(OURS, f"{name} prepared", n=n),
        (times,),
        bar,
        repetitions=5,
    )


def _on_spark(sizes: dict[str, int]) -> Iterator[Case]:
    """Spark on two cores, beside a plain aggregate by user and key in the same application."""
    if "10M" not in sizes:
        return
    n = sizes["10M"]
    for name in ("W1", "W2", "W3", "W4"):
        bar = at_most_times(Fraction(3, 2)) if name == "W2" else None
        plain = Peer(BY_UNIT, Work(SPARK, f"{name} plain", n=n), bar)
        yield Case(
            f"Spark, 10M: {name} {TITLES[name]}",
            SECONDS,
            Work(SPARK, name, n=n),
            (plain,),
            repetitions=3,
        )
    plain = Peer("plain Spark", Work(SPARK, "W7 plain", n=n))
    yield Case(f"Spark, 10M: W7 {FEW}", SECONDS, Work(SPARK, "W7", n=n), (plain,), repetitions=3)


def _memory(size: str, n: int) -> Iterator[Case]:
    """The whole process, with Python and what it imports, after one question."""
    for name in ("W2", "W5"):
        bar = at_most(4000) if n == 10**8 and name == "W2" else None
        plain = Peer(PLAIN, Work(OURS, f"{name} plain", n=n))
        yield Case(
            f"{size}: {name} {TITLES[name]}",
            MEGA,
            Work(OURS, name, n=n),
            (plain,),
            bar,
            repetitions=1,
        )


def _marginals(size: str, n: int) -> Iterator[Case]:
    """105 marginals of two columns each on one core, exact, and some more; then one of 10^6 cells."""
    bars = {10**6: 1.5, 10**7: 12}
    if n not in bars:
        return
    title, pairs = f"{size}: 105 marginals of 15 columns", Work(CUBES, "all pairs", n=n)
    yield Case(title, SECONDS, pairs, bar=at_most(bars[n]), repetitions=3)
    if n == 10**7:
        yield Case(title, MEGA, pairs, bar=at_most(1500), repetitions=1)
        yield Case(
            f"{size}: 20 marginals more",
            SECONDS,
            Work(CUBES, "20 more", n=n),
            bar=at_most(2.5),
            repetitions=3,
        )
    if n == 10**6:
        cells = f"{size}: a marginal of 10^6 cells"
        yield Case(cells, SECONDS, Work(CUBES, "10^6 cells", n=n), bar=at_most(0.3), repetitions=5)
        grown = Unit("MB more", 1.0, kind=Kind.VALUE)
        yield Case(
            cells, grown, Work(CUBES, "10^6 cells, grown", n=n), bar=at_most(100), repetitions=1
        )


def main(words: Sequence[str]) -> None:
    """All of the usual sizes, or those that hold one of the words."""
    bench(words, list(cases(SIZES)), (OURS, SPARK, CUBES, *PEERS), RESULTS)


if __name__ == "__main__":
    main(sys.argv[1:])
