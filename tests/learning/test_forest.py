# SPDX-License-Identifier: Apache-2.0
"""Forests through a session: what they cost, what they find, and bad input."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato import learning as ln
from sfumato.accounting.account import account
from sfumato.errors import WrongUse
from sfumato.learning.examples_of import Examples
from sfumato.learning.forest import kept_features
from sfumato.metadata.dataset import Dataset
from sfumato.query.allowance import Allowance, allowance
from tests.learning.rows import COLUMNS, SELECT, connected, frame

TOWN = Dataset("town", {"people": sf.Table(frame(10), columns=COLUMNS)})
EXAMPLES = Examples.of(TOWN, SELECT, "ill")


@pytest.mark.parametrize(
    "allowed", [allowance(epsilon="0.7"), allowance(rho="0.3"), allowance(epsilon=1, delta="1e-6")]
)
def test_a_forest_costs_what_was_asked(allowed: Allowance) -> None:
    task = ln.Forest(depth=3, trees=5).task(EXAMPLES, allowed)
    spent = account(task.event)
    found = spent.epsilon if allowed.norm.value == "L1" else spent.rho
    assert found is not None and 0.999 * allowed.amount < found <= allowed.amount
    assert task.cells == (16,) * 5 and task.size == 5 * 8 * (7 + 16)


@pytest.mark.parametrize("cost", [{"epsilon": 20}, {"rho": 20}])
def test_a_forest_finds_what_its_trees_find(tmp_path: Path, cost: dict[str, Any]) -> None:
    recipe = ln.Forest(edges={"age": [25, 50, 75], "pay": [50]}, depth=2, trees=3)
    rows = frame(4000)
    with connected(tmp_path, rows, sf.Budget(10**4, "1e-5")) as session:
        preview = ln.preview(session, recipe, SELECT, label="ill", **cost)
        model = ln.fit(session, recipe, SELECT, label="ill", **cost)
        assert ln.fit(session, recipe, SELECT, label="ill", **cost).charge == model.charge
        score = ln.score(session, model, SELECT, label="ill", epsilon=60)
    assert preview.cost == model.cost and preview.releases == 3 and len(model.trees) == 3
    right = np.array(model.predict(rows)) == [str(each) for each in rows["ill"].to_pylist()]
    assert (score.right, score.wrong) == (right.sum(), 4000 - right.sum())
    assert right.mean() > 0.7
    # a tree tests no feature that it leaves out
    starts = [*model.features.starts, model.features.width]
    for tree, grown in enumerate(model.trees):
        tested = np.searchsorted(starts, np.concatenate(grown.levels), side="right") - 1
        assert set(tested.tolist()) <= set(kept_features(3, tree))


def test_every_feature_is_in_most_trees() -> None:
    for count in range(1, 9):
        kept = [kept_features(count, tree) for tree in range(3)]
        assert all(sum(place in each for each in kept) >= 2 for place in range(count))
        assert all(kept)


def test_what_it_does_not_take_is_refused_free(tmp_path: Path) -> None:
    wrong: list[dict[str, Any]] = [{"trees": 0}, {"trees": 101}, {"trees": "4"}, {"depth": 0}]
    for each in wrong:
        with pytest.raises(WrongUse):
            ln.Forest(**each)
    with connected(tmp_path, frame(50), sf.Budget(1)) as session:
        with pytest.raises(WrongUse, match="number"):
            ln.fit(session, ln.Forest(), SELECT, label="pay", epsilon=1)
        assert Fraction(session.budget.spent) == 0
