# SPDX-License-Identifier: Apache-2.0
"""The bar of the lifetime epsilon has its length, and the line stands at 3."""

import re
from fractions import Fraction

import pytest

from sfumato.ledger.assessment_picture import lifetime_picture


@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(1, 2), Fraction(3), Fraction(30)])
def test_the_bar_is_in_proportion_to_the_line_at_3(epsilon):
    svg = lifetime_picture(epsilon, "a <title>", "a & mark").svg
    (width,) = map(float, re.findall(r'<rect x="16" y="56" width="([\d.]+)"', svg))
    (line,) = map(float, re.findall(r'<line x1="([\d.]+)"', svg))
    assert abs(width - float(epsilon) / 3 * (line - 16)) < 0.6
    # both are in the picture
    assert 16 + width < 760 and 16 < line < 760
    assert "a &lt;title&gt;" in svg and "a &amp; mark" in svg


def test_the_epsilon_is_written_as_it_is():
    assert "\u03b5 = 0.3" in lifetime_picture(Fraction(3, 10), "t", "m").svg
