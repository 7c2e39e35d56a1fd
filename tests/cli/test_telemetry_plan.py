# SPDX-License-Identifier: Apache-2.0
"""The errors of a task before it is asked."""

import re

import pytest

from sfumato.cli.telemetry_plan import planned_errors
from sfumato.errors import WrongUse
from sfumato.metadata.column import Integer
from sfumato.telemetry import oracles, report_task

WHEN = {"start": 0, "periods": 1}


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


def test_quantiles_have_no_picture_of_errors() -> None:
    task = report_task("t", "?", Integer(0, 15), oracle=oracles.levels(16, 1), **WHEN)
    with pytest.raises(WrongUse, match="simulate --save-plot"):
        planned_errors(task, 10_000).picture(task, 10_000)
