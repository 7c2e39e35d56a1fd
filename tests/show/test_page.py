# SPDX-License-Identifier: Apache-2.0
"""The frame of pages: one file, its title escaped, readable on phones, dark screens and paper."""

import re
from html.parser import HTMLParser

import pytest

from sfumato.show.page import page, text_blocks, tiles
from sfumato.show.svg import WIDTH


class Tags(HTMLParser):
    """The tags of a page, in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.opened.append(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_page_is_one_file_without_scripts_and_its_tags_are_closed() -> None:
    made = page("t", "<section><p>x</p></section>", language="zh-CN")
    tags = Tags(made)
    assert not tags.open and tags.opened[0] == "html" and "section" in tags.opened
    assert '<html lang="zh-CN">' in made and made.endswith("</html>\n")
    assert not {"script", "link", "img", "iframe"} & set(tags.opened)
    assert "url(" not in made and "@import" not in made and "http" not in made


def test_a_title_is_escaped_and_a_body_is_html() -> None:
    made = page("<script>", "<b>bold</b>")
    assert "<title>&lt;script&gt;</title>" in made and "<b>bold</b>" in made


def test_tiles_escape_both_their_texts() -> None:
    assert "<b>&lt;9&gt;</b><span>a &amp; b</span>" in tiles([("<9>", "a & b")])


@pytest.mark.parametrize("case", ["max-width: 640px", "prefers-color-scheme: dark", "print"])
def test_the_style_sheet_knows_phones_dark_screens_and_paper(case: str) -> None:
    assert case in page("t", "")


def test_every_colour_of_the_style_sheet_is_a_variable_so_that_dark_pages_change_it() -> None:
    style = page("t", "").partition("<style>")[2].partition("</style>")[0]
    rules = [line for line in style.splitlines() if "--ink" not in line]
    assert rules and not re.findall(r"#[0-9a-f]{3,6}\b", "".join(rules))
    for name in set(re.findall(r"var\((--[a-z]+)\)", style)):
        assert f"{name}: #" in style


def test_columns_of_a_terminal_scroll_and_sentences_are_wrapped() -> None:
    text = "A <long> sentence.\nedges   12\n  in all 13\nAnother one."
    assert text_blocks(text) == (
        '<pre>A &lt;long&gt; sentence.</pre><pre class="wide">edges   12\n  in all 13</pre>'
        "<pre>Another one.</pre>"
    )
    style = page("t", "")
    assert re.search(r"pre\.wide {[^}]*white-space: pre; overflow-x: auto;", style)


def test_words_and_numbers_of_a_table_are_not_broken_and_a_shade_says_that_it_scrolls() -> None:
    style = page("t", "")
    assert re.search(r"table\.log td {[^}]*overflow-wrap: break-word; min-width: 5em;", style)
    phone = style.partition("max-width: 640px")[2]
    assert re.search(r"section {[^}]*local[^}]*scroll", phone)


def test_a_phone_scrolls_charts_and_numbers_instead_of_shrinking_them() -> None:
    style = page("t", "")
    # at least the units of a chart: its text of 12 units is 12 px
    assert re.search(rf"svg {{[^}}]*min-width: {WIDTH}px;", style)
    assert re.search(r"section {[^}]*overflow-x: auto;", style)
    assert re.search(r"table\.sfumato td:not\(:first-child\) {[^}]*white-space: nowrap;", style)
