# SPDX-License-Identifier: Apache-2.0
"""Variable elimination against sums over the whole table."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.synthetic import elimination
from sfumato.synthetic.elimination import Elimination
from sfumato.synthetic.tree import JunctionTree

SIZES = (2, 3, 2, 4, 2)


def drawn(cliques, seed, copies=3):
    """A positive table for each clique, in each of some distributions."""
    random = np.random.default_rng(seed)
    return [random.uniform(0.1, 1, (copies, *(SIZES[each] for each in one))) for one in cliques]


def whole(cliques, tables, place):
    """The product of all tables of one distribution, over all columns."""
    product = np.ones(SIZES)
    for columns, table in zip(cliques, tables, strict=True):
        shape = [SIZES[each] if each in columns else 1 for each in range(len(SIZES))]
        product = product * table[place].reshape(shape)
    return product


def check_marginals(cliques, seed):
    """Each marginal is the sum over all other columns of the whole table."""
    tables, totals = drawn(cliques, seed), np.array([1.0, 20.0, 300.0])
    plan = Elimination.of(JunctionTree.over(SIZES, cliques), cliques)
    found = plan.marginals(tables, totals)
    for place, total in enumerate(totals):
        product = whole(cliques, tables, place)
        product *= total / product.sum()
        for columns, marginal in zip(cliques, found, strict=True):
            others = tuple(each for each in range(len(SIZES)) if each not in columns)
            assert np.allclose(marginal[place], product.sum(axis=others), rtol=1e-10)


cliques_of_columns = st.lists(
    st.sets(st.integers(0, 4), min_size=1, max_size=3).map(lambda some: tuple(sorted(some))),
    min_size=1,
    max_size=8,
)


@given(cliques_of_columns, st.integers(0, 2**32))
def test_marginals_are_sums_of_the_whole_table(cliques, seed):
    check_marginals(cliques, seed)


@pytest.mark.parametrize(
    "cliques",
    [
        [(0, 1), (1, 2), (2, 3), (0, 3), (1, 3)],
        [(0,), (0,), (1,)],
        [(0, 1, 3), (0, 1, 3), (3, 4), (2,)],
    ],
)
def test_loops_twins_and_parts_that_share_no_column(cliques):
    check_marginals(cliques, seed=1)


def test_a_wrong_derivative_is_noticed(monkeypatch):
    def swapped(self, tables, derivative, derivatives):
        derivatives[self.left] = self.to_left(derivative, tables[self.right])
        derivatives[self.right] = np.ones(tables[self.right].shape)

    monkeypatch.setattr(elimination._Product, "backward", swapped)
    with pytest.raises(AssertionError):
        check_marginals([(0, 1), (1, 2), (2, 3)], seed=1)


def test_sums_that_are_too_small_give_nothing():
    cliques = [(0,), (0, 1)]
    tables = [np.array([[1.0, 0.0]]), np.zeros((1, 2, 3))]
    tables[1][0, 1] = 1.0
    plan = Elimination.of(JunctionTree.over(SIZES[:2], cliques), cliques)
    assert plan.marginals(tables, np.array([9.0])) is None


def test_a_table_of_a_clique_is_not_made():
    """A ring of three columns and one beside them: two tables meet as matrices."""
    cliques = [(0, 1, 3), (3, 4), (0, 4), (1, 4)]
    sizes = (10, 10, 1, 10, 10)
    plan = Elimination.of(JunctionTree.over(sizes, cliques), cliques)
    tables = [np.ones((1, *(sizes[each] for each in columns))) for columns in cliques]
    for step in plan.steps:
        tables.append(step.forward(tables))
    assert max(table.size for table in tables) == 1000
