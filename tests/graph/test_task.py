# SPDX-License-Identifier: Apache-2.0
"""Questions about graphs: what they cost, what names them, what is refused free, their answers."""

import itertools
import json
from fractions import Fraction

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import graph
from sfumato.accounting import account
from sfumato.errors import EngineFailed, InvalidDeclaration, InvalidNumber, SfumatoError, WrongUse
from sfumato.graph import ways
from sfumato.graph.task import GraphTask, graph_task
from sfumato.query.allowance import allowance
from tests.contracts.graphs import NAMES, declared

NODE = sf.Node("a", "b", of="people")
QUESTIONS = {
    "edges": (None, graph.Edges()),
    "degrees": (None, graph.Degrees()),
    "triangles": (None, graph.Triangles()),
    "edges of persons": (NODE, graph.Edges()),
    "edges of persons, a limit": (NODE, graph.Edges(max_degree=3)),
    "degrees of persons": (NODE, graph.Degrees()),
    "degrees of persons, a limit": (NODE, graph.Degrees(max_degree=3)),
}


def session(folder, unit=None, relation=sf.AddRemove):
    """A complete graph of five, and a table of people."""
    pairs = list(itertools.combinations(NAMES, 2))
    kinds = ["close" if "ann" in pair else "far" for pair in pairs]
    ties = pa.table(
        {"a": [a for a, _ in pairs], "b": [b for _, b in pairs], "kind": pa.array(kinds)}
    )
    tables = {
        "people": sf.Table(
            pa.table({"id": list(NAMES)}), unit=sf.Unit("id", max_rows_total=1, name="person")
        ),
        "ties": sf.Table(
            ties,
            unit=unit or sf.Edge("a", "b"),
            columns={"kind": sf.Category("close", "far")},
        ),
    }
    return sf.connect(
        tables,
        dataset="graph",
        budget=sf.Budget(10**6, "1e-6"),
        ledger=folder / "l.db",
        relation=relation,
    )


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_costs_what_was_stated_and_is_stored_once(tmp_path, name):
    unit, question = QUESTIONS[name]
    with session(tmp_path, unit) as opened:
        first, again = (graph.ask(opened, "ties", question, epsilon="0.5") for _ in range(2))
        assert (again.recalled, again.charge_id) == (True, first.charge_id)
        assert again.stored.body == first.stored.body
        assert opened.budget.spent == "0.5" == first.cost.epsilon
        assert graph.preview(opened, "ties", question, epsilon="0.5").cost == first.cost
        by_rho = graph.ask(opened, "ties", question, rho="0.25")
        assert Fraction(by_rho.cost.rho) <= Fraction("0.25") + Fraction(1, 10**11)
        assert Fraction(by_rho.cost.rho) > Fraction("0.2499")


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_replaced_one_costs_the_same_and_moves_twice_as_far(tmp_path, name):
    unit, question = QUESTIONS[name]
    events = []
    for relation in (sf.AddRemove, sf.ReplaceOne):
        dataset = declared(unit, relation)
        events.append(graph_task(dataset, "ties", question, allowance(epsilon=1)).event)
    assert [account(each).epsilon for each in events] == [1, 1]
    assert events[0] != events[1]


def test_an_ample_cost_gives_the_exact_numbers(tmp_path):
    with session(tmp_path) as opened:
        ask = {"epsilon": 10**3}
        edges = graph.ask(opened, "ties", graph.Edges(), **ask)
        assert (edges.value, edges.low, edges.high, edges.limit) == (10, 10, 10, None)
        close = graph.ask(opened, "ties", graph.Edges(), where="kind = 'close'", **ask)
        assert close.value == 4
        triangles = graph.ask(opened, "ties", graph.Triangles(), **ask)
        assert (triangles.value, triangles.low, triangles.high) == (10, 10, 10)
        degrees = graph.ask(opened, "ties", graph.Degrees(), **ask)
        assert degrees.sequence.tolist() == [4] * 5 and degrees.histogram == {4: 5}
        assert degrees.stars(2) == 30


def test_an_ample_cost_gives_the_exact_numbers_of_kept_edges(tmp_path):
    with session(tmp_path, NODE) as opened:
        for limit in (4, 100):
            edges = graph.ask(opened, "ties", graph.Edges(max_degree=limit), epsilon=10**3)
            assert (edges.value, edges.limit) == (10, limit)
        kept = graph.ask(opened, "ties", graph.Edges(max_degree=1), epsilon=10**3)
        assert kept.value == 2
        assert "says nothing of those that were not kept" in kept.notes[-1]
        chosen = graph.ask(opened, "ties", graph.Edges(), epsilon=10**3)
        # a limit below 4 would lose edges, and a higher one needs hardly more noise
        assert chosen.limit >= 4 and abs(chosen.value - 10) < 400
        degrees = graph.ask(opened, "ties", graph.Degrees(max_degree=6), epsilon=10**3)
        assert (degrees.histogram, degrees.limit) == ({4: 5}, 6)


