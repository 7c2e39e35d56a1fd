# SPDX-License-Identifier: Apache-2.0
"""Runs a task over two made-up worlds at once, and compares how far its exact integers move.

A ``Witness`` has the methods of ``Curator``. Each released value is drawn once, for both worlds, so
the task takes the same course on both, whatever it chooses next; at each step the exact integers of
the worlds are compared with the distance that the statistic claims. For made-up rows alone: it
shows exact integers. No session reaches this module, and the guarantee does not rest on it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

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
from sfumato.query.price import Price
from sfumato.query.release import Asked, SqlTask
from sfumato.query.series import Series, places_of
from sfumato.query.statistic import Opened, Reads
from sfumato.query.task import Task
from sfumato.sql.lower import understand

# Both worlds sample the rows of a unit by this key.
_KEY = "witness"
# Later pieces of a series are of the same kind.
_MOST_PIECES = 20
_BUDGET = Budget(10**6, Fraction(1, 100))


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


class Witness:
    """Answers the calls of a task over two worlds, and records a ``Step`` for each comparison.

    A secret sample is taken whole, so its steps are compared on all units. Steps of streams,
    cycles, ladders and shares are refused: they are not compared.

    Guarantees:
        a witness compares every release with its claim
    """

    charge = "witness"

    def __init__(self, one: Opened, other: Opened) -> None:
        self._worlds = one, other
        self.steps: list[Step] = []

    def measure(self, statistic: Any, mechanism: Any, *, of: object = None) -> Any:
        """Adds noise to the integers of the first world, and compares both."""
        claim = statistic.distance(mechanism.norm)
        exact = statistic.exact(self._worlds[0])
        change = _change(exact, statistic.exact(self._worlds[1]))
        self._note("measure", claim, _moved(change, claim.norm))
        if isinstance(exact, np.ndarray):
            return mechanism.release_many(exact, None)
        return mechanism.release(exact)

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

    def share(self, *arguments: object) -> NoReturn:
        """Refused: shares of noise are not compared."""
        raise _not_compared("a share")

    def ladder(self, *arguments: object) -> NoReturn:
        """Refused: rungs are not compared."""
        raise _not_compared("a ladder")

    def tick(self, *arguments: object) -> NoReturn:
        """Refused: streams are not compared."""
        raise _not_compared("a stream")

    def turn(self, *arguments: object) -> NoReturn:
        """Refused: cycles are not compared."""
        raise _not_compared("a cycle")

    def row(self, *arguments: object) -> NoReturn:
        """Refused: cycles are not compared."""
        raise _not_compared("a cycle")

    def end(self) -> str:
        """Returns an empty string: nothing is forfeited."""
        return ""

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
            return self._run(task, dataset)[0]
        series: Any = task
        steps: list[Step] = []
        earlier: dict[int, bytes] = {}
        for place in range(1, min(places_of(series.event), _MOST_PIECES) + 1):
            compared, earlier[place] = self._run(series.piece(place, earlier), dataset)
            steps.extend(compared)
        return steps

    def _run(self, task: Any, dataset: Dataset) -> tuple[list[Step], bytes]:
        one, other = (_open(task, dataset, engine) for engine in self.engines)
        with one, other:
            witness = Witness(one, other)
            body = task.run(witness)
        return witness.steps, body

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
    return InvalidDeclaration(f"A witness of {what}.", allowed="sums, selections, thresholds")


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
