# SPDX-License-Identifier: Apache-2.0
"""The table of estimates, and its consistent form."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.telemetry.estimates import Estimates
from sfumato.telemetry.intervals import Coins

COINS = Coins(1000, Fraction(3, 4), Fraction(1, 4))


def shown(support):
    values = tuple(f"v{place}" for place in range(len(support)))
    return Estimates(values, np.array(support), COINS, "0.95")


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=6))
def test_consistent_numbers_are_the_nearest_that_add_up(support):
    table = shown(support)
    found = table.consistent()
    assert (found >= 0).all() and np.isclose(found.sum(), 1000)
    # no other numbers of the simplex are nearer: each corner lies behind the plane at the projection
    for corner in np.eye(len(support)) * 1000:
        assert np.dot(table.estimate - found, corner - found) <= 1e-6


def test_the_table_has_a_row_a_value():
    table = shown([250, 500])
    first, second = table.to_dicts()
    assert first["value"] == "v0" and first["estimate"] == 0 and second["estimate"] == 500
    assert first["low"] < 0 < first["high"] and first["p_value"] > 0.4 > second["p_value"]
    assert table.to_arrow().column_names == list(first)
    assert list(table.top(1)) == [("v1", 500.0)]
    assert table.reports == 1000
    assert table.standard_error[0] == pytest.approx((1000 * 3 / 16) ** 0.5 * 2)
    assert table.liars_up == pytest.approx(10 * 0.75 / 0.5)
    assert table.liars_down == pytest.approx(10 * (1 + 0.25 / 0.5))
