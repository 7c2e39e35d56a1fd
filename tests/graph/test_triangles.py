# SPDX-License-Identifier: Apache-2.0
"""Triangles and their ladder on every graph of up to five nodes, and with one edge more."""

import itertools
from functools import cache, partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidDeclaration
from sfumato.graph import triangles
from sfumato.graph.triangles import (
    CommonNeighbours,
    TriangleLadder,
    count_triangles,
    most_common_neighbours,
)
from sfumato.privacy.distance import Norm
from tests.contracts.graphs import EDGE, NODE, numbered, opened, replacing

PAIRS = list(itertools.combinations(range(5), 2))


def neighbours_of(edges):
    around = [set() for _ in range(5)]
    for first, second in edges:
        around[first].add(second)
        around[second].add(first)
    return around


def plain(edges, *, adjacent=False):
    """Triangles, and the most common neighbours of two nodes, from sets."""
    around = neighbours_of(edges)
    shared = {pair: len(around[pair[0]] & around[pair[1]]) for pair in PAIRS}
    tied = [count for pair, count in shared.items() if pair[1] in around[pair[0]]]
    width = max(tied if adjacent else shared.values(), default=0)
    return sum(tied) // 3, width


@cache
def steps(*, adjacent=False):
    """Each pair of (triangles, width, nodes seen) of a graph and of it with one edge more."""
    found = {}
    for mask in range(1 << len(PAIRS)):
        edges = [pair for place, pair in enumerate(PAIRS) if mask >> place & 1]
        seen = len({node for pair in edges for node in pair})
        found[mask] = (*plain(edges, adjacent=adjacent), seen)
    return {
        (found[mask], found[mask | 1 << place])
        for mask in found
        for place in range(len(PAIRS))
        if not mask >> place & 1
    }


def rung(integer, exact, sizes):
    """The rung of an integer where rung t has ``sizes(t)`` integers on each side."""
    distance, number, reached = abs(integer - exact), 0, 0
    while distance > reached:
        number += 1
        reached += sizes(number)
    return number


def largest_step(sizes, *, adjacent=False):
    """How far the rung of any integer moves with one edge."""
    most = 0
    for before, after in steps(adjacent=adjacent):
        for integer in range(-20, 40):
            one, other = (
                rung(integer, graph[0], partial(sizes, graph)) for graph in (before, after)
            )
            most = max(most, abs(one - other))
    return most


def test_no_rung_of_triangles_moves_by_more_than_its_proved_distance():
    assert largest_step(lambda graph, t: graph[1] + t - 1) == 1
    assert TriangleLadder(EDGE).rung_distance().value == 1
    assert TriangleLadder(replacing(EDGE)).rung_distance().value == 2


BROKEN = {
    "the width over adjacent pairs": (lambda graph, t: max(graph[1] + t - 1, 1), True),
    "a rung short": (lambda graph, t: max(graph[1] + t - 2, 1), False),
    "constant rungs": (lambda graph, t: max(graph[1], 1), False),
    "a cap by the nodes seen": (
        lambda graph, t: max(min(graph[1] + t - 1, graph[2] - 2), 1),
        False,
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_wrong_ladder_is_noticed(name):
    sizes, adjacent = BROKEN[name]
    assert largest_step(sizes, adjacent=adjacent) > 1


def test_the_most_common_neighbours_move_by_at_most_their_proved_distance():
    assert max(abs(after[1] - before[1]) for before, after in steps()) == 1
    statistic = CommonNeighbours(EDGE)
    assert [statistic.distance(norm).value for norm in (Norm.L1, Norm.L2)] == [1, 1]


def test_both_are_counted_exactly_on_all_small_graphs():
    for mask in range(0, 1 << len(PAIRS), 5):
        edges = [pair for place, pair in enumerate(PAIRS) if mask >> place & 1]
        data = opened(EDGE, numbered(edges, 5))
        assert TriangleLadder(EDGE).exact(data) == plain(edges)
        assert CommonNeighbours(EDGE).exact(data) == [plain(edges)[1]]


@given(st.integers(2, 40), st.floats(0, 1), st.integers(0, 2**32), st.sampled_from([1, 60, 2**22]))
def test_both_are_counted_exactly_in_blocks(nodes, share, seed, block):
    dice = np.random.default_rng(seed)
    drawn = np.triu(dice.random((nodes, nodes)) < share, 1)
    both = (drawn | drawn.T).astype(int)
    shared = both @ both
    np.fill_diagonal(shared, 0)
    graph = numbered(np.argwhere(drawn), nodes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(triangles, "_BLOCK", block)
        assert most_common_neighbours(graph) == shared.max()
        assert count_triangles(graph) == np.trace(both @ both @ both) // 6


def test_extreme_graphs_have_their_numbers():
    complete = numbered(itertools.combinations(range(60), 2))
    assert (count_triangles(complete), most_common_neighbours(complete)) == (34_220, 58)
    star = numbered([(0, leaf) for leaf in range(1, 1001)])
    assert (count_triangles(star), most_common_neighbours(star)) == (0, 1)
    for nodes in (0, 3):
        empty = numbered([], nodes)
        assert (count_triangles(empty), most_common_neighbours(empty)) == (0, 0)


def test_nothing_is_proved_of_triangles_as_integers():
    for norm in Norm:
        with pytest.raises(InvalidDeclaration, match="ladder"):
            TriangleLadder(EDGE).distance(norm)
    with pytest.raises(InvalidDeclaration, match="another unit"):
        CommonNeighbours(NODE)
    with pytest.raises(InvalidDeclaration, match="another unit"):
        TriangleLadder(NODE).rung_distance()
