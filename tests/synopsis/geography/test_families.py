# SPDX-License-Identifier: Apache-2.0
"""Families of areas: the same variances as of all areas, and slopes by differences."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.synopsis.geography.families import Families
from sfumato.synopsis.geography.tree_squares import TreeSquares
from tests.synopsis.geography.trees import tree_of, trees

PRECISIONS = st.lists(st.sampled_from([0.25, 1.0, 3.0]), min_size=4, max_size=4)


@given(trees(4), PRECISIONS)
def test_families_have_the_mean_variances_of_the_whole_tree(tree, precisions):
    used = precisions[: tree.levels]
    wanted = [each.mean() for each in TreeSquares(tree, tuple(used)).variances]
    assert Families.of(tree).variances(used).means == pytest.approx(wanted)


@given(trees(4), PRECISIONS, PRECISIONS)
def test_slopes_are_those_of_small_differences(tree, precisions, weights):
    families, used = Families.of(tree), precisions[: tree.levels]
    counted = np.array(weights[: tree.levels])
    slopes = families.variances(used).slopes(list(counted))
    before = counted @ families.variances(used).means
    for level in range(tree.levels):
        moved = list(used)
        moved[level] += 1e-6
        after = counted @ families.variances(moved).means
        assert slopes[level] == pytest.approx((after - before) / 1e-6, rel=1e-3, abs=1e-6)


def test_a_hundred_thousand_areas_are_a_few_families():
    fans = np.random.default_rng(0).integers(5, 15, 10_000)
    tree = tree_of([10_000], fans.tolist())
    families = Families.of(tree)
    assert families.tree.sizes == (1, 10, 10)
    assert families.counts[-1].sum() == fans.sum()
