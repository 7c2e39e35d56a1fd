# SPDX-License-Identifier: Apache-2.0
"""Decision trees through a session: what they find, what they cost, and bad input."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import learning as ln
from sfumato.accounting.account import account
from sfumato.errors import BudgetExceeded, UnknownName, WrongUse
from sfumato.learning.decision_tree import DecisionTree, shares_of
from sfumato.learning.examples_of import Examples
from sfumato.metadata.dataset import Dataset
from sfumato.query.allowance import Allowance, allowance
from tests.learning.rows import COLUMNS, SELECT, connected, frame

TOWN = Dataset("town", {"people": sf.Table(frame(10), columns=COLUMNS)})
EXAMPLES = Examples.of(TOWN, SELECT, "ill")


def corners(count: int) -> pa.Table:
    """Ill are the young of the north and the old elsewhere: no single column tells."""
    rows = frame(count, seed=4)
    old = np.array(rows["age"]) >= 50
    north = np.array([city == "north" for city in rows["city"].to_pylist()])
    return rows.set_column(rows.column_names.index("ill"), "ill", pa.array(old != north))


@pytest.mark.parametrize("cost", [{"epsilon": 1}, {"rho": "0.1"}, {"epsilon": 1, "delta": "1e-6"}])
def test_a_tree_finds_what_no_column_tells_alone(tmp_path: Path, cost: dict[str, Any]) -> None:
    recipe = ln.DecisionTree(edges={"age": [25, 50, 75], "pay": [50]}, depth=3)
    with connected(tmp_path, corners(8000), sf.Budget(10, "1e-5")) as session:
        preview = ln.preview(session, recipe, SELECT, label="ill", **cost)
        model = ln.fit(session, recipe, SELECT, label="ill", **cost)
        again = ln.fit(session, recipe, SELECT, label="ill", **cost)
    assert again.charge == model.charge and preview.cost == model.cost
    asked = {"age": [20, 20, 70, 70], "city": ["north", "west"] * 2, "pay": [1] * 4}
    assert model.predict(asked) == ["True", "False", "False", "True"]


@pytest.mark.parametrize(
    "allowed", [allowance(epsilon="0.7"), allowance(rho="0.3"), allowance(epsilon=1, delta="1e-6")]
)
def test_a_tree_costs_what_was_asked(allowed: Allowance) -> None:
    task = DecisionTree(depth=5).task(EXAMPLES, allowed)
    spent = account(task.event)
    found = spent.epsilon if allowed.delta is None and allowed.norm.value == "L1" else spent.rho
    assert found is not None and 0.999 * allowed.amount < found <= allowed.amount
    assert task.cells == (64,) and task.size == 8 * (31 + 64)


def test_no_row_makes_it_fail(tmp_path: Path) -> None:
    """NaN, infinity, 1e30, undeclared labels, and no rows at all."""
    bad = [float("nan"), float("inf"), -float("inf"), 1e30, None]
    rows = pa.table(
        {
            "age": [10**9, None, -5, 0, 99],
            "city": ["?", None, "north", "", "west"],
            "pay": bad,
            "ill": [True, None, False, None, True],
        }
    )
    for place, each in enumerate((rows, rows.slice(0, 0))):
        (tmp_path / str(place)).mkdir()
        with connected(tmp_path / str(place), each, sf.Budget(10)) as session:
            model = ln.fit(session, ln.DecisionTree(depth=2), SELECT, label="ill", epsilon=1)
            assert np.isfinite(model.shares).all()


def test_what_it_does_not_take_is_refused_free(tmp_path: Path) -> None:
    with connected(tmp_path, frame(50), sf.Budget(1)) as session:
        with pytest.raises(WrongUse, match="number"):
            ln.fit(session, ln.DecisionTree(), SELECT, label="pay", epsilon=1)
        with pytest.raises(UnknownName, match="edges"):
            ln.fit(session, ln.DecisionTree({"agee": [3]}), SELECT, label="ill", epsilon=1)
        with pytest.raises(WrongUse, match="depth 12"):
            recipe = ln.DecisionTree(bins=10_000, depth=12)
            ln.fit(session, recipe, "SELECT pay, ill FROM people", label="ill", epsilon=1)
        with pytest.raises(BudgetExceeded):
            ln.fit(session, ln.DecisionTree(), SELECT, label="ill", rho="0.1")
        with pytest.raises(WrongUse, match="without a label"):
            ln.fit(session, ln.DecisionTree(), SELECT, epsilon=1)
        assert session.budget.spent == "0"
    for wrong in ({"depth": 0}, {"depth": 13}, {"bins": 1}, {"depth": "3"}):
        with pytest.raises(WrongUse):
            ln.DecisionTree(**wrong)  # type: ignore[arg-type]


def test_leaves_within_the_noise_take_the_shares_above_them() -> None:
    sizes = np.array([[1.0, 0.0], [900.0, 100.0], [-40.0, 20.0], [100.0, 900.0]])
    shares = shares_of(sizes, 30.0)
    assert np.allclose(shares.sum(axis=1), 1)
    assert shares[0, 0] > 0.8 and 0.5 < shares[2, 1] < 0.93
    even = shares_of(np.zeros((4, 2)), 5.0)
    assert np.allclose(even, 0.5)
