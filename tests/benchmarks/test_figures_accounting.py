# SPDX-License-Identifier: Apache-2.0
"""The pictures of the accounting page: well-formed, and no way of adding up is below the truth."""

import math
from xml.etree import ElementTree

import pytest

from benchmarks import figures_accounting as pictures


@pytest.mark.parametrize(
    "ways", [pictures.laplace_ways(), pictures.gaussian_ways()], ids=["laplace", "gaussian"]
)
def test_no_way_is_below_the_privacy_curve(ways):
    for count in (1, 10, 200):
        truth = ways["PLD"](count)
        assert all(way(count) >= truth * (1 - 1e-9) for way in ways.values())


def test_advanced_composition_is_the_formula_of_its_paper():
    assert pictures.advanced(0.05, 1000) == pytest.approx(
        math.sqrt(2 * 1000 * math.log(1e6)) * 0.05 + 1000 * 0.05 * (math.exp(0.05) - 1)
    )


def test_both_pictures_are_svg():
    for picture in (pictures.trade_off(), pictures.composition()):
        assert ElementTree.fromstring(picture).tag == "{http://www.w3.org/2000/svg}svg"
