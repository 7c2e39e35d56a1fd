# SPDX-License-Identifier: Apache-2.0
"""How fast the noise is: ``make bench-noise``."""

import sys
from collections.abc import Iterator
from fractions import Fraction

from benchmarks.compare import Bar, Case, Kind, Peer, Unit, Work, at_most, at_most_more, faster
from benchmarks.driver import OURS, ROOT
from benchmarks.report import bench

RESULTS = ROOT / "benchmarks" / "results" / "noise.json"
PEERS = ("numpy", "opendp", "diffprivlib", "python-dp")

SAMPLE = Unit("ns a sample", 1e9, each=True)
CANDIDATE = Unit("ns a candidate", 1e9, each=True)
BIT = Unit("ns a bit", 1e9, each=True)
MICRO = Unit("us a call", 1e6)
MILLI = Unit("ms a call", 1e3)
MEMORY = Unit("MB above the output", 1e-6, kind=Kind.MEMORY)

SCALES = (0.1, 1, 16, 100, 1000, 10**6, 2**40)
LAWS = ("laplace", "gaussian")
# how many times as fast as numpy: up to the first scale, and beyond it
_MILLION: dict[str, tuple[int, int, Fraction]] = {
    "laplace": (16, 4, Fraction(5, 2)),
    "gaussian": (16, 3, Fraction(2)),
}
_THOUSAND = (64, 1, Fraction(1, 2))
_OPENDP = {"laplace": 700, "gaussian": 1000}
_OPENDP_SELECTS = {"exponential": 80, "permute-and-flip": 40}


def cases() -> Iterator[Case]:
    """All of them."""
    for law in LAWS:
        yield from _arrays(law)
        yield from _single(law)
        yield from _first(law)
    yield from _selection()
    yield _bits()
    yield from _memory()


def title(law: str, scale: float, n: int) -> str:
    """How a case of a law is called."""
    return f"{law.capitalize()} {'2^40' if scale == 2**40 else f'{scale:g}'}, n = {n:,}"


def _arrays(law: str) -> Iterator[Case]:
    for n, (far, near_times, far_times) in ((10**6, _MILLION[law]), (1000, _THOUSAND)):
        for scale in SCALES:
            numpy = Peer(
                "numpy",
                Work("numpy", law, scale, n),
                faster(near_times if scale <= far else far_times),
            )
            yield Case(title(law, scale, n), SAMPLE, Work(OURS, law, scale, n), (numpy,))
    for scale in SCALES:
        opendp = Peer("opendp", Work("opendp", law, scale, 10**5), faster(_OPENDP[law]))
        yield Case(title(law, scale, 10**5), SAMPLE, Work(OURS, law, scale, 10**5), (opendp,))


def _single(law: str) -> Iterator[Case]:
    for scale in (1, 100, 10**6):
        peers = [
            _one("opendp", law, scale, faster(12)),
            _one("numpy", law, scale),
            _one("python-dp", law, scale),
        ]
        if law == "laplace":
            peers += [_one("diffprivlib", law, scale), _one("diffprivlib", "geometric", scale)]
        elif scale <= 100:
            # beyond, its search for a sigma gives up
            peers += [_one("diffprivlib", law, scale)]
        yield Case(
            title(law, scale, 1), MICRO, Work(OURS, f"{law} one", scale), tuple(peers), at_most(5)
        )


def _one(system: str, law: str, scale: float, bar: Bar | None = None) -> Peer:
    name = f"{system} {law}" if law == "geometric" else system
    return Peer(name, Work(system, f"{law} one", scale), bar)


def _first(law: str) -> Iterator[Case]:
    for scale in (0.1, 1, 100, 10**6):
        few, many = Work(OURS, f"{law} first", scale), Work(OURS, f"{law} first", scale, 10**5)
        cached = Peer("cached scale", Work(OURS, law, scale, 10**5), at_most_more(3))
        yield Case(f"{title(law, scale, 1)}, new scale", MILLI, few, bar=at_most(0.3))
        yield Case(f"{title(law, scale, 10**5)}, new scale", MILLI, many, (cached,))


def _selection() -> Iterator[Case]:
    for rule, times in _OPENDP_SELECTS.items():
        for scores in ("normal", "votes"):
            unsafe = Work("numpy", f"argmax of gumbel, {scores}", n=10**6)
            lists, arrays = (
                Work("opendp", f"{rule}, {scores}, {form}", n=10**5) for form in ("list", "array")
            )
            peers = (
                Peer("numpy argmax + gumbel", unsafe, faster(1)),
                Peer("opendp, a list", lists, faster(times)),
                Peer("opendp, an array", arrays),
            )
            ours = Work(OURS, f"{rule}, {scores}", n=10**6)
            yield Case(f"{rule.capitalize()}, 1,000,000 scores: {scores}", CANDIDATE, ours, peers)


def _bits() -> Case:
    peers = (
        Peer("numpy", Work("numpy", "bits", n=10**6)),
        Peer("opendp", Work("opendp", "bits", n=10**5)),
    )
    return Case(
        "Randomised response, 10,000,000 bits", BIT, Work(OURS, "bits", n=10**7), peers, at_most(1)
    )


def _memory() -> Iterator[Case]:
    for law in LAWS:
        yield Case(title(law, 10**6, 10**7), MEMORY, Work(OURS, law, 10**6, 10**7), bar=at_most(8))
    for rule in _OPENDP_SELECTS:
        ours = Work(OURS, f"{rule}, normal", n=10**7)
        yield Case(f"{rule.capitalize()}, 10,000,000 candidates", MEMORY, ours, bar=at_most(8))


if __name__ == "__main__":
    bench(sys.argv[1:], list(cases()), PEERS, RESULTS)
