# SPDX-License-Identifier: Apache-2.0
"""Runs a task over two made-up worlds at once, and compares how far its exact integers move.

A ``Witness`` has the methods of ``Curator``. Each released value is drawn once, for both worlds, so
the task takes the same course on both, whatever it chooses next; at each step the exact integers of
the worlds are compared with the distance that the statistic claims. For made-up rows alone: it
shows exact integers. No session reaches this module, and the guarantee does not rest on it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, count, takewhile
from typing import Any

import numpy as np

from sfumato.engines.base import Engine, Exact
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.reference import Reference
from sfumato.engines.stop import ENDLESS
from sfumato.errors import InvalidDeclaration, SfumatoError
from sfumato.metadata.contract import Contract
from sfumato.metadata.dataset import Dataset
from sfumato.metadata.table import Table
from sfumato.plan.cube import BoundedCube
from sfumato.plan.graph import BoundedGraph
from sfumato.plan.levels import Levels
from sfumato.plan.open_cube import OpenCube
from sfumato.plan.open_rows import OpenRows
from sfumato.plan.rows import BoundedRows
from sfumato.plan.stages import Bounded
from sfumato.privacy.budget import Budget
from sfumato.privacy.distance import Norm
from sfumato.privacy.unit import Relation
from sfumato.query.asker import Asker
from sfumato.query.choose import plan_for_price
from sfumato.query.cycle import Turning
from sfumato.query.price import Price
from sfumato.query.release import Asked, SqlTask
from sfumato.query.series import Series, places_of
from sfumato.query.statistic import Opened, Reads
from sfumato.query.stream_state import State
from sfumato.query.task import Task
from sfumato.sql.lower import understand

# Both worlds sample the rows of a unit by this key.
_KEY = "witness"
# Later pieces of a series are of the same kind.
_MOST_PIECES = 20
_BUDGET = Budget(10**6, Fraction(1, 100))
# The integers around two exact ones whose rungs are compared.
_AROUND = 2**12


@dataclass(frozen=True, slots=True)
class Step:
    """A tested step of a task: the distance of the exact integers of two neighbouring datasets, and
    the sensitivity that was claimed.

    In L2 both numbers are squared, as in ``Distance``.
    """

    kind: str
    norm: str
    claimed: Fraction
    moved: int

    @property
    def holds(self) -> bool:
        """Whether the distance is at most the claimed sensitivity."""
        return self.moved <= self.claimed

    def __str__(self) -> str:
        return f"{self.kind} ({self.norm}): moved {self.moved}, claimed {self.claimed}"


class _NoNoise:
    """A mechanism that releases exact integers, to compare the rows of two worlds."""

    def release(self, exact: Sequence[int], drawn: object) -> tuple[int, ...]:
        return tuple(exact)

    def release_many(self, exact: Any, drawn: object) -> Any:
        return exact


class _Past:
    """The secret state of a stream over made-up rows, in memory."""

    def __init__(self, place: int = 1, state: State | None = None) -> None:
        self.stored = place - 1
        self.place = place
        self.state = state

    @contextmanager
    def moving(self, fresh: State) -> Iterator[State]:
        """Yields the state as the last tick left it."""
        yield self.state or fresh

    def save(self, state: State) -> None:
        """Keeps a state for the next tick."""
        self.state = state


class _OneBatch:
    """A world whose units are all in the first batch of a cycle, as they may be by chance."""

    def __init__(self, world: Opened) -> None:
        plan: Any = world._plan
        nobody = world.unit_rows(plan).of(np.zeros(0, np.int64))
        self._first, self._others = world, Opened(plan, rows=nullcontext(nobody))

    def batches(self, count: int) -> Callable[[int], Opened]:
        """Returns a function that gives the data of a batch by its number."""
        return lambda number: self._others if number else self._first


class Witness:
    """Answers the calls of a task over two worlds, and records a ``Step`` for each comparison.

    A secret sample is taken whole, and so is the first batch of a cycle: units are in it by chance,
    so the steps of the two worlds are compared on all of them. ``before`` is the witness of the
    piece before in a series. The rows of a stream or a cycle are compared together: how far all of
    them have moved so far, with the distance that is claimed for the whole.

    Guarantees:
        a witness compares every release with its claim
    """

    charge = "witness"

    def __init__(self, one: Opened, other: Opened, *, before: "Witness | None" = None) -> None:
        self._worlds = one, other
        self.steps: list[Step] = []
        self._pasts = _Past(), _Past()
        self._ticked = self._turned = 0
        if before is not None:
            first, second = before._pasts
            self._pasts = (
                _Past(first.place + 1, first.state),
                _Past(second.place + 1, second.state),
            )
            self._ticked = before._ticked

    def measure(self, statistic: Any, mechanism: Any, *, of: object = None) -> Any:
        """Adds noise to the integers of the first world, and compares both."""
        exact = self._compared("measure", statistic, mechanism.norm)
        if isinstance(exact, np.ndarray):
            return mechanism.release_many(exact, None)
        return mechanism.release(exact)

    def share(self, statistic: Any, mechanism: Any, masks: Any, step: int) -> bytes:
        """Returns the share of the first world, and compares both before they are masked."""
        exact = self._compared("share", statistic, Norm.L2)
        drawn = mechanism.noise.sample(len(exact))
        share: bytes = mechanism.release(exact, drawn, masks, step)
        return share

    def select(self, scored: Any, mechanism: Any) -> int:
        """Selects a candidate of the first world."""
        claim = scored.distance(Norm.LINF)
        exact = scored.exact(self._worlds[0])
        change = _change(exact, scored.exact(self._worlds[1]))
        self._note("select", claim, _moved(change, Norm.LINF))
        if mechanism.monotone and (change > 0).any() and (change < 0).any():
            self.steps.append(Step("select, monotone", "sign", Fraction(0), 1))
        chosen: int = mechanism.release(exact)
        return chosen

    def select_each(self, scored: Any, mechanism: Any) -> tuple[int, ...]:
        """Selects a candidate in each group of the first world."""
        claim = scored.distance(Norm.LINF)
        exact = scored.exact(self._worlds[0])
        pairs = zip(exact, scored.exact(self._worlds[1]), strict=True)
        changes = [_change(one, other) for one, other in pairs]
        # the largest change of a sum of one candidate in each group
        upward = sum(int(change.max(initial=0)) for change in changes)
        downward = sum(int(-change.min(initial=0)) for change in changes)
        self._note("select each", claim, max(upward, downward))
        chosen: tuple[int, ...] = mechanism.release_each(exact)
        return chosen

    def quantiles(self, leaves: Any, mechanism: Any) -> tuple[tuple[int, ...], ...]:
        """Selects leaves of the first world."""
        claim = leaves.distance(Norm.LINF)
        exact = leaves.exact(self._worlds[0])
        for one, other in zip(exact, leaves.exact(self._worlds[1]), strict=True):
            change = _change_of_keys(_weights(one), _weights(other))
            # of any set of leaves: all that rose, or all that fell
            rose, fell = int(change[change > 0].sum()), int(-change[change < 0].sum())
            self._note("quantiles", claim, max(rose, fell))
        width = leaves.part.aggregate.width
        return tuple(mechanism.release(*group, width) for group in exact)

    def threshold(self, counted: Any, mechanism: Any) -> dict[Any, int]:
        """Shows the keys of the first world that pass."""
        claim = counted.distance(Norm.LINF)
        exact = counted.exact(self._worlds[0])
        change = _change_of_keys(_counts(exact), _counts(counted.exact(self._worlds[1])))
        self._note("threshold", claim, int(np.abs(change).max(initial=0)))
        # under replace-one the keys of both units move
        keys = mechanism.keys * (2 if claim.relation is Relation.REPLACE_ONE else 1)
        self.steps.append(Step("threshold, keys", "L0", Fraction(keys), int((change != 0).sum())))
        released: dict[Any, int] = (
            mechanism.release_many(*exact) if isinstance(exact, tuple) else mechanism.release(exact)
        )
        return released

    def sample(self, design: object) -> object:
        """Returns a handle of the whole: a sample's units are some of all."""
        return design

    def best(self, event: Any, run: Callable[[int, Any], Any]) -> tuple[int, Any]:
        """Does every run once, and returns the best."""
        outcomes = [(run(place, self), place) for place in range(len(event.events))]
        (score, body), place = max(outcomes)
        return place, (score, body)

    def ladder(self, statistic: Any, mechanism: Any) -> int:
        """Draws an integer around that of the first world, and compares the rung of each."""
        claim = statistic.rung_distance()
        one, other = (statistic.exact(world) for world in self._worlds)
        self._note("ladder", claim, _rungs_moved(one, other))
        drawn: int = mechanism.release(*one)
        return drawn

    def tick(self, ticks: Any, mechanism: Any) -> dict[int, Any]:
        """Draws a tick's row of the first world, and compares all rows of the stream so far."""
        claim = ticks.distance(ticks.participations)
        one, other = (
            ticks.drawn(world, past, _NoNoise(), None)
            for world, past in zip(self._worlds, self._pasts, strict=True)
        )
        released = {}
        for place, (until, exact) in one.items():
            self._ticked += _moved(_change(exact, other[place][1]), claim.norm)
            self._note("ticks", claim, self._ticked)
            released[place] = until, mechanism.release(exact)
        return released

    def turn(self, cycle: Any, mechanism: Any) -> Any:
        """Begins a cycle in both worlds; the unit that differs is in the first batch."""
        self._turned = 0
        no_noise: Any = _NoNoise()
        worlds: list[Any] = [_OneBatch(world) for world in self._worlds]
        turnings = [Turning(cycle, no_noise, world, None) for world in worlds]
        return cycle, mechanism, turnings

    def row(self, turn: Any, statistic: Any) -> Any:
        """Adds noise to the next row of the first world, and compares all rows of the cycle so
        far.
        """
        cycle, mechanism, turnings = turn
        one, other = (turning.next(statistic) for turning in turnings)
        claim = cycle.distance(cycle.participations)
        self._turned += _moved(_change(one, other), claim.norm)
        self._note("cycle", claim, self._turned)
        return mechanism.release_many(one)

    def end(self) -> str:
        """Returns an empty string: nothing is forfeited."""
        return ""

    def _compared(self, kind: str, statistic: Any, norm: Norm) -> Any:
        """Compares the integers of both worlds in a norm; returns those of the first."""
        claim = statistic.distance(norm)
        exact = statistic.exact(self._worlds[0])
        change = _change(exact, statistic.exact(self._worlds[1]))
        self._note(kind, claim, _moved(change, claim.norm))
        return exact

    def _note(self, kind: str, claim: Any, moved: int) -> None:
        self.steps.append(Step(kind, claim.norm.value, claim.value, moved))


