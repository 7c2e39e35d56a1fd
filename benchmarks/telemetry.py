# SPDX-License-Identifier: Apache-2.0
"""How fast telemetry is, beside other libraries: ``make bench-telemetry``.

Where no other library is measured beside it, seconds are those of the processor, which other
programs on the machine disturb less.
"""

import sys
from collections.abc import Iterator

from benchmarks.compare import Case, Kind, Peer, Unit, Work, at_most, faster
from benchmarks.driver import OURS, ROOT
from benchmarks.report import bench
from benchmarks.systems.senders import NAMES, languages

RESULTS = ROOT / "benchmarks" / "results" / "telemetry.json"
PEERS = ("pure-ldp", "multi-freq-ldpy")

USER = Unit("us a device", 1e6, each=True)
SECOND = Unit("CPU s", 1, kind=Kind.CPU)
MICRO = Unit("CPU us a report", 1e6, kind=Kind.CPU)
SLOWEST = Unit("ms, 99% of batches", 1e3, kind=Kind.VALUE)
MEMORY = Unit("MB above the input", 1e-6, kind=Kind.MEMORY)
ITSELF = Unit("CPU us a report", 1e6, kind=Kind.VALUE)
TITLES = {"node": ("Node", 200), "java": ("Java", 20)}
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


def _ours(name: str, n: int) -> Work:
    return Work(OURS, f"telemetry {name}", 1, n)


if __name__ == "__main__":
    bench(sys.argv[1:], list(cases()), PEERS, RESULTS)
