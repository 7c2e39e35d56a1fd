# SPDX-License-Identifier: Apache-2.0
"""The page of a model: self-contained, honest, and escaped."""

import re
from html.parser import HTMLParser

import pytest

import sfumato as sf
from sfumato import synthetic as sy
from tests.synthetic.towns import COLUMNS, session, town


class Closed(HTMLParser):
    """Counts tags that stay open."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "rect", "line", "br", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in ("rect", "line"):
            assert self.open.pop() == tag


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    with session(tmp_path_factory.mktemp("town")) as opened:
        yield sy.fit(opened, "people", epsilon=1, delta="1e-9")


def test_the_page_is_whole_and_fetches_nothing(model, tmp_path):
    report = model.report()
    report.save(tmp_path / "quality.html")
    page = (tmp_path / "quality.html").read_text(encoding="utf-8")
    assert page == report.html == report._repr_html_()
    parser = Closed()
    parser.feed(page)
    assert parser.open == []
    assert not re.search(r"(src|href)=|@import|url\(", page)


def test_the_page_says_what_is_not_kept_and_who_is_protected(model):
    report = model.report()
    for words in ("The honest check", "What is not kept", "each row is one unit", model.charge_id):
        assert words in report.html
    assert f"{report.quality.unmeasured} pairs of columns were not measured" in repr(report)


def test_names_are_escaped(tmp_path):
    columns = {**COLUMNS, "<b>": sf.Boolean()}
    rows = town(300)
    rows = rows.append_column("<b>", rows["rich"]).select(["<b>", "job"])
    with session(tmp_path, rows, columns=columns) as opened:
        page = sy.fit(opened, "people", rho=1).report().html
    assert "<b>" not in page.replace('<div class="tile"><b>', "") and "&lt;b&gt;" in page


def test_a_model_without_a_check_and_without_pairs_has_a_page(tmp_path):
    with session(tmp_path) as opened:
        options = sy.Options(rounds=0, check=0)
        page = sy.fit(opened, "people", rho=1, options=options).report().html
    assert "None was asked for." in page and "the cost buys the single columns alone" in page