class MadeUp:
    """Engines over made-up datasets, on which tasks run to test their claimed sensitivities.

    >>> with MadeUp([]) as worlds:
    ...     len(worlds.engines)
    0
    """

    def __init__(self, worlds: Iterable[Mapping[str, Table]]) -> None:
        self.engines: list[DuckDB] = []
        try:
            self.engines.extend(DuckDB(tables) for tables in worlds)
        except SfumatoError:
            self.close()
            raise

    def steps(self, task: Task | Series, dataset: Dataset) -> list[Step]:
        """Returns the tested steps of a task that is run over the first two datasets.

        Of a series the first pieces are run, each after those before it.
        """
        if not hasattr(task, "piece"):
            return self._run(task, dataset)[0].steps
        series: Any = task
        steps: list[Step] = []
        earlier: dict[int, bytes] = {}
        witness = None
        for place in range(1, min(places_of(series.event), _MOST_PIECES) + 1):
            piece = series.piece(place, earlier)
            witness, earlier[place] = self._run(piece, dataset, witness)
            steps.extend(witness.steps)
        return steps

    def _run(
        self, task: Any, dataset: Dataset, before: Witness | None = None
    ) -> tuple[Witness, bytes]:
        one, other = (_open(task, dataset, engine) for engine in self.engines)
        with one, other:
            witness = Witness(one, other, before=before)
            body = task.run(witness)
        return witness, body

    def integers(self, plans: Sequence[Bounded]) -> list[Exact]:
        """Returns the exact integers of plans on the first dataset."""
        return [self.engines[0].run(plan, _KEY) for plan in plans]

    def close(self) -> None:
        """Closes the engines."""
        for engine in self.engines:
            engine.close()

    def __enter__(self) -> "MadeUp":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def reference_integers(
    plans: Sequence[Bounded], rows: Mapping[str, Sequence[Mapping[str, Any]]]
) -> list[Exact]:
    """Returns the exact integers of plans on made-up rows, computed by the reference engine."""
    engine = Reference(dict(rows))
    return [engine.run(plan, _KEY) for plan in plans]


