# SPDX-License-Identifier: Apache-2.0
"""The table of what grows: each question and size as measured, and the page has the last one."""

import json

from benchmarks import table_scale as table
from benchmarks.engines import BY_HAND, PLAIN, TITLES
from benchmarks.page import rewritten


def row(case, ours, peer_name, peer, metric="s"):
    return {"case": case, "metric": metric, "ours": ours, "peer_name": peer_name, "peer": peer}


def results():
    """Each size takes 10 times as long as the one before, of W4 12 times; by hand 8 times.

    Plain 5 times.
    """
    rows = []
    for name, title in TITLES.items():
        for step, size in enumerate(table.SIZES):
            case, times = f"{size}: {name} {title}", (12 if name == "W4" else 10) ** step
            rows.append(row(case, 0.25 * times, PLAIN, 0.1 * 5**step))
            rows += [row(case, 0.25 * times, BY_HAND, 0.125 * 8**step)] * (name != "W5")
            # measured beside its own plain one, which is not told here
            rows += [row(f"{case}, prepared", 0.03125 * times, PLAIN, 99.0)]
            rows += [
                row(case, 900.0, PLAIN, 500.0, metric="MB at most"),
                row(case, 7.0, "OpenDP", 8.0),
            ]
    return {"rows": rows}


def test_each_question_of_each_size_has_a_line_of_its_seconds():
    lines = table.block(results()).split("\n")
    assert len([line for line in lines if line.startswith("| W")]) == len(TITLES) * 3
    assert "| W1 totals | 1,000,000 | 0.25 | 0.031 | 0.12 | 0.10 |" in lines
    assert "| W4 distinct users a day | 10,000,000 | 3.0 | 0.38 | 1.0 | 0.50 |" in lines
    assert "| W5 quantiles by region | 10,000,000 | 2.5 | 0.31 |  | 0.50 |" in lines


def test_the_growth_is_from_the_least_to_the_most():
    each = "ours 10 to 12, by hand 8 to 8, plain 5 to 5"
    told = f"times as long: from 1,000,000 to 10,000,000 {each}; from 10,000,000 to 100,000,000 {each}."
    assert told in table.block(results())


def test_the_page_has_the_table_of_the_last_results():
    text, runs = (
        table.PAGE.read_text("utf-8"),
        [json.loads(path.read_text("utf-8")) for path in table.RUNS],
    )
    assert rewritten(text, table.BEGIN, table.block(*runs), table.END) == text, "run make figures"