def test_questions_about_graphs_that_differ_in_anything_have_different_forms():
    by_node = declared(NODE)
    price = allowance(epsilon=1)
    tasks = [
        graph_task(declared(), "ties", graph.Edges(), price),
        graph_task(declared(), "ties", graph.Degrees(), price),
        graph_task(declared(), "ties", graph.Triangles(), price),
        graph_task(declared(), "ties", graph.Edges(), allowance(epsilon=2)),
        graph_task(declared(), "ties", graph.Edges(), allowance(rho=1)),
        graph_task(declared(), "ties", graph.Edges(), price, "kind = 'far'"),
        graph_task(declared(), "ties", graph.Edges(), price, "kind = 'close'"),
        graph_task(declared(None, sf.ReplaceOne), "ties", graph.Edges(), price),
        graph_task(by_node, "ties", graph.Edges(), price),
        graph_task(by_node, "ties", graph.Edges(max_degree=64), price),
        graph_task(by_node, "ties", graph.Degrees(max_degree=64), price),
    ]
    assert len({task.form for task in tasks}) == len(tasks)


REFUSED = {
    "triangles of persons": (NODE, graph.Triangles(), {}),
    "a limit where an edge is the unit": (None, graph.Edges(max_degree=3), {}),
    "no question": (None, "edges", {}),
    "a unit of one end": (sf.Unit("a", max_rows_total=1), graph.Edges(), {}),
    "no cost": (None, graph.Edges(), {"epsilon": None}),
    "two costs": (None, graph.Edges(), {"rho": 1}),
    "a cost of nothing": (None, graph.Edges(), {"epsilon": 0}),
    "a condition on what is not declared": (None, graph.Edges(), {"where": "a = 'ann'"}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_answered_is_refused_free(tmp_path, name):
    unit, question, stated = REFUSED[name]
    with session(tmp_path, unit) as opened:
        for function in (graph.ask, graph.preview):
            with pytest.raises(SfumatoError) as refused:
                function(opened, "ties", question, **({"epsilon": 1} | stated))
            assert refused.value.exit_code in (1, 2)
        assert opened.budget.spent == "0"


def test_triangles_of_persons_name_the_unit_that_has_them(tmp_path):
    with session(tmp_path, NODE) as opened, pytest.raises(SfumatoError, match="one person") as no:
        graph.ask(opened, "ties", graph.Triangles(), epsilon=1)
    assert 'sf.Edge("a", "b")' in no.value.remedy
    (tmp_path / "x").mkdir()
    with session(tmp_path / "x", sf.Unit("a")) as opened, pytest.raises(InvalidDeclaration) as no:
        graph.ask(opened, "ties", graph.Edges(), epsilon=1)
    assert "sf.Edge" in no.value.allowed and "sf.Node" in no.value.allowed


def test_a_task_of_other_declarations_is_refused_free(tmp_path):
    task = graph_task(declared(NODE), "ties", graph.Edges(), allowance(epsilon=1))
    with session(tmp_path) as opened:
        with pytest.raises(WrongUse):
            opened.ask(task)
        assert opened.budget.spent == "0"


def test_a_task_that_measures_more_is_forfeited(tmp_path):
    class Greedy(GraphTask):
        def run(self, curator):
            super().run(curator)
            return super().run(curator)

    task = graph_task(declared(), "ties", graph.Edges(), allowance(epsilon=1))
    greedy = Greedy(task.dataset, task.table, task.plan, task.question, task.allowance)
    with session(tmp_path) as opened, pytest.raises(EngineFailed):
        opened.ask(greedy)


def test_a_limit_that_is_not_paid_is_noticed(tmp_path, monkeypatch):
    """T for free: the limit of the most edges, without a step of its own, is forfeited."""
    with session(tmp_path, NODE) as opened:
        event = ways.EdgesOfNodes.event.fget

        def free(way):
            return event(ways.EdgesOfNodes(way.plan, way.allowed, 4096))

        monkeypatch.setattr(ways.EdgesOfNodes, "event", property(free))
        with pytest.raises(EngineFailed):
            graph.ask(opened, "ties", graph.Edges(), epsilon=1)


def test_an_answer_shows_itself_and_hands_on_its_numbers(tmp_path):
    with session(tmp_path) as opened:
        edges = graph.ask(opened, "ties", graph.Edges(), epsilon=5)
        assert edges.to_arrow().column_names == ["value", "low", "high"]
        assert edges.plot().svg.startswith("<svg")
        assert repr(edges).startswith("edges: ")
        assert edges.to_json()["notes"] == list(edges.notes)
        degrees = graph.ask(opened, "ties", graph.Degrees(), epsilon=5)
        assert degrees.to_arrow().column_names == ["degree", "nodes"]
        assert degrees.plot().svg.startswith("<svg")
        assert "degree" in repr(degrees)
        shown = str(graph.preview(opened, "ties", graph.Triangles(), epsilon=1))
        assert shown.startswith("Cost: epsilon = 1.") and "share more than 100" in shown
        json.dumps(graph.preview(opened, "ties", graph.Edges(), rho=1).to_json())
        for wrong in (0, -1, 1.5):
            with pytest.raises(InvalidNumber, match="star"):
                degrees.stars(wrong)
