# SPDX-License-Identifier: Apache-2.0
"""Intervals of a census: around least squares, cut at 0, and they hold the truth."""

import numpy as np

from sfumato.synopsis.geography.census import measure_census
from sfumato.synopsis.geography.plan import census_plan
from sfumato.testing import assert_at_most
from tests.synopsis.geography.surveys import ASKED, SPINE, opened, rows, truth


def test_intervals_hold_the_numbers_of_the_data(tmp_path):
    frame = rows(400)
    exact = truth(frame, "county")
    missed = 0
    with opened(tmp_path, frame) as session:
        planned = census_plan(session.dataset, "people", SPINE, rho="0.05", **ASKED)
        for release in range(60):
            found = measure_census(session.asking_as(f"a{release}"), planned).estimates
            low, high = found.interval(2, (1,))
            missed += not low[5, 0] <= exact["c5", "F"] <= high[5, 0]
            assert (low >= 0).all()
            assert (high >= low).all()
    assert_at_most(missed, 60, 0.05, notices=0.9)


def test_an_interval_is_as_wide_as_its_margins_and_that_of_a_known_cell_is_a_point(tmp_path):
    zeros = [{"age_group": ["young"], "sex": ["F"]}]
    totals = {"state": {"s0": 1700}}
    with opened(tmp_path) as session:
        planned = census_plan(
            session.dataset, "people", SPINE, rho=1, zeros=zeros, public_totals=totals, **ASKED
        )
        found = measure_census(session, planned).estimates
    low, high = found.interval(1, (0, 1))
    assert (low[:, 0, 0] == 0).all() and (high[:, 0, 0] == 0).all()
    margins = found.margins(1, (0, 1))
    np.testing.assert_allclose((high - low)[:, 1:], 2 * margins[:, 1:])
    low, high = found.interval(1, ())
    assert low[0] == high[0] == 1700
    assert high[1] > low[1]
