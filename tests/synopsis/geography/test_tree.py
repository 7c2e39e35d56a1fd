# SPDX-License-Identifier: Apache-2.0
"""Trees of areas: sums up, values down, ancestors, and a hash of the shape."""

import numpy as np
from hypothesis import given

from tests.synopsis.geography.trees import membership, tree_of, trees


@given(trees())
def test_sums_of_children_are_those_of_all_areas_below(tree):
    lowest = np.arange(tree.sizes[-1]) ** 2 + 1
    found = lowest
    for level in range(tree.levels - 2, -1, -1):
        found = tree.gathered(level, found)
        assert found.tolist() == (membership(tree, level) @ lowest).tolist()


@given(trees())
def test_values_spread_to_children_are_those_of_their_parents(tree):
    for level, parents in enumerate(tree.parents):
        values = np.arange(tree.sizes[level]) * 7
        assert tree.spread(level, values).tolist() == [7 * parent for parent in parents]
        assert tree.starts[level].tolist() == [
            parents.tolist().index(area) for area in range(tree.sizes[level])
        ]


def test_other_shapes_have_other_hashes():
    shapes = [tree_of([2]), tree_of([3]), tree_of([2], [1, 2]), tree_of([2], [2, 1])]
    assert len({shape.digest for shape in shapes}) == 4
    assert tree_of([2], [1, 2]).digest == tree_of([2], [1, 2]).digest
    assert tree_of([2], [1, 2]).upto(1).digest == tree_of([2]).digest
