# SPDX-License-Identifier: Apache-2.0
"""Only what stands between the marks is written."""

import pytest

from benchmarks.page import cells, measured_on, rewritten


def test_only_what_is_between_the_marks_changes():
    once = rewritten("before <a> old <b> after", "<a>", "<a> new <b>", "<b>")
    assert once == "before <a> new <b> after"
    assert rewritten(once, "<a>", "<a> new <b>", "<b>") == once


@pytest.mark.parametrize("page", ["no marks", "<a> one", "<b> turned <a>"])
def test_a_page_without_its_marks_is_refused(page):
    with pytest.raises(ValueError, match="No <a> followed by <b>"):
        rewritten(page, "<a>", "x", "<b>")


def test_a_line_and_a_machine():
    assert cells("one", "two") == "| one | two |"
    machine = {"processor": "P", "cores": 2, "load": 0.5}
    assert (
        measured_on({"machine": machine, "date": "2026-01-02"})
        == "P, 2 cores, load 0.5; 2026-01-02"
    )
