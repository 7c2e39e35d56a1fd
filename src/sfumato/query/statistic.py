# SPDX-License-Identifier: Apache-2.0
"""Bounded statistics: exact integers of private data with a proved distance between neighbours.

A task passes them to the curator. Only a statistic needs a privacy proof; post-processing of its
noisy integers needs none. Each file with a statistic has a proof note, a test on neighbours, and a
broken version that the test detects.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from enum import Enum
from types import MappingProxyType
from typing import Any, ClassVar, Generic, NoReturn, TypeAlias, TypeVar

import numpy as np

from sfumato.engines.base import Codes, Exact, Marginals
from sfumato.engines.base import Graph as Graph
from sfumato.engines.base import RowTokens as RowTokens
from sfumato.engines.base import UnitRows as UnitRows
from sfumato.errors import InvalidDeclaration
from sfumato.exact.values import copied, is_ours, is_same
from sfumato.mechanisms.sampling import chosen_units
from sfumato.noise import Integers
from sfumato.noise.uniform import below_many
from sfumato.plan.cube import BoundedCube
from sfumato.plan.graph import BoundedGraph
from sfumato.plan.levels import Levels
from sfumato.plan.open_cube import OpenCube
from sfumato.plan.open_rows import OpenRows
from sfumato.plan.rows import BoundedRows
from sfumato.plan.stages import Bounded
from sfumato.privacy.distance import Distance, Norm
from sfumato.privacy.event import Design

D = TypeVar("D")
S = TypeVar("S")
E = TypeVar("E", covariant=True)
# The exact number of units of each key; or an array of them, and what returns the keys at places
# of it.
Counts: TypeAlias = Mapping[Codes, int] | tuple[Integers, Callable[[Integers], Sequence[Codes]]]
# The rows of units, as the statistics of rooms above know them.
Rows: TypeAlias = UnitRows
# The plans for which the data can be opened.
Plan: TypeAlias = Bounded | Levels | BoundedCube | BoundedRows | BoundedGraph | OpenCube | OpenRows
# How the questions of a plan are read, and how a cube is opened, and rows are.
Reads: TypeAlias = Mapping[Bounded, Callable[[], Exact]]
Opener: TypeAlias = Callable[[BoundedCube], AbstractContextManager[Marginals]]
Lister: TypeAlias = Callable[[BoundedRows], AbstractContextManager[UnitRows]]
_NO_READS: Reads = MappingProxyType({})

# The most cells of marginals that are kept while a charge is open (128 MB), one of any size aside.
MOST_KEPT = 2**24


class NoPlan(Enum):
    """The plan of a task that reads no data, because its units send noisy reports (telemetry)."""

    NO_PLAN = "no plan"


NO_PLAN = NoPlan.NO_PLAN


class Opened:
    """The private data of one charge, opened for one bounded plan; statistics read it in ``exact``.

    It is passed only to the ``exact`` method of statistics. What can be read depends on the plan:

    * ``NO_PLAN``: nothing.
    * A question, cube, list of rows or graph: that one (``read``, ``cube``, ``rows``, ``graph``).
    * ``Levels``, ``OpenCube``, ``OpenRows``: their questions (``reads``). An ``OpenCube`` also the
      cubes that it admits (``cubes``), ``OpenRows`` the rows that they admit (``listed``).

    ``given`` is the plan object of the task, of which ``plan`` is a copy.

    Guarantees:
        only the plan that was opened is read
        a statistic of sfumato is copied with the plan that was opened
    """

    __slots__ = (
        "_accepted",
        "_cells",
        "_counted",
        "_cube",
        "_cubes",
        "_exact",
        "_free",
        "_given",
        "_graph",
        "_kept",
        "_left",
        "_listed",
        "_marginals",
        "_plan",
        "_read",
        "_reads",
        "_rows",
        "_units",
    )

    def __init__(
        self,
        plan: Plan | NoPlan,
        read: Callable[[], Exact] | None = None,
        *,
        cube: AbstractContextManager[Marginals] | None = None,
        rows: AbstractContextManager[UnitRows] | None = None,
        reads: Reads = _NO_READS,
        cubes: Opener | None = None,
        listed: Lister | None = None,
        graph: Callable[[], Graph] | None = None,
        given: Plan | NoPlan | None = None,
    ) -> None:
        self._plan = plan
        # the one last found to be the plan that is open, and the one of the task
        self._accepted: object = plan
        self._given = given or plan
        self._read = read
        self._cube = cube
        self._rows = rows
        self._reads = dict(reads)
        self._cubes = cubes
        self._listed = listed
        self._graph = graph
        self._left = ExitStack()
        self._exact: Exact | None = None
        self._marginals: Marginals | None = None
        self._counted: BoundedCube | BoundedRows | None = None
        self._cells: dict[tuple[str, ...], Integers] = {}
        self._free = MOST_KEPT
        self._units: UnitRows | None = None
        self._kept: dict[Hashable, Any] = {}

    def own(self, value: S) -> S:
        """Returns a copy of a statistic, cycle or ticks of sfumato, with the plan that is open.

        The copy protects against a task that changes it. A statistic of an outside class is
        returned as it is: its own proof has to cover that.

        Raises:
            InvalidDeclaration: a part of it is not of an exact type, or its class refuses it.
        """
        if not is_ours(type(value)):
            return value
        return copied(value, {id(self._given): self._plan})

    def integers(self, plan: Bounded) -> Exact:
        """Returns the exact integers of each aggregate of a plan; the data is read once.

        Raises:
            InvalidDeclaration: the question is neither the plan that was opened nor one of its
                questions.
        """
        if isinstance(self._plan, Levels | OpenCube | OpenRows):
            return self._question(self._plan, plan)
        self._require(plan)
        if self._exact is None:
            if self._read is None:
                raise InvalidDeclaration("No question is open.")
            self._exact = self._read()
        return self._exact

    def marginal(self, plan: BoundedCube, clique: Sequence[str]) -> Integers:
        """Returns the exact counts by some axes of a cube, as a read-only array.

        Raises:
            InvalidDeclaration: the cube is neither the plan that was opened nor admitted by it.
        """
        if isinstance(self._plan, OpenCube):
            self._turn_to(self._plan, plan)
        else:
            self._require(plan)
        if self._marginals is None:
            if self._cube is None:
                raise InvalidDeclaration("No cube is open.")
            self._marginals = self._left.enter_context(self._cube)
        # many steps of a task may read the same marginal
        marginal_cells = self._cells.get(tuple(clique))
        if marginal_cells is None:
            (marginal_cells,) = self._marginals.marginals([clique])
            marginal_cells.setflags(write=False)
            if marginal_cells.size > self._free:
                self._cells, self._free = {}, MOST_KEPT
            self._cells[tuple(clique)] = marginal_cells
            self._free -= marginal_cells.size
        return marginal_cells

    def unit_rows(self, plan: BoundedRows) -> UnitRows:
        """Returns the rows of all units, or of a sample's units if one is being measured.

        Raises:
            InvalidDeclaration: the plan is neither the one that was opened nor admitted by it.
        """
        if isinstance(self._plan, OpenRows):
            self._turn_to_rows(self._plan, plan)
        else:
            self._require(plan)
        if self._units is None:
            if self._rows is None:
                raise InvalidDeclaration("No rows are open.")
            self._units = self._left.enter_context(self._rows)
        return self._units

    def derived(self, plan: BoundedRows, key: Hashable, compute: Callable[[UnitRows], D]) -> D:
        """Returns ``compute(rows)`` for the rows of a plan, cached under ``key`` while the rows are
        open.

        Raises:
            InvalidDeclaration: the plan is neither the one that was opened nor admitted by it.
        """
        rows = self.unit_rows(plan)
        if key not in self._kept:
            self._kept[key] = compute(rows)
        kept: D = self._kept[key]
        return kept

    def edges(self, plan: BoundedGraph) -> Graph:
        """Returns the edges of a graph; the data is read once.

        Raises:
            InvalidDeclaration: the plan is not the one that was opened.
        """
        return self.of_graph(plan, None, lambda graph: graph)

    def of_graph(self, plan: BoundedGraph, key: Hashable, compute: Callable[[Graph], D]) -> D:
        """Returns ``compute(graph)`` for the graph of a plan, cached under ``key`` while the graph
        is open.

        Raises:
            InvalidDeclaration: the plan is not the one that was opened.
        """
        self._require(plan)
        if self._graph is None:
            raise InvalidDeclaration("No graph is open.")
        if None not in self._kept:
            self._kept[None] = self._graph()
        if key not in self._kept:
            self._kept[key] = compute(self._kept[None])
        kept: D = self._kept[key]
        return kept

    def sample(self, design: Design) -> "Opened":
        """Draws a secret random sample of the units, and returns its rows, opened.

        Raises:
            InvalidDeclaration: no rows are open, or the design is for another neighbour relation.
        """
        plan = self._plan
        if not isinstance(plan, BoundedRows) or plan.neighbours is not design.relation:
            raise InvalidDeclaration(
                f"{type(design).__name__} of what was opened.",
                allowed="rows; PoissonSample under add/remove, FixedSample under replace-one",
            )
        whole = self.unit_rows(plan)
        drawn = Opened(plan)
        drawn._units = whole.of(chosen_units(design, whole.units))
        return drawn

    def batches(self, count: int) -> "Callable[[int], Opened]":
        """Returns a function that opens the data of a batch by its number, of ``count`` random
        batches.

        Each unit is put into one batch, by an independent uniform draw, and stays there.

        Raises:
            InvalidDeclaration: no rows are open.
        """
        plan = self._plan
        if not isinstance(plan, BoundedRows):
            raise InvalidDeclaration("Batches of what has no units.", allowed="rows")
        whole = self.unit_rows(plan)
        batch_of = below_many(count, whole.units)

        def batch(number: int) -> Opened:
            found = Opened(plan)
            found._units = whole.of(np.flatnonzero(batch_of == number))
            return found

        return batch

    def _question(self, whole: Levels | OpenCube | OpenRows, plan: Bounded) -> Exact:
        """The exact integers of one question of a plan with several; the data is read once."""
        for own in whole.questions:
            if plan is own or is_same(plan, own):
                read: Exact | None = self._kept.get(own)
                if read is None:
                    read = self._kept[own] = self._reads[own]()
                return read
        raise InvalidDeclaration("A question that the opened plan does not have.")

    def _turn_to(self, whole: OpenCube, cube: BoundedCube) -> None:
        """Opens a cube that the open cube admits, and closes the one before it."""
        if cube is self._accepted:
            return
        own = copied(cube)
        if self._cubes is None or not whole.admits(own):
            raise InvalidDeclaration("A cube of other rows, or with other bounds.")
        self._accepted = cube
        if own == self._counted:
            return
        self._left.close()
        self._marginals, self._cells, self._free = None, {}, MOST_KEPT
        self._counted, self._cube = own, self._cubes(own)

    def _turn_to_rows(self, whole: OpenRows, rows: BoundedRows) -> None:
        """Opens rows that the open rows admit, and closes the ones before them."""
        if rows is self._accepted:
            return
        own = copied(rows)
        if self._listed is None or not whole.admits(own):
            raise InvalidDeclaration("Other rows, or rows with other bounds.")
        self._accepted = rows
        if own == self._counted:
            return
        self._left.close()
        # nothing that was computed of other values is kept
        self._units, self._kept = None, {}
        self._counted, self._rows = own, self._listed(own)

    def _require(self, plan: Plan) -> None:
        """Raises InvalidDeclaration unless the plan is the one that was opened."""
        if plan is self._plan or plan is self._accepted:
            return
        if not is_same(plan, self._plan):
            raise InvalidDeclaration(
                "A statistic of another plan.", allowed="the plan that the task opened"
            )
        self._accepted = plan

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        self._exact = self._marginals = self._read = self._cube = self._rows = self._units = None
        self._graph = None
        self._reads, self._cubes, self._listed = {}, None, None
        self._kept, self._cells = {}, {}
        self._left.close()

    def __repr__(self) -> str:
        return "Opened()"

    def __reduce__(self) -> NoReturn:
        raise TypeError("exact integers are not pickled")


class BoundedStatistic(ABC, Generic[E]):
    """An exact integer-valued query of private data with a proved sensitivity, which a mechanism
    releases.

    If ``is_monotone``, all integers change in the same direction between neighbours; this needs a
    proof like the distance.
    """

    is_monotone: ClassVar[bool] = False

    @abstractmethod
    def distance(self, norm: Norm) -> Distance:
        """Returns the sensitivity of the integers in a norm, from declarations alone.

        Raises:
            InvalidDeclaration: nothing is proved in this norm.
        """

    @abstractmethod
    def exact(self, opened: Opened) -> E:
        """Returns the integers without noise. Only a curator calls this."""


class UnitsByKey(BoundedStatistic[Counts]):
    """A statistic that counts the distinct units of each key, for a threshold; keys need not be
    public.

    ``exact`` counts a unit at most once in a key, and in ``groups`` keys at most: so each count
    moves by at most one between neighbours. Keys are told apart by what they are, and are released
    as they are.
    """

    @property
    @abstractmethod
    def groups(self) -> int:
        """The largest number of keys in which one unit is counted."""


class GroupedScores(BoundedStatistic[list[Integers]]):
    """A statistic of exact scores of candidates in several groups, from each of which one is
    selected privately.

    ``distance`` bounds a sum over groups: choose any one candidate in each group and add up their
    scores; between neighbours this sum changes by at most the distance.
    """


class LadderStatistic(BoundedStatistic[tuple[int, int]]):
    """A statistic for the ladder mechanism: an integer, and its width, a bound on its local
    sensitivity.

    Nothing is proved of the two in any norm: they are released by a ladder alone.
    """

    def distance(self, norm: Norm) -> Distance:
        """Raises InvalidDeclaration, since the integers themselves have no bounded sensitivity."""
        raise InvalidDeclaration(
            f"A ladder in {norm.value}.", allowed="its release by the ladder mechanism"
        )

    @abstractmethod
    def rung_distance(self) -> Distance:
        """Returns the sensitivity of each integer's rung: by how many rungs it differs between
        neighbours (Linf).
        """
