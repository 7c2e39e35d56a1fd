# SPDX-License-Identifier: Apache-2.0
"""Fitted components: there and back, files."""

from fractions import Fraction
from pathlib import Path

import numpy as np

from sfumato import learning as ln
from sfumato.learning.components import Components
from sfumato.learning.frames import ColumnReport, FrameColumn
from sfumato.learning.points import Box
from sfumato.query.cost import Cost

MODEL = Components(
    (FrameColumn("age", 0), FrameColumn("pay", 0, step=Fraction(1, 2))),
    Box((0, 0), (100, 40)),
    np.array([0.5, 0.0]),
    np.array([[0.0, 1.0], [1.0, 0.0]]),
    np.array([0.75, 0.25]),
    Cost("1", "0", "0", ()),
    "c0ffee",
)


def test_rows_go_there_and_back() -> None:
    frame = {"age": [100, 25, None], "pay": [10, 20, 3]}
    found = MODEL.transform(frame)
    assert np.allclose(found[:2], [[0, 0.5], [1, -1]]) and np.isnan(found[2]).all()
    assert np.allclose(MODEL.inverse(found[:2]), [[100, 10], [25, 20]])


def test_an_empty_frame_one_row_and_a_report() -> None:
    assert MODEL.transform({"age": [], "pay": []}).shape == (0, 2)
    assert MODEL.transform({"age": 100, "pay": "10"}).tolist() == [[0.0, 0.5]]
    found, report = MODEL.transform({"age": [9, "?"], "pay": [1, None]}, report=True)
    assert np.isnan(found[1]).all()
    assert report == (ColumnReport("age", 2, 0, 1), ColumnReport("pay", 2, 1, 0))


def test_saved_components_are_the_same(tmp_path: Path) -> None:
    MODEL.save(tmp_path / "c.sfm")
    again = ln.load(tmp_path / "c.sfm")
    assert isinstance(again, Components) and again.box == MODEL.box
    assert (again.axes == MODEL.axes).all() and (again.mean == MODEL.mean).all()
    assert (again.shares == MODEL.shares).all() and repr(again) == repr(MODEL)
    assert repr(MODEL) == "2 components of age, pay (cost: epsilon = 1, charge c0ffee)"
