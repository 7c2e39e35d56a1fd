# SPDX-License-Identifier: Apache-2.0
"""The picture of a distribution: bands, steps and the median are where the numbers are."""

import re
from xml.etree import ElementTree

import pytest

from sfumato.metadata.column import Integer, Real
from sfumato.telemetry import oracles, report_task, simulate
from sfumato.telemetry.distribution_plot import Middle, Span, distribution_chart

SVG = "{http://www.w3.org/2000/svg}"
# one report in 10^15 is another number's
CLEAR = 35


def boxes(svg: str) -> list[ElementTree.Element]:
    """The boxes of the ranges; the bar of the median has no tooltip."""
    every = ElementTree.fromstring(svg).iter(SVG + "rect")
    return [box for box in every if len(box)]


def test_a_band_is_as_high_as_its_interval_and_as_wide_as_its_range() -> None:
    spans = [
        Span("0 to 1", (0.0, 2.0), 0.5, 0.4, 0.6),
        Span("2", (2.0, 3.0), 0.25, 0.2, 0.3),
    ]
    svg = distribution_chart("<t>", spans, Middle(1.0, 0.0, 3.0), "0.9").svg
    first, second = boxes(svg)
    for size in ("height", "width"):
        assert float(first.get(size)) == pytest.approx(2 * float(second.get(size)), abs=0.3)
    assert "<t>" not in svg and "90% interval" in svg and "median 1<" in svg


def test_every_number_is_in_one_range_and_the_shares_add_up() -> None:
    task = report_task(
        "t", "?", Integer(0, 99), oracle=oracles.levels(100, CLEAR), start=0, periods=1
    )
    counts = [0] * 100
    counts[7] = counts[98] = 50_000
    svg = simulate(task, counts).distribution().plot().svg
    tips = [box[0].text for box in boxes(svg)]
    assert tips[0].startswith("0 to 3:") and tips[-1].startswith("96 to 99:")
    assert len(tips) == 25
    shares = {tip.partition(":")[0]: float(re.search(r"([-\d.e]+)%", tip)[1]) for tip in tips}
    assert shares["4 to 7"] == pytest.approx(50, abs=3)
    assert sum(shares.values()) == pytest.approx(100, abs=6)


def test_few_numbers_have_a_range_each() -> None:
    tenths = Real(0, 1, step="0.1")
    task = report_task("t", "?", tenths, oracle=oracles.levels(11, CLEAR), start=0, periods=1)
    svg = simulate(task, [3000] * 11).distribution(confidence="0.9").plot("How much?").svg
    assert len(boxes(svg)) == 11 and "How much?" in svg and "90% interval" in svg