def sql_task(text: str, dataset: Dataset, cost: Price) -> SqlTask:
    """Returns the task of a SQL statement at a price; nothing is opened and nothing charged.

    Raises:
        SfumatoError: the statement is refused, or this price cannot buy it.
    """
    planned = plan_for_price(understand(text, dataset), dataset, cost)
    asker = Asker(dataset, Contract.of(dataset, _BUDGET), "owner")
    return SqlTask.of(Asked.of(planned, asker))


def questions_of(task: SqlTask, dataset: Dataset) -> tuple[Bounded, ...]:
    """Returns the bounded plans of the SQL questions that a task asks."""
    plan = task.ready(dataset)
    return plan.questions if isinstance(plan, Levels) else (plan,)


def _open(task: Task, dataset: Dataset, engine: Engine) -> Opened:
    """Opens a world for a task, with the same sampling key in every world."""
    plan: Any = task.ready(dataset)
    if isinstance(plan, Bounded):
        return Opened(plan, engine.ready(plan, _KEY, ENDLESS))
    if isinstance(plan, Levels):
        return Opened(plan, reads=_reads(plan, engine))
    if isinstance(plan, BoundedCube):
        return Opened(plan, cube=engine.cube(plan, ENDLESS))
    if isinstance(plan, BoundedRows):
        rows: AbstractContextManager[Any] = engine.rows(plan, _KEY, ENDLESS)
        return Opened(plan, rows=rows)
    if isinstance(plan, BoundedGraph):
        return Opened(plan, graph=engine.edges(plan, _KEY, ENDLESS))
    if isinstance(plan, OpenCube | OpenRows):
        return Opened(
            plan,
            reads=_reads(plan, engine),
            cubes=lambda cube: engine.cube(cube, ENDLESS),
            listed=lambda rows: engine.rows(rows, _KEY, ENDLESS),
        )
    raise _not_compared(type(plan).__name__)


