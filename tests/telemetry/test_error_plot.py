# SPDX-License-Identifier: Apache-2.0
"""The picture of errors: each falls as the root of the number of devices."""

import re
from xml.etree import ElementTree

import pytest

from sfumato import telemetry
from sfumato.telemetry.error_plot import ErrorLine, error_chart

SVG = "{http://www.w3.org/2000/svg}"


def drawn(svg: str, tag: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(svg).iter(SVG + tag))


def marks(svg: str) -> dict[str, float]:
    """The heights of the numbers on the left."""
    found = {}
    for each in drawn(svg, "text"):
        if each.get("x") == "60.0":
            found[each.text] = float(each.get("y")) - 4
    return found


def test_a_hundred_times_the_devices_have_a_tenth_of_the_error() -> None:
    svg = error_chart("t", "error", [ErrorLine("<a>", 0.01)], 10_000).svg
    (line,) = drawn(svg, "path")
    heights = [float(y) for y in re.findall(r" ([\d.]+)", line.get("d"))]
    scale = marks(svg)
    (dot,) = drawn(svg, "circle")
    assert float(dot.get("cy")) == pytest.approx(scale["1%"], abs=0.1)
    # from 100 devices to 1,000,000
    assert heights == pytest.approx([scale["10%"], scale["0.1%"]], abs=0.1)
    assert "<a>" not in svg and "10,000 devices" in svg


@pytest.mark.parametrize("devices", [1, 7, 10**12])
@pytest.mark.parametrize("error", [1e-9, 3.0, 1e9])
def test_any_numbers_stay_in_the_picture(devices: int, error: float) -> None:
    lines = [ErrorLine("a", error), ErrorLine("b", 2 * error)]
    svg = error_chart("t", "error", lines, devices).svg
    for line in drawn(svg, "path"):
        x0, y0, x1, y1 = (float(each) for each in re.findall(r"[\d.]+", line.get("d")))
        assert 66 <= x0 < x1 <= 736
        assert 62 <= y0 < y1 <= 322


def test_a_plan_is_drawn_beside_half_and_twice_its_epsilon() -> None:
    found = telemetry.plan(["yes", "no"], 100_000, error=1000)
    svg = found.plot().svg
    names = [each.text for each in drawn(svg, "text") if (each.text or "").startswith("epsilon")]
    assert len(names) == 3
    assert names[1].startswith(f"epsilon {float(found.epsilon)} (category)")
    share = float(re.search(r": ([\d.]+)%", names[1])[1])
    assert share == pytest.approx(100 * found.error / 100_000, rel=1e-3)
    shares = [float(re.search(r": ([\d.]+)%", name)[1]) for name in names]
    assert shares == sorted(shares, reverse=True)
