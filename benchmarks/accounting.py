# SPDX-License-Identifier: Apache-2.0
"""How fast, how lean and how tight the accountant is: ``make bench-accounting``.

What is compared is what a user of each library would call for the same plan. Where a peer gives
less than the truth its row says so by a ratio below one.
"""

import sys
from collections.abc import Iterator

from benchmarks.compare import Bar, Case, Kind, Peer, Unit, Work, at_least, at_most, faster
from benchmarks.driver import OURS, ROOT
from benchmarks.report import bench

RESULTS = ROOT / "benchmarks" / "results" / "accounting.json"
GOOGLE, PRV, OPACUS, AUTODP, OPENDP = (
    "dp-accounting",
    "prv-accountant",
    "opacus",
    "autodp",
    "opendp",
)
PEERS = (GOOGLE, PRV, AUTODP, OPACUS, OPENDP)

MILLI = Unit("ms", 1e3)
SECONDS = Unit("s", 1)
QUESTION = Unit("us a question", 1e6, each=True)
MEMORY = Unit("MB", 1e-6, kind=Kind.MEMORY)
EPSILON = Unit("epsilon", 1, kind=Kind.VALUE, digits=7)
LOWER = Unit("lower bound", 1, kind=Kind.VALUE, digits=7)
WIDTH = Unit("relative width", 1, kind=Kind.VALUE)
SIGMA = Unit("sigma", 1, kind=Kind.VALUE, digits=6)
CPU_MILLI = Unit("ms, median", 1e3, kind=Kind.VALUE)
CPU_SECONDS = Unit("s, worst", 1, kind=Kind.VALUE)
WIDER = Unit("wider than 1e-4 and 1e-9", 1, kind=Kind.VALUE)
FIRST = Unit("ms", 1e3, kind=Kind.VALUE)

# what we are asked for, and dp-accounting's grids: its default, and one that is as accurate
_TOLD, _FINE = 1e-4, 1e-5
_PRV_ERROR, _PRV_SIGMA_ERROR = 0.1, 0.01
_FEW, _ONCE = 3, 1
_SETTINGS = 500


def cases() -> Iterator[Case]:
    """All of them."""
    yield from _sgd("a million steps", 70, faster(10))
    yield from _accurate("DP-SGD, a million steps")
    # from below it was shown that epsilon is at least 35.344
    yield from _sgd("a million steps, delta 1e-12", 70, None, truth=35.344)
    yield from _sgd("MNIST", 30, faster(10))
    yield from _accurate("DP-SGD, MNIST")
    yield from _many("gaussians")
    yield from _many("laplaces")
    yield from _grid()
    yield from _mixed()
    yield from _left()
    yield from _calibrated()
    yield _first()


def _sgd(
    problem: str, most: float, times: Bar | None, truth: float | None = None
) -> Iterator[Case]:
    name = f"DP-SGD, {problem}"
    ours, google = Work(OURS, name, _TOLD), Work(GOOGLE, name, _TOLD)
    prv = Peer(PRV, Work(PRV, name, _PRV_ERROR))
    renyi = [Peer(f"{each}, Renyi", Work(each, name)) for each in (OPACUS, AUTODP)]
    if problem == "MNIST":
        renyi.append(Peer(f"{OPACUS}, PRV", Work(OPACUS, f"{name}, PRV")))
    yield Case(
        name,
        MILLI,
        ours,
        (Peer(GOOGLE, google, times), prv, *renyi),
        at_most(most),
        repetitions=_FEW,
    )
    yield Case(name, MEMORY, ours, (Peer(GOOGLE, google), prv), at_most(60))
    bar = at_least(truth) if truth else None
    yield Case(name, EPSILON, ours, (Peer(GOOGLE, google), prv, *renyi), bar, repetitions=_ONCE)
    if truth:
        yield Case(
            name,
            LOWER,
            Work(OURS, f"{name}, lower", _TOLD),
            bar=at_most(truth * (1 + 1e-3)),
            repetitions=_ONCE,
        )
    width = Peer(PRV, Work(PRV, f"{name}, width", _PRV_ERROR))
    yield Case(
        name, WIDTH, Work(OURS, f"{name}, width", _TOLD), (width,), at_most(1e-4), repetitions=_ONCE
    )


