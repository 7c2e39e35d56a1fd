# SPDX-License-Identifier: Apache-2.0
"""All small graphs, their neighbours, and plans that read them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import combinations

import numpy as np
import pyarrow as pa

import sfumato as sf
from sfumato.engines.base import Graph
from sfumato.engines.reference import Reference
from sfumato.graph.reading import graph_of
from sfumato.metadata.dataset import Dataset
from sfumato.plan.graph import BoundedGraph
from sfumato.query.statistic import Opened

NAMES = ("ann", "bob", "cat", "dan", "eve")
Pair = tuple[str, str]
Edges = frozenset[Pair]


def declared(unit: object = None, relation: object = sf.AddRemove) -> Dataset:
    """A table of people, and one of ties between them with columns to test."""
    people = sf.Table(
        pa.table({"id": list(NAMES)}), unit=sf.Unit("id", max_rows_total=1, name="person")
    )
    ties = sf.Table(
        pa.table({"a": ["ann"], "b": ["bob"], "kind": ["close"]}),
        unit=sf.Edge("a", "b") if unit is None else unit,
        columns={"kind": sf.Category("close", "far")},
    )
    return Dataset("small", {"people": people, "ties": ties}, relation)


EDGE = graph_of(declared(), "ties", None)
NODE = graph_of(declared(sf.Node("a", "b", of="people")), "ties", None)


def replacing(plan: BoundedGraph) -> BoundedGraph:
    """The same graph where neighbours replace an edge or a node."""
    unit = None if plan.nodes is None else sf.Node("a", "b", of="people")
    return graph_of(declared(unit, sf.ReplaceOne), "ties", None)


def pairs_of(names: Iterable[str]) -> list[Pair]:
    """All pairs of names."""
    return list(combinations(sorted(names), 2))


def every_graph(names: Iterable[str] = NAMES) -> Iterator[Edges]:
    """All graphs over some names."""
    pairs = pairs_of(names)
    for size in range(len(pairs) + 1):
        for chosen in combinations(pairs, size):
            yield frozenset(chosen)


def read(
    plan: BoundedGraph, edges: Iterable[Pair], names: Iterable[str] = NAMES, key: str = "k"
) -> Graph:
    """The graph that the reference engine reads of rows with these edges."""
    tables = {
        "ties": [{"a": first, "b": second} for first, second in edges],
        "people": [{"id": name} for name in names],
    }
    return Reference(tables).edges(plan, key)()


def opened(plan: BoundedGraph, graph: Graph) -> Opened:
    """An open graph."""
    return Opened(plan, graph=lambda: graph)


def numbered(pairs: Iterable[tuple[int, int]], nodes: int = 0) -> Graph:
    """A graph of numbered nodes."""
    edges = np.array(list(pairs), np.int64).reshape(-1, 2)
    return Graph(edges, max(nodes, int(edges.max(initial=-1)) + 1))


def farthest_of_edges(plan: BoundedGraph, exact: Callable[[Opened], object]) -> tuple[int, int]:
    """How far integers move, in L1 and squared L2, from any small graph to one with an edge more.

    ``exact`` maps what was opened to integers.
    """
    found = {}
    for edges in every_graph():
        found[edges] = np.asarray(exact(opened(plan, _read(plan, edges, NAMES, "k"))), np.int64)
    most = squared = 0
    for edges, before in found.items():
        for pair in pairs_of(NAMES):
            if pair not in edges:
                moved = np.abs(found[edges | {pair}] - before)
                most = max(most, int(moved.sum()))
                squared = max(squared, int((moved**2).sum()))
    return most, squared


def farthest_of_nodes(
    exact: Callable[[Opened], object], keys: Sequence[str] = ("k", "another", "3")
) -> int:
    """How far integers move, in L1, if a node leaves any small graph with its edges."""
    most = 0
    for key in keys:
        lacking = {}
        for name in NAMES:
            rest = tuple(other for other in NAMES if other != name)
            for edges in every_graph(rest):
                graph = _read(NODE, edges, rest, key)
                lacking[name, edges] = np.asarray(exact(opened(NODE, graph)))
        for edges in every_graph():
            whole = np.asarray(exact(opened(NODE, _read(NODE, edges, NAMES, key))))
            for name in NAMES:
                remaining = frozenset(pair for pair in edges if name not in pair)
                most = max(most, int(np.abs(whole - lacking[name, remaining]).sum()))
    return most


@cache
def _read(plan: BoundedGraph, edges: Edges, names: tuple[str, ...], key: str) -> Graph:
    return read(plan, edges, names, key)
