# SPDX-License-Identifier: Apache-2.0
"""The picture of estimates: dots, whiskers and p-values are where the numbers are."""

import re
from fractions import Fraction
from xml.etree import ElementTree

import numpy as np
import pytest

from sfumato.telemetry import Estimates, TextEstimates
from sfumato.telemetry.estimate_plot import Finding, Group, estimate_chart
from sfumato.telemetry.intervals import Coins

SVG = "{http://www.w3.org/2000/svg}"


def drawn(svg: str, tag: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(svg).iter(SVG + tag))


def chart(*findings: Finding, level: float = 0.01) -> str:
    return estimate_chart("t", [Group(findings, level)], "0.95").svg


def test_a_dot_is_between_its_whiskers_and_a_bar_grows_with_the_power_of_its_p_value() -> None:
    svg = chart(
        Finding("a", 100, 80, 120, 1e-6), Finding("b", 0, -20, 20, 1e-3), Finding("c", 9, 0, 19, 1)
    )
    dots = [float(dot.get("cx")) for dot in drawn(svg, "circle")]
    ends = [
        float(x)
        for path in drawn(svg, "path")
        for x in re.findall(r"M([\d.]+) ", path.get("d"))[:2]
    ]
    assert dots[0] - ends[0] == pytest.approx(ends[1] - dots[0], abs=0.2)
    assert dots[0] - dots[1] == pytest.approx((ends[1] - ends[0]) * 100 / 40, abs=0.5)
    widths = [float(bar.get("width")) for bar in drawn(svg, "rect")]
    assert widths[0] == pytest.approx(2 * widths[1], abs=0.2) and widths[2] == 0


def test_what_is_found_is_blue_and_a_p_value_of_zero_can_be_drawn() -> None:
    svg = chart(Finding("a", 9, 8, 10, 0.0), Finding("b", 1, 0, 2, 0.02))
    found, not_found = (bar.get("fill") for bar in drawn(svg, "rect"))
    assert found == "#3b6ea5" != not_found
    assert max(float(bar.get("x")) + float(bar.get("width")) for bar in drawn(svg, "rect")) == 720


def test_no_values_and_values_of_any_name_are_drawn() -> None:
    assert "nan" not in chart()
    svg = chart(Finding("<script>&", 0, 0, 0, 1))
    assert "<script" not in svg
    two = estimate_chart("t", [Group((), 0.1, "one"), Group((), 0.1, "two")], "0.95").svg
    headings = [each.text for each in drawn(two, "text") if each.get("class") == "h"]
    assert headings == ["one", "two"]


def test_the_largest_estimates_are_drawn_with_their_confidence() -> None:
    coins = Coins(10_000, Fraction(3, 4), Fraction(1, 4))
    found = Estimates((1, 2, 3), np.array([2500, 7000, 5000]), coins, "0.99")
    svg = found.plot(count=2).svg
    tips = [each.text for each in drawn(svg, "title") if "[" in each.text]
    assert [tip.partition(":")[0] for tip in tips] == ["2", "3"]
    assert "whiskers: 99% interval" in svg and "of 10,000 reports" in svg
    assert found.found_level == pytest.approx(0.01 / 3)
    together = Estimates((1, 2, 3), found.support, coins, "0.99", simultaneous=True)
    assert together.found_level == pytest.approx(0.01)


def test_the_blue_texts_are_those_that_are_found() -> None:
    estimate = np.array([60.0, 25.0, 0.0])
    found = TextEstimates(("a", "b", "c"), estimate, np.full(3, 10.0), "0.95", 1000)
    bars = drawn(found.plot().svg, "rect")
    blue = sum(bar.get("fill") == "#3b6ea5" for bar in bars)
    assert blue == len(found.found("0.95")) == 2
