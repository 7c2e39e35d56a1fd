# SPDX-License-Identifier: Apache-2.0
"""The reference reads each edge once, in an order that depends on key and names alone."""

import hashlib

from sfumato.engines.reference import Reference
from sfumato.engines.reference_graph import _ends
from sfumato.engines.reference_order import hashed
from sfumato.engines.reference_rows import rows
from tests.contracts.graphs import EDGE, NODE, every_graph, read


def test_edges_come_by_the_keyed_hash_of_their_names():
    names = [("ann", "bob"), ("bob", "cat"), ("ann", "dan")]
    for key in ("k", "another"):
        graph = read(EDGE, names, key=key)

        def place(pair, key=key):
            first, second = sorted(pair)
            text = f"{key}|{len(first)}:{first}{len(second)}:{second}"
            return hashlib.md5(text.encode()).hexdigest()

        numbers = {}
        expected = [
            [numbers.setdefault(name, len(numbers)) for name in pair]
            for pair in sorted(names, key=place)
        ]
        assert graph.pairs.tolist() == expected


def test_the_order_of_two_edges_depends_on_nothing_but_themselves():
    """Without a node, the other edges come in the order in which they came with it."""
    for edges in list(every_graph())[::37]:
        whole = named(edges)
        for name in ("ann", "eve"):
            rest = [pair for pair in edges if name not in pair]
            assert named(rest) == [pair for pair in whole if name not in pair]


def named(edges):
    """The names of edges in their order; nodes are numbered as they appear."""
    tables = {"ties": [{"a": first, "b": second} for first, second in edges]}
    units = {row.unit for row in rows(EDGE.relation, tables)}
    ordered = [_ends(unit) for unit in sorted(units, key=lambda unit: (hashed("k", unit), unit))]
    numbers = {}
    for pair in ordered:
        for name in pair:
            numbers.setdefault(name, len(numbers))
    shown = read(EDGE, edges).pairs.tolist()
    assert shown == [[numbers[name] for name in pair] for pair in ordered]
    return ordered


def test_loops_missing_ends_and_unlisted_ends_are_no_edges():
    rows = [("ann", "ann"), (None, "bob"), ("bob", None), ("ann", "zoe"), ("bob", "ann")]
    assert len(read(EDGE, rows).pairs) == 2
    graph = read(NODE, rows)
    assert (len(graph.pairs), graph.nodes) == (1, 5)
    assert len(read(NODE, rows, names=["ann"]).pairs) == 0


def test_an_engine_that_has_no_rows_has_no_edges():
    graph = Reference({"ties": [], "people": []}).edges(NODE, "k")()
    assert (graph.pairs.shape, graph.nodes) == ((0, 2), 0)
