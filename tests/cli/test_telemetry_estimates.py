# SPDX-License-Identifier: Apache-2.0
"""What the reports of each kind of task say, in lines."""

import re

import pytest

from sfumato.cli.telemetry_estimates import findings
from sfumato.errors import UnknownName, WrongUse
from sfumato.metadata.column import Integer
from sfumato.telemetry import Texts, Words, oracles, report_task, simulate

WHEN = {"start": 0, "periods": 1}
# one report in 10^15 is another value's
CLEAR = 35


def lines(task, counts, *texts, top=20):
    found = list(findings(simulate(task, counts), texts or None).lines(top))
    return "\n".join(found).splitlines()


def test_values_are_in_the_order_of_their_counts():
    task = report_task("t", "?", ["a", "b", "c"], epsilon=CLEAR, **WHEN)
    found = lines(task, {"b": 5_000, "c": 9_000}, top=2)
    assert [line.split()[0] for line in found[2:4]] == ["c", "b"]
    assert re.search(r"c +9,00\d  \[8,9\d\d, 9,0\d\d\] ", found[2])


def test_a_mean_has_its_interval():
    oracle = oracles.mean(11, CLEAR)
    task = report_task("t", "?", Integer(0, 10), oracle=oracle, **WHEN)
    (found,) = lines(task, {3: 50_000})
    mean, low, high = map(float, re.findall(r"\d+(?:\.\d+)?", found.replace("95%", "")))
    assert low <= mean <= high and 2.5 < mean < 3.5


def test_a_distribution_has_its_quartiles():
    oracle = oracles.levels(16, CLEAR)
    task = report_task("t", "?", Integer(0, 15), oracle=oracle, **WHEN)
    found = lines(task, {2: 40_000, 9: 60_000})
    assert found == [
        "quantile 0.25: 2, 95% interval [2, 2]",
        "quantile 0.5: 9, 95% interval [9, 9]",
        "quantile 0.75: 9, 95% interval [9, 9]",
    ]


def test_attributes_are_told_apart():
    record = {"lang": ["en", "de"], "dark": ["yes", "no"]}
    oracle = oracles.attributes([oracles.category(3, CLEAR)] * 2)
    task = report_task("t", "?", record, oracle=oracle, **WHEN)
    found = lines(task, {("de", "no"): 30_000})
    assert [line for line in found if line.startswith("attribute")] == [
        "attribute lang",
        "attribute dark",
    ]
    assert [line.split()[0] for line in found if re.search(r"1\d,\d\d\d +\[", line)] == ["de", "no"]


def test_texts_need_candidates():
    task = report_task(
        "t", "?", Texts(), oracle=oracles.rappor(), min_batch=2, start=0, periods=1, memory=1
    )
    with pytest.raises(WrongUse, match="--candidates"):
        lines(task, {"abc": 100})
    found = lines(task, {"abc": 100_000}, "xyz", "abc")
    assert [line.split()[0] for line in found[2:]] == ["abc", "xyz"]


def test_candidates_are_values_of_the_list_and_nothing_else_has_any():
    task = report_task("t", "?", ["a", "b", "c"], epsilon=CLEAR, **WHEN)
    assert [line.split()[0] for line in lines(task, {"b": 5_000}, "c", "b")[2:]] == ["b", "c"]
    with pytest.raises(UnknownName, match="never a value"):
        lines(task, {"b": 5_000}, "zebra")
    numbers = report_task("t", "?", Integer(0, 9), epsilon=CLEAR, **WHEN)
    with pytest.raises(WrongUse, match="--candidates"):
        lines(numbers, {3: 5_000}, "3")


def test_texts_are_searched_where_nobody_has_a_list():
    words = Words("abc", 3)
    # two lengths and the texts themselves, by sketches that are fast to search
    parts = (oracles.sketch(8, rows=64, buckets=256),) * 3
    oracle = oracles.PrefixesOracle(words.symbols, words.length, 2, parts)
    task = report_task("t", "?", words, oracle=oracle, **WHEN)
    assert lines(task, {"cab": 5_000})[2].split()[0] == "cab"
