# SPDX-License-Identifier: Apache-2.0
"""No strategy is below the bound; the identity reaches it for a histogram."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.privacy.distance import Norm
from sfumato.synopsis.bound import least_factor
from sfumato.synopsis.strategy import strategies
from sfumato.synopsis.workload import Cells, Prefixes, Ranges
from tests.synopsis.matrices import queries


@pytest.mark.parametrize("kind", [Cells, Prefixes, Ranges])
@pytest.mark.parametrize("cells", [1, 2, 15, 40])
def test_no_candidate_is_below_the_bound(kind, cells):
    least = least_factor(kind(cells))
    for norm in (Norm.L1, Norm.L2):
        for strategy in strategies(kind(cells), norm):
            assert strategy.factor >= least * (1 - 1e-9)


@given(st.integers(0, 10**6))
def test_no_random_strategy_is_below_the_bound(seed):
    """Six rows over five cells, columns of length 1, against all ranges."""
    matrix = np.random.default_rng(seed).normal(size=(6, 5))
    matrix /= np.linalg.norm(matrix, axis=0)
    asked = queries(Ranges(5))
    inverse = np.linalg.inv(matrix.T @ matrix)
    error = np.einsum("ij,jk,ik->i", asked, inverse, asked).mean()
    assert error >= least_factor(Ranges(5)) * (1 - 1e-9)


def test_a_histogram_reaches_the_bound_and_many_cells_have_none():
    assert least_factor(Cells(30)) == pytest.approx(1)
    assert least_factor(Ranges(4096)) is None
