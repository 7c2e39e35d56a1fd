# SPDX-License-Identifier: Apache-2.0
"""Made-up trees and spines for the tests of a geography, and dense matrices of them."""

import itertools

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from sfumato.synopsis.geography.design import Design
from sfumato.synopsis.geography.spine import Spine
from sfumato.synopsis.geography.tree import Tree


def tree_of(*fans: list[int], roots: int = 1) -> Tree:
    """The tree whose areas have so many children, level by level."""
    return Tree(roots, tuple(np.repeat(np.arange(len(fan)), fan) for fan in fans))


@st.composite
def trees(draw: st.DrawFn, levels: int = 3) -> Tree:
    """Trees of up to so many levels below up to two roots."""
    roots = draw(st.integers(1, 2))
    size, fans = roots, []
    for _ in range(draw(st.integers(1, levels - 1))):
        fan = draw(st.lists(st.integers(1, 3), min_size=size, max_size=size))
        fans.append(fan)
        size = sum(fan)
    return tree_of(*fans, roots=roots)


def membership(tree: Tree, level: int) -> np.ndarray:
    """A matrix that sums the areas of the last level into those of a level."""
    found = np.zeros((tree.sizes[level], tree.sizes[-1]))
    found[tree.ancestors(level), np.arange(tree.sizes[-1])] = 1
    return found


def measurement(design: Design, place: int) -> np.ndarray:
    """The matrix of a table of a design over areas of the last level times all cells."""
    level, axes = design.tables[place]
    found = membership(design.tree, level)
    for axis, size in enumerate(design.sizes):
        found = np.kron(found, np.eye(size) if axis in axes else np.ones((1, size)))
    return found


def simple_spine(counties: int = 6, per_state: int = 3) -> Spine:
    """Counties c0, c1, ... in states s0, s1, ... of one nation."""
    codes = [f"c{number}" for number in range(counties)]
    states = [f"s{number // per_state}" for number in range(counties)]
    nation = list(itertools.repeat("all", counties))
    table = pa.table({"nation": nation, "state": states, "county": codes})
    return Spine("nation > state > county", table)
