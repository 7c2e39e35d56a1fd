# SPDX-License-Identifier: Apache-2.0
"""Ridge regression: the solution without noise, and through a session."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import learning as ln
from sfumato.errors import WrongUse
from sfumato.learning.ridge import solved
from tests.learning.rows import SELECT, connected, frame


def lines(count: int) -> pa.Table:
    """Pay that is linear in age and city."""
    random = np.random.default_rng(5)
    rows = frame(count, seed=3)
    age = np.array(rows["age"])
    north = np.array([city == "north" for city in rows["city"].to_pylist()])
    pay = np.clip(10 + 0.5 * age + 20 * north + random.normal(0, 5, count), 0, 100)
    return rows.set_column(rows.column_names.index("pay"), "pay", pa.array(pay))


def test_without_noise_it_solves_the_normal_equations() -> None:
    random = np.random.default_rng(1)
    x = random.uniform(size=(500, 3))
    target = x @ [0.2, 0.3, 0.1] + 0.05
    z = np.concatenate([x, (1 - target)[:, None], target[:, None], np.zeros((500, 1))], axis=1)
    weights = solved(z.T @ z, 1e-9, 3, 0.0)
    wanted = np.linalg.lstsq(x, target, rcond=None)[0]
    assert np.abs(weights - wanted).max() < 1e-6


def test_noise_that_drowns_everything_gives_small_weights() -> None:
    random = np.random.default_rng(1)
    noise = random.normal(0, 1e6, (6, 6))
    weights = solved(noise + noise.T, 1e6, 3, 1.0)
    assert np.isfinite(weights).all() and np.abs(weights).max() < 3


@pytest.mark.parametrize("cost", [{"epsilon": "0.5", "delta": "1e-6"}, {"rho": "0.02"}])
def test_a_line_is_found(tmp_path: Path, cost: dict[str, str]) -> None:
    with connected(tmp_path, lines(20_000), sf.Budget(2, "1e-5")) as session:
        statement = "SELECT age, city, pay FROM people"
        model = ln.fit(session, ln.Ridge(), statement, label="pay", **cost)
        found = model.predict({"age": [20, 80, 50], "city": ["east", "west", "north"]})
        assert np.abs(np.array(found) - [20, 50, 55]).max() < 4
        again = ln.fit(session, ln.Ridge(), statement, label="pay", **cost)
        assert again.charge == model.charge


def test_what_it_does_not_take_is_refused(tmp_path: Path) -> None:
    with connected(tmp_path, frame(50), sf.Budget(2, "1e-5")) as session:
        with pytest.raises(WrongUse, match="number"):
            ln.fit(session, ln.Ridge(), SELECT, label="ill", rho="0.1")
        with pytest.raises(WrongUse, match="NaiveBayes"):
            ln.fit(session, ln.Ridge(), "SELECT age, pay FROM people", label="pay", epsilon=1)
        assert session.budget.spent == "0"
    for alpha in (-1, float("nan"), "1"):
        with pytest.raises(WrongUse, match="alpha"):
            ln.Ridge(alpha)
