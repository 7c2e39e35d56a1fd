# SPDX-License-Identifier: Apache-2.0
"""How right the estimates of telemetry are: ``make bench-telemetry``. No time is measured."""

import sys
from collections.abc import Iterator

from benchmarks.compare import Bar, Case, Kind, Unit, Work, at_least, at_most
from benchmarks.driver import OURS, ROOT
from benchmarks.report import bench
from benchmarks.systems.estimates import EVERY

RESULTS = ROOT / "benchmarks" / "results" / "telemetry_estimates.json"
TIMES_UNARY = Unit("times unary's variance", 1, kind=Kind.VALUE)
FOUND = Unit("found", 1, kind=Kind.VALUE)
NEAR = Bar("0.95 to 1.05", lambda ours, peer: 0.95 <= ours <= 1.05)


def cases() -> Iterator[Case]:
    """All of them."""
    yield from _variances()
    yield from _found()
    yield from _unbiased()


def _variances() -> Iterator[Case]:
    """What follows from the oracles alone."""
    for epsilon, size, most in ((0.5, 20, 1.03), (1, 20, 1.03), (2, 20, 1.03), (4, 16, 1.03)):
        work = Work(OURS, "telemetry projective variance", epsilon, 1 << size)
        title = f"Variance of projective, epsilon {epsilon:g}, k up to 2^{size}"
        yield Case(title, TIMES_UNARY, work, bar=at_most(most), repetitions=1)
    best = Work(OURS, "telemetry best variance", 4, 1 << 20)
    title = "Variance of the best oracle, epsilon 4, k = 2^20"
    yield Case(title, TIMES_UNARY, best, bar=at_most(1.1), repetitions=1)
    half = Unit("squares of half the range", 1, kind=Kind.VALUE)
    worst = Work(OURS, "telemetry worst mean", 1, 1001)
    yield Case("Worst variance of a mean, epsilon 1", half, worst, bar=at_most(4.3), repetitions=1)


def _found() -> Iterator[Case]:
    """What a million devices tell."""
    for epsilon, least in ((4, 27), (2, 12)):
        work = Work(OURS, "telemetry unknown", epsilon, 10**6)
        title = f"Top 32 of unknown texts of 48 bits, epsilon {epsilon}"
        yield Case(title, FOUND, work, bar=at_least(least), repetitions=3)
        work = Work(OURS, "telemetry fragments", epsilon, 10**6)
        yield Case(f"{title}, by fragments", FOUND, work, repetitions=3)
    for name, bar in (("found", at_least(50)), ("false", at_most(0.2))):
        work = _ours(f"rappor {name}", 10**6)
        yield Case(
            f"RAPPOR, 100 texts and 100 absent ones, {name}", FOUND, work, bar=bar, repetitions=1
        )
    sums = Unit("times that of sums of counts", 1, kind=Kind.VALUE)
    work = _ours("median", 10**5)
    title = "Error at the median of 1,024 values, 100,000 devices"
    yield Case(title, sums, work, bar=at_most(0.3), repetitions=1)


def _unbiased() -> Iterator[Case]:
    """200 runs of every oracle at epsilon 2; one series says both numbers.

    The largest bias is one of up to 200 values: beyond 5 once in 9,000 by chance, beyond 4 in 80.
    """
    formula = Unit("of its formula", 1, kind=Kind.VALUE)
    errors = Unit("standard errors", 1, kind=Kind.VALUE)
    for name in EVERY:
        for what, unit, bar in (("variance", formula, NEAR), ("bias", errors, at_most(5))):
            work = Work(OURS, f"telemetry {what} {name}", 2, 1)
            yield Case(f"200 runs, {what}, {name}", unit, work, bar=bar, repetitions=1)


def _ours(name: str, n: int) -> Work:
    return Work(OURS, f"telemetry {name}", 1, n)


if __name__ == "__main__":
    bench(sys.argv[1:], list(cases()), (), RESULTS)
