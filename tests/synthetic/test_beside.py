# SPDX-License-Identifier: Apache-2.0
"""Exact numbers: of public tables alone, and right ones."""

import datetime

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import sfumato as sf
from sfumato.errors import InvalidSource, UnknownName, WrongUse
from sfumato.synthetic import beside
from sfumato.synthetic.beside import compare

COLUMNS = {
    "a": sf.Integer(0, 9, missing="?"),
    "b": sf.Category({"1": "yes", "2": "no"}),
    "c": sf.Real(0, 1, step="0.5"),
}
ROWS = pa.table({"a": [0, 1, None, 3], "b": ["yes", "no", "no", "no"], "c": [0.0, 0.5, 1.0, 1.0]})
KNOWN = pa.table({"a": ["0", "1", "?", "9"], "b": ["1", "2", "2", "1"], "c": ["0", ".5", "1", "1"]})


def test_the_numbers_are_those_counted_by_hand(tmp_path):
    path = tmp_path / "known.csv"
    pyarrow.csv.write_csv(KNOWN, path)
    found = compare("known", ROWS, sf.Table(path, columns=COLUMNS, public=True))
    one, two, three = found.ways
    # a: 3 beside 9; b: one of four rows; c: equal
    assert (one.mean, one.worst) == (pytest.approx((0.25 + 0.25 + 0) / 3), 0.25)
    # the last row differs in each pair
    assert (two.mean, two.marginals, three.mean) == (0.25, 3, 0.25)
    ranges = {each.column: each for each in found.ranges}
    assert ranges["a"].rows == (0, 1, 3) and ranges["a"].public == (0, 1, 9)
    (only,) = found.correlations
    expected = np.corrcoef([0, 1, 9], [0, 0.5, 1])[0, 1]
    assert only.columns == ("a", "c") and only.public == pytest.approx(expected)


def refused(rows, table):
    """Whether it is refused; what it says has no number of the table."""
    try:
        compare("known", rows, table)
    except WrongUse as error:
        return "not declared public" in str(error)
    return False


def test_a_private_table_is_refused_unread(tmp_path, monkeypatch):
    """The file is not there: had it been read, the error would be another."""
    private = sf.Table(tmp_path / "absent.csv", columns=COLUMNS)
    assert refused(ROWS, private)
    assert refused(ROWS, sf.Table(KNOWN, columns=COLUMNS))
    assert refused(ROWS, sf.Table(KNOWN, columns=COLUMNS, unit=sf.Unit("a", max_rows=1)))
    assert refused(ROWS, KNOWN)
    # the mutant asks for no declaration
    monkeypatch.setattr(beside.Table, "public", True)
    with pytest.raises(InvalidSource):
        compare("known", ROWS, private)


def test_equal_tables_are_at_no_distance_and_many_values_have_bins():
    random = np.random.default_rng(1)
    values = random.integers(0, 10_000, 500)
    days = [datetime.date(2000, 1, 1) + datetime.timedelta(int(day)) for day in values % 400]
    rows = pa.table({"n": values, "d": days})
    columns = {"n": sf.Integer(0, 9999), "d": sf.Date("2000-01-01", "2002-01-01")}
    public = sf.Table(rows, columns=columns, public=True)
    assert all(way.worst == 0 for way in compare("known", rows, public).ways)
    # the half of smaller numbers is away from the public ones by half
    low = rows.filter(pa.compute.less(rows["n"], int(np.median(values))))
    assert compare("known", low, public).ways[0].worst == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize(
    ("rows", "known", "columns", "error"),
    [
        (ROWS.rename_columns(["x", "y", "z"]), KNOWN, COLUMNS, UnknownName),
        (ROWS, KNOWN.drop(["a"]), COLUMNS, UnknownName),
        (ROWS.slice(0, 0), KNOWN, COLUMNS, WrongUse),
        (ROWS, KNOWN.slice(0, 0), COLUMNS, WrongUse),
        (ROWS, KNOWN, {"b": sf.Text()}, WrongUse),
    ],
)
def test_what_cannot_be_compared_is_refused(rows, known, columns, error):
    with pytest.raises(error):
        compare("known", rows, sf.Table(known, columns=columns, public=True))