def _accurate(work: str) -> Iterator[Case]:
    """Both at an error of 1e-5."""
    name = f"{work}, to 1e-5"
    ours, google = Work(OURS, work, _FINE), Work(GOOGLE, work, _FINE)
    yield Case(name, MILLI, ours, (Peer(GOOGLE, google, faster(50)),), repetitions=_ONCE)
    yield Case(name, MEMORY, ours, (Peer(GOOGLE, google),))
    yield Case(
        name, WIDTH, Work(OURS, f"{work}, width", _FINE), bar=at_most(1e-5), repetitions=_ONCE
    )


def _many(work: str) -> Iterator[Case]:
    """No closed form is used, by no one."""
    name = f"A million {work}"
    ours, google = Work(OURS, work, _TOLD), Peer(GOOGLE, Work(GOOGLE, work, _TOLD), faster(50))
    fine = Peer(f"{GOOGLE}, to 1e-5", Work(GOOGLE, work, _FINE))
    peers = [google, fine, Peer(f"{AUTODP}, Renyi", Work(AUTODP, work))]
    if work == "laplaces":
        peers.append(Peer(PRV, Work(PRV, work, _PRV_ERROR)))
    yield Case(name, MILLI, ours, tuple(peers), repetitions=_ONCE)
    yield Case(
        name, EPSILON, ours, tuple(Peer(each.name, each.work) for each in peers), repetitions=_ONCE
    )
    yield Case(
        name, WIDTH, Work(OURS, f"{work}, width", _TOLD), bar=at_most(1e-4), repetitions=_ONCE
    )


def _grid() -> Iterator[Case]:
    """Small rates, tiny deltas and everything beside them: CPU time of one thread, and how far apart the ends are."""
    name = f"{_SETTINGS} settings of DP-SGD"
    told = {
        "median": (CPU_MILLI, at_most(100)),
        "worst": (CPU_SECONDS, at_most(2)),
        "widest": (WIDTH, at_most(1e-2)),
        "wide": (WIDER, at_most(0)),
    }
    for each, (unit, bar) in told.items():
        yield Case(
            name, unit, Work(OURS, f"grid, {each}", _TOLD, _SETTINGS), bar=bar, repetitions=_ONCE
        )


def _mixed() -> Iterator[Case]:
    ours, google = Work(OURS, "mix", _TOLD, 10**4), Work(GOOGLE, "mix", n=10**4)
    yield Case(
        "10,000 different events",
        SECONDS,
        ours,
        (Peer(GOOGLE, google),),
        at_most(1.2),
        repetitions=_ONCE,
    )
    yield Case(
        "10,000 different events",
        EPSILON,
        ours,
        (Peer(GOOGLE, google),),
        at_most(4.48),
        repetitions=_ONCE,
    )


def _left() -> Iterator[Case]:
    asked = Work(OURS, "what is left", n=10**4)
    yield Case("What is left, 10,000 times", SECONDS, asked, bar=at_most(1), repetitions=_FEW)
    peers = tuple(Peer(each, Work(each, "what is left", n=3000)) for each in (GOOGLE, OPENDP))
    yield Case(
        "What is left, each of 3,000 times",
        QUESTION,
        Work(OURS, "what is left", n=3000),
        peers,
        repetitions=_ONCE,
    )
    anytime = Work(OURS, "what is lost", n=10**4)
    yield Case("What is lost by an odometer, 10,000 times", SECONDS, anytime, repetitions=_ONCE)


def _calibrated() -> Iterator[Case]:
    ours = Work(OURS, "sigma", _TOLD)
    peers = (
        Peer(GOOGLE, Work(GOOGLE, "sigma")),
        Peer(PRV, Work(PRV, "sigma", _PRV_SIGMA_ERROR)),
        Peer(f"{OPACUS}, PRV", Work(OPACUS, "sigma", _PRV_SIGMA_ERROR)),
    )
    yield Case(
        "The sigma of 10,000 DP-SGD steps", MILLI, ours, peers, at_most(100), repetitions=_ONCE
    )
    yield Case("The sigma of 10,000 DP-SGD steps", SIGMA, ours, peers, repetitions=_ONCE)


def _first() -> Case:
    peers = tuple(Peer(each, Work(each, "first answer")) for each in PEERS)
    return Case("Import and a first answer", FIRST, Work(OURS, "first answer"), peers, at_most(150))


if __name__ == "__main__":
    bench(sys.argv[1:], list(cases()), PEERS, RESULTS)
