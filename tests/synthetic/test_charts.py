# SPDX-License-Identifier: Apache-2.0
"""Pictures of columns: every bar is a sum of noisy counts, and missing values only if there are."""

import re

import numpy as np

import sfumato as sf
from sfumato.metadata.dataset import Dataset
from sfumato.query.allowance import allowance
from sfumato.synthetic.charts import column_chart
from tests.synthetic.shadows import fit_task

COLUMNS = {
    "age": sf.Integer(0, 99, missing="?"),
    "kind": sf.Category(*[f"kind {k}" for k in range(30)]),
    "cost": sf.Real(0, 1000, step=0.25),
}
DECLARED = Dataset("d", {"t": sf.Table("t.csv", columns=COLUMNS)})


def base(missing):
    task = fit_task(allowance(rho=10_000), DECLARED)
    found = task.base([np.zeros(size, np.int64) for size in task.schema.cells])
    age = np.r_[np.arange(100.0), missing]
    kinds = np.r_[np.arange(30.0), -20.0]
    cost = np.r_[np.arange(64.0), 0.0]
    return type(found)(found.schema, found.schedule, (age, kinds, cost))


def labels(chart):
    return re.findall(r'text-anchor="end">([^<]*)</text>', chart)


def test_neighbours_are_added_up():
    chart = column_chart(base(7.0), 0)
    # 100 values in 24 bars: four of five values, then twenty of four
    assert labels(chart)[:2] == ["0 to 4", "5 to 9"]
    assert labels(chart)[3:6] == ["15 to 19", "20 to 23", "24 to 27"]
    assert labels(chart)[23:] == ["96 to 99", "missing"]
    # 96 + 97 + 98 + 99
    assert "<title>96 to 99 noisy count: 390" in chart
    assert "rows; whiskers: 95% interval" in chart


def test_of_many_categories_those_with_most_rows_are_shown():
    chart = column_chart(base(7.0), 1)
    # no kind is missing by its declaration, and -20 rows are not seen; no axis begins below 0
    assert labels(chart) == [f"kind {k}" for k in range(6, 30)]
    assert "kind: 24 of 30" in chart and ">-" not in chart


def test_ends_of_bins_have_few_digits():
    chart = column_chart(base(7.0), 2)
    # 4,001 values a quarter apart in 64 bins, three of which are a bar
    assert len(labels(chart)) == 24
    assert all(re.fullmatch(r"[\d.,]{1,5} to [\d.,]{1,5}", each) for each in labels(chart))