def _reads(plan: Levels | OpenCube | OpenRows, engine: Engine) -> Reads:
    """How each question of a plan is read."""
    return {each: engine.ready(each, _KEY, ENDLESS) for each in plan.questions}


def _not_compared(what: str) -> InvalidDeclaration:
    return InvalidDeclaration(f"A witness of {what}.", allowed="a task that reads rows")


def _change(one: Any, other: Any) -> Any:
    """The differences of two lists of integers, as Python integers."""
    first, second = (np.asarray(each, dtype=object).ravel() for each in (one, other))
    return first - second


def _moved(change: Any, norm: Norm) -> int:
    """The norm of a change, squared in L2."""
    sizes = np.abs(change)
    if norm is Norm.L1:
        return int(sizes.sum())
    if norm is Norm.L2:
        return int((sizes * sizes).sum())
    return int(sizes.max(initial=0))


def _rungs_moved(first: tuple[int, int], second: tuple[int, int]) -> int:
    """By how many rungs the integers around two exact ones differ; each pair is an exact integer
    with its width.
    """
    near = np.arange(min(first[0], second[0]) - _AROUND, max(first[0], second[0]) + _AROUND)
    apart = np.abs(_rungs(near, *first) - _rungs(near, *second))
    # far away, two ladders are as many rungs apart as their widths
    return max(int(apart.max()), abs(first[1] - second[1]))


def _rungs(integers: Any, exact: int, width: int) -> Any:
    """The rung of each integer: rung t has the next ``width`` + t - 1 integers on each side."""
    distances = np.abs(integers - exact)
    farthest = int(distances.max())
    ends = list(takewhile(lambda end: end < farthest, accumulate(count(width), initial=0)))
    # the first rung that ends at a distance or beyond
    return np.searchsorted(np.array(ends), distances)


def _weights(leaves: Any) -> dict[int, int]:
    """The leaves of a group with their weights."""
    return dict(zip((int(leaf) for leaf in leaves[0]), map(int, leaves[1]), strict=True))


def _counts(exact: Any) -> dict[Any, int]:
    """The number of units of each key."""
    if isinstance(exact, tuple):
        counts, keys = exact
        return dict(zip(keys(np.arange(len(counts))), map(int, counts), strict=True))
    return dict(exact)


def _change_of_keys(one: Mapping[Any, int], other: Mapping[Any, int]) -> Any:
    """The difference of each key; one that is absent has 0."""
    keys = one.keys() | other.keys()
    return np.array([one.get(key, 0) - other.get(key, 0) for key in keys], dtype=object)
