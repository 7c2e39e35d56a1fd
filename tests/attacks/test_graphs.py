# SPDX-License-Identifier: Apache-2.0
"""Graphs: every other door refuses a table of two units; what one hub shows; the order of rows."""

import itertools
import math
import random

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import graph, learning, mining, synopsis, synthetic
from sfumato.engines.duckdb import DuckDB
from sfumato.errors import SfumatoError, UnsupportedSql
from sfumato.graph.edge_count import EdgeCount
from sfumato.graph.kept_edges import KeptEdges, keep
from sfumato.graph.triangles import TriangleLadder
from sfumato.graph.ways import way_of
from sfumato.mechanisms.additive import laplace
from sfumato.mechanisms.selection import exponential
from sfumato.metadata.column import Column
from sfumato.plan.owner import Owner, owner_of
from sfumato.plan.relation import Scan
from sfumato.plan.rows import RowList
from sfumato.plan.value import Value
from sfumato.privacy.distance import Norm
from sfumato.query import claims
from sfumato.query.allowance import allowance
from sfumato.query.curator import Curator
from sfumato.query.pipeline import compile_rows
from sfumato.query.reserved import Reserved
from sfumato.query.unit_sums import UnitSums
from sfumato.testing import assert_at_most
from tests.contracts.graphs import EDGE, NODE, declared, numbered, opened
from tests.graph.test_task import session

BY_NODE = sf.Node("a", "b", of="people")
SQL = [
    "SELECT COUNT(*) FROM ties",
    "SELECT kind, COUNT(*) FROM ties GROUP BY kind",
    "SELECT COUNT(*) FROM people WHERE id IN (SELECT a FROM ties)",
    "SELECT COUNT(*) FROM people WHERE EXISTS (SELECT 1 FROM ties WHERE ties.a = people.id)",
    "SELECT COUNT(*) FROM people JOIN ties ON ties.a = people.id",
    "SELECT COUNT(*) FROM (SELECT a, COUNT(*) AS n FROM ties GROUP BY a) AS t",
    "WITH t AS (SELECT * FROM ties) SELECT COUNT(*) FROM t",
]


def rows_of(dataset):
    """A list of rows that claims that each is its own unit."""
    column = Column("kind", dataset.tables["ties"].columns["kind"])
    scan = Scan("ties", columns=(column,))
    return compile_rows(RowList(scan, (Value.of(column),)), dataset)


# What asks a table, by the name of the door.
DOORS = {
    **{statement: lambda s, text=statement: s.query(text, epsilon=1) for statement in SQL},
    "preview": lambda s: s.preview(SQL[0], epsilon=1),
    "data frame": lambda s: s.table("ties").agg(n=sf.count()).query(epsilon=1),
    "marginals": lambda s: s.marginals("ties", [("kind",)], epsilon=1),
    "synthetic rows": lambda s: synthetic.fit(s, "ties", epsilon=1),
    "synopsis": lambda s: synopsis.measure(s, "ties", synopsis.cells("kind"), epsilon=1),
    "learning": lambda s: learning.fit(
        s, learning.DecisionTree(depth=1), "SELECT kind FROM ties", label="kind", epsilon=1
    ),
    "mining": lambda s: mining.mine(s, mining.Itemsets(), "SELECT kind FROM ties", epsilon=1),
    "rows": lambda s: rows_of(s.dataset),
    "owner": lambda s: owner_of(s.dataset, "ties"),
}


@pytest.mark.parametrize("door", DOORS)
def test_every_other_door_refuses_a_table_of_two_units_before_the_charge(tmp_path, door):
    with session(tmp_path, BY_NODE) as opened:
        with pytest.raises(SfumatoError) as refused:
            DOORS[door](opened)
        assert "each row is about two units" in refused.value.problem
        assert "graph.ask" in refused.value.allowed
        assert opened.budget.spent == "0"


def test_no_layout_is_prepared_of_a_table_of_two_units(tmp_path):
    (tmp_path / "ties.csv").write_text("a,b\nx,y\n")
    (tmp_path / "people.csv").write_text("id\nx\n")
    tables = {
        "ties": sf.Table(tmp_path / "ties.csv", unit=BY_NODE),
        "people": sf.Table(tmp_path / "people.csv", unit=sf.Unit("id", max_rows_total=1)),
    }
    folder = sf.prepare(tables, dataset="graph", folder=tmp_path / "layout")
    assert [path.name.split("-")[1] for path in folder.glob("*.parquet")] == ["people"]
    with pytest.raises(UnsupportedSql, match="two units"):
        alone = {**tables, "people": sf.Table(pa.table({"id": ["x"]}), unit=sf.Unit("id"))}
        sf.prepare(alone, dataset="graph", folder=tmp_path / "other")


def test_a_plan_of_rows_that_are_their_own_units_is_no_way_round():
    dataset = declared(BY_NODE)
    column = Column("kind", dataset.tables["ties"].columns["kind"])
    for owner in (None, Owner(("a",)), Owner(("a", "b"), unordered=True)):
        scan = Scan("ties", columns=(column,), owner=owner)
        with pytest.raises((SfumatoError, TypeError)):
            compile_rows(RowList(scan, (Value.of(column),)), dataset)
    with pytest.raises((SfumatoError, AttributeError, TypeError)):
        UnitSums(NODE, 1, Norm.L1)
    assert not claims._is_proved(EDGE, dataset)


