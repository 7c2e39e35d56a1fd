# SPDX-License-Identifier: Apache-2.0
"""Tables of levels against their proved distances, on all neighbours of small tables."""

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
from sfumato.synopsis.geography.layer import CensusLayer

# four blocks, of which the last is in no area; two areas; an axis whose missing values are left out
AREAS = {
    "blocks": np.array([0, 1, 2, -1, -1]),
    "counties": np.array([0, 0, 1, -1, -1]),
    "nation": np.array([0, 0, 0, -1, -1]),
}
LAYERS = [(name, kept) for name in AREAS for kept in [(), (0,), (0, 1), (1,)]]


def cube(relation: object = sf.AddRemove) -> BoundedCube:
    """Two rows of each unit count in full."""
    table = sf.Table(
        pa.table({"who": ["a"], "block": [0], "v": [0], "w": [0]}),
        unit=sf.Unit("who", max_rows_total=2),
        columns={"block": sf.Integer(0, 3), "v": sf.Integer(0, 1), "w": sf.Integer(0, 1)},
    )
    return marginal_cube(Dataset("tiny", {"t": table}, relation), "t", [("block", "v", "w")])


VALUES = [(block, v, w) for block in (0, 1, 2, 3, None) for v in (0, None) for w in (0, 1)]


def rows(who: str, most: int = 2) -> Iterator[list[dict[str, object]]]:
    """Choices of up to so many rows of a unit."""
    for size in range(most + 1):
        for chosen in itertools.combinations_with_replacement(VALUES, size):
            yield [{"who": who, "block": b, "v": v, "w": w} for b, v, w in chosen]


def layer(name: str, kept: tuple[int, ...], relation: object = sf.AddRemove) -> CensusLayer:
    return CensusLayer(cube(relation), AREAS[name], ((0, 1), (0, 1, 2)), kept)


def exact(statistic: CensusLayer, table: list[dict[str, object]]) -> np.ndarray:
    opened = Opened(statistic.plan, cube=Reference({"t": table}).cube(statistic.plan))
    with opened:
        return statistic.exact(opened)


def farthest(statistic: CensusLayer, *, replaced: bool) -> tuple[int, int]:
    """The largest change in L1 and the largest squared one in L2 between neighbours."""
    mine = np.array([exact(statistic, table) for table in rows("a", 1 if replaced else 2)])
    others = mine if replaced else np.zeros((1, mine.shape[1]), np.int64)
    moved = np.abs(mine[:, None, :] - others[None, :, :]).astype(object)
    return moved.sum(axis=2).max(), (moved**2).sum(axis=2).max()


@pytest.mark.parametrize("relation", [sf.AddRemove, sf.ReplaceOne])
@pytest.mark.parametrize(("name", "kept"), [LAYERS[0], LAYERS[6], LAYERS[9]])
def test_a_table_of_a_level_moves_by_at_most_its_proved_distance(name, kept, relation):
    statistic = layer(name, kept, relation)
    replaced = relation is sf.ReplaceOne
    most, squared = farthest(statistic, replaced=replaced)
    assert most <= statistic.distance(Norm.L1).value
    assert squared <= statistic.distance(Norm.L2).value
    if not replaced:
        # the bounds are reached
        assert (most, squared) == (
            statistic.distance(Norm.L1).value,
            statistic.distance(Norm.L2).value,
        )


@pytest.mark.parametrize(("name", "kept"), LAYERS)
def test_its_integers_are_those_of_a_plain_count(name, kept):
    table = [
        {"who": str(place), "block": block, "v": v, "w": w}
        for place, (block, v, w) in enumerate(VALUES * 2)
    ]
    statistic = layer(name, kept)
    areas = AREAS[name]
    wanted = np.zeros([areas.max() + 1, *((2, 3)[axis] for axis in kept)], np.int64)
    for row in table:
        area = -1 if row["block"] is None else areas[row["block"]]
        # missing values of v are left out; those of w are its third cell
        cell = (row["v"], 2 if row["w"] is None else row["w"])
        if area >= 0 and row["v"] is not None:
            wanted[(area, *(cell[axis] for axis in kept))] += statistic.plan.refinement
    assert exact(statistic, table).tolist() == wanted.ravel().tolist()
    assert statistic.size == wanted.size


def test_a_level_that_counts_a_row_twice_is_noticed(monkeypatch):
    """The mutant adds the county of a block to its cells."""
    honest = CensusLayer.exact

    def twice(self: CensusLayer, opened: Opened) -> np.ndarray:
        found = honest(self, opened).reshape(3, -1)
        return np.concatenate([found, found[:1] + found[1:2]]).ravel()

    monkeypatch.setattr(CensusLayer, "exact", twice)
    statistic = layer("blocks", (1,))
    most, _ = farthest(statistic, replaced=False)
    assert most > statistic.distance(Norm.L1).value


@pytest.mark.parametrize("places", [(0, 0), (1, 0), (-1, 1)])
def test_a_cell_that_would_count_twice_is_refused(places, monkeypatch):
    """Without the check, the mutant moves by twice its distance, or counts a cell from behind."""
    with pytest.raises(InvalidDeclaration, match="ascend"):
        CensusLayer(cube(), AREAS["blocks"], (places, (0, 1, 2)), (0, 1))
    monkeypatch.setattr(CensusLayer, "__post_init__", lambda self: None)
    mutant = CensusLayer(cube(), AREAS["blocks"], ((0, 0), (0, 1, 2)), (0, 1))
    most, _ = farthest(mutant, replaced=False)
    assert most > mutant.distance(Norm.L1).value


def test_nothing_is_proved_in_another_norm():
    with pytest.raises(InvalidDeclaration):
        layer("nation", ()).distance(Norm.LINF)
