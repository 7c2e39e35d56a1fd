# SPDX-License-Identifier: Apache-2.0
"""The exact output distribution of a mechanism, by running its own code on every draw of its noise.

The mechanism is copied with each noise distribution replaced by one that returns prescribed values,
so all of its code (which noise is added where, rounding, comparisons, stopping) runs unchanged. The
likeliest draws come first, and the probability that was not reached is counted. Proof:
explore.proof.md.
"""

import copy
import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import lru_cache
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.outcome import Key, key_of
from sfumato.errors import InvalidDeclaration, WrongUse
from sfumato.exact.bracket import Bracket
from sfumato.noise import Shape
from sfumato.noise.entropy import Bytes
from sfumato.noise.law import size_of

# Masses are integers: multiples of 2^-160.
BITS = 160
ONE = 1 << BITS
_WIDEST = 1 << 12
# Width of the bins of ln(mass) in which ``paths_to`` counts paths.
_BIN = 0.125
# The mass that the table of a distribution may leave out.
_BEYOND = ONE >> 46

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Explored:
    """The part of a mechanism's output distribution that was computed: bounds of the probability of
    each outcome.

    ``masses`` has a (lower, upper) bound for each outcome that was reached, in multiples of 2^-160.
    ``rest`` is an upper bound of the probability that was not reached.
    """

    masses: Mapping[Key, tuple[int, int]]
    rest: int = field(init=False)

    def __post_init__(self) -> None:
        masses = self.masses.values()
        object.__setattr__(self, "rest", ONE - sum(low for low, _ in masses))
        ordered = all(0 <= low <= high for low, high in masses)
        if self.rest < 0 or not ordered:
            raise InvalidDeclaration(
                "These are not probabilities.",
                allowed="0 <= lower <= upper for each, lower ones of at most 1 in all",
            )


class Tape:
    """A script of the noise draws of one run of a mechanism, which makes the run deterministic.

    A draw is named by its rank in its ``Table`` (0 is the likeliest value). The first draws have
    the ranks in ``plan``, all later ones rank 0. ``taken`` records the table and rank of each draw
    so far.
    """

    __slots__ = ("plan", "taken")

    def __init__(self) -> None:
        self.rewind(())

    def rewind(self, plan: tuple[int, ...]) -> None:
        """Starts a new run with another plan."""
        self.plan = plan
        self.taken: list[tuple[Table, int]] = []

    def take(self, table: "Table") -> int:
        """Returns the next noise draw, from the distribution ``table``."""
        at = len(self.taken)
        rank = self.plan[at] if at < len(self.plan) else 0
        self.taken.append((table, rank))
        return table.values[rank]


@dataclass(frozen=True, slots=True)
class Table:
    """The values of a distribution, likeliest first, with bounds of their masses (times 2^160)."""

    values: tuple[int, ...]
    lows: tuple[int, ...]
    highs: tuple[int, ...]


class Watched:
    """A noise distribution whose samples come from a tape; it states the original's properties."""

    __slots__ = ("_law", "_table", "_tape")

    def __init__(self, law: Any, tape: Tape) -> None:
        self._law = law
        self._table = table_of(law)
        self._tape = tape

    def sample_one(self, entropy: object = None) -> int:
        """Returns the next draw of the tape."""
        return self._tape.take(self._table)

    def sample(self, shape: Shape, entropy: object = None) -> NDArray[Any]:
        """Returns the next draws of the tape, as an array."""
        draws = [self._tape.take(self._table) for _ in range(size_of(shape))]
        return np.array(draws, np.int64).reshape(shape)

    def __getattr__(self, name: str) -> object:
        return getattr(self._law, name)


class NoEntropy:
    """A source of randomness that raises an error when it is read.

    An exploration uses it to detect mechanisms that draw randomness outside of their noise laws.
    """

    def bits(self, count: int) -> NoReturn:
        """Raises WrongUse."""
        raise _beside()

    def fill(self, buffer: Bytes) -> NoReturn:
        """Raises WrongUse."""
        raise _beside()


def explore(run: Callable[[], object], tape: Tape, *, paths: int, aim: int) -> Explored:
    """Computes the distribution of the output of ``run`` by running it once for each likely
    sequence of noise draws from ``tape``.

    It ends when all but ``aim`` of the probability is reached, or after ``paths`` runs.

    Guarantees:
        explored masses are bounds of the masses reached
        what is not reached is counted
    """
    masses: dict[Key, tuple[int, int]] = {}
    open_paths: list[tuple[float, tuple[int, ...]]] = [(-1.0, ())]
    reached = 0
    while open_paths and paths > 0 and ONE - reached > aim:
        _, plan = heapq.heappop(open_paths)
        tape.rewind(plan)
        key = key_of(run())
        low, high = _mass(tape)
        low_before, high_before = masses.get(key, (0, 0))
        masses[key] = low_before + low, high_before + high
        reached += low
        paths -= 1
        _branch(open_paths, tape)
    return Explored(masses)


