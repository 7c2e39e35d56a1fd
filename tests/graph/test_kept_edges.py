# SPDX-License-Identifier: Apache-2.0
"""Edges kept under a limit on every graph of up to five nodes, and on the same without a node."""

import hashlib
import itertools
from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import InvalidDeclaration
from sfumato.graph import kept_edges
from sfumato.graph.kept_edges import STEPS, KeptEdges, LimitScores, keep
from sfumato.privacy.distance import Norm
from tests.contracts.graphs import EDGE, NODE, farthest_of_nodes, numbered, replacing

ONE = ("k",)


@pytest.mark.parametrize("limit", [1, 2])
def test_the_number_of_kept_edges_moves_by_at_most_its_proved_distance(limit):
    statistic = KeptEdges(NODE, limit, limit)
    assert farthest_of_nodes(statistic.exact) == statistic.distance(Norm.L1).value == limit
    assert statistic.distance(Norm.L2).value == limit**2
    replaced = KeptEdges(replacing(NODE), limit, limit)
    assert [replaced.distance(norm).value for norm in (Norm.L1, Norm.L2)] == [
        2 * limit,
        4 * limit**2,
    ]


def test_a_scaled_number_moves_by_at_most_the_reach_whatever_the_limit():
    for limit in (1, 2, 3):
        statistic = KeptEdges(NODE, limit, 8)
        assert statistic.distance(Norm.L1).value == 8
        assert farthest_of_nodes(statistic.exact, ONE) <= 8


def test_no_score_of_a_limit_moves_by_more_than_its_proved_distance():
    statistic = LimitScores(NODE, (1, 2, 4), Fraction(3), Fraction(1, 2), 2)
    most = 0
    for number in range(3):
        most = max(most, farthest_of_nodes(lambda data, at=number: statistic.exact(data)[at], ONE))
    assert STEPS // 4 < most <= statistic.distance(Norm.LINF).value == STEPS


def test_triangles_among_kept_edges_are_noticed():
    """With two edges a node at most, one node moves two triangles, and has one pair of its own."""
    edges = [(0, 1), (0, 4), (1, 2), (1, 3), (2, 3), (4, 5), (4, 6), (5, 6)]
    rest = [pair for pair in edges if 0 not in pair]
    assert triangles(numbered(rest, 7)) - triangles(numbered(edges, 7)) == 2


def triangles(graph, limit=2):
    """Triangles among the edges kept under a limit: one of those that are tempting and wrong."""
    degrees, kept = [0] * graph.nodes, set()
    for first, second in graph.pairs.tolist():
        if degrees[first] < limit and degrees[second] < limit:
            degrees[first] += 1
            degrees[second] += 1
            kept |= {(first, second), (second, first)}
    nodes = range(graph.nodes)
    return sum({(a, b), (b, c), (a, c)} <= kept for a, b, c in itertools.combinations(nodes, 3))


def by_degree(edges):
    degrees = {}
    for node in itertools.chain(*edges):
        degrees[node] = degrees.get(node, 0) + 1
    return sorted(edges, key=lambda pair: (degrees[pair[0]] + degrees[pair[1]], pair))


def by_number(edges):
    """By a hash of numbers that are given anew when a node leaves."""
    numbers = {node: at for at, node in enumerate(sorted({*itertools.chain(*edges)}))}
    return sorted(edges, key=lambda pair: hashed((numbers[pair[0]], numbers[pair[1]])))


def hashed(pair):
    return hashlib.md5(repr(pair).encode()).hexdigest()


# What breaks an order: the edges of a graph, and the node that leaves; found by search.
WITNESSES = {
    by_degree: ([(0, 2), (0, 4), (1, 6), (3, 4), (3, 7), (4, 5), (5, 6), (6, 7)], 0),
    by_number: ([(0, 1), (2, 5), (3, 4), (3, 5)], 0),
}


@pytest.mark.parametrize("order", WITNESSES)
def test_an_order_that_looks_at_more_than_two_names_is_noticed(order):
    def moved(sort):
        edges, node = WITNESSES[order]
        rest = [pair for pair in edges if node not in pair]
        kept = [keep(numbered(sort(each), 9), 1).sum() // 2 for each in (edges, rest)]
        return abs(kept[0] - kept[1])

    assert moved(lambda edges: sorted(edges, key=hashed)) <= 1
    assert moved(order) > 1


def test_an_order_of_the_file_is_noticed():
    """A neighbour's rows may be stored in any order: here the middles of three chains come first."""
    chains = range(0, 12, 4)
    ends = [(at + step, at + step + 1) for at in chains for step in (0, 2)]
    middles = [(at + 1, at + 2) for at in chains]
    whole, stored_anew = [(0, 12), *ends, *middles], [*middles, *ends]

    def moved(sort):
        kept = [keep(numbered(sort(each), 13), 1).sum() // 2 for each in (whole, stored_anew)]
        return abs(kept[0] - kept[1])

    assert moved(lambda edges: sorted(edges, key=hashed)) <= 1
    assert moved(list) > 1


def test_a_limit_that_bounds_one_end_alone_is_noticed(monkeypatch):
    def one_end(graph, limit):
        degrees = [0] * graph.nodes
        for first, second in graph.pairs.tolist():
            if degrees[first] < limit:
                degrees[first] += 1
                degrees[second] += 1
        return np.array(degrees)

    monkeypatch.setattr(kept_edges, "keep", one_end)
    assert farthest_of_nodes(KeptEdges(NODE, 1, 1).exact) > 1


def test_what_is_no_limit_is_refused():
    for limit in (0, -1, True, 1.5):
        with pytest.raises(InvalidDeclaration, match="max_degree"):
            keep(numbered([(0, 1)]), limit)
    for wrong in (lambda: KeptEdges(EDGE, 1, 1), lambda: LimitScores(EDGE, (1,), 1, 1)):
        with pytest.raises(InvalidDeclaration, match="another unit"):
            wrong()
