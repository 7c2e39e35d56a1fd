# SPDX-License-Identifier: Apache-2.0
"""Fitted trees: predictions, files, hashes."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato import learning as ln
from sfumato.errors import UnknownName, WrongUse
from sfumato.learning.features import Binned, Features, Listed
from sfumato.learning.frames import ColumnReport, FrameColumn
from sfumato.learning.tree import Tree
from sfumato.query.cost import Cost

MODEL = Tree(
    Features((Listed("city", 0, 2), Binned("age", (30, 60)))),
    (FrameColumn("city", 0, ("north", "south")), FrameColumn("age", 0)),
    (np.array([4]), np.array([0, 5])),
    np.array([[0.9, 0.1], [0.3, 0.7], [0.6, 0.4], [0.2, 0.8]]),
    ("no", "yes"),
    Cost("1", "0", "0", ()),
    "c0ffee",
)
FRAME = {"city": ["south", "north", "?", "north"], "age": [20, 20, 40, None]}


def test_a_row_is_predicted_by_its_leaf() -> None:
    assert MODEL.predict(FRAME) == ["no", "yes", "no", "yes"]
    assert MODEL.predict_proba(FRAME)[:, 1].tolist() == [0.1, 0.7, 0.4, 0.8]
    with pytest.raises(UnknownName, match="age"):
        MODEL.predict({"city": ["north"]})


def test_an_empty_frame_one_row_and_a_report() -> None:
    assert MODEL.predict({"city": [], "age": []}) == []
    assert MODEL.predict({"city": "south", "age": "20"}) == ["no"]
    predicted, report = MODEL.predict(FRAME, report=True)
    assert predicted == MODEL.predict(FRAME)
    assert report == (ColumnReport("city", 4, 0, 1), ColumnReport("age", 4, 1, 0))


def test_a_saved_tree_is_the_same(tmp_path: Path) -> None:
    MODEL.save(tmp_path / "t.sfm")
    again = ln.load(tmp_path / "t.sfm")
    assert isinstance(again, Tree) and again.predict(FRAME) == MODEL.predict(FRAME)
    assert again.fingerprint == MODEL.fingerprint and repr(again) == repr(MODEL)
    assert repr(MODEL) == "decision tree of city, age, depth 2 (cost: epsilon = 1, charge c0ffee)"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("levels", [[4], [0, 7]]),
        ("levels", [[4], [0]]),
        ("levels", [[4]]),
        ("levels", [[-1], [0, 5]]),
        ("shares", [[1, 0]]),
        ("classes", []),
    ],
)
def test_a_damaged_tree_is_refused(tmp_path: Path, name: str, value: Any) -> None:
    MODEL.save(tmp_path / "t.sfm")
    stored = json.loads((tmp_path / "t.sfm").read_text())
    (tmp_path / "t.sfm").write_text(json.dumps({**stored, name: value}))
    with pytest.raises(WrongUse):
        ln.load(tmp_path / "t.sfm")


def test_another_tree_has_another_fingerprint() -> None:
    other = replace(MODEL, levels=(np.array([5]), np.array([0, 5])))
    flipped = replace(MODEL, shares=MODEL.shares[::-1])
    assert len({each.fingerprint for each in (MODEL, other, flipped)}) == 3
