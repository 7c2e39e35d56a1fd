# SPDX-License-Identifier: Apache-2.0
"""A page in Chinese: its sentences are translated; cells, labels, code and styles are not."""

import re

import pytest

from sfumato.cli.language import choose
from sfumato.cli.page_language import in_language
from tests.contracts.shell import Shell

PAGE = (
    '<!doctype html>\n<html lang="en"><head><title>Synthetic people</title>'
    "<style>Columns</style></head><body><h2>Columns</h2><p class='x'>rows\n (noisy)</p>"
    "<p>What is &lt;unknown&gt; stays.</p><td>rows (noisy)</td><text>Columns</text>"
    "<p><code>Columns</code> gives intervals, and</p></body></html>"
)


@pytest.fixture(autouse=True)
def english():
    yield
    choose(None)


def test_sentences_are_translated_and_data_is_not():
    choose("zh")
    found = in_language(PAGE)
    assert '<html lang="zh">' in found and "<title>合成的 people</title>" in found
    assert "<p class='x'>行" in found and "给出区间" in found
    for kept in (
        "<style>Columns</style>",
        "<p>What is &lt;unknown&gt; stays.</p>",
        "<td>rows (noisy)</td>",
        "<text>Columns</text>",
        "<code>Columns</code>",
    ):
        assert kept in found


def test_english_is_left_as_it_is():
    choose("en")
    assert in_language(PAGE) == PAGE


def test_the_report_of_synthetic_rows_is_in_chinese(shell: Shell):
    asked = ("synthesize", "people", "--epsilon", "9", "--delta", "1e-7", "--report", "r.html")
    ran = shell.run("--language", "zh", *asked, "--output", "out")
    assert ran.code == 0, ran
    page = (shell.folder / "r.html").read_text(encoding="utf-8")
    body = re.sub(r"<(style|svg|table|code)\b.*?</\1>", "", page, flags=re.DOTALL)
    texts = [each.strip() for each in re.findall(r">([^<]+)<", body)]
    english = [text for text in texts if re.search(r"[A-Za-z]{4,} [a-z]{3,}", text)]
    assert english == []
