# SPDX-License-Identifier: Apache-2.0
"""What is compared, what is asked of it, and what came out: cases, bars and rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from statistics import median

REPETITIONS = 7


class Kind(Enum):
    """What is taken of a call: its seconds, those of the processor, its bytes, or what it gives.

    ``PROCESS``: the bytes of its whole process at their most.
    """

    TIME = "time"
    CPU = "cpu"
    MEMORY = "memory"
    PROCESS = "process"
    VALUE = "value"


@dataclass(frozen=True, slots=True)
class Sample:
    """One repetition: seconds a call (or bytes, or its number), and the processor's seconds where it is a time."""

    value: float
    cpu: float | None


@dataclass(frozen=True, slots=True)
class Work:
    """What one system does: a name in its ``WORKS``, and the numbers that it takes."""

    system: str
    name: str
    scale: float = 1
    n: int = 1


@dataclass(frozen=True, slots=True)
class Unit:
    """How a measure is told: what was taken times ``factor``, of one item where ``each``."""

    name: str
    factor: float
    each: bool = False
    kind: Kind = Kind.TIME
    digits: int = 4

    def tell(self, value: float, work: Work) -> float:
        """In this unit, to so many digits: what is written is what is judged."""
        return rounded(value * self.factor / (work.n if self.each else 1), self.digits)


@dataclass(frozen=True, slots=True)
class Bar:
    """What is asked of our median and a peer's."""

    text: str
    holds: Callable[[float, float], bool]


def faster(times: int | Fraction) -> Bar:
    """We take at most 1/times as long."""
    return Bar(f">= {times}x", lambda ours, peer: peer >= times * ours)


def at_most(most: float) -> Bar:
    """We take so much or less, whatever others take."""
    return Bar(f"<= {most:g}", lambda ours, peer: ours <= most)


def at_least(least: float) -> Bar:
    """We give so much or more: a lower bound of the truth."""
    return Bar(f">= {least:g}", lambda ours, peer: ours >= least)


def at_most_more(most: float) -> Bar:
    """We take so much more than the peer, or less."""
    return Bar(f"<= {most:g} more", lambda ours, peer: ours - peer <= most)


def at_most_times(times: Fraction) -> Bar:
    """We take at most so many times as long as the peer."""
    return Bar(f"<= {float(times):.3g}x", lambda ours, peer: ours <= times * peer)


@dataclass(frozen=True, slots=True)
class Peer:
    """Whom we are compared with, and what is asked of the comparison."""

    name: str
    work: Work
    bar: Bar | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One line of the benchmark: our work, an absolute bar or none, the peers, and how often each is asked."""

    name: str
    unit: Unit
    ours: Work
    peers: tuple[Peer, ...] = ()
    bar: Bar | None = None
    repetitions: int = REPETITIONS

    @property
    def works(self) -> list[Work]:
        """All that is measured for it."""
        return [self.ours, *(peer.work for peer in self.peers)]


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison. ``ratio`` is how many times as much as ours the peer takes; None: not measured.

    ``repetitions``: of how many the numbers are the medians.
    """

    case: str
    metric: str
    ours: float
    peer: float | None
    peer_name: str | None
    ratio: float | None
    cpu_ratio: float | None
    bar: str | None
    holds: bool | None
    repetitions: int


def rows(case: Case, samples: Mapping[Work, Sequence[Sample]]) -> list[Row]:
    """The rows of a case, from the repetitions of each of its works; a peer without any stays empty."""
    ours, taken = (
        case.unit.tell(median(each.value for each in samples[case.ours]), case.ours),
        len(samples[case.ours]),
    )
    named = case.name, case.unit.name, ours
    found = []
    if case.bar is not None:
        found.append(
            Row(*named, None, None, None, None, case.bar.text, case.bar.holds(ours, ours), taken)
        )
    for peer in case.peers:
        text = peer.bar.text if peer.bar else None
        theirs = samples.get(peer.work)
        if not theirs:
            found.append(Row(*named, None, peer.name, None, None, text, None, taken))
            continue
        value = case.unit.tell(median(each.value for each in theirs), peer.work)
        ratios = rounded(value / ours), _cpu_ratio(case, samples[case.ours], theirs, peer.work)
        holds = peer.bar.holds(ours, value) if peer.bar else None
        found.append(Row(*named, value, peer.name, *ratios, text, holds, taken))
    return found


def _cpu_ratio(
    case: Case, ours: Sequence[Sample], theirs: Sequence[Sample], work: Work
) -> float | None:
    """The ratio of the processor's times, which other programs on the machine disturb less."""
    mine = [each.cpu for each in ours if each.cpu is not None]
    other = [each.cpu for each in theirs if each.cpu is not None]
    if not mine or not other:
        return None
    return rounded(case.unit.tell(median(other), work) / case.unit.tell(median(mine), case.ours))


def rounded(value: float, digits: int = 4) -> float:
    """To so many significant digits."""
    return float(f"{value:.{digits}g}")


HEAD = f"{'case':<46} {'':<19} {'ours':>9} {'peer':>9} {'':<21} {'ratio':>8} {'cpu':>8}  bar"


def line(row: Row) -> str:
    """A row as text, under ``HEAD``."""
    numbers = f"{_short(row.ours):>9} {_short(row.peer):>9} {row.peer_name or '':<21}"
    ratios = f"{_short(row.ratio):>8} {_short(row.cpu_ratio):>8}"
    verdict = {True: "holds", False: "FAILS", None: "not measured" if row.peer is None else ""}[
        row.holds
    ]
    return f"{row.case:<46} {row.metric:<19} {numbers} {ratios}  {row.bar or '':<13} {verdict}".rstrip()


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:,.6g}"
