# SPDX-License-Identifier: Apache-2.0
"""Nodes by kept degree on every graph of up to five nodes, and on the same without a node."""

import numpy as np
import pytest

from sfumato.errors import InvalidDeclaration
from sfumato.graph.kept_degrees import KeptDegrees
from sfumato.graph.kept_edges import degrees_kept
from sfumato.privacy.distance import Norm
from tests.contracts.graphs import EDGE, NODE, farthest_of_nodes, opened, read


@pytest.mark.parametrize("limit", [1, 2])
def test_nodes_by_kept_degree_move_by_at_most_their_proved_distance(limit):
    statistic = KeptDegrees(NODE, limit, limit + 1)
    assert farthest_of_nodes(statistic.exact) == statistic.distance(Norm.L1).value == limit + 1
    assert statistic.distance(Norm.L2).value == (limit + 1) ** 2


def test_scaled_numbers_move_by_at_most_the_reach_whatever_the_limit():
    statistic = KeptDegrees(NODE, 2, 10)
    assert statistic.scale == 3
    assert farthest_of_nodes(statistic.exact, ("k",)) <= statistic.distance(Norm.L1).value == 10


def test_a_histogram_at_this_distance_is_noticed():
    """Nodes of exactly a degree move by up to 2T + 1."""

    def histogram(data):
        return np.bincount(degrees_kept(data, NODE, 2), minlength=3)

    assert (
        farthest_of_nodes(histogram) == 2 * 2 + 1 > KeptDegrees(NODE, 2, 3).distance(Norm.L1).value
    )


def test_all_persons_count_also_those_without_an_edge():
    data = opened(NODE, read(NODE, [("ann", "bob"), ("ann", "nobody")]))
    assert KeptDegrees(NODE, 2, 3).exact(data).tolist() == [3, 5, 5]


def test_another_unit_is_refused():
    with pytest.raises(InvalidDeclaration, match="another unit"):
        KeptDegrees(EDGE, 1, 2)
