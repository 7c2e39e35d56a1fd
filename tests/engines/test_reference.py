# SPDX-License-Identifier: Apache-2.0
"""The reference engine against integers worked out by hand, and against pandas."""

import datetime
import hashlib
import math
from decimal import Decimal

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.engines.reference import Reference, code_of, rows_of, text_of
from sfumato.metadata.column import Column
from sfumato.privacy.distance import Norm

KEY = "key"
FINE = 2**20
COLUMNS = {"letter": sf.Category("a", "b", "c", "d"), "value": sf.Integer(-5, 3, missing="N")}


def ask(asker, rows, text, unit=None, norm=Norm.L1):
    return asker("nowhere.csv", COLUMNS, unit).reference(text, rows, norm)


def person(name, letters, values):
    return [{"who": name, "letter": letter, "value": value} for letter, value in zip(letters, values, strict=True)]


def test_rows_as_units_are_added_up(asker):
    rows = person(None, "aab?", [3, "-9", "N", 1])
    text = "SELECT COUNT(*), COUNT(value), SUM(value), AVG(value) FROM people"
    # values 3, -5 (moved to the bound), missing, 1; above the lower bound: 8 + 0 + 6, below the upper: 0 + 8 + 2
    assert ask(asker, rows, text) == {(): (4, 3, -1, 14, 10)}


def test_groups_are_of_declared_values_only(asker):
    rows = [*person(None, "aab?", [3, -9, "N", 1]), {"letter": None, "value": 1}]
    assert ask(asker, rows, "SELECT COUNT(*) FROM people GROUP BY letter") == {(0,): (2,), (1,): (1,)}


def test_missing_is_a_group_where_it_is_declared(asker):
    rows = person(None, "aaa", [1, "N", None])
    found = ask(asker, rows, "SELECT COUNT(*) FROM people WHERE letter = 'a' GROUP BY value")
    assert found == {(1,): (1,), (None,): (2,)}


def test_nothing_counts_zero(asker):
    assert ask(asker, [], "SELECT COUNT(*), AVG(value) FROM people") == {(): (0, 0, 0)}
    assert ask(asker, [], "SELECT COUNT(*) FROM people GROUP BY letter") == {}


def test_rows_beyond_the_limit_are_clipped(asker):
    unit = sf.Unit("who", max_rows=2)
    rows = person("p", "aaaa", [3, 3, 3, 1]) + person("q", "a", [-5])
    text = "SELECT COUNT(*), COUNT(value), SUM(value), AVG(value) FROM people"
    # p: 2 rows, 2 values, sum 10 clipped to 6, pair (30, 2) of 4 values weighed to 2: (15, 1); q adds (0, 8)
    assert ask(asker, rows, text, unit) == {(): (3, 3, 1, 15, 9)}


@pytest.mark.parametrize(("norm", "weight"), [(Norm.L1, FINE // 2), (Norm.L2, math.isqrt(FINE**2 // 2))])
def test_groups_beyond_the_limit_are_weighed_down(asker, norm, weight):
    rows = person("p", "abcd", [3, 3, 3, 3]) + person("q", "ab", [1, 1])
    found = ask(asker, rows, "SELECT COUNT(*) FROM people GROUP BY letter", sf.Unit("who", 1, 2), norm)
    assert found == {(0,): (weight + FINE,), (1,): (weight + FINE,), (2,): (weight,), (3,): (weight,)}


def test_a_total_weighs_all_rows_of_a_unit(asker):
    rows = person("p", "aabb", [1, 1, 1, 1])
    found = ask(asker, rows, "SELECT COUNT(*) FROM people GROUP BY letter", sf.Unit("who", 2, 2, 3))
    assert found == {(0,): (2 * (FINE * 3 // 4),), (1,): (2 * (FINE * 3 // 4),)}


def test_distinct_units_keep_the_first_groups_by_keyed_hash(asker):
    rows = person("p", "abcd", [1, 1, 1, 1])
    found = ask(asker, rows, "SELECT COUNT(DISTINCT who) FROM people GROUP BY letter", sf.Unit("who", None, 2))
    first = sorted(range(4), key=lambda code: hashlib.md5(f"{KEY}|{code}|p".encode()).hexdigest())[:2]
    assert found == {(code,): (int(code in first),) for code in range(4)}


def test_rows_without_a_unit_are_nobodys(asker):
    rows = person(None, "ab", [1, 1]) + person("p", "a", [1])
    assert ask(asker, rows, "SELECT COUNT(*) FROM people", sf.Unit("who", 2)) == {(): (1,)}


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(-5, 3)), min_size=1, max_size=30))
def test_unbounded_sums_are_those_of_pandas(asker, pairs):
    frame = pd.DataFrame(pairs, columns=["letter", "value"])
    rows = frame.to_dict("records")
    text = "SELECT COUNT(*), SUM(value) FROM people WHERE value > -3 GROUP BY letter"
    kept = frame[frame.value > -3].groupby("letter").value.agg(["size", "sum"])
    expected = {("abcd".index(letter),): (row["size"], row["sum"]) for letter, row in kept.iterrows()}
    assert ask(asker, rows, text) == expected


DAYS = {"1970-01-01": 0, "1900-01-01": -1, "2019-02-29": None, "1970-1-1": None, datetime.date.max: 1}
CODES = {
    sf.Integer(-5, 3): {
        "-5": -5,
        "3.5": 3,
        "2.5": 2,
        "1.5": 2,
        " 1 ": 1,
        "1e400": 3,
        "-1e400": -5,
        "x": None,
        "": None,
    },
    sf.Real(0, 1, step="0.25"): {
        "0.125": 0,
        "0.375": 2,
        ".5": 2,
        math.inf: 4,
        math.nan: None,
        True: 4,
        Decimal("0.5"): 2,
    },
    sf.Date("1969-12-31", "1970-01-02"): {**DAYS, datetime.datetime.fromisoformat("1969-12-31T23:59:59"): -1},
    sf.Category("1", "b"): {"1": 0, 1: 0, "b": 1, "B": None, "1.0": None, 1.5: None},
    sf.Category("1"): {1.0: 0, "01": None},
    sf.Category("1", "2"): {Decimal("1.00"): 0, "1.00": None},
    sf.Boolean(): {True: 1, "true": 1, "0": 0, 0.0: 0, "yes": None, 2: None},
    sf.Integer(0, 9, missing=("1", "")): {"1": None, 1.0: None, "1.0": 1, "": None},
    sf.Text(missing="N"): {"N": None, "n": "n", "": "", 5: "5"},
}


@pytest.mark.parametrize("kind", CODES, ids=repr)
def test_the_code_of_a_value_is_the_one_worked_out_by_hand(kind):
    for value, code in CODES[kind].items():
        assert code_of(Column("x", kind), value) == code, value
    assert code_of(Column("x", kind), None) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (False, "false"),
        (1.0, "1"),
        (-0.0, "0"),
        (1.5, "1.5"),
        (1e16, "10000000000000000"),
        (1e20, "1e+20"),
    ],
)
def test_a_value_is_compared_by_its_text(value, text):
    assert text_of(value) == text


def test_the_statement_says_what_it_would_run(asker):
    plan = asker("nowhere.csv", COLUMNS).plan("SELECT COUNT(*) FROM people")
    assert Reference({"people": []}).statement(plan) == "plain Python over people"


def test_rows_of_columns():
    assert rows_of({"a": [1, 2], "b": "xy"}) == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    with pytest.raises(ValueError, match="zip"):
        rows_of({"a": [1], "b": "xy"})
