# SPDX-License-Identifier: Apache-2.0
"""The tables say what was measured and which bars hold, and the pages have the last ones."""

import json

import pytest

from benchmarks import table_bars as tables
from benchmarks.page import rewritten

ROW = {
    "case": "W1",
    "metric": "s",
    "ours": 0.12345,
    "ratio": 0.5,
    "cpu_ratio": None,
    "repetitions": 5,
}
RESULTS = {
    "date": "2026-01-02",
    "machine": {"processor": "P", "cores": 2, "load": 0.5},
    "skipped": {"tumult": "no Java", "plain: W2, 1e8": "too large"},
    "rows": [
        {**ROW, "peer": 0.06172, "peer_name": "plain", "bar": "<= 1.2x", "holds": False},
        {**ROW, "peer": None, "peer_name": None, "ratio": None, "bar": "<= 1", "holds": True},
        {**ROW, "peer": 12345.6, "peer_name": "other", "bar": None, "holds": None},
    ],
}


def test_a_line_for_each_row_says_whether_its_bar_holds():
    found = [line for line in tables.block(RESULTS).split("\n") if line.startswith("| W1")]
    assert found == [
        "| W1 | s | 0.123 | plain | 0.0617 | 0.5 | <= 1.2x: missed |",
        "| W1 | s | 0.123 |  |  |  | <= 1: holds |",
        "| W1 | s | 0.123 | other | 12,346 | 0.5 |  |",
    ]


def test_runs_stand_in_one_table_and_each_says_what_it_was_measured_on():
    later = {**RESULTS, "date": "2026-03-04", "rows": RESULTS["rows"][:1], "skipped": {}}
    lines = tables.block(RESULTS, later).split("\n")
    assert len([line for line in lines if line.startswith("| W1")]) == 4
    assert [line[-11:] for line in lines if line.startswith("P, ")] == [
        "2026-01-02.",
        "2026-03-04.",
    ]


def test_what_could_not_be_measured_is_named():
    assert "Not measured here: plain, tumult." in tables.block(RESULTS)
    assert "Not measured" not in tables.block({**RESULTS, "skipped": {}})


@pytest.mark.parametrize("page", tables.PAGES, ids=lambda page: page.name)
def test_the_page_has_the_table_of_the_last_results(page):
    runs = [json.loads(path.read_text("utf-8")) for path in tables.PAGES[page]]
    text = page.read_text("utf-8")
    assert rewritten(text, tables.BEGIN, tables.block(*runs), tables.END) == text, (
        "run make figures"
    )
