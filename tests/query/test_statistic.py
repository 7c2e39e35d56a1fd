# SPDX-License-Identifier: Apache-2.0
"""What is opened: read once, for one plan, and kept to itself."""

import copy
import pickle
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from fractions import Fraction

import pytest

from sfumato.engines.base import Exact, Graph, Marginals
from sfumato.engines.reference import Reference
from sfumato.errors import InvalidDeclaration
from sfumato.exact.values import copied
from sfumato.plan.cube import BoundedCube
from sfumato.plan.open_cube import OpenCube
from sfumato.plan.stages import Bounded
from sfumato.query.cells import Cells
from sfumato.query.statistic import BoundedStatistic, Opened
from tests.contracts.graphs import EDGE, NODE, numbered
from tests.contracts.tasks import cells, plan_of
from tests.synthetic.tiny import cube

EXACT = ({(0,): (8_675_309,), (1,): (1,)},)


def test_only_the_plan_that_was_opened_is_read() -> None:
    plan, reads = plan_of(), []
    opened = Opened(plan, lambda: reads.append(1) or EXACT)
    with pytest.raises(InvalidDeclaration):
        opened.integers(plan_of("SELECT sex, SUM(age) AS n FROM people GROUP BY sex"))
    assert reads == []
    assert opened.integers(plan) is opened.integers(plan_of()) is EXACT
    assert reads == [1]


def test_a_statistic_of_sfumato_is_copied_with_the_plan_that_was_opened() -> None:
    given = plan_of()
    plan = copied(given)
    opened = Opened(plan, lambda: EXACT, given=given)
    statistic = cells(given)
    own = opened.own(statistic)
    assert own == statistic and own is not statistic and own.plan is plan
    # one that was made for an equal plan is read, too
    assert opened.own(cells(plan_of())).exact(opened) == [8_675_309, 1]

    class Wider(Cells):
        """The statistic of a task."""

    outside = Wider(given, 0, statistic.groups)
    assert opened.own(outside) is outside and outside.exact(opened) == [8_675_309, 1]
    plan_of_a_lie = object.__new__(type("Lie", (Bounded,), {"__eq__": lambda self, other: True}))
    with pytest.raises(InvalidDeclaration):
        opened.integers(plan_of_a_lie)


def test_what_is_opened_shows_and_hands_on_nothing() -> None:
    opened = Opened(plan_of(), lambda: EXACT)
    opened.integers(plan_of())
    assert "8675309" not in repr(opened)
    for hand_on in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            hand_on(opened)


def test_a_statistic_says_its_distance_and_its_integers() -> None:
    class Silent(BoundedStatistic[list[int]]):
        def exact(self, opened: Opened) -> list[int]:
            return []

    with pytest.raises(TypeError):
        Silent()


def open_cube() -> tuple[OpenCube, Opened, list[str]]:
    """An open cube of a tiny table with one question; what is opened is noted down."""
    noted: list[str] = []
    plan = OpenCube(cube(), (plan_of(),))
    rows = {"t": [{"who": "a", "v": 1, "s": "F"}, {"who": "b", "v": 2, "s": "M"}]}

    def opener(one: BoundedCube) -> AbstractContextManager[Marginals]:
        noted.append(f"cube of {len(one.cube.axes)}")
        return Reference(rows).cube(one)

    def read() -> Exact:
        noted.append("question")
        return EXACT

    return plan, Opened(plan, reads={plan_of(): read}, cubes=opener), noted


def fewer_axes(one: BoundedCube) -> BoundedCube:
    return replace(one, cube=replace(one.cube, axes=one.cube.axes[:1]))


def test_an_open_cube_is_counted_by_one_choice_of_axes_after_the_other() -> None:
    plan, opened, noted = open_cube()
    with opened:
        assert opened.integers(plan_of()) is opened.integers(plan_of()) is EXACT
        one = plan.cube.refinement
        assert opened.marginal(plan.cube, ["v", "s"]).sum() == 2 * one
        assert opened.marginal(plan.cube, ["s"]).tolist() == [one, one, 0]
        # the same axis of another cube is counted anew
        assert opened.marginal(fewer_axes(plan.cube), ["v"]).tolist() == [0, one, one, 0]
    assert noted == ["question", "cube of 2", "cube of 1"]
    with pytest.raises(InvalidDeclaration):
        opened.marginal(plan.cube, ["v"])


def read_otherwise(opened: Opened, plan: OpenCube) -> int:
    """How often an open cube gives what its plan does not have."""
    other = plan_of("SELECT sex, SUM(age) AS n FROM people GROUP BY sex")
    near = replace(plan.cube, l1=replace(plan.cube.l1, value=Fraction(1)))
    given = 0
    for ask in (
        lambda: opened.integers(other),
        lambda: opened.marginal(near, ["v"]),
        lambda: opened.marginal(replace(plan.cube, most=9), ["v"]),
    ):
        with suppress(InvalidDeclaration, KeyError):
            ask()
            given += 1
    return given


def test_nothing_but_what_an_open_cube_admits_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant admits any cube."""
    plan, opened, noted = open_cube()
    assert read_otherwise(opened, plan) == 0 and noted == []
    monkeypatch.setattr(OpenCube, "admits", lambda _self, _cube: True)
    assert read_otherwise(opened, plan) == 2


def test_only_the_graph_that_was_opened_is_read_and_only_once() -> None:
    reads: list[int] = []

    def read() -> Graph:
        reads.append(1)
        return numbered([(0, 1), (1, 2)])

    opened = Opened(EDGE, graph=read)
    with opened:
        assert len(opened.edges(EDGE).pairs) == len(opened.edges(EDGE).pairs) == 2
        assert opened.of_graph(EDGE, "nodes", lambda graph: graph.nodes) == 3
        assert opened.of_graph(EDGE, "nodes", lambda graph: -1) == 3
        assert reads == [1]
        with pytest.raises(InvalidDeclaration, match="another plan"):
            opened.edges(NODE)
    with pytest.raises(InvalidDeclaration, match="No graph"):
        opened.edges(EDGE)
    with pytest.raises(InvalidDeclaration, match="No graph"):
        Opened(EDGE).edges(EDGE)
