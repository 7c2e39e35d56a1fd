# SPDX-License-Identifier: Apache-2.0
"""The page of a census: everything on it, and nothing that a name could inject."""

import pyarrow as pa

from sfumato.synopsis.geography.census import census
from sfumato.synopsis.geography.spine import Spine
from tests.synopsis.geography.surveys import ASKED, COUNTIES, SPINE, opened


def test_a_page_has_the_account_the_quality_and_every_level(tmp_path):
    with opened(tmp_path) as session:
        page = census(session, "people", SPINE, rho=1, **ASKED).page(runs=1)
    assert page.startswith("<!doctype html>")
    for words in ("The budget account", "Quality, beside the plan", "age_group x sex", "<svg"):
        assert words in page
    assert "<script" not in page


def test_names_are_escaped(tmp_path):
    states = ["<script>alert(1)</script>"] * 3 + ["b"] * 3
    spine = Spine("state > county", pa.table({"state": states, "county": COUNTIES}))
    with opened(tmp_path) as session:
        found = census(session, "people", spine, rho=1, tables={"state": ["sex"], "county": []})
        page = found._repr_html_()
    assert "<script" not in page and "&lt;script" in page
