# SPDX-License-Identifier: Apache-2.0
"""How long a question takes besides its data: ``make bench-query``."""

import sys
from collections.abc import Iterator

from benchmarks.compare import Case, Kind, Peer, Unit, Work, at_most, at_most_more
from benchmarks.driver import ROOT
from benchmarks.report import bench
from benchmarks.systems import row

RESULTS = ROOT / "benchmarks" / "results" / "query.json"
QUESTIONS = "questions"

MILLI = Unit("ms", 1e3)
EACH = Unit("ms", 1e3 / row(10**6))
MEASURED = Unit("ms", 1e3, kind=Kind.VALUE)


def cases() -> Iterator[Case]:
    """All of them."""
    yield Case(
        "text to emitted SQL, the median statement",
        MEASURED,
        Work(QUESTIONS, "compile, median"),
        (),
        at_most(3),
    )
    yield Case(
        "text to emitted SQL, the widest statement",
        MEASURED,
        Work(QUESTIONS, "compile, widest"),
        (),
        at_most(10),
    )
    for source, of in (("a DuckDB file", " of a stored table"), ("Parquet", "")):
        plain = Peer("plain DuckDB", Work(QUESTIONS, f"plain{of}", n=10**6), at_most_more(10))
        ours = Work(QUESTIONS, f"small query{of}", n=10**6)
        yield Case(f"one filtered count of 1,000,000 rows, {source}", EACH, ours, (plain,))
    yield Case("preview", MILLI, Work(QUESTIONS, "preview", n=10**6), (), at_most(5))


if __name__ == "__main__":
    bench(sys.argv[1:], list(cases()), (QUESTIONS,), RESULTS)
