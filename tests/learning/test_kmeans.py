# SPDX-License-Identifier: Apache-2.0
"""k-means through a session: its cost beside the best one, and bad input."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import learning as ln
from sfumato.errors import BudgetExceeded, InvalidDeclaration, WrongUse
from sfumato.learning.coreset import squares

MIDDLES = np.array([[-0.8, 0.1], [0.7, 0.7], [0.6, -0.6]])


def points(count: int, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    return MIDDLES[np.arange(count) % 3] + random.normal(0, 0.05, (count, 2))


def connected(folder: Path, rows: Any, *, budget: Any = None, **more: Any) -> sf.Session:
    columns = {"x": sf.Real(-1, 1), "y": sf.Real(-1, 1)}
    return sf.connect(
        {"t": sf.Table(rows, columns=columns, **more)},
        dataset="d",
        budget=budget or sf.Budget(10, "1e-5"),
        ledger=folder / "l.db",
    )


def table(rows: np.ndarray) -> pa.Table:
    return pa.table({"x": rows[:, 0], "y": rows[:, 1]})


@pytest.mark.parametrize("cost", [{"epsilon": 1}, {"rho": "0.05"}, {"epsilon": 1, "delta": "1e-6"}])
def test_clusters_are_found(tmp_path: Path, cost: dict[str, Any]) -> None:
    rows = points(6000)
    with connected(tmp_path, table(rows)) as session:
        preview = ln.preview(session, ln.KMeans(3), "SELECT x, y FROM t", **cost)
        model = ln.fit(session, ln.KMeans(3), "SELECT x, y FROM t", **cost)
        again = ln.fit(session, ln.KMeans(3), "SELECT x, y FROM t", **cost)
    assert preview.releases == 3 and preview.cost == model.cost
    assert again.charge == model.charge and (again.centers == model.centers).all()
    found = squares(rows, model.centers).min(axis=1).sum()
    assert found < 1.1 * squares(rows, MIDDLES).min(axis=1).sum()
    assert np.abs(model.sizes - 2000).max() < 400
    near = model.predict({"x": [-0.8, None, 0.7], "y": [0, 0, float("nan")]})
    assert near[0] == squares(model.centers, MIDDLES)[:, 0].argmin() and near[1:].tolist() == [
        -1,
        -1,
    ]


def test_no_row_makes_it_fail(tmp_path: Path) -> None:
    """NaN, infinity and 1e30 are rows like others, and so is no row at all."""
    bad = [float("nan"), float("inf"), -float("inf"), 1e30, None]
    rows = pa.table({"x": [*bad, 0.1], "y": [*reversed(bad), 0.2]})
    for place, each in enumerate((rows, rows.slice(0, 0), rows.slice(5))):
        (tmp_path / str(place)).mkdir()
        with connected(tmp_path / str(place), each) as session:
            for cost in ({"epsilon": 1}, {"rho": "0.01"}):
                model = ln.fit(session, ln.KMeans(2), "SELECT x, y FROM t", **cost)
                assert model.centers.shape == (2, 2) and np.isfinite(model.centers).all()
                assert np.isfinite(model.sizes).all()


def test_a_unit_with_many_rows_counts_once(tmp_path: Path) -> None:
    many = pa.table({"who": ["a"] * 5000, "x": [1.0] * 5000, "y": [1.0] * 5000})
    with connected(tmp_path, many, unit=sf.Unit("who", max_rows_total=1000)) as session:
        model = ln.fit(session, ln.KMeans(1), "SELECT x, y FROM t", epsilon=1)
        assert model.sizes[0] < 500
    (tmp_path / "long").mkdir()
    with (
        connected(tmp_path / "long", many, unit=sf.Unit("who", max_rows_total=10**6)) as session,
        pytest.raises(InvalidDeclaration),
    ):
        ln.fit(session, ln.KMeans(1), "SELECT x, y FROM t", epsilon=1)


def test_what_it_does_not_take_is_refused_free(tmp_path: Path) -> None:
    with connected(tmp_path, table(points(30)), budget=sf.Budget(1)) as session:
        with pytest.raises(WrongUse, match="label"):
            ln.fit(session, ln.KMeans(2), "SELECT x, y FROM t", label="y", epsilon=1)
        with pytest.raises(WrongUse, match="label"):
            ln.fit(session, ln.NaiveBayes(), "SELECT x, y FROM t", epsilon=1)
        with pytest.raises(BudgetExceeded):
            ln.fit(session, ln.KMeans(2), "SELECT x, y FROM t", epsilon=1, delta="1e-6")
        with pytest.raises(WrongUse):
            ln.fit(session, ln.KMeans(2), "SELECT x, y FROM t")
        assert session.budget.spent == "0"
    for clusters in (0, 1001, True, "3"):
        with pytest.raises(WrongUse, match="clusters"):
            ln.KMeans(clusters)  # type: ignore[arg-type]


def test_noise_that_drowns_everything_gives_centers_in_the_box(tmp_path: Path) -> None:
    with connected(tmp_path, table(points(30))) as session:
        model = ln.fit(session, ln.KMeans(4), "SELECT x, y FROM t", epsilon="0.0001")
    assert model.centers.shape == (4, 2) and np.abs(model.centers).max() <= 1
