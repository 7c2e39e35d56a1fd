# SPDX-License-Identifier: Apache-2.0
"""The predictions that a tree is scored by are those that it makes."""

from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato import learning as ln
from sfumato.learning import tree_outcomes
from tests.learning.rows import SELECT, connected, frame


def test_a_score_counts_the_predictions_of_the_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = frame(3000)
    monkeypatch.setattr(tree_outcomes.TreeOutcomes, "at_once", 1000)
    with connected(tmp_path, rows, sf.Budget(10**6)) as session:
        model = ln.fit(session, ln.DecisionTree(depth=3), SELECT, label="ill", epsilon=1)
        score = ln.score(session, model, SELECT, label="ill", epsilon=10**5)
    right = np.array(model.predict(rows)) == [str(each) for each in rows["ill"].to_pylist()]
    assert (score.right, score.wrong) == (right.sum(), 3000 - right.sum())
