# SPDX-License-Identifier: Apache-2.0
"""Counts by cell: labels, intervals and tables."""

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import UnknownName, WrongUse
from sfumato.metadata.column import Column
from sfumato.plan.value import Value
from sfumato.synopsis import Counts

LINE = Value.of(Column("line", sf.Category("A", "B")))
HOUR = Value.of(Column("hour", sf.Integer(5, 6)))
BOTH = Counts((LINE, HOUR), np.arange(9.0), 2.0, 5.0)


def test_each_cell_has_its_count():
    assert BOTH.cells[:4] == [("A", 5), ("A", 6), ("A", None), ("B", 5)]
    assert BOTH["B", 6].value == 4 and BOTH[None, None].value == 8
    estimate = BOTH["A", 5]
    assert (estimate.standard_error, estimate.low, estimate.high) == (2, -5, 5)
    for cell in ("A", ("A", 7), ("A", 5, 5), 3):
        with pytest.raises(UnknownName, match="No cell"):
            BOTH[cell]


def test_one_count_is_a_value():
    one = Counts((), np.array([7.0]), 1.0, 2.0)
    assert one.value == 7 == one[()].value and one.cells == [()]
    assert repr(one) == "7 [5, 9]"
    with pytest.raises(WrongUse, match="9 counts"):
        BOTH.value  # noqa: B018


def test_counts_as_tables():
    first = BOTH.to_dicts("rides")[0]
    assert first == {
        "line": "A",
        "hour": 5,
        "rides": 0.0,
        "rides_error": 2.0,
        "rides_low": -5.0,
        "rides_high": 5.0,
    }
    table = BOTH.to_arrow()
    assert table.num_rows == 9 and table["hour"].to_pylist()[2] is None
    assert "missing" in repr(BOTH) and "+- 5" in repr(BOTH)
    many = Counts((Value.of(Column("hour", sf.Integer(0, 98))),), np.zeros(100), 1.0, 1.0)
    assert repr(many).endswith("80 more")
