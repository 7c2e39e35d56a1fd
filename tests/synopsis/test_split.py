# SPDX-License-Identifier: Apache-2.0
"""Splits of a cost: the least error, in a few cases that are known in closed form."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.privacy.distance import Norm
from sfumato.synopsis.split import Dense, Sparse, best_split, error, information


def test_two_independent_layers_share_by_the_root_of_what_is_asked():
    """Of a/x + b/(1 - x) the least is at x = sqrt a / (sqrt a + sqrt b)."""
    _, shares = best_split(np.array([4.0, 1.0]), Dense(np.eye(2)), Norm.L2)
    assert shares == pytest.approx([2 / 3, 1 / 3], abs=1e-4)


def test_two_independent_layers_in_l1_share_by_the_cubic_root():
    """Of a/x^2 + b/(1 - x)^2 the least is at x = a^(1/3) / (a^(1/3) + b^(1/3))."""
    _, shares = best_split(np.array([8.0, 1.0]), Dense(np.eye(2)), Norm.L1)
    assert shares == pytest.approx([2 / 3, 1 / 3], abs=1e-4)


@given(st.integers(0, 10**6))
def test_no_random_split_is_better(seed):
    random = np.random.default_rng(seed)
    actions = Dense(random.uniform(0, 1, (4, 5)) * random.integers(0, 2, (4, 5)) + np.eye(4, 5))
    actions.table[0] += 0.1
    asked = random.uniform(0, 1, 5)
    kept, shares = best_split(asked, actions, Norm.L2)
    least = error(asked, information(shares, actions.only(kept), Norm.L2))
    for _ in range(20):
        other = random.dirichlet(np.ones(4))
        assert least <= error(asked, information(other, actions, Norm.L2)) * (1 + 1e-3)


@given(st.integers(0, 10**6))
def test_a_sparse_table_is_the_dense_one(seed):
    random = np.random.default_rng(seed)
    table = random.uniform(0, 1, (4, 5)) * random.integers(0, 2, (4, 5))
    rows, columns = np.nonzero(table)
    sparse, dense = Sparse(rows, columns, table[rows, columns], 4, 5), Dense(table)
    precisions, slopes = random.uniform(size=4), random.uniform(size=5)
    assert sparse.information(precisions) == pytest.approx(dense.information(precisions))
    assert sparse.back(slopes) == pytest.approx(dense.back(slopes))
    kept = [0, 2, 3]
    assert sparse.only(kept).information(precisions[kept]) == pytest.approx(
        dense.only(kept).information(precisions[kept])
    )


@np.errstate(all="raise")
def test_the_share_of_a_layer_that_is_not_worth_its_cost_may_vanish():
    """In L1 the layers are left out one by one: the share of the second is below every float."""
    actions = Dense(np.array([[1.0, 1.0], [1e-3, 1e-3], [0.0, 1.0]]))
    kept, shares = best_split(np.array([4.0, 1.0]), actions, Norm.L1)
    measured = np.zeros(3)
    measured[kept] = shares
    assert measured[1] < 1e-9 and measured.sum() == pytest.approx(1)


def test_what_is_asked_and_not_known_has_no_finite_error():
    assert error(np.array([1.0, 1.0]), np.array([1.0, 0.0])) == float("inf")
    assert error(np.array([1.0, 0.0]), np.array([2.0, 0.0])) == 0.5
