# SPDX-License-Identifier: Apache-2.0
"""Clusters and components of pictures as pictures: their greys, saved and loaded, and refusals."""

import re
import zlib
from base64 import b64decode
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato import learning as ln
from sfumato.errors import WrongUse
from sfumato.learning.array_plot import draw_arrays
from sfumato.learning.clusters import Clusters
from sfumato.learning.components import Components
from sfumato.learning.frames import FrameColumn
from sfumato.learning.points import Box
from sfumato.query.cost import Cost
from sfumato.show.svg import Figure

SCAN = FrameColumn("scan", 0, length=4, shape=(2, 2))
COLUMNS = (FrameColumn("age", 0), SCAN)
BOX = Box((0,) * 5, (100, 9, 9, 9, 9))
COST = Cost("1", "0", "0", ())


def greys(figure: Figure) -> list[list[int]]:
    """The greys of each picture, without the byte that begins a line."""
    found = []
    for data in re.findall(r"base64,([^\"]+)", figure.svg):
        written = b64decode(data)
        start = written.index(b"IDAT") + 4
        lines = zlib.decompressobj().decompress(written[start:])
        found.append([*lines[1:3], *lines[4:6]])
    return found


def test_centers_are_drawn_from_the_lower_bound_to_the_upper_one(tmp_path: Path) -> None:
    places = np.array([[0.3, -1, 1, 0, -1], [-0.5, 1, 1, -1, -1]])
    model = Clusters(COLUMNS, BOX, places, np.array([1070.4, 12.0]), COST, "c0ffee")
    assert greys(model.plot()) == [[0, 255, 128, 0], [255, 255, 0, 0]]
    assert "clusters of scan" in model.plot().svg and "0: 1,070" in model.plot().svg
    model.save(tmp_path / "c.sfm")
    assert ln.load(tmp_path / "c.sfm").plot().svg == model.plot().svg


def test_axes_are_drawn_around_the_mean_with_grey_for_nothing(tmp_path: Path) -> None:
    axes = np.array([[0.0, 0.8, 0, -0.4, 0], [1.0, 0, 0, 0, 0]])
    mean = np.array([0.5, -1, 1, -1, 1])
    model = Components(COLUMNS, BOX, mean, axes, np.array([0.75, 0.25]), COST, "c0ffee")
    assert greys(model.plot()) == [[0, 255, 0, 255], [255, 128, 64, 128], [128] * 4]
    assert "0: 75%" in model.plot().svg
    model.save(tmp_path / "c.sfm")
    assert ln.load(tmp_path / "c.sfm").plot().svg == model.plot().svg


@pytest.mark.parametrize("column", [FrameColumn("age", 0), FrameColumn("x", 0, length=4)])
def test_what_is_no_picture_is_refused(column: FrameColumn) -> None:
    with pytest.raises(WrongUse, match="two dimensions"):
        draw_arrays("clusters", [column], [("0", np.zeros(column.width))])


@pytest.mark.parametrize("shape", [[2, 3], [-2, -2], ["a"], [4.0]])
def test_a_file_with_other_dimensions_than_its_length_is_refused(shape: list[object]) -> None:
    assert FrameColumn.from_json(SCAN.to_json()).shape == (2, 2)
    with pytest.raises(ValueError, match=r"dimensions|whole"):
        FrameColumn.from_json(SCAN.to_json() | {"shape": shape})  # type: ignore[dict-item]


def test_pictures_of_a_table_are_clustered_and_drawn(tmp_path: Path) -> None:
    rows = {"scan": [[9, 0, 0, 9] if who % 2 else [0, 9, 9, 0] for who in range(2000)]}
    table = sf.Table(rows, columns={"scan": sf.Array((2, 2), 0, 9)})
    budget = sf.Budget(10, "1e-6")
    with sf.connect({"t": table}, dataset="d", budget=budget, ledger=tmp_path / "l.db") as session:
        model = ln.fit(session, ln.KMeans(2), "SELECT scan FROM t", epsilon=2)
        axes = ln.fit(session, ln.PCA(1), "SELECT scan FROM t", rho="0.5")
    drawn = np.array(greys(model.plot()))
    assert np.abs(np.sort(drawn, axis=0) - [[0], [255]]).max() < 40
    assert len(greys(axes.plot())) == 2
