# SPDX-License-Identifier: Apache-2.0
"""The quality report: planned errors, and simulated ones near them."""

import math

import pytest

from sfumato.errors import WrongUse
from sfumato.synopsis.geography.census import census
from tests.synopsis.geography.surveys import ASKED, SPINE, opened


def test_simulated_errors_of_least_squares_are_near_the_plan(tmp_path):
    with opened(tmp_path) as session:
        found = census(session, "people", SPINE, rho="0.01", **ASKED)
        before = repr(session.budget)
        report = found.quality(runs=200)
        assert repr(session.budget) == before
    for table, planned in zip(report.tables, found.plan.standard_errors(found.split), strict=True):
        assert table.planned == planned
        # the mean absolute value of a Gaussian is sqrt(2 / pi) deviations; 200 runs, seven deviations
        assert table.squares == pytest.approx(math.sqrt(2 / math.pi) * planned, rel=0.4)
        assert 0 <= table.empty <= 1
    text = repr(report)
    assert "published" in text and "age_group x sex" in text


def test_no_runs_are_refused(tmp_path):
    with opened(tmp_path) as session:
        found = census(session, "people", SPINE, rho=1, **ASKED)
    for runs in (0, -1, 10**6, "three"):
        with pytest.raises(WrongUse, match="runs="):
            found.quality(runs)