def paths_to(tables: Sequence[Table], aim: int) -> float:
    """Estimates how many of the likeliest paths leave at most ``aim`` of the probability.

    Infinite if the tables themselves leave more. The estimate decides what is explored, never what
    is claimed.
    """
    # by bin of -ln(mass): how many paths it has, and their mass
    counts, masses = np.ones(1), np.ones(1)
    listed = 1.0
    for table in tables:
        own = np.array(table.highs, float) / ONE
        bins = np.floor(-np.log(own) / _BIN).astype(int)
        counts = np.convolve(counts, np.bincount(bins))
        masses = np.convolve(masses, np.bincount(bins, own))
        listed *= sum(table.lows) / ONE
    # from the rarest on, so that small masses are not lost beside large ones
    left = np.cumsum(masses[::-1])[::-1] + max(1 - listed, 0.0)
    small = np.flatnonzero(left <= aim / ONE)
    if len(small):
        return float(counts[: small[0]].sum())
    if 1 - listed > aim / ONE:
        return math.inf
    return float(counts.sum())


def watched(subject: T, tape: Tape) -> T:
    """Returns a copy of a mechanism in which every noise distribution draws from this tape."""
    if not is_dataclass(subject) or isinstance(subject, type):
        raise InvalidDeclaration(
            f"The noise of a {type(subject).__name__} cannot be found.",
            allowed="a dataclass that holds its noise laws",
        )
    copied = copy.copy(subject)
    for member in fields(subject):
        part = getattr(subject, member.name)
        if _is_law(part):
            object.__setattr__(copied, member.name, Watched(part, tape))
        elif is_dataclass(part) and not isinstance(part, type):
            object.__setattr__(copied, member.name, watched(part, tape))
    return copied


def _is_law(part: object) -> bool:
    """Whether an object draws integers and states their probabilities."""
    return callable(getattr(part, "pmf", None)) and callable(getattr(part, "sample", None))


def _mass(tape: Tape) -> tuple[int, int]:
    low = high = ONE
    for table, rank in tape.taken:
        low = low * table.lows[rank] >> BITS
        high = -(-high * table.highs[rank] >> BITS)
    return low, high


def _branch(open_paths: list[tuple[float, tuple[int, ...]]], tape: Tape) -> None:
    """Adds the paths that differ from this run by one rank in one draw.

    Only draws from the last one of the run's plan on are changed: earlier ones belong to plans that
    other runs add, so each plan is added once.
    """
    ranks = tuple(rank for _, rank in tape.taken)
    likely = 1.0
    first_free = len(tape.plan) - 1
    for at, (table, rank) in enumerate(tape.taken):
        after = rank + 1
        if at >= first_free and after < len(table.values):
            plan = (*ranks[:at], after)
            heapq.heappush(open_paths, (-likely * (table.highs[after] / ONE), plan))
        likely *= table.highs[rank] / ONE


@lru_cache(maxsize=64)
def table_of(law: Any) -> Table:
    """Returns a table of a noise distribution, outward from 0, until almost no probability is
    beyond.
    """
    entries: list[tuple[int, int, int]] = []
    reached = 0
    for distance in range(_WIDEST):
        for x in sorted({distance, -distance}, reverse=True):
            low, high = masses_of(law.pmf(x))
            if high:
                entries.append((high, low, x))
                reached += low
        if ONE - reached <= _BEYOND:
            break
    if ONE - reached > ONE >> 4:
        raise InvalidDeclaration(
            "Noise too wide to go through its values.",
            allowed="noise of which 15/16 is within 2^12 of 0",
            remedy="Verify the mechanism at parameters with less noise.",
        )
    entries.sort(key=lambda entry: (-entry[0], abs(entry[2]), entry[2]))
    return Table(
        tuple(x for *_, x in entries),
        tuple(low for _, low, _ in entries),
        tuple(high for high, *_ in entries),
    )


def masses_of(probability: Bracket) -> tuple[int, int]:
    """Returns bounds of a probability as integer multiples of 2^-160, rounded outward."""
    low, low_denominator = probability.lower.as_integer_ratio()
    high, high_denominator = probability.upper.as_integer_ratio()
    rounded_down = (low << BITS) // low_denominator
    rounded_up = -((-high << BITS) // high_denominator)
    return rounded_down, rounded_up


def _beside() -> WrongUse:
    return WrongUse(
        "The mechanism draws beside the noise laws that it states.",
        allowed="draws by sample or sample_one of the laws that are its fields",
        remedy="Use sfumato.audit.audit: it needs only runs.",
    )
