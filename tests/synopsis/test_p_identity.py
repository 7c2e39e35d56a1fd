# SPDX-License-Identifier: Apache-2.0
"""p-identity: the slope, the lattice, and errors known from the literature."""

import numpy as np
import pytest

from sfumato.synopsis import p_identity as module
from sfumato.synopsis.p_identity import p_identity
from sfumato.synopsis.workload import Cells, Prefixes, Ranges
from tests.synopsis.matrices import queries


@pytest.mark.parametrize("kind", [Prefixes, Ranges])
def test_the_error_and_its_slope_are_those_of_the_matrix(kind):
    workload, random = kind(7), np.random.default_rng(2)
    roots = random.uniform(0.2, 1, (3, 7))

    def error(roots: np.ndarray) -> float:
        rows = roots**2
        strategy = np.vstack([np.eye(7), rows]) / (1 + rows.sum(axis=0))
        inverse = np.linalg.inv(strategy.T @ strategy)
        asked = queries(workload)
        return float(np.einsum("ij,jk,ik->", asked, inverse, asked))

    found, slope = module._error(workload.gram(), roots)
    assert found == pytest.approx(error(roots))
    for place in np.ndindex(3, 7):
        step = np.zeros((3, 7))
        step[place] = 1e-6
        difference = (error(roots + step) - error(roots - step)) / 2e-6
        assert slope[place] == pytest.approx(difference, rel=1e-4, abs=1e-3)


@pytest.mark.parametrize("cells", [12, 33, 100])
@pytest.mark.parametrize("kind", [Cells, Prefixes, Ranges])
def test_columns_add_up_to_at_most_the_lattice(cells, kind):
    stack = p_identity(kind(cells))
    assert stack.layer.norm == 2**14
    assert stack.error(kind(cells), [2.0**28]) >= stack.error(kind(cells), [2.0**29])


@pytest.mark.long
def test_all_ranges_of_1024_cells_are_better_than_in_the_literature():
    """HDMM reaches 133/eps^2, the best tree 153.6."""
    stack = p_identity(Ranges(1024))
    assert 2 * stack.error(Ranges(1024), [float(stack.layer.norm) ** -2]) < 125


def test_rounding_costs_next_to_nothing():
    workload = Ranges(128)
    stack = p_identity(workload)
    roots = module._searched(workload.gram() / workload.queries, module._start(128))
    exact, _ = module._error(workload.gram() / workload.queries, roots)
    assert stack.error(workload, [2.0**-28]) == pytest.approx(exact, rel=0.01)


@pytest.mark.parametrize("cells", [1, 11, 1025, 2**20])
def test_few_and_many_cells_have_none(cells):
    assert p_identity(Ranges(cells)) is None
