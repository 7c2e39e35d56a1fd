# SPDX-License-Identifier: Apache-2.0
"""Documents, texts and numbers of pictures."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.show.svg import WIDTH, Figure, short, svg_document, ticks, xml_text

# the signs that change the direction of what follows
DIRECTIONS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def test_signs_that_change_the_direction_are_shown_by_their_numbers() -> None:
    for sign in DIRECTIONS:
        assert xml_text(f"eye {sign}fdp.exe") == f"eye \\u{ord(sign):x}fdp.exe"
    # letters written from right to left, and the sign that joins emojis, stay
    assert xml_text("שלום \u200d") == "שלום \u200d"


@given(st.text(st.characters(exclude_characters=DIRECTIONS)))
def test_any_text_is_xml_and_without_control_characters(words: str) -> None:
    (element,) = ElementTree.fromstring(f"<a><b>{xml_text(words)}</b></a>")
    assert len(element.text or "") == len(words)
    assert (element.text or "").isprintable() or any(sign.isspace() for sign in words) or words


@given(st.text(st.characters(exclude_characters=DIRECTIONS), max_size=20))
def test_a_document_has_its_title_for_those_who_do_not_see_it(title: str) -> None:
    root = ElementTree.fromstring(svg_document(100, title, "<g/>"))
    assert root.get("viewBox") == f"0 0 {WIDTH} 100" and root.get("role") == "img"
    assert len(root.get("aria-label")) == len(title)


def test_a_saved_document_has_the_size_of_its_units_and_text_of_twelve_pixels(
    tmp_path: Path,
) -> None:
    place = tmp_path / "chart.svg"
    Figure(svg_document(100, "t", "<g/>")).save(place)
    root = ElementTree.parse(place).getroot()
    assert (root.get("width"), root.get("height")) == (str(WIDTH), "100")
    sizes = [float(size) for size in re.findall(r"font-size:([\d.]+)px", place.read_text())]
    assert len(sizes) == 3 and min(sizes) >= 12


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9))
def test_ticks_are_few_evenly_spaced_and_hold_the_range(low: float, length: float) -> None:
    high = low + length
    if high - low < 1e-7 * abs(low):
        return
    marks = ticks(low, high)
    step = marks[1] - marks[0]
    assert marks[0] <= low + 1e-9 * step and marks[-1] >= high - 1e-9 * step
    assert 2 <= len(marks) <= 8


@pytest.mark.parametrize(
    ("value", "words"),
    [(0, "0"), (9999, "9,999"), (12_000, "12k"), (-2.5e6, "-2.5M"), (3e9, "3G"), (0.25, "0.25")],
)
def test_numbers_have_suffixes_from_ten_thousand_on(value: float, words: str) -> None:
    assert short(value) == words


def test_a_figure_is_saved_as_it_is(tmp_path: Path) -> None:
    Figure("<svg/>").save(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text() == "<svg/>"
