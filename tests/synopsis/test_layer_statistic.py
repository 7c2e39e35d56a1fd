# SPDX-License-Identifier: Apache-2.0
"""Layers against their proved distances, on all neighbours of small tables, with broken ones."""

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
from sfumato.synopsis.dense import DenseLayer
from sfumato.synopsis.layer_statistic import AxisLayer
from sfumato.synopsis.layers import Layer

DENSE = DenseLayer.of([3, 2, 4, 1], [[1, 2, 0, 3], [1, 1, 1, 1]])
LAYERS = [Layer(1), Layer(2), Layer(4), Layer(2, halves=True), Layer(4, halves=True)]
VALUES = [0, 1, 2, 3, None]


def cube(relation: object = sf.AddRemove) -> BoundedCube:
    """Two rows of each unit count in full."""
    table = sf.Table(
        pa.table({"who": ["a"], "v": [0]}),
        unit=sf.Unit("who", max_rows_total=2),
        columns={"v": sf.Integer(0, 3)},
    )
    return marginal_cube(Dataset("tiny", {"t": table}, relation), "t", [("v",)])


def rows(who: str, most: int = 3) -> Iterator[list[dict[str, object]]]:
    """Every choice of up to so many rows of a unit."""
    for size in range(most + 1):
        for values in itertools.combinations_with_replacement(VALUES, size):
            yield [{"who": who, "v": value} for value in values]


def exact(statistic: AxisLayer, table: list[dict[str, object]]) -> np.ndarray:
    opened = Opened(statistic.plan, cube=Reference({"t": table}).cube(statistic.plan))
    with opened:
        return statistic.exact(opened).astype(object)


def farthest(statistic: AxisLayer, *, replaced: bool) -> tuple[int, int]:
    """The largest change in L1 and the largest squared one in L2 between neighbours."""
    others = list(rows("b")) if replaced else [[]]
    found = [exact(statistic, other) for other in others]
    most = squared = 0
    for mine in rows("a"):
        one = exact(statistic, mine)
        for other in found:
            moved = np.abs(one - other)
            most = max(most, moved.sum())
            squared = max(squared, (moved**2).sum())
    return most, squared


@pytest.mark.parametrize("relation", [sf.AddRemove, sf.ReplaceOne])
@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_moves_by_at_most_its_proved_distance(layer, relation):
    statistic = AxisLayer(cube(relation), "v", layer)
    most, squared = farthest(statistic, replaced=relation is sf.ReplaceOne)
    assert most <= statistic.distance(Norm.L1).value
    assert squared <= statistic.distance(Norm.L2).value
    if layer.size(4) > 1:
        # the bounds are reached
        assert most == statistic.distance(Norm.L1).value
        assert squared == statistic.distance(Norm.L2).value


def test_halves_with_the_distance_of_sums_are_noticed():
    """The mutant takes the squared distance of a marginal for differences too."""
    statistic = AxisLayer(cube(sf.ReplaceOne), "v", Layer(2, halves=True))
    _, squared = farthest(statistic, replaced=True)
    assert squared > statistic.plan.l2.value


def test_a_layer_that_counts_a_cell_twice_is_noticed(monkeypatch):
    """The mutant adds the whole block to its first half."""
    honest = Layer.apply

    def doubled(layer: Layer, cells: np.ndarray) -> np.ndarray:
        return honest(layer, cells) + honest(Layer(layer.width), cells)

    monkeypatch.setattr(Layer, "apply", doubled)
    statistic = AxisLayer(cube(), "v", Layer(4, halves=True))
    most, _ = farthest(statistic, replaced=False)
    assert most > statistic.distance(Norm.L1).value


def test_halves_of_the_wrong_scale_are_noticed(monkeypatch):
    """The mutant scales the differences of its level by the cells of a half, as means are not."""
    honest = Layer.apply

    def scaled(layer: Layer, cells: np.ndarray) -> np.ndarray:
        return honest(layer, cells) * (layer.width // 2)

    monkeypatch.setattr(Layer, "apply", scaled)
    statistic = AxisLayer(cube(), "v", Layer(4, halves=True))
    most, squared = farthest(statistic, replaced=False)
    assert most > statistic.distance(Norm.L1).value
    assert squared > statistic.distance(Norm.L2).value


@pytest.mark.parametrize("relation", [sf.AddRemove, sf.ReplaceOne])
def test_a_dense_layer_moves_by_at_most_its_norm(relation):
    statistic = AxisLayer(cube(relation), "v", DENSE)
    most, _ = farthest(statistic, replaced=relation is sf.ReplaceOne)
    assert DENSE.norm == 5
    assert most <= statistic.distance(Norm.L1).value
    if relation is sf.AddRemove:
        assert most == statistic.distance(Norm.L1).value


def test_a_norm_taken_before_rounding_is_noticed():
    """The mutant divides by the lattice and rounds up: columns of 1.2 rows become 2."""
    exact_rows, lattice = np.array([[0.6, 0.6, 0.6, 0.6]] * 2), 1
    rounded = DenseLayer.of([1, 1, 1, 1], np.ceil(exact_rows * lattice))
    before = 1 + exact_rows.sum(axis=0).max()
    most, _ = farthest(AxisLayer(cube(), "v", rounded), replaced=False)
    assert most > before * cube().l1.value
    assert most <= AxisLayer(cube(), "v", rounded).distance(Norm.L1).value


def test_nothing_is_proved_in_another_norm():
    with pytest.raises(InvalidDeclaration, match="dense"):
        AxisLayer(cube(), "v", DENSE).distance(Norm.L2)
    with pytest.raises(InvalidDeclaration):
        AxisLayer(cube(), "v", Layer(1)).distance(Norm.LINF)
