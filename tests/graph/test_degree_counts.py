# SPDX-License-Identifier: Apache-2.0
"""Degrees by columns and rows on every graph of up to five nodes, and with one edge more."""

import itertools

import numpy as np
import pytest

from sfumato.errors import InvalidDeclaration
from sfumato.graph import degree_counts
from sfumato.graph.degree_counts import DegreeCounts
from sfumato.privacy.distance import Norm
from tests.contracts.graphs import EDGE, NODE, farthest_of_edges, opened, read, replacing


@pytest.mark.parametrize(("columns", "rows"), [(1, 5), (2, 2), (4, 1)])
def test_columns_and_rows_move_by_at_most_their_proved_distance(columns, rows):
    statistic = DegreeCounts(EDGE, columns, rows)
    most, squared = farthest_of_edges(EDGE, statistic.exact)
    assert most <= statistic.distance(Norm.L1).value == 2
    assert squared <= statistic.distance(Norm.L2).value == 4
    replaced = DegreeCounts(replacing(EDGE), columns, rows)
    assert [replaced.distance(norm).value for norm in (Norm.L1, Norm.L2)] == [4, 16]


def test_the_bound_is_attained():
    assert farthest_of_edges(EDGE, DegreeCounts(EDGE, 1, 5).exact) == (2, 4)


def test_they_are_the_young_diagram_of_the_degrees():
    star = [("ann", other) for other in ("bob", "cat", "dan", "eve")] + [("bob", "cat")]
    # degrees 4, 2, 2, 1, 1
    counts = DegreeCounts(EDGE, 2, 3).exact(opened(EDGE, read(EDGE, star)))
    assert counts.tolist() == [5, 3, 2, 0, 0]


def test_neither_order_nor_direction_of_rows_matters():
    edges = [("ann", "bob"), ("bob", "cat"), ("dan", "eve")]
    expected = DegreeCounts(EDGE, 2, 2).exact(opened(EDGE, read(EDGE, edges))).tolist()
    for shuffled in itertools.permutations(edges):
        turned = [pair[::-1] for pair in shuffled]
        for key in ("k", "other"):
            graph = read(EDGE, turned, key=key)
            assert DegreeCounts(EDGE, 2, 2).exact(opened(EDGE, graph)).tolist() == expected


BROKEN = {
    "nodes that have an edge, as one number more": lambda degrees, columns: np.append(
        honest(degrees, columns)[:-1], len(degrees) + honest(degrees, columns)[0]
    ),
    "nodes of exactly a degree": lambda degrees, columns: np.bincount(
        np.minimum(degrees, columns), minlength=columns + 1
    )[1:].astype(np.int64),
}
honest = degree_counts._columns


@pytest.mark.parametrize("name", BROKEN)
def test_a_diagram_that_is_counted_wrongly_is_noticed(name, monkeypatch):
    monkeypatch.setattr(degree_counts, "_columns", BROKEN[name])
    most, _ = farthest_of_edges(EDGE, DegreeCounts(EDGE, 3, 2).exact)
    assert most > 2


def test_another_unit_is_refused():
    with pytest.raises(InvalidDeclaration, match="another unit"):
        DegreeCounts(NODE, 1, 1)
