# SPDX-License-Identifier: Apache-2.0
"""How questions about graphs split their cost, and which limit of degrees is selected."""

from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato import graph
from sfumato.accounting import account
from sfumato.graph.ways import LIMITS, interval, shape_of, way_of
from sfumato.privacy.event import Composed
from sfumato.query.allowance import allowance
from tests.contracts.graphs import EDGE, NODE, numbered, opened, replacing

ONE = allowance(epsilon=1)


def parts(plan, question, allowed=ONE):
    """The cost of each step of a question."""
    event = way_of(plan, question, allowed).event
    steps = event.events if isinstance(event, Composed) else (event,)
    return [account(step) for step in steps]


def test_the_cost_is_split_as_stated():
    split = {
        (EDGE, graph.Edges()): [1],
        (EDGE, graph.Degrees()): [Fraction(1, 20), Fraction(19, 20)],
        (EDGE, graph.Triangles()): [Fraction(1, 10), Fraction(9, 10)],
        (NODE, graph.Edges()): [Fraction(1, 2), Fraction(1, 2)],
        (NODE, graph.Edges(max_degree=9)): [1],
        (NODE, graph.Degrees()): [Fraction(3, 10), Fraction(7, 10)],
        (NODE, graph.Degrees(max_degree=9)): [1],
    }
    for (plan, question), expected in split.items():
        assert [each.epsilon for each in parts(plan, question)] == expected
        rho = [each.rho for each in parts(plan, question, allowance(rho="0.2"))]
        for share, cost in zip(expected, rho, strict=True):
            assert abs(cost - Fraction(share) / 5) < Fraction(1, 10**10)


def test_columns_and_rows_follow_the_number_of_edges():
    assert shape_of(0) == shape_of(-(10**9)) == shape_of(1) == (1, 2)
    columns, rows = shape_of(10**6)
    assert (columns, rows) == (354, 5650)
    assert shape_of(10**30) == shape_of(2**40)


def test_a_limit_near_the_highest_degree_is_selected():
    """A hundred nodes of degree 8: with an ample cost the limit is 8, and never far below."""
    pairs = [(node, (node + step) % 100) for node in range(100) for step in range(1, 5)]
    data = opened(NODE, numbered(pairs, 100))
    for epsilon in (10, 100):
        scores = way_of(NODE, graph.Edges(), allowance(epsilon=epsilon))._limiting._scores
        best = int(np.argmax(scores.exact(data)))
        assert LIMITS[best] == 8


def test_a_tiny_cost_overflows_nothing():
    data = opened(NODE, numbered([(0, 1)], 2))
    for question in (graph.Edges(), graph.Degrees()):
        for cost in (allowance(epsilon="1e-12"), allowance(rho="1e-12")):
            limiting = way_of(NODE, question, cost)._limiting
            assert len(limiting._scores.exact(data)) == len(LIMITS)


def test_what_error_to_expect_is_said_from_public_numbers():
    lines = way_of(NODE, graph.Edges(), ONE).expected
    assert len(lines) == len(LIMITS) and "a limit of 4,096" in lines[-1]
    (given,) = way_of(NODE, graph.Degrees(max_degree=5), ONE).expected
    assert "a limit of 5" in given
    assert len(way_of(EDGE, graph.Triangles(), ONE).expected) == 3


def test_a_number_is_not_negative():
    assert interval(-4, 3) == {"value": 0, "low": 0, "high": 0}
    assert interval(4, 6) == {"value": 4, "low": 0, "high": 10}


@pytest.mark.parametrize("relation", [sf.AddRemove, sf.ReplaceOne])
def test_a_selected_limit_needs_one_event_for_every_limit(relation):
    plan = NODE if relation is sf.AddRemove else replacing(NODE)
    for question in (graph.Edges(), graph.Degrees()):
        way = way_of(plan, question, ONE)
        distances = {way._statistic(limit).distance(ONE.norm) for limit in LIMITS}
        assert len(distances) == 1
