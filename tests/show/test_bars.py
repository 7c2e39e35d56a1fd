# SPDX-License-Identifier: Apache-2.0
"""Charts: well-formed SVG, everything escaped, nothing beyond the bars."""

import math
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.show.bars import Bar, bar_chart
from sfumato.show.svg import Figure

SVG = "{http://www.w3.org/2000/svg}"
values = st.floats(-1e12, 1e12)
names = st.text(st.characters(exclude_categories=("C",)), max_size=40)
bars = st.builds(Bar, names, names, values, st.none() | values, st.none() | values)


def drawn(figure: Figure, tag: str, kind: str = "") -> list[ElementTree.Element]:
    """The elements of a kind."""
    root = ElementTree.fromstring(figure.svg)
    return [each for each in root.iter(SVG + tag) if not kind or each.get("class") == kind]


@given(names, st.lists(bars, max_size=6))
def test_any_bars_give_well_formed_svg_with_finite_numbers(title: str, shown: list[Bar]) -> None:
    figure = bar_chart(title, title, shown)
    root = ElementTree.fromstring(figure.svg)
    assert root.get("aria-label") == title
    for element in root.iter():
        for name in ("x", "y", "width", "height", "x1", "x2", "y1", "y2"):
            if element.get(name) is not None:
                assert math.isfinite(float(element.get(name)))


def test_every_text_is_escaped() -> None:
    evil = '<script>alert("1")</script>&'
    figure = bar_chart(evil, evil, [Bar(evil, evil, 1, 0, 2), Bar("b", "other", 1, 0, 2)])
    assert "<script" not in figure.svg
    assert ElementTree.fromstring(figure.svg).get("aria-label") == evil
    assert any((text.text or "") == evil[:28] for text in drawn(figure, "text"))


def test_a_bar_is_as_long_as_its_value() -> None:
    figure = bar_chart(
        "t", "n", [Bar("a", "", 10, 8, 12), Bar("b", "", 20, 18, 22), Bar("c", "", 0, -2, 2)]
    )
    widths = [float(rect.get("width")) for rect in drawn(figure, "rect")]
    assert widths[0] * 2 == pytest.approx(widths[1], abs=0.2)
    assert widths[2] == 0
    assert len(drawn(figure, "path", "w")) == 3


def test_an_unbounded_interval_has_no_whisker_and_a_far_one_is_cut() -> None:
    assert drawn(bar_chart("t", "n", [Bar("a", "", 10, None, None)]), "path", "w") == []
    figure = bar_chart("t", "n", [Bar("a", "", 10, 0, 1e9)])
    (whisker,) = drawn(figure, "path", "w")
    assert all(float(place) <= 760 for place in re.findall(r"M([\d.]+) ", whisker.get("d")))


def test_series_have_colours_and_a_legend_only_where_there_are_several() -> None:
    one = bar_chart("t", "n", [Bar("a", "", 1, 0, 2), Bar("b", "", 1, 0, 2)])
    assert len({rect.get("fill") for rect in drawn(one, "rect")}) == 1
    two = bar_chart("t", "n", [Bar("a", "x", 1, 0, 2), Bar("a", "y", 1, 0, 2)])
    assert len({rect.get("fill") for rect in drawn(two, "rect")}) == 2
    assert [text.text for text in drawn(two, "text") if text.text in ("x", "y")] == ["x", "y"]
    assert [text.text for text in drawn(two, "text")].count("a") == 1


@pytest.mark.parametrize(
    ("top", "last"),
    [(0.9, "1"), (9, "10"), (45_000, "50k"), (4_500_000, "5M"), (4.5e9, "5G"), (0.0, "1")],
)
def test_the_ticks_are_round_and_hold_the_bars(top: float, last: str) -> None:
    figure = bar_chart("t", "n", [Bar("a", "", top, None, None)])
    ticks = [text.text for text in drawn(figure, "text") if text.get("text-anchor") == "middle"]
    assert ticks[0] == "0"
    assert ticks[-1] == last


def test_a_figure_is_saved_and_shows_itself(tmp_path: Path) -> None:
    figure = bar_chart("t", "é", [Bar("ü", "", 1, 0, 2)])
    figure.save(tmp_path / "chart.svg")
    assert (tmp_path / "chart.svg").read_text(encoding="utf-8") == figure.svg == figure._repr_svg_()


def test_more_series_than_colours_have_headings() -> None:
    many = [Bar(f"l{place % 9}", f"s{place // 9}", place, None, None) for place in range(81)]
    figure = bar_chart("t", "n", many)
    assert [text.text for text in drawn(figure, "text", "h")] == [f"s{k}" for k in range(9)]
    assert len({rect.get("fill") for rect in drawn(figure, "rect")}) == 1
    assert len(drawn(figure, "rect")) == 81


def test_the_key_with_fewer_values_has_the_colours() -> None:
    many = [Bar(sex, f"{age}0", age, None, None) for sex in "FM" for age in range(12)]
    figure = bar_chart("t", "n", many)
    words = [text.text for text in drawn(figure, "text", "a")]
    assert words[:2] == ["F", "M"] and not drawn(figure, "text", "h")
    assert [word for word in words if word in {f"{age}0" for age in range(12)}][-12:] == [
        f"{age}0" for age in range(12)
    ]


def test_a_long_legend_goes_on_in_the_next_line() -> None:
    names = [f"a long name of series {k}" for k in range(8)]
    figure = bar_chart("t", "n", [Bar("a", name, 1, 0, 2) for name in names])
    boxes = [rect for rect in drawn(figure, "rect") if rect.get("height") == "10"]
    assert len(boxes) == 8 and len({box.get("y") for box in boxes}) > 1
    assert all(float(box.get("x")) + 180 < 800 for box in boxes)
    bars = [rect for rect in drawn(figure, "rect") if rect.get("height") != "10"]
    last = max(float(box.get("y")) for box in boxes)
    assert min(float(bar.get("y")) for bar in bars) > last


def test_a_figure_says_in_words_what_it_is() -> None:
    assert "<svg" not in repr(Figure("<svg/>"))


def test_text_and_lines_take_the_colour_of_the_page() -> None:
    svg = bar_chart("t", "n", [Bar("a", "", 1, 0, 2)]).svg
    assert "#222" not in svg and "currentColor" in svg


@pytest.mark.parametrize(
    ("label", "start", "shown"),
    [
        ("女", 60, "女"),
        ("a label of 25 letters ...", 173, "a label of 25 letters ..."),
        ("e" * 40, 194, "e" * 27 + "\u2026"),
        ("省" * 16, 194, "省" * 14 + "\u2026"),
    ],
)
def test_the_bars_begin_at_the_widest_label_and_none_is_cut_by_the_edge(
    label: str, start: int, shown: str
) -> None:
    figure = bar_chart("t", "n", [Bar(label, "", 1, 0, 2), Bar("b", "", 1, 0, 2)])
    (bar, _) = drawn(figure, "rect")
    assert float(bar.get("x")) == start
    labels = [each for each in drawn(figure, "text") if each.get("text-anchor") == "end"]
    assert [(each.text, each.get("x")) for each in labels] == [
        (shown, str(start - 8)),
        ("b", str(start - 8)),
    ]
