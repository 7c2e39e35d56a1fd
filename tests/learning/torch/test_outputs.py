# SPDX-License-Identifier: Apache-2.0
"""Outputs of modules as points: inside the box, functions of their own row, products of neighbours
as near as their distance says.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from sfumato.learning.points import STEPS
from sfumato.learning.scatter import FINEST, Scatter, radii
from sfumato.learning.torch.outputs import Outputs
from sfumato.learning.torch.recorded import Recorded
from sfumato.privacy.distance import Norm
from sfumato.privacy.unit import Relation
from tests.learning.torch.nets import LOSS, READING, WIDTH, codes, opened, plan, sums

OUT = 6


def body() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(WIDTH, OUT), nn.Tanh())


def outputs(module: nn.Module, width: int = OUT, reach: int = 1) -> Outputs:
    return Outputs(READING, "", width, reach, Recorded(module, LOSS))


def columns(rows: Any) -> list[Any]:
    return [rows[:, place] for place in range(WIDTH)]


def test_outputs_lie_in_the_box() -> None:
    rows, module = codes(600), body()
    with torch.no_grad():
        wanted = module(torch.from_numpy(rows[:, :WIDTH]).float() / 9).numpy()
    for reach in (1, 2):
        found = outputs(module, reach=reach).points(columns(rows))
        assert found.known.all() and found.matrix.dtype == np.int16
        assert np.abs(found.matrix / STEPS - wanted / reach).max() <= 0.51 / STEPS
    far = outputs(nn.Linear(WIDTH, OUT, bias=False).requires_grad_(requires_grad=False))
    far.network.module.weight.fill_(1e30)
    assert (far.points(columns(rows[rows.any(axis=1)])).matrix == STEPS).all()


def test_outputs_of_a_row_depend_on_that_row_alone() -> None:
    rows, box = codes(300), outputs(body())
    whole = box.points(columns(rows)).matrix
    order = np.random.default_rng(1).permutation(300)
    assert (box.points(columns(rows[order])).matrix == whole[order]).all()
    assert (box.points(columns(rows[40:41])).matrix == whole[40:41]).all()


def test_a_row_with_an_output_that_is_not_finite_is_not_known() -> None:
    class Root(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return 1 / (x[:, :2] - x[:, 2:4])

    rows = codes(9)
    rows[:, :4] = [1, 2, 3, 4]
    rows[3, :2], rows[4, :4] = (3, 4), 0
    found = outputs(Root(), 2).points(columns(rows))
    assert np.flatnonzero(~found.known).tolist() == [3, 4]
    assert not found.matrix[3:5].any() and found.matrix[5].all()
    assert outputs(Root(), 2).points(columns(rows[:0])).count == 0


def products(module: nn.Module, width: int, relation: Relation) -> Scatter:
    radius = int(radii(width)[20])
    center = np.zeros(width, np.int64)
    places = tuple(range(WIDTH))
    return Scatter(plan(1, relation), places, outputs(module, width), center, radius, FINEST)


def moved(statistic: Scatter, one: Any, other: Any) -> int:
    like = replace(sums(nn.Linear(WIDTH, 3)), plan=statistic.plan)
    found = statistic.exact(opened(like, one)) - statistic.exact(opened(like, other))
    return int((found**2).sum())


@pytest.mark.parametrize("relation", list(Relation))
def test_products_of_outputs_of_neighbours_are_near(relation: Relation) -> None:
    statistic, rows = products(body(), OUT, relation), codes(300)
    bound = statistic.distance(Norm.L2).value
    reached = 0
    for place in range(0, 300, 30):
        other = np.delete(rows, place, 0)
        if relation is Relation.REPLACE_ONE:
            other = rows.copy()
            other[place] = codes(1, seed=place + 1)[0]
        reached = max(reached, moved(statistic, rows, other))
    assert bound / 9 < reached <= bound


class Quieter(nn.Module):
    """Says which rows are below the largest of a batch: it mixes rows."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x < x.amax(0))[:, :3].float()


def test_a_module_that_mixes_rows_moves_products_by_more() -> None:
    statistic, rows = products(Quieter(), 3, Relation.REPLACE_ONE), codes(200)
    rows[:] = 3
    other = rows.copy()
    other[0] = 9
    assert moved(statistic, rows, other) > statistic.distance(Norm.L2).value
