# SPDX-License-Identifier: Apache-2.0
"""Sums of blocks of several axes against their proved distances, on all neighbours of tiny tables."""

import itertools
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.engines.reference import Reference
from sfumato.errors import InvalidDeclaration
from sfumato.metadata.dataset import Dataset
from sfumato.plan.cube import BoundedCube
from sfumato.privacy.distance import Norm
from sfumato.query.marginals import marginal_cube
from sfumato.query.statistic import Opened
from sfumato.synopsis.block_sums import BlockSums

BLOCKS = [(), (("v", 1),), (("v", 2),), (("v", 1), ("s", 1)), (("s", 2), ("v", 2)), (("v", 4),)]
CELLS = list(itertools.product((0, 1, 2, None), ("F", "M", None)))


def cube(relation: object = sf.AddRemove) -> BoundedCube:
    """Two rows of each unit count in full."""
    table = sf.Table(
        pa.table({"who": ["a"], "v": [0], "s": ["F"]}),
        unit=sf.Unit("who", max_rows_total=2),
        columns={"v": sf.Integer(0, 2), "s": sf.Category("F", "M")},
    )
    return marginal_cube(Dataset("tiny", {"t": table}, relation), "t", [("v", "s")])


def rows(who: str) -> Iterator[list[dict[str, object]]]:
    """Every choice of up to two rows of a unit."""
    for size in range(3):
        for cells in itertools.combinations_with_replacement(CELLS, size):
            yield [{"who": who, "v": value, "s": sex} for value, sex in cells]


def exact(statistic: BlockSums, table: list[dict[str, object]]) -> np.ndarray:
    opened = Opened(statistic.plan, cube=Reference({"t": table}).cube(statistic.plan))
    with opened:
        return statistic.exact(opened).astype(object)


def farthest(statistic: BlockSums, *, replaced: bool) -> tuple[int, int]:
    """The largest change in L1 and the largest squared one in L2 between neighbours."""
    mine = [exact(statistic, table) for table in rows("a")]
    others = mine if replaced else [exact(statistic, [])]
    moved = [np.abs(one - other) for one in mine for other in others]
    return max(each.sum() for each in moved), max((each**2).sum() for each in moved)


@pytest.mark.parametrize("relation", [sf.AddRemove, sf.ReplaceOne])
@pytest.mark.parametrize("blocks", BLOCKS)
def test_sums_of_blocks_move_by_at_most_their_proved_distance(blocks, relation):
    statistic = BlockSums(cube(relation), blocks)
    most, squared = farthest(statistic, replaced=relation is sf.ReplaceOne)
    assert most <= statistic.distance(Norm.L1).value
    assert squared <= statistic.distance(Norm.L2).value
    if len(exact(statistic, [])) > 1:
        # the bounds are reached
        assert most == statistic.distance(Norm.L1).value
        assert squared == statistic.distance(Norm.L2).value


def test_blocks_that_overlap_are_noticed(monkeypatch):
    """The mutant lets each block have the first cell of the next one too."""
    honest = np.add.reduceat

    class Overlapping:
        def reduceat(self, cells, starts, axis):
            sums = honest(cells, starts, axis=axis)
            if len(starts) > 1:
                sums = sums + np.take(cells, np.minimum(starts + 2, starts[-1]), axis=axis)
            return sums

    monkeypatch.setattr(np, "add", Overlapping())
    statistic = BlockSums(cube(), (("v", 2),))
    most, _ = farthest(statistic, replaced=False)
    assert most > statistic.distance(Norm.L1).value


def test_missing_values_are_in_the_last_block():
    table = [{"who": "a", "v": None, "s": "M"}, {"who": "b", "v": 2, "s": "M"}]
    one = cube().refinement
    blocks, both = BlockSums(cube(), (("v", 2),)), BlockSums(cube(), (("v", 3), ("s", 1)))
    assert exact(blocks, table).tolist() == [0, 2 * one]
    assert exact(both, table).tolist() == [0, one, 0, 0, one, 0]


def test_nothing_is_proved_in_another_norm_or_of_no_cells():
    with pytest.raises(InvalidDeclaration):
        BlockSums(cube(), ()).distance(Norm.LINF)
    with pytest.raises(InvalidDeclaration):
        BlockSums(cube(), (("v", 0),))
