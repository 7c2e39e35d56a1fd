# SPDX-License-Identifier: Apache-2.0
"""One column of several: parts of queries against matrices of projections."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sfumato.errors import WrongUse
from sfumato.synopsis.chain import Chain
from sfumato.synopsis.workload import Cells, Prefixes, Ranges
from tests.synopsis.matrices import queries

CHAINS = st.sampled_from(
    [
        Chain(1, (1,)),
        Chain(5, (1, 5)),
        Chain(5, (1, 2, 6)),
        Chain(8, (1, 2, 4, 8)),
        Chain(7, (1, 3, 9)),
    ]
)


def projections(chain: Chain) -> list[np.ndarray]:
    """The matrix that projects on each space, over padded cells."""
    averages = []
    for width in chain.widths:
        blocks = np.arange(chain.padded) // width
        averages.append((blocks[:, None] == blocks[None, :]) / width)
    pairs = pairwise(averages)
    return [*(narrow - wide for narrow, wide in pairs), averages[-1]]


@given(CHAINS, st.data())
def test_the_parts_of_a_query_are_its_projections(chain, data):
    query = data.draw(arrays(float, chain.cells, elements=st.integers(-3, 3)))
    filled = np.zeros(chain.padded)
    filled[: chain.cells] = query
    if (query == 1).all():
        filled[:] = 1
    parts = chain.parts(query)
    for width, part, project in zip(chain.widths, parts, projections(chain), strict=True):
        assert np.repeat(part, width) == pytest.approx(project @ filled)
    lengths = [float((project @ filled) @ (project @ filled)) for project in projections(chain)]
    assert chain.squared(parts) * chain.padded == pytest.approx(np.array(lengths))


@given(CHAINS, st.sampled_from([Cells, Prefixes, Ranges]))
def test_energies_are_the_squared_lengths_over_all_queries(chain, kind):
    table = np.zeros((0, chain.padded))
    for query in queries(kind(chain.cells)):
        table = np.vstack([table, np.append(query, np.zeros(chain.padded - chain.cells))])
    lengths = [float(((table @ project) ** 2).sum()) for project in projections(chain)]
    assert chain.energies(kind(chain.cells)) * chain.padded == pytest.approx(np.array(lengths))


@given(CHAINS, st.integers(0, 2))
def test_sums_of_blocks_are_lifted_along_any_axis(chain, axis):
    if not chain.top:
        return
    shape = [2, 3, 2]
    shape[axis] = chain.cells
    table = np.random.default_rng(1).normal(size=shape)
    lifted = chain.lift(table, 0, axis)
    assert lifted.shape[axis] == chain.blocks(1)
    first = np.take(table, range(min(chain.widths[1], chain.cells)), axis=axis).sum(axis=axis)
    assert np.take(lifted, 0, axis=axis) == pytest.approx(first)
    assert lifted.sum() == pytest.approx(table.sum())


@pytest.mark.parametrize("widths", [(2, 4), (1, 2, 3), (1, 2), (1, 1, 4)])
def test_other_widths_are_refused(widths):
    with pytest.raises(WrongUse, match="Widths"):
        Chain(4, widths)
