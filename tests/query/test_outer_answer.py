# SPDX-License-Identifier: Apache-2.0
"""The answer of SQL over private answers, from results made by hand."""

import datetime
import json
from decimal import Decimal

import pytest

from sfumato.errors import WrongUse
from sfumato.query.outer_answer import OuterAnswer, Result
from sfumato.query.outer_errors import Releases
from sfumato.sql.outer_forms import Kind as Of
from sfumato.sql.outer_forms import Known, Leaf
from tests.query.test_outer_errors import answer, code

CELL = Known(Leaf(Of.CELL, (3,)), noisy=True)
KEY = Known(None, noisy=False)
RANK = Known(None, noisy=True)
COLUMNS = [("g", "text"), ("n", "integer"), ("r", "integer")]


def outer(rows, known=(KEY, CELL, RANK), columns=COLUMNS, inner=None):
    values = [[row[place] for row in rows] for place in range(len(rows[0]) if rows else 9)]
    result = Result(columns, values, known)
    inner = inner or [answer([5, 7])]
    return OuterAnswer("SELECT ...", ["of today"], inner, Releases(inner), result, "shop")


def test_rows_errors_and_notes():
    own = outer([("a", 5, 1, code(0)), ("b", 7, 2, code(1))])
    assert own.rows == [["a", 5, 1], ["b", 7, 2]]
    assert own.error()[1] == {
        "g": "b",
        "n": {"low": -23, "high": 37, "half_width": 30},
        "r": {"low": None, "high": None, "half_width": None},
    }
    assert own.error("0.5")[1]["n"]["high"] < 37
    assert [column["released"] for column in own.columns] == [False, True, True]
    assert "of today" in own.notes
    assert "r: computed from noisy numbers, without an interval." in own.notes
    assert own.charge_id == "c" and own.inner[0].charge_id == "c"
    assert json.loads(own.bytes) == own.form


def test_what_duckdb_gives_becomes_json():
    values = (Decimal("3.00"), Decimal("0.5"), 2.5, float("nan"), float("inf"), None, True)
    moments = (datetime.date(2024, 2, 29), datetime.datetime.fromisoformat("2024-02-29 10:00:00"))
    row = (*values, *moments)
    kinds = ["real"] * 6 + ["boolean", "date", "local time"]
    columns = [(f"c{place}", kind) for place, kind in enumerate(kinds)]
    (shown,) = outer([row], None, columns).rows
    assert shown[:4] == [3, 0.5, 2.5, None]
    assert shown[4] > 1e308 and shown[5:] == [None, True, "2024-02-29", "2024-02-29 10:00:00"]


def test_without_a_trace_every_column_may_be_noisy():
    own = outer([("a", 5, 1)], None)
    assert all(column["released"] for column in own.columns)
    assert own.error()[0]["g"] == {"low": None, "high": None, "half_width": None}


def test_costs_add_up():
    own = outer([("a", 5, 1, code(0))], inner=[answer([5, 7]), answer([1])])
    assert own.cost.epsilon == "2" and own.cost.rho == "2"
    assert own.charge_id == "c, c" and len(own.inner) == 2


def test_a_cell_that_is_null_has_no_interval():
    own = outer([("a", None, 1, code(0))])
    assert own.error()[0]["n"] == {"low": None, "high": None, "half_width": None}


def test_it_is_not_made_consistent():
    with pytest.raises(WrongUse):
        outer([("a", 5, 1, code(0))]).consistent()
