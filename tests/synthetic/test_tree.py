# SPDX-License-Identifier: Apache-2.0
"""Junction trees against the enumeration of small domains."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.synthetic.tree import JunctionTree, cells_of, summed_over

SIZES = (2, 3, 2, 4, 2)
PAIRS = st.lists(
    st.sampled_from(list(itertools.combinations(range(len(SIZES)), 2))), unique=True, max_size=7
)


def joint(parts):
    """The exponential of the sum of the parts, over all cells."""
    total = np.zeros(SIZES)
    for columns, table in parts:
        shape = [SIZES[each] if each in columns else 1 for each in range(len(SIZES))]
        total = total + table.reshape(shape)
    return np.exp(total)


@given(PAIRS, st.integers(0, 99))
def test_marginals_are_those_of_the_whole_distribution(pairs, seed):
    random = np.random.default_rng(seed)
    cliques = [*((each,) for each in range(len(SIZES))), *pairs]
    parts = [(each, random.normal(0, 2, [SIZES[at] for at in each])) for each in cliques]
    tree = JunctionTree.over(SIZES, pairs)
    whole = joint(parts)
    whole *= 100 / whole.sum()
    for clique, found in zip(tree.cliques, tree.marginals(tree.summed(parts), 100.0), strict=True):
        others = tuple(set(range(len(SIZES))) - set(clique))
        assert np.allclose(found, whole.sum(axis=others))


@given(PAIRS)
def test_the_tree_has_every_clique_and_the_running_intersection(pairs):
    tree = JunctionTree.over(SIZES, pairs)
    assert all(tree.home(each) >= 0 for each in pairs)
    assert {each for clique in tree.cliques for each in clique} == set(range(len(SIZES)))
    for place, clique in enumerate(tree.cliques[1:], start=1):
        before = {each for earlier in tree.cliques[:place] for each in earlier}
        # what a clique shares with all earlier ones, it shares with its parent
        assert set(clique) & before == set(tree.separators[place])
        assert tree.parents[place] < place
    assert tree.cells == cells_of(SIZES, pairs)
    assert tree.cells == sum(math.prod(SIZES[at] for at in each) for each in tree.cliques)


@given(PAIRS, st.integers(0, 99))
def test_a_tree_with_another_root_is_a_junction_tree_of_the_same_cliques(pairs, root):
    tree = JunctionTree.over(SIZES, pairs)
    again, order = tree.rooted(root % len(tree.cliques))
    assert [tree.cliques[each] for each in order] == list(again.cliques)
    assert order[0] == root % len(tree.cliques) and sorted(order) == list(range(len(order)))
    for place, clique in enumerate(again.cliques[1:], start=1):
        before = {each for earlier in again.cliques[:place] for each in earlier}
        assert set(clique) & before == set(again.separators[place])


def test_a_square_needs_one_chord():
    assert cells_of([2] * 4, [(0, 1), (1, 2), (2, 3), (0, 3)]) == 16
    assert cells_of([2] * 4, []) == 8


def test_what_cannot_occur_has_no_mass():
    tree = JunctionTree.over((2, 2, 2), [(0, 1), (1, 2)])
    barred = np.array([[0.0, -1e6], [0.0, 0.0]])
    first, second = tree.marginals(tree.summed([((0, 1), barred)]), 3.0)
    assert first[0, 1] == 0.0
    assert first.sum() == pytest.approx(3) and second.sum() == pytest.approx(3)


@given(PAIRS, st.sampled_from(list(itertools.combinations(range(len(SIZES)), 2))))
def test_a_growth_is_that_of_a_chordal_graph(pairs, added):
    """Adding the column to the cliques on the way leaves a junction tree of that many cells."""
    tree = JunctionTree.over(SIZES, pairs)
    one, other = added
    grown = min(
        growth
        for growth, clique in zip(tree.growths(one), tree.cliques, strict=True)
        if other in clique
    )
    together = any(one in clique and other in clique for clique in tree.cliques)
    assert (grown == 0) is together
    # the best triangulation by any order of elimination is at most as large
    best = min(eliminated([*pairs, added], order) for order in itertools.permutations(range(5)))
    assert best <= tree.cells + grown


def eliminated(pairs, order):
    """The cells of the maximal cliques of an elimination order."""
    near = {column: set() for column in range(len(SIZES))}
    for one, other in pairs:
        near[one].add(other)
        near[other].add(one)
    cliques = []
    for column in order:
        cliques.append(near[column] | {column})
        for each in near[column]:
            near[each] |= near[column] - {each}
            near[each].discard(column)
        near[column] = set()
    largest = [each for each in cliques if not any(each < other for other in cliques)]
    unique = {frozenset(each) for each in largest}
    return sum(math.prod(SIZES[at] for at in each) for each in unique)


@pytest.mark.parametrize("sizes", [(2, 3, 4), (5, 2, 6, 7, 8), (1,) * 39 + (40, 50)])
def test_sums_over_columns_are_those_of_numpy(sizes):
    columns = tuple(range(3, 3 + len(sizes)))
    table = np.random.default_rng(2).uniform(size=sizes)
    last = len(sizes) - 1
    for kept in ((), (0,), (last,), (0, last), (1, last), tuple(range(last))):
        others = tuple(at for at in range(len(sizes)) if at not in kept)
        found = summed_over(table, columns, tuple(columns[at] for at in kept))
        assert np.allclose(found, table.sum(axis=others), rtol=1e-12)
    assert summed_over(table, columns, columns) is table
