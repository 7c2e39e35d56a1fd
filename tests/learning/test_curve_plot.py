# SPDX-License-Identifier: Apache-2.0
"""Pictures of curves: where values and bands are drawn, for every kind of feature."""

import re
from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import sfumato as sf
from sfumato import learning as ln
from sfumato.errors import WrongUse
from sfumato.learning.curve_plot import Curve, curves_chart, labels_of
from sfumato.learning.features import Binned, Line, Listed
from sfumato.learning.frames import FrameColumn
from tests.learning.rows import SELECT, connected, frame

BINNED = Curve(
    Binned("age", (50,)), FrameColumn("age", 0), np.array([[-1.0, 1.0, 0.0]]), np.full(3, 0.5)
)


def numbers(svg: str, pattern: str) -> list[float]:
    return [float(found) for found in re.findall(pattern, svg)]


def test_a_bin_is_drawn_at_its_value_and_its_band_around_it() -> None:
    svg = curves_chart([BINNED], [""], "model", "odds").svg
    ElementTree.fromstring(svg)
    # the scale goes from -2 to 2: 120 pixels from 70 on
    assert numbers(svg, r"M56.0 ([\d.]+)H") == pytest.approx([160.0], abs=0.1)
    tops = numbers(svg, r'<rect x="[\d.]+" y="([\d.]+)"')
    heights = numbers(svg, r'height="([\d.]+)" fill=')
    assert tops == pytest.approx([145, 85], abs=0.1) and heights == pytest.approx([30, 30], abs=0.1)


def test_labels_are_values_of_the_declaration() -> None:
    cities = FrameColumn("city", 0, ("east", "<west>"))
    listed = Curve(Listed("city", 0, 2), cities, np.zeros((2, 3)), None)
    assert labels_of(listed) == [(0.25, "east"), (0.75, "<west>")]
    pay = Curve(
        Line("pay", 2, 6), FrameColumn("pay", 2, step=Fraction(1, 2)), np.zeros((2, 3)), None
    )
    assert labels_of(pay) == [(0.0, "1"), (1.0, "3")]
    born = FrameColumn("born", 0, is_date=True)
    assert labels_of(Curve(Binned("born", (1,)), born, np.zeros((1, 3)), None)) == [
        (0.5, "1970-01-02")
    ]
    svg = curves_chart([listed, pay], ["a", "b"], "<model>", "odds").svg
    ElementTree.fromstring(svg)
    assert "nan" not in svg and "&lt;west&gt;" in svg


def test_a_fitted_model_is_drawn_and_its_file_too(tmp_path: Path) -> None:
    with connected(tmp_path, frame(3000), sf.Budget(9, "1e-5")) as session:
        model = ln.fit(session, ln.Additive(steps=8), SELECT, label="ill", rho="0.05")
        less = ln.fit(session, ln.Additive(steps=8), SELECT, label="ill", rho="0.0005")
        bayes = ln.fit(session, ln.NaiveBayes(), SELECT, label="city", epsilon=1)
        tree = ln.fit(session, ln.DecisionTree(depth=1), SELECT, label="ill", epsilon=1)
    assert model.deviations is not None and less.deviations is not None
    assert np.median(model.deviations) < np.median(less.deviations)
    svg = model.plot().svg
    ElementTree.fromstring(svg)
    assert svg.count("missing") == 3 and "log odds of True" in svg
    model.save(tmp_path / "model.sfm")
    assert ln.load(tmp_path / "model.sfm").plot().svg == svg
    assert model.plot(["age"]).svg.count("missing") == 1
    assert "no bands" in bayes.plot().svg
    with pytest.raises(WrongUse, match="No feature"):
        model.plot(["agee"])
    with pytest.raises(WrongUse, match="a Tree"):
        tree.plot()
