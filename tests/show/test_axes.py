# SPDX-License-Identifier: Apache-2.0
"""What the pictures of telemetry share."""

from xml.etree import ElementTree

from sfumato.show.axes import TOP, Axis, level, upright, words


def test_an_axis_maps_its_ends_to_its_ends_in_either_direction() -> None:
    up = Axis((-1.0, 3.0), (300.0, 100.0))
    assert (up(-1), up(3), up(1)) == (300, 100, 200)


def test_words_are_escaped_and_keep_their_place() -> None:
    shown = ElementTree.fromstring(words(3, 4, "<b> & 1", "end", "t"))
    assert shown.text == "<b> & 1"
    assert shown.attrib == {"x": "3.0", "y": "4.0", "class": "t", "text-anchor": "end"}


def test_grid_lines_are_straight() -> None:
    line = ElementTree.fromstring(upright(50, 200))
    assert line.get("x1") == line.get("x2") == "50.0"
    assert (line.get("y1"), line.get("y2")) == (f"{TOP}", "200.0")
    across = ElementTree.fromstring(f"<g>{level(80, '5%')}</g>")
    assert across[0].get("y1") == across[0].get("y2") == "80.0"
    assert across[1].text == "5%"
