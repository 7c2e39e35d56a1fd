# SPDX-License-Identifier: Apache-2.0
"""Workloads in closed form, against every query written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import WrongUse
from sfumato.synopsis.workload import Cells, GivenKind, Prefixes, Ranges, Workload
from tests.synopsis.matrices import queries


@given(st.sampled_from([Cells, Prefixes, Ranges]), st.integers(1, 14), st.integers(1, 16))
def test_an_energy_is_the_squared_length_after_averaging(kind: type[Workload], cells, width):
    workload = kind(cells)
    written = queries(workload)
    blocks = -(-cells // width)
    padded = np.zeros((len(written), blocks * width))
    padded[:, :cells] = written
    means = padded.reshape(len(written), blocks, width).mean(axis=2)
    assert len(written) == workload.queries
    assert workload.energy(width) == pytest.approx((means**2).sum() * width, rel=1e-12)
    assert workload.energies([width, 1])[0] == workload.energy(width)


def test_a_trillion_ranges_are_a_few_numbers():
    workload = Ranges(2**20)
    assert workload.queries > 5 * 10**11
    # the sum of all lengths is n (n + 1) (n + 2) / 6
    assert workload.energy(1) == pytest.approx(2**20 * (2**20 + 1) * (2**20 + 2) / 6, rel=1e-12)


@pytest.mark.parametrize("kind", [Cells, Prefixes, Ranges])
def test_a_workload_without_cells_is_refused(kind):
    with pytest.raises(WrongUse):
        kind(0)


@pytest.mark.parametrize("kind", [Cells, Prefixes, Ranges])
@pytest.mark.parametrize("cells", [1, 2, 9])
def test_the_gram_matrix_is_that_of_the_queries(kind, cells):
    asked = queries(kind(cells))
    assert kind(cells).gram() == pytest.approx(asked.T @ asked)


@pytest.mark.parametrize("cells", [1, 4, 9])
def test_given_queries_are_those_that_were_given(cells):
    random = np.random.default_rng(cells)
    rows = [random.integers(-3, 4, cells + 1).astype(float) for _ in range(3)]
    rows += [np.ones(cells + 1), np.arange(cells + 1.0)]
    found = GivenKind.of(rows)(cells)
    assert found.queries == 5
    assert (found.gram() == sum(np.outer(row, row) for row in rows)).all()
    for width in (1, 2, 5):
        blocks = [np.add.reduceat(row, np.arange(0, cells + 1, width)) for row in rows]
        assert found.energy(width) == pytest.approx(sum(b @ b for b in blocks) / width)


def test_a_range_or_a_sum_of_many_values_is_a_few_numbers():
    values = np.arange(10**6)
    kind = GivenKind.of([(values > 400_000) * 1.0, values * (values < 9) * 1.0])
    assert sum(map(len, kind.rows)) <= 8
