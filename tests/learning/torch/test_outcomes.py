# SPDX-License-Identifier: Apache-2.0
"""Counts of right predictions of networks: against plain torch, on neighbours, mixing refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import sfumato as sf
from sfumato import learning as ln
from sfumato.errors import WrongUse
from sfumato.learning import torch as lt
from sfumato.learning.examples import Label
from sfumato.learning.torch.isolation import require_outputs_apart
from sfumato.learning.torch.outcomes import NetworkOutcomes
from sfumato.learning.torch.recorded import Recorded
from sfumato.privacy.distance import Norm
from sfumato.privacy.unit import Relation
from tests.learning.rows import SELECT, connected, frame
from tests.learning.torch.nets import (
    CLASSES,
    LOSS,
    READING,
    WIDTH,
    Centred,
    codes,
    image,
    linear,
    opened,
    plan,
    sums,
)

RELATIONS = (Relation.ADD_REMOVE, Relation.REPLACE_ONE)


def outcomes(module: nn.Module, relation: Any = Relation.ADD_REMOVE) -> NetworkOutcomes:
    label = Label(WIDTH, 0, CLASSES - 1)
    return NetworkOutcomes(plan(1, relation), label, READING, Recorded(module, LOSS))


def exact(statistic: NetworkOutcomes, rows: Any) -> Any:
    return statistic.exact(opened(replace(sums(linear()), plan=statistic.plan), rows))


@pytest.mark.parametrize("make", [linear, image])
def test_counts_are_those_of_plain_torch(make: Any) -> None:
    module, rows = make(), codes(1500)
    with torch.no_grad():
        best = module(torch.from_numpy(rows[:, :WIDTH] / 9).float()).argmax(1).numpy()
    right = int((best == rows[:, WIDTH]).sum())
    assert exact(outcomes(module), rows).tolist() == [right, 1500 - right]
    rows[:100, WIDTH] = -5
    assert exact(outcomes(module), rows).sum() == 1400


@pytest.mark.parametrize("relation", RELATIONS)
def test_outcomes_of_a_network_move_by_at_most_their_proved_distance(relation: Relation) -> None:
    statistic, rows = outcomes(linear(), relation), codes(700)
    base, reached = exact(statistic, rows), 0
    for place in range(0, 700, 7):
        other = rows.copy()
        other[place] = codes(1, seed=place + 1)[0]
        if relation is Relation.ADD_REMOVE:
            other = np.delete(rows, place, axis=0)
        reached = max(reached, int(np.abs(exact(statistic, other) - base).sum()))
    assert reached == statistic.distance(Norm.L1).value


def test_outputs_that_mix_rows_are_refused() -> None:
    for module in (Centred(), nn.Sequential(nn.BatchNorm1d(WIDTH), nn.Linear(WIDTH, CLASSES))):
        with pytest.raises(WrongUse, match="Rows are mixed"):
            require_outputs_apart(Recorded(module, LOSS), READING, 64)
    require_outputs_apart(Recorded(linear(), LOSS), READING, 64)


def test_a_mutant_that_mixes_rows_moves_by_more() -> None:
    # a row far from the others moves the mean that all of them are compared with
    rows = np.tile(np.arange(WIDTH + 1) % 3, (900, 1))
    rows[:, WIDTH] = 2
    module = Centred()
    with torch.no_grad():
        module.out.weight.copy_(torch.ones(CLASSES, 1) * torch.tensor([[1.0], [-1.0], [0.0]]))
        module.out.bias.copy_(torch.tensor([0.0, 0.0, 1e-6]))
    moved = rows.copy()
    moved[0, :WIDTH] = 9
    gap = exact(outcomes(module), moved) - exact(outcomes(module), rows)
    assert np.abs(gap).sum() > outcomes(module, Relation.REPLACE_ONE).distance(Norm.L1).value


def test_a_single_output_is_that_of_the_second_class() -> None:
    one = nn.Linear(WIDTH, 1)
    with torch.no_grad():
        one.weight.fill_(1.0)
        one.bias.fill_(-0.5)
    rows = np.zeros((4, WIDTH + 1), np.int64)
    rows[2:, 0] = 9
    assert outcomes(one).predicted(rows).tolist() == [0, 0, 1, 1]


def test_a_network_is_scored_once_and_its_frontier_is_drawn(tmp_path: Path) -> None:
    torch.manual_seed(2)
    module = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
    network = lt.Network(module, LOSS, lt.SGD(2.0, 0.5), size=2000, steps=8)
    rows = frame(2000)
    with connected(tmp_path, rows, sf.Budget(10**4, "1e-5")) as session:
        model = ln.fit(session, network, SELECT, label="ill", epsilon=2, delta="1e-6")
        found = ln.score(session, model, SELECT, label="ill", epsilon=1000)
        truth = [str(each) for each in rows["ill"].to_pylist()]
        right = sum(one == two for one, two in zip(model.predict(rows), truth, strict=True))
        assert (found.right, found.wrong) == (right, 2000 - right)
        spent = session.budget.spent
        assert ln.score(session, model, SELECT, label="ill", epsilon=1000) == found
        assert session.budget.spent == spent
        mixing = replace(model, module=nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 2)))
        with pytest.raises(WrongUse, match="Rows are mixed"):
            ln.score(session, mixing, SELECT, label="ill", epsilon=1)
        assert session.budget.spent == spent
