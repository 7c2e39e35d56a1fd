# SPDX-License-Identifier: Apache-2.0
"""Whitening through a session: what it makes equal, what it costs, and bad input."""

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch import nn

import sfumato as sf
from sfumato import learning as ln
from sfumato.errors import WrongUse
from sfumato.learning import torch as lt
from sfumato.learning.examples_of import Examples
from sfumato.learning.points import STEPS
from sfumato.learning.recipe import Asked, OneRelease
from sfumato.learning.scatter import SQUARE
from sfumato.learning.torch.fingerprint import fingerprint
from sfumato.metadata.dataset import Dataset
from sfumato.query.cost import Cost

WIDTH = 4
MIXED = np.array([[0.3, 0.2, 0.1, 0.0], [0.0, -0.02, 0.02, 0.04]])
SELECT = "SELECT v FROM t"


def points(count: int) -> Any:
    random = np.random.default_rng(3)
    return 0.5 + np.clip(random.normal(0, 0.5, (count, 2)) @ MIXED, -0.5, 0.5)


def table(values: Any) -> pa.Table:
    return pa.table({"v": list(values), "up": values[:, 3] > 0.5})


def connected(folder: Path, rows: pa.Table) -> sf.Session:
    columns = {"v": sf.Array((WIDTH,), 0, 1, step="0.001"), "up": sf.Boolean()}
    people = {"t": sf.Table(rows, columns=columns)}
    ledger = folder / "l.db"
    return sf.connect(people, dataset="d", budget=sf.Budget(1000, "1e-5"), ledger=ledger)


def test_directions_vary_alike_and_a_layer_is_trained_behind_them(tmp_path: Path) -> None:
    values = points(2000)
    with connected(tmp_path, table(values)) as session:
        recipe = lt.Whitening(nn.Identity(), 2)
        preview = ln.preview(session, recipe, SELECT, rho=100)
        found = ln.fit(session, recipe, SELECT, rho=100)
        spent = session.budget.spent_rho
        fewer = ln.fit(session, lt.Whitening(nn.Identity(), 1), SELECT, rho=100)
        # the outputs are other ones
        doubled = lt.Whitening(nn.Identity(), 2, reach=2)
        assert session.budget.spent_rho == spent and fewer.charge == found.charge
        assert ln.fit(session, doubled, SELECT, rho=100).charge != found.charge
        assert preview.cost == found.cost and preview.releases == 3
        with torch.no_grad():
            white = found.layer[0](torch.from_numpy(values).float()).numpy()
        spread = white.std(axis=0)
        assert found.shares[0] > 5 * found.shares[1] and 0.75 < spread[1] / spread[0] < 1.2
        assert np.abs(white.mean(axis=0)).max() < 0.2
        assert np.allclose(np.linalg.norm(found.layer(torch.rand(5, WIDTH)), axis=1), 1)
        module = nn.Sequential(nn.Identity(), found.layer, nn.Linear(2, 2))
        loss = nn.CrossEntropyLoss(reduction="none")
        network = lt.Network(module, loss, lt.SGD(20.0), size=2000, steps=5, checkpoints=1)
        model = ln.fit(session, network, "SELECT v, up FROM t", label="up", rho=100)
        right = np.array(model.predict(table(values))) == (values[:, 3] > 0.5).astype(str)
    assert right.mean() > 0.9
    assert repr(found).startswith("2 of 4 directions, whitened (cost: rho = ")


def test_features_in_evaluation_mode_are_another_task() -> None:
    columns = {"v": sf.Array((WIDTH,), 0, 1, step="0.001"), "up": sf.Boolean()}
    data = Dataset("d", {"t": sf.Table(table(points(9)), columns=columns)})
    examples = Examples.of(data, SELECT, None)
    features = nn.BatchNorm1d(WIDTH, affine=False).eval()
    task = lt.Whitening(features, 2).task(examples, Asked(rho=1), [2])  # type: ignore[list-item]
    assert task.box.made_of != fingerprint(features)
    plain = lt.Whitening(nn.Identity(), 2).task(examples, Asked(rho=1), [2])  # type: ignore[list-item]
    assert plain.box.made_of == fingerprint(nn.Identity())


