# SPDX-License-Identifier: Apache-2.0
"""The picture of a frontier: where values are drawn."""

import re
from xml.etree import ElementTree

import pytest

from sfumato.learning.frontier_plot import chart

BANDS = [(0.5, 0.6, 0.7), (0.7, 0.8, 0.9)]


def drawn() -> ElementTree.Element:
    return ElementTree.fromstring(
        chart([0.1, 10.0], BANDS, [0.525, 0.99], {"without noise": 0.9, "most": 0.5}, "all").svg
    )


def named(kind: str) -> list[ElementTree.Element]:
    return [each for each in drawn().iter() if each.tag.endswith(kind)]


def test_the_band_is_around_the_mean() -> None:
    (polygon,) = named("polygon")
    places = [tuple(map(float, place.split(","))) for place in polygon.attrib["points"].split(" ")]
    dots = [(float(dot.attrib["cx"]), float(dot.attrib["cy"])) for dot in named("circle")]
    assert [place[0] for place in places] == pytest.approx(
        [dots[0][0], dots[1][0], dots[1][0], dots[0][0]], abs=0.1
    )
    assert places[0][1] > dots[0][1] > places[3][1]
    # 0.6 is in the middle of 0.5 and 0.7
    assert dots[0][1] == pytest.approx((places[0][1] + places[3][1]) / 2, abs=0.1)


def test_the_attacker_has_an_axis_from_one_half_to_one() -> None:
    dashed = next(each for each in named("path") if "stroke-dasharray" in each.attrib)
    heights = [float(y) for y in re.findall(r" ([\d.]+)", dashed.attrib["d"])]
    # of 280 pixels below 64
    assert heights == pytest.approx([64 + 280 * 0.95, 64 + 280 * 0.02], abs=0.1)


def test_one_epsilon_and_one_accuracy_can_be_drawn() -> None:
    svg = chart([1.0], [(0.5, 0.5, 0.5)], [0.7311], {"the largest class": 0.5}, "of two").svg
    assert "nan" not in svg and "the largest class: 50.0%" in svg and "band: of two" in svg
    assert "nan" not in chart([1.0], [(0.5, 0.5, 0.5)], [0.7311], {}, "").svg
