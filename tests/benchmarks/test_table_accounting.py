# SPDX-License-Identifier: Apache-2.0
"""The table against the peers says what was measured, marks what is too low, and the page has the
last one.
"""

import json

import pytest

from benchmarks import table_accounting as tables


def row(metric, ours, peer=None, name=None, bar=None, holds=None):
    return {
        "case": "A plan",
        "metric": metric,
        "ours": ours,
        "peer": peer,
        "peer_name": name,
        "ratio": None,
        "cpu_ratio": None,
        "bar": bar,
        "holds": holds,
    }


def results(*rows):
    return {
        "date": "2026-01-02",
        "machine": {"processor": "P", "cores": 2, "load": 0.5},
        "versions": {"sfumato": {}, "opacus": {"opacus": "1.6.0", "torch": "2"}},
        "rows": rows,
    }


def cells(text, metric):
    """The cells of the line with this measure, by library."""
    heading, _, *lines = [line for line in text.split("\n") if line.startswith("|")]
    names, *found = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in (heading, *lines)
    ]
    (line,) = [each for each in found if each[1] == metric]
    return dict(zip(names, line, strict=True))


def test_a_line_for_each_measure_holds_every_way_of_a_peer():
    text = tables.block(
        results(
            row("ms", 12345.0, bar="<= 70", holds=False),
            row("ms", 12345.0, 1007.4, "dp-accounting", ">= 10x", True),
            row("ms", 12345.0, 9.512, "opacus, Renyi"),
            row("ms", 12345.0, 344.4, "opacus, PRV"),
            row("ms", 12345.0, None, "autodp"),
        )
    )
    assert cells(text, "ms") == {
        "plan": "A plan",
        "measure": "ms",
        "sfumato": "12,345",
        "dp-accounting": "1,007",
        "prv-accountant": "",
        "Opacus": "9.512 (Renyi), 344.4 (PRV)",
        "autodp": "not measured",
        "OpenDP": "",
        "asked": "<= 70, missed, >= 10x dp-accounting",
    }
    assert "P, 2 cores, load 0.5; 2026-01-02; Opacus 1.6.0." in text


@pytest.mark.parametrize(
    ("theirs", "low"), [(33.46025, True), (35.3440, True), (35.3442, False), (36.0, False)]
)
def test_a_peer_below_the_proved_lower_end_is_marked(theirs, low):
    width = row("relative width", 7.265e-05, bar="<= 0.0001", holds=True)
    text = tables.block(results(row("epsilon", 35.34674, theirs, "dp-accounting"), width))
    assert ("below the truth" in cells(text, "epsilon")["dp-accounting"]) is low
    # nothing is said of a measure that is no epsilon, nor where no width was measured
    for rows in (
        (row("epsilon", 35.34674, theirs, "dp-accounting"),),
        (row("ms", 50.0, 1.0, "dp-accounting"), width),
    ):
        assert "below" not in tables.block(results(*rows))


def again(page, found):
    """The page with a table written anew."""
    return tables.rewritten(page, tables.BEGIN, tables.block(found), tables.END)


def test_only_what_is_between_the_marks_changes():
    page = f"before\n{tables.BEGIN}\nold\n{tables.END}\nafter\n"
    once = again(page, results(row("ms", 1.0)))
    assert once.startswith("before\n") and once.endswith("\nafter\n") and "old" not in once
    assert again(once, results(row("ms", 1.0))) == once
    for broken in ("no marks", tables.BEGIN, f"{tables.END} {tables.BEGIN}"):
        with pytest.raises(ValueError, match="followed by"):
            again(broken, results())


def test_the_page_has_the_table_of_the_last_results():
    page, found = tables.PAGE.read_text("utf-8"), json.loads(tables.RESULTS.read_text("utf-8"))
    assert again(page, found) == page, "run make figures"
