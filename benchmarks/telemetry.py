# SPDX-License-Identifier: Apache-2.0
"""How fast telemetry is, beside other libraries: ``make bench-telemetry``."""

import sys
from collections.abc import Iterator

from benchmarks.compare import Bar, Case, Kind, Peer, Unit, Work, at_least, at_most, faster
from benchmarks.driver import OURS, ROOT
from benchmarks.report import bench
from benchmarks.systems.estimates import EVERY
from benchmarks.systems.senders import NAMES, languages

RESULTS = ROOT / "benchmarks" / "results" / "telemetry.json"
PEERS = ("pure-ldp", "multi-freq-ldpy")

USER = Unit("us a device", 1e6, each=True)
SECOND = Unit("s", 1)
MICRO = Unit("us a report", 1e6)
SLOWEST = Unit("ms, 99% of batches", 1e3, kind=Kind.VALUE)
MEMORY = Unit("MB above the input", 1e-6, kind=Kind.MEMORY)
ITSELF = Unit("us a report", 1e6, kind=Kind.VALUE)
TIMES_UNARY = Unit("times unary's variance", 1, kind=Kind.VALUE)
FOUND = Unit("found", 1, kind=Kind.VALUE)
TITLES = {"node": ("Node", 200), "java": ("Java", 20)}
NEAR = Bar("0.95 to 1.05", lambda ours, peer: 0.95 <= ours <= 1.05)
# encode and aggregate one device, epsilon 1, k = 1024: how many devices of a peer take long enough
_ORACLES = {"category": (30, 2000), "hashed": (50, 100), "unary": (5, 1000)}


def cases() -> Iterator[Case]:
    """All of them."""
    for name, (times, n) in _ORACLES.items():
        peers = tuple(Peer(peer, Work(peer, name, 1, n), faster(times)) for peer in PEERS)
        yield Case(f"Encode and add up, {name}, k = 1,024", USER, _ours(name, 20_000), peers)
    for name, most in (("projective", 2.0), ("bit", 0.3)):
        decode = _ours(f"decode {name}", 10**6)
        yield Case(f"Decode 1,000,000 reports, {name}, k = 2^20", SECOND, decode, bar=at_most(most))
    memory = _ours("decode projective", 10**6)
    yield Case("Decode 1,000,000 reports, projective", MEMORY, memory, bar=at_most(300))
    for name in ("category", "projective", "bit", "hashed"):
        yield Case(f"Client, {name}", MICRO, _ours(f"client {name}", 1), bar=at_most(60))
    for language in languages():
        title, most = TITLES[language]
        for name in NAMES:
            work = _ours(f"{language} {name}", 1)
            bar = at_most(most)
            yield Case(f"Client for {title}, {name}", ITSELF, work, bar=bar, repetitions=3)
    # 50,000 reports a second
    collected = _ours("collect", 1000)
    yield Case("Collector, batches of 1,000 over HTTP to disk", USER, collected, bar=at_most(20))
    slowest = _ours("slowest batch", 300)
    yield Case("Collector, batches of 1,000", SLOWEST, slowest, bar=at_most(100), repetitions=3)
    yield Case("Client, sealing alone", MICRO, _ours("seal", 1))
    yield Case("Aggregator, opening", USER, _ours("open", 2000))
    simulated = _ours("simulate unary", 10**8)
    yield Case("Simulate 100,000,000 devices, unary, k = 1,000", SECOND, simulated)
    yield from _stored()
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
    for name, bar in (("found", at_least(50)), ("false", at_most(0.2))):
        work = _ours(f"rappor {name}", 10**6)
        yield Case(
            f"RAPPOR, 100 texts and 100 absent ones, {name}", FOUND, work, bar=bar, repetitions=1
        )
    sums = Unit("times that of sums of counts", 1, kind=Kind.VALUE)
    work = _ours("median", 10**6)
    title = "Error at the median of 1,024 values, levels"
    yield Case(title, sums, work, bar=at_most(0.3), repetitions=1)


def _unbiased() -> Iterator[Case]:
    """200 runs of every oracle at epsilon 2; one series says both numbers."""
    formula = Unit("of its formula", 1, kind=Kind.VALUE)
    errors = Unit("standard errors", 1, kind=Kind.VALUE)
    for name in EVERY:
        for what, unit, bar in (("variance", formula, NEAR), ("bias", errors, at_most(4))):
            work = Work(OURS, f"telemetry {what} {name}", 2, 1)
            yield Case(f"200 runs, {what}, {name}", unit, work, bar=bar, repetitions=1)


def _stored() -> Iterator[Case]:
    """The shell's estimates from a folder; one run says both numbers."""
    title = "Estimate from 100,000,000 stored reports, k = 65,536"
    for unit, name, most in (
        (Unit("s", 1, kind=Kind.VALUE), "stored", 90),
        (Unit("MB at most", 1e-6, kind=Kind.VALUE), "stored bytes", 2000),
    ):
        yield Case(title, unit, _ours(name, 10**8), bar=at_most(most), repetitions=1)


def _ours(name: str, n: int) -> Work:
    return Work(OURS, f"telemetry {name}", 1, n)


if __name__ == "__main__":
    bench(sys.argv[1:], list(cases()), PEERS, RESULTS)