def test_triangles_are_released_by_a_ladder_alone(tmp_path):
    """Their integers are no scores and no counts: each call but the ladder asks a distance."""
    statistic = TriangleLadder(EDGE)
    one = statistic.rung_distance()
    selection = exponential(one, 1)
    data = opened(EDGE, numbered(itertools.combinations(range(5), 2)))
    for call in ("select", "measure", "ladder"):
        curator = Curator("charge", Reserved(selection.event(one)), data)
        mechanism = selection
        if call == "measure":
            mechanism = laplace(EdgeCount(EDGE).distance(Norm.L1), 1)
        with pytest.raises(SfumatoError):
            getattr(curator, call)(statistic, mechanism)
        assert curator.end() == "engine"


def hub_graph():
    """A hub of 1,458 edges, and its neighbours tied in a cycle: as in a graph of routers."""
    ring = [(at, at % 1458 + 1) for at in range(1, 1459)]
    return [(0, leaf) for leaf in range(1, 1459)] + ring, ring


def guesses(plan, question, runs):
    """How often the number of edges at epsilon 1 tells whether the hub is there."""
    whole, without = hub_graph()
    way = way_of(plan, question, allowance(epsilon=1))
    exact = {}
    for there, edges in ((True, whole), (False, without)):
        data = opened(plan, numbered(edges, 1459 if there else 1458))
        if plan.nodes is None:
            exact[there], noise = EdgeCount(plan).exact(data), way.noise
        else:
            statistic = KeptEdges(plan, question.max_degree, question.max_degree)
            exact[there], noise = statistic.exact(data), way._noise
    middle = (exact[True][0] + exact[False][0]) / 2
    right = 0
    for there in [True, False] * (runs // 2):
        (released,) = noise.release(exact[there])
        right += (released > middle) is there
    return right


def test_an_edge_hides_no_hub_and_a_node_does():
    """At epsilon 1 nobody tells whether somebody is there in more than e/(1 + e) = 73.2%."""
    runs = 1000
    assert guesses(EDGE, graph.Edges(), runs) >= 0.99 * runs
    right = guesses(NODE, graph.Edges(max_degree=1458), runs)
    assert_at_most(right, runs, math.e / (1 + math.e), notices=0.99)


def test_the_hub_is_warned_of_where_an_edge_is_the_unit(tmp_path):
    with session(tmp_path) as by_edge:
        notes = graph.ask(by_edge, "ties", graph.Edges(), epsilon=1).notes
    assert any("that a person has many edges" in note for note in notes)


def test_a_node_read_as_a_pair_is_noticed():
    """With the noise of an edge, a node's edges are told from their absence."""
    whole, without = hub_graph()
    first, second = (
        EdgeCount(EDGE).exact(opened(EDGE, numbered(each)))[0] for each in (whole, without)
    )
    assert first - second > EdgeCount(EDGE).distance(Norm.L1).value == 1
    kept = [keep(numbered(each), 64).sum() // 2 for each in (whole, without)]
    assert abs(kept[0] - kept[1]) <= 64


def test_relabelled_shuffled_and_reversed_rows_leave_every_law(tmp_path):
    """The integers are the same under sf.Edge; under sf.Node the order of names alone decides."""
    dice = random.Random(3)
    pairs = [pair for pair in itertools.combinations(range(12), 2) if dice.random() < 0.4]
    stored = {
        "as they are": pairs,
        "shuffled": dice.sample(pairs, len(pairs)),
        "reversed": [pair[::-1] for pair in pairs],
        "twice": pairs + pairs[::-1],
    }
    found = {}
    for name, edges in stored.items():
        rows = pa.table({"a": [f"n{a}" for a, _ in edges], "b": [f"n{b}" for _, b in edges]})
        people = sf.Table(pa.table({"id": [f"n{at}" for at in range(12)]}), unit=sf.Unit("id"))
        engine = DuckDB({"people": people, "ties": sf.Table(rows, unit=BY_NODE)})
        found[name] = engine.edges(NODE, "key")()
        engine.close()
    (first, *others) = found.values()
    for other in others:
        assert np.array_equal(first.pairs, other.pairs) and first.nodes == other.nodes
    relabelled = numbered([(11 - a, 11 - b) for a, b in first.pairs.tolist()], 12)
    assert sorted(keep(relabelled, 2).tolist()) == sorted(keep(first, 2).tolist())


def test_relabelled_shuffled_and_reversed_rows_give_the_same_answers(tmp_path):
    """At an ample cost the noise is below a half, so the released numbers are the exact ones."""
    dice = random.Random(5)
    pairs = [pair for pair in itertools.combinations(range(12), 2) if dice.random() < 0.4]
    names = dice.sample(range(100, 999), 12)
    stored = {
        "as they are": pairs,
        "shuffled": dice.sample(pairs, len(pairs)),
        "reversed": [pair[::-1] for pair in pairs],
        "relabelled": [(names[a], names[b]) for a, b in pairs],
    }
    answers = []
    for name, edges in stored.items():
        rows = pa.table({"a": [f"n{a}" for a, _ in edges], "b": [f"n{b}" for _, b in edges]})
        tables = {"ties": sf.Table(rows, unit=sf.Edge("a", "b"))}
        ledger = tmp_path / f"{name}.db"
        with sf.connect(
            tables, dataset="d", budget=sf.Budget(epsilon=10_000), ledger=ledger
        ) as opened_session:
            released = [
                graph.ask(opened_session, "ties", question, epsilon=1000)
                for question in (graph.Edges(), graph.Triangles(), graph.Degrees())
            ]
        answers.append((released[0].value, released[1].value, list(released[2].sequence)))
    degrees = [sum(node in pair for pair in pairs) for node in range(12)]
    shown = sorted((degree for degree in degrees if degree), reverse=True)
    for edges, triangles, sequence in answers:
        assert edges == len(pairs) and triangles == answers[0][1]
        assert [degree for degree in sequence if degree] == shown
