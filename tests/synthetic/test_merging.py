# SPDX-License-Identifier: Apache-2.0
"""Rare cells are merged, and come back in proportion."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sfumato.synthetic.merging import Merging
from sfumato.synthetic.rows import Dice
from sfumato.testing import Replay

COUNTS = st.lists(st.floats(-50, 50), min_size=1, max_size=12)


@given(COUNTS, st.floats(-60, 60))
def test_every_cell_is_in_one_block_and_no_block_is_empty(counts, least):
    noisy = np.array(counts)
    found = Merging.of(noisy, least)
    assert sorted(set(found.blocks)) == list(range(found.size))
    assert np.isclose(found.merged(noisy).sum(), noisy.sum())
    kept = [cell for cell, count in enumerate(counts) if count >= least]
    assert all(found.sizes[found.blocks[cell]] == 1 for cell in kept)
    assert found.size == len(kept) + (len(kept) < len(counts))


@given(COUNTS, st.floats(0.5, 60))
def test_neighbours_stay_together_and_heavy_cells_alone(counts, least):
    noisy = np.array(counts)
    found = Merging.of_neighbours(noisy, least)
    steps = np.diff(found.blocks)
    assert found.blocks[0] == 0 and set(steps.tolist()) <= {0, 1}
    for block, cells in enumerate(found.members):
        heavy = [cell for cell in cells if counts[cell] >= least]
        assert not heavy or len(cells) == 1
        # what is light is what was left over alone, between heavy cells or the ends
        if np.maximum(noisy[cells], 0).sum() < least:
            ends = [cells[0] - 1, cells[-1] + 1]
            assert all(not 0 <= end < len(counts) or counts[end] >= least for end in ends), block


def test_cells_that_a_constraint_tells_apart_stay_apart():
    found = Merging.of(np.zeros(4), 1.0, np.array([0, 1, 0, 1]))
    assert found.blocks == (0, 1, 0, 1)
    assert found.joined(1).blocks == (0, 1, 0, 1, 1)


def test_a_rest_is_divided_by_its_weights():
    found = Merging((0, 1, 1, 1))
    rows = found.expanded(np.array([1] * 60 + [0] * 5), np.array([9, 1, 2, 0.0]), Dice(Replay(1)))
    assert np.bincount(rows, minlength=4).tolist() == [5, 20, 40, 0]
    assert (rows[60:] == 0).all()
