# SPDX-License-Identifier: Apache-2.0
"""Principal components through a session: what they capture, what they cost, and bad input."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import learning as ln
from sfumato.accounting.account import account
from sfumato.errors import InvalidDeclaration, SfumatoError, WrongUse
from sfumato.learning.examples_of import Examples
from sfumato.learning.pca import PCA, directions
from sfumato.learning.points import Box
from sfumato.learning.recipe import Asked
from sfumato.metadata.dataset import Dataset

MIXED = np.array([[0.3, 0.2, 0.1, 0.0], [0.0, -0.1, 0.1, 0.2]])
SELECT = "SELECT a, b, c, d FROM t"
COLUMNS: dict[str, Any] = {name: sf.Real(-1, 1) for name in "abcd"}


def rows(count: int) -> pa.Table:
    random = np.random.default_rng(3)
    points = 0.2 + random.normal(0, 0.7, (count, 2)) @ MIXED + random.normal(0, 0.02, (count, 4))
    return pa.table(dict(zip("abcd", points.T, strict=True)))


def connected(folder: Path, table: pa.Table, **more: Any) -> sf.Session:
    return sf.connect(
        {"t": sf.Table(table, columns=COLUMNS, **more)},
        dataset="d",
        budget=sf.Budget(1000, "1e-5"),
        ledger=folder / "l.db",
    )


@pytest.mark.parametrize("cost", [{"rho": "0.05"}, {"epsilon": 1, "delta": "1e-6"}])
def test_the_directions_of_most_variance_are_found(tmp_path: Path, cost: dict[str, Any]) -> None:
    table = rows(20_000)
    points = np.stack([table[name].to_numpy() for name in "abcd"], axis=1)
    truth = np.cov(points.T)
    with connected(tmp_path, table) as session:
        preview = ln.preview(session, ln.PCA(2), SELECT, **cost)
        model = ln.fit(session, ln.PCA(2), SELECT, **cost)
        spent = session.budget.spent
        fewer = ln.fit(session, ln.PCA(1), SELECT, **cost)
        assert session.budget.spent == spent and fewer.charge == model.charge
    assert preview.cost == model.cost and preview.releases == 3
    captured = np.trace(model.axes @ truth @ model.axes.T)
    assert captured > 0.98 * np.linalg.eigvalsh(truth)[-2:].sum()
    assert np.allclose(model.axes @ model.axes.T, np.eye(2))
    assert np.abs(model.mean - 0.2).max() < 0.05 and model.shares.sum() > 0.9
    assert np.allclose(fewer.axes, model.axes[:1])


@pytest.mark.parametrize("cost", [{"rho": "0.05"}, {"epsilon": 1, "delta": "1e-6"}])
def test_it_costs_what_was_asked(cost: dict[str, Any]) -> None:
    data = Dataset("d", {"t": sf.Table(rows(9), columns=COLUMNS)})
    asked = Asked(**cost)
    task = PCA(2).task(Examples.of(data, SELECT, None), asked, ())
    if "rho" in cost:
        spent = account(task.event).rho
        assert spent is not None and 0.0499 < spent <= asked.allowance.amount
    assert task.cells == (5, 40, 10) and task.size == 8 * 16


def test_no_row_makes_it_fail(tmp_path: Path) -> None:
    bad = [float("nan"), float("inf"), -float("inf"), 1e30, None, 0.5]
    table = pa.table({name: bad[place:] + bad[:place] for place, name in enumerate("abcd")})
    same = pa.table({name: [0.5] * 40 for name in "abcd"})
    for place, each in enumerate((table, table.slice(0, 0), same)):
        (tmp_path / str(place)).mkdir()
        with connected(tmp_path / str(place), each) as session:
            for cost in ("0.00001", "3"):
                model = ln.fit(session, ln.PCA(3), SELECT, rho=cost)
                assert np.isfinite(model.axes).all() and np.isfinite(model.shares).all()
                assert model.axes.shape == (3, 4)


def test_units_with_several_rows_share_one_example(tmp_path: Path) -> None:
    table = rows(400).append_column("who", pa.array([str(place % 100) for place in range(400)]))
    with connected(tmp_path, table, unit=sf.Unit("who", max_rows_total=4)) as session:
        model = ln.fit(session, ln.PCA(1), SELECT, rho="30")
        assert abs(model.axes[0] @ MIXED[0]) / np.linalg.norm(MIXED[0]) > 0.8
    (tmp_path / "long").mkdir()
    with (
        connected(tmp_path / "long", table, unit=sf.Unit("who", max_rows_total=10**6)) as session,
        pytest.raises(InvalidDeclaration),
    ):
        ln.fit(session, ln.PCA(1), SELECT, rho="0.1")


def test_what_it_does_not_take_is_refused_free(tmp_path: Path) -> None:
    with connected(tmp_path, rows(20)) as session:
        for asked in ({"epsilon": 1}, {"rho": "0.1", "label": "a"}, {"rho": "0.000000000001"}):
            with pytest.raises(SfumatoError):
                ln.fit(session, ln.PCA(2), SELECT, **asked)
        with pytest.raises(WrongUse, match="5 components of 4"):
            ln.fit(session, ln.PCA(5), SELECT, rho="0.1")
        assert session.budget.spent == "0"
    for wrong in (0, 1025, "2", True):
        with pytest.raises(WrongUse, match="components"):
            ln.PCA(wrong)  # type: ignore[arg-type]


def test_directions_are_those_of_a_known_matrix() -> None:
    turn = np.array([[0.8, 0.6], [-0.6, 0.8]])
    axes, variances = directions(turn.T @ np.diag([5.0, -1.0]) @ turn, 2)
    assert np.allclose(axes, [[0.8, 0.6], [-0.6, 0.8]]) and np.allclose(variances, [5, 0])


def test_what_noise_hides_is_half_of_its_largest_eigenvalue() -> None:
    data = Dataset("d", {"t": sf.Table(rows(9), columns=COLUMNS)})
    task = PCA(2).task(Examples.of(data, SELECT, None), Asked(rho="0.05"), ())
    wide = replace(task, box=Box((0,) * 200, (9,) * 200))
    noise = np.random.default_rng(5).normal(0, float(wide.sigmas[-1]), wide.cells[-1])
    body = np.concatenate([[7000, 900], np.zeros(200), noise]).tobytes()
    largest = np.linalg.eigvalsh(wide.covariance(body)[1])[-1]
    assert 0.9 < largest / (2 * wide.hidden(body)) < 1.2
