# SPDX-License-Identifier: Apache-2.0
"""Columns as cells: every code in one bin, values back from cells, and what is refused."""

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines.reference import Reference
from sfumato.errors import MissingDeclaration, UnknownName, WrongUse
from sfumato.metadata.column import Column
from sfumato.metadata.dataset import Dataset
from sfumato.synthetic.schema import Axis, Schema, schema_of

DECLARED = {
    "age": sf.Integer(0, 99),
    "pay": sf.Real(0, 1000),
    "born": sf.Date("2000-01-01", "2003-12-31"),
    "job": sf.Category("nurse", "smith", missing=""),
    "name": sf.Text(),
}


def dataset(**other: Any) -> Dataset:
    return Dataset("town", {"people": sf.Table("people.csv", columns=DECLARED, **other)})


def test_values_that_are_declared_are_cells_and_missing_is_the_last():
    schema = schema_of(dataset(), "people")
    assert schema.names == ("age", "pay", "born", "job")
    # 64 bins of a million steps, 64 bins of 1,461 days: 23 days each
    assert schema.cells == (101, 65, 65, 3)
    assert [one.is_nullable for one in schema.axes] == [False, False, False, True]


@given(st.integers(-50, 50), st.integers(2, 200), st.data())
def test_every_code_is_in_one_bin(lower, size, data):
    column = Column("v", sf.Integer(lower, lower + size - 1))
    inner = data.draw(st.lists(st.integers(lower + 1, lower + size - 1), unique=True, min_size=1))
    one = Axis(column, (lower, *sorted(inner)))
    table = sf.Table("t.csv", columns={"v": column.type})
    schema = Schema.over(Dataset("d", {"t": table}), "t", [one])
    rows = [{"v": value} for value in range(lower, lower + size)] + [{"v": None}]
    with Reference({"t": rows}).cube(schema.plan) as opened:
        (counts,) = opened.marginals([("v",)])
    assert counts.tolist() == [*np.diff(one.limits).tolist(), 1]


@pytest.mark.parametrize("name", ["age", "pay", "born", "job"])
def test_values_of_a_cell_lie_in_its_bin(name):
    bins = {"age": [18, 65], "pay": 10, "born": ["2001-01-01", "2002-07-01"]}
    schema = schema_of(dataset(), "people", [name], {key: bins[key] for key in bins if key == name})
    (one,) = schema.axes
    cells = np.repeat(np.arange(one.cells), 20)
    spread = np.tile(np.linspace(0, 0.999, 20), one.cells)
    weights = np.random.default_rng(1).uniform(0, 50, one.cells)
    codes = one.codes(cells, spread, weights)
    assert (np.searchsorted(one.limits, codes, side="right") - 1 == cells).all()
    values = one.values(codes)
    assert values.null_count == 20
    kinds = {"age": int, "pay": float, "born": datetime.date, "job": str}
    assert all(isinstance(value, kinds[name]) for value in values.to_pylist()[:-20])


def test_values_inside_a_bin_follow_a_monotone_curve():
    one = schema_of(dataset(), "people", ["age"], {"age": [20, 60]}).axes[0]
    falling = one.codes(np.full(1000, 1), np.arange(1000) / 1000, np.array([90.0, 40.0, 1.0, 0.0]))
    # most of the rows of 20 to 59 are nearer to the crowd below 20
    assert falling.min() == 20 and falling.max() <= 59 and np.median(falling) < 38


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"table": "nobody"}, UnknownName),
        ({"columns": ["name"]}, MissingDeclaration),
        ({"columns": ["shoe"]}, UnknownName),
        ({"columns": []}, WrongUse),
        ({"columns": ["age", "age"]}, WrongUse),
        ({"bins": {"shoe": 3}}, UnknownName),
        ({"bins": {"job": 2}}, WrongUse),
        ({"bins": {"age": 1}}, WrongUse),
        ({"bins": {"age": 2.5}}, WrongUse),
        ({"bins": {"age": 10**6}}, WrongUse),
        ({"bins": {"age": [50, 20]}}, WrongUse),
        ({"bins": {"age": [200]}}, WrongUse),
        ({"bins": {"born": ["yesterday"]}}, WrongUse),
    ],
)
def test_what_cannot_be_is_refused(given, error):
    with pytest.raises(error):
        schema_of(dataset(), **{"table": "people", **given})


def test_ids_of_units_are_left_out():
    columns = {"who": sf.Integer(0, 9), "age": sf.Integer(0, 99)}
    table = sf.Table("p.csv", columns=columns, unit=sf.Unit("who", max_rows_total=1))
    assert schema_of(Dataset("d", {"p": table}), "p").names == ("age",)


def test_too_many_columns_are_refused_by_name():
    columns = {f"c{place}": sf.Boolean() for place in range(1001)}
    with pytest.raises(WrongUse, match="drop c1000"):
        schema_of(Dataset("d", {"p": sf.Table("p.csv", columns=columns)}), "p")


def test_a_column_has_one_type_whichever_of_its_values_occur():
    zoned = sf.Timestamp("2020-01-01", "2020-12-31", step=3600, zone="Europe/Zurich")
    found = []
    for kind in (*DECLARED.values(), sf.Boolean(), zoned):
        if isinstance(kind, sf.Text):
            continue
        one = Axis(Column("v", kind))
        # none, a missing one, the last one, and one in summer, which has another offset
        parts = [
            [],
            [kind.upper_code + 1],
            [kind.upper_code],
            [(kind.lower_code + kind.upper_code) // 2],
        ]
        types = {one.values(np.array(codes, np.int64)).type for codes in parts}
        assert len(types) == 1
        found += types
    days = pa.date32(), pa.string(), pa.bool_(), pa.timestamp("us", "+01:00")
    assert found == [pa.int64(), pa.float64(), *days]


def test_a_category_of_too_many_values_is_refused_with_a_remedy():
    words = [f"v{i}" for i in range(2**17 + 1)]
    held = sf.Table("t.csv", columns={"v": sf.Category(words[1:])})
    assert schema_of(Dataset("d", {"t": held}), "t").cells == (2**17 + 1,)
    table = sf.Table("t.csv", columns={"v": sf.Category(words)})
    with pytest.raises(WrongUse, match=r"(?s)131,072 values.*sf\.Text"):
        schema_of(Dataset("d", {"t": table}), "t")
