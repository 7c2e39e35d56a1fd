# SPDX-License-Identifier: Apache-2.0
"""Synthetic graphs have the released degrees and triangles, and are the same for the same answer."""

import itertools
import sys
import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

import sfumato as sf
from sfumato import graph
from sfumato.errors import SfumatoError, WrongUse
from sfumato.graph.synthesis import drawn_graph
from sfumato.graph.task import graph_task
from sfumato.query.allowance import allowance
from sfumato.query.task import Stored
from tests.contracts.graphs import declared
from tests.graph.test_task import NODE, session

COST = {"epsilon": "1", "rho": "0.5", "delta": "0", "items": []}


def drawn(degrees, triangles, seed=1):
    facts = {
        "degrees": degrees,
        "triangles": triangles,
        "drawn_from": seed,
        "charge_id": "c" * 32,
        "cost": COST,
        "protected": ["Protected: x."],
    }
    return drawn_graph(facts, Stored(b"", "c" * 32))


def numbers(made):
    """Degrees in falling order, and triangles, of the pairs themselves."""
    around = {}
    for first, second in made.pairs.tolist():
        around.setdefault(first, set()).add(second)
        around.setdefault(second, set()).add(first)
    shared = [len(around[a] & around[b]) for a, b in made.pairs.tolist()]
    return sorted(map(len, around.values()), reverse=True), sum(shared) // 3


@pytest.mark.parametrize("triangles", [0, 200, 500])
def test_a_graph_has_about_the_released_degrees_and_triangles(triangles):
    made = drawn([[2, 40], [3, 40], [6, 100]], triangles)
    degrees, counted = numbers(made)
    assert len(made.pairs) == pytest.approx(400, abs=15)
    assert np.abs(np.array(degrees) - made.sequence[: len(degrees)]).mean() < 0.3
    assert counted == pytest.approx(triangles, abs=40)
    assert len({tuple(sorted(pair)) for pair in made.pairs.tolist()}) == len(made.pairs)
    assert all(first != second for first, second in made.pairs.tolist())


def test_the_same_answer_gives_the_same_graph_and_another_number_another():
    first, again, other = (drawn([[3, 50]], 20, seed) for seed in (1, 1, 2))
    assert first.pairs.tolist() == again.pairs.tolist() != other.pairs.tolist()


def test_extreme_degrees_are_drawn():
    for degrees in ([], [[1, 1]], [[1, 2]], [[5, 1]], [[49, 50]], [[1, 300], [300, 1]]):
        made = drawn(degrees, 10**9)
        assert made.pairs.shape[1] == 2
        assert made.nodes == sum(nodes for _, nodes in degrees)
    with pytest.raises(WrongUse, match="edges"):
        drawn([[10**6, 10**6]], 0)


def test_a_synthetic_graph_is_paid_once_and_stored(tmp_path):
    with session(tmp_path) as opened:
        first, again = (graph.synthesize(opened, "ties", epsilon=400) for _ in range(2))
        assert opened.budget.spent == "400" == first.cost.epsilon
        assert (again.recalled, again.pairs.tolist()) == (True, first.pairs.tolist())
        assert first.histogram == {4: 5} and first.triangles == 10
        assert sorted(map(sorted, first.pairs.tolist())) == sorted(
            map(list, itertools.combinations(range(5), 2))
        )
        by_rho = graph.synthesize(opened, "ties", rho=4, where="kind = 'close'")
        assert by_rho.cost.rho.startswith(("4", "3.99"))
        assert repr(first).startswith("synthetic graph: 5 nodes, 10 edges, 10 triangles")


def test_a_person_as_the_unit_has_no_synthetic_graph(tmp_path):
    with session(tmp_path, NODE) as opened:
        with pytest.raises(SfumatoError, match="one person"):
            graph.synthesize(opened, "ties", epsilon=1)
        assert opened.budget.spent == "0"


def test_synthetic_graphs_that_differ_in_anything_have_different_forms():
    price = allowance(epsilon=1)
    forms = {
        graph_task(declared(), "ties", question, cost, where).form
        for question in (graph.Shape(), graph.Degrees(), graph.Triangles())
        for cost in (price, allowance(rho=1))
        for where in (None, "kind = 'far'")
    }
    assert len(forms) == 12


def test_files_hold_the_edges_and_say_that_they_are_synthetic(tmp_path):
    made = drawn([[2, 3], [4, 6]], 9)
    expected = sorted(map(sorted, made.pairs.tolist()))
    made.save(tmp_path / "g.csv")
    table = pyarrow.csv.read_csv(tmp_path / "g.csv")
    assert sorted(map(sorted, zip(*table.to_pydict().values(), strict=True))) == expected
    made.save(tmp_path / "g.parquet")
    stored = pyarrow.parquet.read_table(tmp_path / "g.parquet")
    assert stored.equals(made.to_arrow()) and stored.schema.metadata[b"synthetic"] == b"true"
    made.save(tmp_path / "g.graphml")
    assert "synthetic" in (tmp_path / "g.graphml").read_text()
    graphs = "{http://graphml.graphdrawing.org/xmlns}"
    (whole,) = ElementTree.parse(tmp_path / "g.graphml").getroot()
    edges = [
        (int(each.get("source")), int(each.get("target"))) for each in whole.iter(f"{graphs}edge")
    ]
    assert sorted(map(sorted, edges)) == expected
    assert len(list(whole.iter(f"{graphs}node"))) == 9
    with pytest.raises(WrongUse, match="graphml"):
        made.save(tmp_path / "g.txt")


class Drawn:
    """A graph of networkx, as far as it is used."""

    def __init__(self, **facts):
        self.facts, self.nodes, self.edges = facts, [], []

    def add_nodes_from(self, nodes):
        self.nodes += nodes

    def add_edges_from(self, edges):
        self.edges += edges


def test_a_graph_of_networkx_has_the_same_edges(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", SimpleNamespace(Graph=Drawn))
    made = drawn([[2, 3], [4, 6]], 9)
    other = made.to_networkx()
    assert (other.edges, other.nodes) == (made.pairs.tolist(), [*range(9)])
    assert other.facts == {"synthetic": True, "charge": "c" * 32}


def test_networkx_is_named_if_it_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(WrongUse, match="networkx"):
        drawn([[2, 3]], 1).to_networkx()
    assert sf.graph.SyntheticGraph
