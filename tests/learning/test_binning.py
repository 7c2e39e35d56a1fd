# SPDX-License-Identifier: Apache-2.0
"""Bins and edges that are none are refused when a recipe is made."""

from typing import Any

import numpy as np
import pytest

from sfumato import learning as ln
from sfumato.errors import WrongUse
from sfumato.learning.binning import require_binning

RECIPES: list[Any] = [ln.Additive, ln.NaiveBayes, ln.DecisionTree, ln.Forest]


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_with_bins_checks_them(recipe: Any) -> None:
    for bins in (None, 1, 1.5, "3", True, 10**6):
        with pytest.raises(WrongUse, match="bins="):
            recipe(bins=bins)
    for edges in (None, 5, [3], {"age": 5}, {"age": "12"}, {"age": {3: 4}}):
        with pytest.raises(WrongUse, match="edges="):
            recipe(edges=edges)


@pytest.mark.parametrize("edge", [float("nan"), float("inf"), "3", None, []])
def test_an_edge_is_a_number(edge: Any) -> None:
    with pytest.raises(WrongUse, match="edge"):
        require_binning(16, {"age": [5, edge]})


def test_numbers_of_every_kind_are_edges() -> None:
    require_binning(2, {"age": (18, 65.5), "pay": np.array([1.0, 2.5], np.float32)})
    require_binning(10_000, {})
