# SPDX-License-Identifier: Apache-2.0
"""Fitted clusters: units of their centers, files."""

from fractions import Fraction
from pathlib import Path

import numpy as np

from sfumato import learning as ln
from sfumato.learning.clusters import Clusters
from sfumato.learning.frames import ColumnReport, FrameColumn
from sfumato.learning.points import Box
from sfumato.query.cost import Cost

COLUMNS = (
    FrameColumn("age", 0),
    FrameColumn("pay", 0, step=Fraction(1, 2)),
    FrameColumn("pixels", 0, length=2),
)
MODEL = Clusters(
    COLUMNS,
    Box((0, 0, 0, 0), (100, 40, 9, 9)),
    np.array([[0.0, 0.5, -1, 1], [-0.5, -1, 1, -1]]),
    np.array([70.5, 12.0]),
    Cost("1", "0", "0", ()),
    "c0ffee",
)


def test_centers_are_in_the_units_of_the_columns() -> None:
    assert MODEL.centers.tolist() == [[50, 15, 0, 9], [25, 0, 9, 0]]
    frame = {"age": [60, 10, 1], "pay": [14, 1, 1], "pixels": [[0, 8], [9, 0], [9, None]]}
    assert MODEL.predict(frame).tolist() == [0, 1, -1]


def test_an_empty_frame_one_row_and_a_report() -> None:
    assert MODEL.predict({"age": [], "pay": [], "pixels": []}).tolist() == []
    assert MODEL.predict({"age": "60", "pay": 14, "pixels": [0, 8]}).tolist() == [0]
    found, report = MODEL.predict(
        {"age": [9, "?"], "pay": [1, None], "pixels": [[1], [1, 2]]}, report=True
    )
    assert found.tolist() == [-1, -1]
    assert report == (
        ColumnReport("age", 2, 0, 1),
        ColumnReport("pay", 2, 1, 0),
        ColumnReport("pixels", 2, 0, 1),
    )


def test_saved_clusters_are_the_same(tmp_path: Path) -> None:
    MODEL.save(tmp_path / "c.sfm")
    again = ln.load(tmp_path / "c.sfm")
    assert isinstance(again, Clusters) and again.columns == COLUMNS and again.box == MODEL.box
    assert (again.centers == MODEL.centers).all() and (again.sizes == MODEL.sizes).all()
    assert repr(again) == repr(MODEL)
    assert repr(MODEL) == "2 clusters of age, pay, pixels (cost: epsilon = 1, charge c0ffee)"