def test_what_noise_hides_is_added_to_variances() -> None:
    columns = {"v": sf.Array((WIDTH,), 0, 1, step="0.001"), "up": sf.Boolean()}
    data = Dataset("d", {"t": sf.Table(table(points(9)), columns=columns)})
    examples = Examples.of(data, SELECT, None)
    recipe, asked = lt.Whitening(nn.Identity(), 3, reach=2), Asked(rho=1)
    task = recipe.task(examples, asked, ())
    # 1,000 rows, a radius of the whole box, a mean of 0.5; variances of 0.3, 0.2, 0.1 and 0
    matrix = np.diag([0.3, 0.2, 0.1, 0.0])[np.triu_indices(WIDTH)]
    products = matrix * 1000 * SQUARE * task.length**2
    body = np.concatenate([[1000, STEPS], np.full(WIDTH, STEPS / 2), products]).tobytes()
    planned = recipe.planned(examples, asked, ())
    assert isinstance(planned, OneRelease)
    found = planned.made(body, Cost("0", "1", "0", ()), "a charge")
    line = found.layer[0]
    scales = 1 / np.sqrt(np.array([0.3, 0.2, 0.1]) + task.hidden(body))
    assert np.allclose(line.weight, np.eye(3, WIDTH) * scales[:, np.newaxis] / 2, atol=1e-6)
    assert np.allclose(line.bias, -0.5 * scales, rtol=1e-5)
    assert 0.0001 < task.hidden(body) < 0.01 and np.allclose(found.shares, [1 / 2, 1 / 3, 1 / 6])


def test_no_row_makes_it_fail(tmp_path: Path) -> None:
    bad = [float("nan"), float("inf"), -1e30, None]
    lists = pa.array([bad, None, [0.1, 0.2, 0.3, 0.4]], pa.list_(pa.float64()))
    for place, values in enumerate((lists, lists[:0])):
        (tmp_path / str(place)).mkdir()
        rows = pa.table({"v": values, "up": [True] * len(values)})
        with connected(tmp_path / str(place), rows) as session:
            for rho in ("0.00001", "100"):
                found = ln.fit(session, lt.Whitening(nn.Sigmoid(), 3), SELECT, rho=rho)
                assert bool(found.layer(torch.rand(3, WIDTH)).isfinite().all())


class Mixing(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x - x.mean(0)


class Leaking(nn.Module):
    """Brings rows to the caller."""

    seen: ClassVar[list[Any]] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen[:] = [x]
        return x


def test_what_cannot_be_whitened_is_refused_before_the_charge(tmp_path: Path) -> None:
    kept: Any = nn.Identity()
    kept.last = torch.ones(1, requires_grad=True) * 2
    with connected(tmp_path, table(points(30))) as session:
        refused: list[tuple[nn.Module, int, str]] = [
            (Mixing(), 2, "Rows are mixed"),
            (nn.Dropout(0.5), 2, "another output"),
            (Leaking(), 2, r"Rows move module\.Leaking\.seen"),
            (kept, 2, "that cannot be copied"),
            (nn.Linear(3, 2), 1, "fails on made-up rows"),
            (nn.Linear(WIDTH, 3), 4, "4 directions of 3 outputs"),
            (nn.Linear(WIDTH, 1025), 4, "1,025 outputs"),
        ]
        for module, count, told in refused:
            with pytest.raises(WrongUse, match=told):
                ln.fit(session, lt.Whitening(module, count), SELECT, rho=100)
        with pytest.raises(WrongUse, match="predicts no column"):
            asked = {"label": "up", "rho": 1}
            ln.fit(session, lt.Whitening(nn.Identity(), 2), "SELECT v, up FROM t", **asked)
        assert session.budget.spent_rho == "0"
    for arguments in ({"features": 3, "kept": 2}, {"kept": 0}, {"kept": 2, "reach": 0.5}):
        with pytest.raises(WrongUse):
            lt.Whitening(**({"features": nn.Identity()} | arguments))  # type: ignore[arg-type]
