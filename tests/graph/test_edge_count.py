# SPDX-License-Identifier: Apache-2.0
"""The number of edges on every graph of up to five nodes, and on the same with one edge more."""

from fractions import Fraction
from functools import partial

import pytest

from sfumato.engines import reference_rows
from sfumato.errors import InvalidDeclaration
from sfumato.graph.edge_count import EdgeCount
from sfumato.privacy.distance import Norm
from tests.contracts.graphs import EDGE, NODE, farthest_of_edges, opened, read, replacing


def test_the_number_of_edges_moves_by_at_most_its_proved_distance():
    statistic = EdgeCount(EDGE)
    assert farthest_of_edges(EDGE, statistic.exact) == (1, 1)
    assert [statistic.distance(norm).value for norm in (Norm.L1, Norm.L2)] == [1, 1]
    replaced = EdgeCount(replacing(EDGE))
    assert [replaced.distance(norm).value for norm in (Norm.L1, Norm.L2)] == [2, Fraction(4)]


def test_rows_that_repeat_or_reverse_an_edge_count_once_and_loops_not():
    rows = [("ann", "bob"), ("bob", "ann"), ("ann", "bob"), ("cat", "cat"), (None, "ann")]
    assert EdgeCount(EDGE).exact(opened(EDGE, read(EDGE, rows))) == [1]


def test_a_count_of_ordered_pairs_is_noticed(monkeypatch):
    """Reversed rows of one edge as two edges: one edge then changes two."""
    ordered = partial(reference_rows._named, unordered=False)
    monkeypatch.setattr(reference_rows, "_named", lambda raw, columns, **_: ordered(raw, columns))
    rows = [("ann", "bob"), ("bob", "ann")]
    assert EdgeCount(EDGE).exact(opened(EDGE, read(EDGE, rows))) == [2]


def test_another_unit_is_refused():
    with pytest.raises(InvalidDeclaration, match="another unit"):
        EdgeCount(NODE)
    with pytest.raises(InvalidDeclaration, match="Linf"):
        EdgeCount(EDGE).distance(Norm.LINF)
