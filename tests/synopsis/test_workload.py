# SPDX-License-Identifier: Apache-2.0
"""Workloads in closed form, against every query written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import WrongUse
from sfumato.synopsis.workload import Cells, Prefixes, Ranges, Workload
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
