# SPDX-License-Identifier: Apache-2.0
"""Counts of blocks against their proved distances, on all neighbours of tiny tables."""

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidDeclaration
from sfumato.privacy.distance import Norm
from sfumato.synthetic import counts
from sfumato.synthetic.counts import BlockCounts, added_up
from tests.synthetic.tiny import cube, exact, units

BLOCKS = [
    (),
    (("v", (0, 0, 0, 0)),),
    (("v", (2, 0, 2, 1)),),
    (("s", (1, 0, 1)), ("v", (0, 1, 1, 0))),
]


def farthest(statistic: BlockCounts, *, replaced: bool) -> tuple[int, int]:
    """The largest change in L1 and the largest squared one in L2 between neighbours."""
    mine = [exact(statistic, rows) for rows in units("a")]
    others = mine if replaced else [exact(statistic, [])]
    moved = [np.abs(one - other) for one in mine for other in others]
    return max(each.sum() for each in moved), max((each**2).sum() for each in moved)


@pytest.mark.parametrize("relation", [sf.AddRemove, sf.ReplaceOne])
@pytest.mark.parametrize("blocks", BLOCKS)
def test_counts_of_blocks_move_by_at_most_their_proved_distance(blocks, relation):
    statistic = BlockCounts(cube(relation), blocks)
    most, squared = farthest(statistic, replaced=relation is sf.ReplaceOne)
    assert most <= statistic.distance(Norm.L1).value
    assert squared <= statistic.distance(Norm.L2).value
    if np.prod(statistic.shape) > 1:
        assert most == statistic.distance(Norm.L1).value


def test_a_cell_in_two_blocks_is_noticed(monkeypatch):
    """The mutant counts the first cell in every block."""

    def twice(cells, axis, blocks):
        return added_up(cells, axis, blocks) + np.take(cells, [0], axis=axis)

    monkeypatch.setattr(counts, "added_up", twice)
    statistic = BlockCounts(cube(), (("v", (2, 0, 2, 1)),))
    assert farthest(statistic, replaced=False)[0] > statistic.distance(Norm.L1).value


def test_blocks_are_added_up_in_their_order():
    cells = np.arange(12).reshape(3, 4)
    # block 0 has the columns 1 and 3, block 1 the columns 0 and 2
    assert added_up(cells, 1, (1, 0, 1, 0)).tolist() == [[4, 2], [12, 10], [20, 18]]
    with pytest.raises(InvalidDeclaration):
        added_up(cells, 1, (0, 1))


def test_blocks_with_gaps_and_other_norms_are_refused():
    with pytest.raises(InvalidDeclaration):
        BlockCounts(cube(), (("v", (0, 2, 2, 0)),))
    with pytest.raises(InvalidDeclaration):
        BlockCounts(cube(), ()).distance(Norm.LINF)
