# SPDX-License-Identifier: Apache-2.0
"""DuckDB reads the edges of a graph as the reference does, whatever the ids are."""

import pickle
from contextlib import closing
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines.base import Graph
from sfumato.engines.duckdb import DuckDB
from sfumato.engines.edges import edge_statements, read_columns
from sfumato.engines.reference import Reference
from sfumato.engines.spark import SparkEngine
from sfumato.errors import WrongUse
from sfumato.graph.reading import graph_of
from sfumato.metadata.dataset import Dataset
from sfumato.privacy.distance import Norm
from sfumato.query.pipeline import compile_plan
from sfumato.sql.lower import understand
from tests.contracts.effort import examples

ODD = [
    "",
    "a",
    "A",
    "12:3",
    "3:ann",
    "bért",
    "e\u0301",
    "é",
    "🤦🏼‍♂️",
    "|",
    "'",
    "a\x00b",
    "1",
    "01",
]
IDS = st.sampled_from([*ODD, None])
PEOPLE = [{"id": name} for name in [*ODD[:9], "alone", None, "a"]]


def dataset(rows, unit, kind=None):
    """A table of people and one of ties."""
    columns = {name: [row[name] for row in rows] for name in ("a", "b", "kind")}
    ties = pa.table(
        {
            "a": pa.array(columns["a"], kind),
            "b": pa.array(columns["b"], kind),
            "kind": pa.array(columns["kind"], pa.string()),
        }
    )
    people = pa.table({"id": pa.array([row["id"] for row in PEOPLE])})
    return Dataset(
        "ties",
        {
            "people": sf.Table(people, unit=sf.Unit("id", max_rows_total=1, name="person")),
            "ties": sf.Table(ties, unit=unit, columns={"kind": sf.Category("x", "y")}),
        },
    )


UNITS = [sf.Edge("a", "b"), sf.Node("a", "b", of="people")]


@pytest.mark.parametrize("unit", UNITS, ids=["edge", "node"])
@settings(max_examples=examples(0.2))
@given(
    rows=st.lists(
        st.fixed_dictionaries({"a": IDS, "b": IDS, "kind": st.sampled_from(["x", "y", "z", None])}),
        max_size=12,
    ),
    where=st.sampled_from([None, "kind = 'x'", "kind IS NULL OR kind <> 'y'"]),
    key=st.sampled_from(["", "k'", "key"]),
)
def test_the_edges_are_those_of_the_reference(unit, rows, where, key):
    declared = dataset(rows, unit, pa.string())
    plan = graph_of(declared, "ties", where)
    with closing(DuckDB(declared.tables)) as engine:
        found = engine.edges(plan, key)()
    expected = Reference({"ties": rows, "people": PEOPLE}).edges(plan, key)()
    assert found.pairs.tolist() == expected.pairs.tolist()
    assert found.nodes == expected.nodes
    assert found.pairs.dtype == np.int64


def test_an_edge_is_there_once_whatever_rows_state_it():
    rows = [{"a": f"n{at}", "b": f"n{at * 7 % 13}", "kind": "x"} for at in range(13)]
    turned = [{"a": row["b"], "b": row["a"], "kind": "y"} for row in rows[::-1]]
    read = []
    for stored in (rows, turned, rows + turned):
        declared = dataset(stored, UNITS[0], pa.string())
        with closing(DuckDB(declared.tables)) as engine:
            read.append(engine.edges(graph_of(declared, "ties", None), "key")().pairs.tolist())
    assert read[0] == read[1] == read[2]


@pytest.mark.parametrize(
    ("ids", "kind"),
    [
        ([2**53 + 1, 2**53, -1], pa.int64()),
        ([1.5, 2.0, float("nan")], pa.float64()),
        (["1", "01", "1.0"], pa.string()),
    ],
)
def test_ids_are_compared_as_they_are_written(ids, kind):
    first, second, third = ids
    rows = [
        {"a": first, "b": second, "kind": "x"},
        {"a": second, "b": third, "kind": "x"},
        {"a": third, "b": first, "kind": "x"},
    ]
    declared = dataset(rows, UNITS[0], kind)
    with closing(DuckDB(declared.tables)) as engine:
        graph = engine.edges(graph_of(declared, "ties", None), "key")()
    assert (len(graph.pairs), graph.nodes) == (3, 3)


def test_an_empty_graph_is_one():
    for unit in UNITS:
        declared = dataset([], unit, pa.string())
        with closing(DuckDB(declared.tables)) as engine:
            graph = engine.edges(graph_of(declared, "ties", None), "key")()
        assert graph.pairs.shape == (0, 2)
        assert graph.nodes == (0 if unit is UNITS[0] else 10)


def test_a_graph_reads_what_its_condition_and_its_ends_need():
    declared = dataset([], UNITS[1], pa.string())
    plan = graph_of(declared, "ties", "kind = 'x'")
    assert read_columns(plan) == {"ties": {"a", "b", "kind"}, "people": {"id"}}
    assert read_columns(graph_of(dataset([], UNITS[0]), "ties", None)) == {"ties": {"a", "b"}}


def test_the_order_of_edges_is_a_function_of_key_and_names():
    declared = dataset([], UNITS[1], pa.string())
    plan = graph_of(declared, "ties", None)
    with closing(DuckDB(declared.tables)) as engine:
        edges, nodes = edge_statements(plan, engine._sources, "it's")
    assert edges.endswith("ORDER BY md5(concat_ws('|', 'it''s', unit)), unit")
    assert nodes.startswith("SELECT count(*) AS nodes")


def test_an_edge_is_a_unit_of_sql_too():
    """Rows of one pair, in either order, are one unit: one of them counts."""
    rows = [{"a": "x", "b": "y", "kind": "x"}, {"a": "y", "b": "x", "kind": "x"}]
    declared = dataset(rows, UNITS[0], pa.string())
    raw = understand("SELECT COUNT(*) FROM ties", declared).raw
    plan = compile_plan(raw, declared, Norm.L1)
    with closing(DuckDB(declared.tables)) as engine:
        exact = engine.run(plan, "key")
    assert exact == Reference({"ties": rows}).run(plan, "key")
    assert [*exact[0].values()] == [(plan.refinement,)]
    ordered = replace(declared, tables={"ties": replace(declared.tables["ties"], unit=TWO)})
    raw = understand("SELECT COUNT(*) FROM ties", ordered).raw
    plan = compile_plan(raw, ordered, Norm.L1)
    assert [*Reference({"ties": rows}).run(plan, "key")[0].values()] == [(2 * plan.refinement,)]


TWO = sf.Unit(["a", "b"], max_rows_total=1)


def test_spark_gives_no_edges():
    plan = graph_of(dataset([], UNITS[0]), "ties", None)
    with pytest.raises(WrongUse, match="no edges of graphs"):
        SparkEngine.edges(None, plan, "key")


def test_a_graph_is_not_pickled():
    with pytest.raises(WrongUse, match="not pickled"):
        pickle.dumps(Graph(np.zeros((0, 2), np.int64), 0))
