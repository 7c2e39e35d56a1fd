# SPDX-License-Identifier: Apache-2.0
"""Fitted forests: predictions, files, hashes."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato import learning as ln
from sfumato.errors import WrongUse
from sfumato.learning.features import Binned, Features, Listed
from sfumato.learning.frames import ColumnReport, FrameColumn
from sfumato.learning.trees import Grown, Trees
from sfumato.query.cost import Cost

MODEL = Trees(
    Features((Listed("city", 0, 2), Binned("age", (30, 60)))),
    (FrameColumn("city", 0, ("north", "south")), FrameColumn("age", 0)),
    (
        Grown((np.array([4]),), np.array([[0.75, 0.25], [0.5, 0.5]])),
        Grown((np.array([0]),), np.array([[1.0, 0.0], [0.25, 0.75]])),
    ),
    ("no", "yes"),
    Cost("1", "0", "0", ()),
    "c0ffee",
)
FRAME = {"city": ["south", "north", "?", "north"], "age": [20, 20, 40, None]}


def test_a_row_is_predicted_by_the_mean_of_its_leaves() -> None:
    assert MODEL.predict_proba(FRAME)[:, 1].tolist() == [0.125, 0.5, 0.25, 0.625]
    # the first of equal ones
    assert MODEL.predict(FRAME) == ["no", "no", "no", "yes"]


def test_an_empty_frame_one_row_and_a_report() -> None:
    assert MODEL.predict({"city": [], "age": []}) == []
    assert MODEL.predict({"city": "south", "age": "20"}) == ["no"]
    predicted, report = MODEL.predict(FRAME, report=True)
    assert predicted == MODEL.predict(FRAME)
    assert report == (ColumnReport("city", 4, 0, 1), ColumnReport("age", 4, 1, 0))


def test_saved_trees_are_the_same(tmp_path: Path) -> None:
    MODEL.save(tmp_path / "t.sfm")
    again = ln.load(tmp_path / "t.sfm")
    assert isinstance(again, Trees) and again.predict(FRAME) == MODEL.predict(FRAME)
    assert again.fingerprint == MODEL.fingerprint and repr(again) == repr(MODEL)
    assert repr(MODEL) == "2 decision trees of city, age (cost: epsilon = 1, charge c0ffee)"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("levels", [[[4]], [[7]]]),
        ("levels", [[[4]], [[-1]]]),
        ("levels", [[[4]], [[0, 1]]]),
        ("levels", [[[4]]]),
        ("shares", [[[1, 0], [0, 1]], [[1, 0]]]),
        ("shares", [[[1, 0], [0, 1]], [[0, 0], [0, 1]]]),
        ("shares", [[[1, 0], [0, 1]], [["NaN", 0], [0, 1]]]),
        ("classes", []),
    ],
)
def test_damaged_trees_are_refused(tmp_path: Path, name: str, value: Any) -> None:
    MODEL.save(tmp_path / "t.sfm")
    stored = json.loads((tmp_path / "t.sfm").read_text())
    for changed in ({name: value}, {"levels": [], "shares": []}):
        (tmp_path / "t.sfm").write_text(json.dumps({**stored, **changed}))
        with pytest.raises(WrongUse):
            ln.load(tmp_path / "t.sfm")


def test_other_trees_have_another_fingerprint() -> None:
    fewer = replace(MODEL, trees=MODEL.trees[:1])
    swapped = replace(MODEL, trees=MODEL.trees[::-1])
    assert len({each.fingerprint for each in (MODEL, fewer, swapped)}) == 3
