# SPDX-License-Identifier: Apache-2.0
"""The errors of a task before it is asked."""

import re
from typing import Any

import pytest

from sfumato.cli.telemetry_plan import planned_errors
from sfumato.errors import WrongUse
from sfumato.metadata.column import Integer
from sfumato.telemetry import Texts, Words, oracles, report_task

WHEN: dict[str, Any] = {"start": 0, "periods": 1}


def test_each_oracle_has_its_row_and_its_line() -> None:
    task = report_task("t", "?", ["a", "b"], epsilon=1, **WHEN)
    planned = planned_errors(task, 10_000)
    assert planned.text.count("+-") == len(planned.lines) == 5
    assert planned.lines[0].name == "category"
    # randomised response of 3 values: q = 1/(e + 2), p = e q
    e = 2.718281828
    half = 1.96 * ((e + 1) / (e - 1) ** 2 / 10_000) ** 0.5
    assert planned.lines[0].error == pytest.approx(half, rel=1e-3)
    assert "t: 95% error" in planned.picture(task, 10_000).svg


def test_a_mean_has_one_line_in_its_own_unit() -> None:
    task = report_task("t", "?", Integer(0, 10), oracle=oracles.mean(11, 1), **WHEN)
    planned = planned_errors(task, 10_000)
    (line,) = planned.lines
    (said,) = re.findall(r"\+- ([\d.]+)", planned.text)
    assert line.error == pytest.approx(float(said), rel=1e-3)
    assert f"mean: {said}<" in planned.picture(task, 10_000).svg


def variance(oracle: Any) -> float:
    """That of the estimate of an absent value, for one report."""
    own, other = float(oracle.own), float(oracle.other)
    return other * (1 - other) / (own - other) ** 2


def test_each_attribute_has_the_error_of_the_devices_that_draw_it() -> None:
    parts = [oracles.category(3, 1), oracles.bit(10, 1)]
    domain: dict[str, Any] = {"lang": ["en", "de"], "years": Integer(0, 9)}
    task = report_task("t", "?", domain, oracle=oracles.attributes(parts), **WHEN)
    planned = planned_errors(task, 10_000)
    for line, part in zip(planned.lines, parts, strict=True):
        assert line.error == pytest.approx(1.96 * (variance(part) / 5_000) ** 0.5)
    assert planned.text.count("5,000") == 2 and "years" in planned.text


def test_oracles_of_texts_are_compared_and_that_of_the_task_is_its_own() -> None:
    few = oracles.count_mean(2, rows=8, buckets=16)
    task = report_task("t", "?", Texts(), oracle=few, **WHEN)
    planned = planned_errors(task, 10_000)
    errors = {line.name: line.error for line in planned.lines}
    assert list(errors) == ["sketch", "count_mean", "hadamard_count_mean"]
    assert errors["count_mean"] == pytest.approx(1.96 * (variance(few) / 10_000) ** 0.5)
    assert "count_mean *" in planned.text and planned.text.count(" *") == 1
    blurred = report_task("t", "?", Texts(), oracle=oracles.rappor(), memory=1, **WHEN)
    (line,) = planned_errors(blurred, 10_000).lines
    assert line.error == pytest.approx(1.96 * (variance(oracles.rappor()) / 10_000) ** 0.5)


def test_searches_are_compared_by_the_sketch_of_their_estimates() -> None:
    words = Words("ab", 5)
    tree, puzzle = oracles.prefixes(3, 5, 2), oracles.fragments(3, 5, 2, whole="0.5")
    task = report_task("t", "?", words, oracle=puzzle, **WHEN)
    planned = planned_errors(task, 10_000)
    found = {line.name: (line.error / 1.96) ** 2 * 10_000 for line in planned.lines}
    # the last of the parts has a share of the devices; all devices report whole texts
    assert found["prefixes"] == pytest.approx(variance(tree.parts[-1]) * len(tree.parts))
    assert found["fragments"] == pytest.approx(variance(puzzle.parts[1]))
    assert "fragments *" in planned.text and "prefixes *" not in planned.text


def test_quantiles_have_no_picture_of_errors() -> None:
    task = report_task("t", "?", Integer(0, 15), oracle=oracles.levels(16, 1), **WHEN)
    with pytest.raises(WrongUse, match="simulate --save-plot"):
        planned_errors(task, 10_000).picture(task, 10_000)
