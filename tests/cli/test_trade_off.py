# SPDX-License-Identifier: Apache-2.0
"""The picture of the trade-off curve: well-formed, with every promise named, and the curve where it
belongs.
"""

import re
from xml.etree import ElementTree

from sfumato.accounting.interpret import Attacker
from sfumato.cli.trade_off import trade_off_chart
from sfumato.privacy import ApproxDP, PureDP

SVG = "{http://www.w3.org/2000/svg}"


def test_it_is_svg_that_names_every_promise():
    named = [("epsilon 1", Attacker(PureDP(1))), ("4 together", Attacker(ApproxDP(4, "0.01")))]
    tree = ElementTree.fromstring(trade_off_chart(named).svg)
    words = [each.text for each in tree.iter(f"{SVG}text")]
    assert "epsilon 1" in words and "4 together" in words
    assert "right at most 73.2%, even odds" in words
    assert len(list(tree.iter(f"{SVG}path"))) == 2


def test_the_curve_begins_and_ends_on_the_axes():
    curve = trade_off_chart([("told", Attacker(PureDP(1)))]).svg
    points = re.findall(r"([\d.]+) ([\d.]+)", re.search(r'<path d="M([^"]+)"', curve)[1])
    assert points[0] == ("64.0", "52.0")
    assert points[-1] == ("444.0", "432.0")
    # the corner of epsilon 1: 26.89% of both
    assert (
        min(
            abs(float(x) - (64 + 380 * 0.26894)) + abs(float(y) - (52 + 380 * 0.73106))
            for x, y in points
        )
        < 0.2
    )
