# SPDX-License-Identifier: Apache-2.0
"""Public marginals: exact in every sample, and contradictions named before the charge."""

from datetime import date
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

import sfumato as sf
from sfumato import synthetic as sy
from sfumato.errors import UnknownName, WrongUse
from sfumato.synthetic.public import PublicCells, next_counts
from sfumato.synthetic.rows import Dice
from tests.synthetic.towns import session

COLUMNS = {
    "sex": sf.Category("F", "M"),
    "age": sf.Integer(0, 3),
    "job": sf.Category("x", "y", missing=""),
    "day": sf.Date("2020-01-01", "2020-01-03"),
    "pay": sf.Integer(0, 999),
}
ROWS = pa.table(
    {
        "sex": ["F", "M"] * 300,
        "age": [k % 4 for k in range(600)],
        "job": ["x", "y", ""] * 200,
        "day": [date(2020, 1, 1 + k % 3) for k in range(600)],
        "pay": list(range(600)),
    }
)
SEX = sy.public("sex", {"F": 2, "M": 1})
PAIR = sy.public(["job", "age"], {("x", "0"): 3, ("y", 3): "0.5", (None, 1): 1})


TIED = [SEX, sy.public("age", {1: 1}), sy.implies("sex = 'F'", "age < 2")]


def opened(folder):
    return session(folder, ROWS, columns=COLUMNS)


def test_every_sample_agrees_with_public_marginals_exactly(tmp_path, monkeypatch):
    constraints = [SEX, PAIR, sy.public("day", {date(2020, 1, 2): 1}), sy.require("sex = 'F'")]
    with opened(tmp_path) as one:
        model = sy.fit(one, "people", rho=1, constraints=constraints[:3])
        again = sy.load(one, model.charge_id)
        assert again.task.publics == model.task.publics and len(again.task.publics) == 3
        samples = [again.sample(rows=rows)["people"] for rows in (0, 1, 2, 7, 1000)]
        samples += [copy["people"] for copy in model.samples(2)]
    # in parts, too, of which each has its share
    monkeypatch.setattr("sfumato.synthetic.sampler.AT_ONCE", 7)
    monkeypatch.setattr("sfumato.synthetic.sampler.IN_MEMORY", 100)
    again.save(tmp_path / "out", rows=400, csv=False)
    samples += [parquet.read_table(tmp_path / "out/people.parquet"), again.sample(400)["people"]]
    for rows in samples:
        size = len(rows)
        women = rows["sex"].to_pylist().count("F")
        assert abs(women - Fraction(2 * size, 3)) < 1
        found = list(zip(rows["job"].to_pylist(), rows["age"].to_pylist(), strict=True))
        assert set(found) <= {("x", 0), ("y", 3), (None, 1)}
        assert abs(found.count(("x", 0)) - Fraction(6 * size, 9)) < 1
        assert set(rows["day"].to_pylist()) <= {date(2020, 1, 2)}


def test_what_is_tied_to_a_public_marginal_follows_it(tmp_path):
    # the table has as many of each age, and the old have no job, which the rows contradict
    ages = sy.public("age", {0: 5, 1: 3, 2: 2})
    days = sy.public("day", {date(2020, 1, 1): 1, date(2020, 1, 3): 2})
    constraints = [
        ages,
        days,
        sy.implies("age >= 1", "job IS NULL"),
        sy.determines("job", "sex", {"x": "F", "y": "M", None: "F"}),
        sy.require("(day = DATE '2020-01-01') = (pay < 500)"),
    ]
    options = sy.Options(bins={"pay": [500]})
    with opened(tmp_path) as one:
        model = sy.fit(one, "people", rho=1, constraints=constraints, options=options)
        assert [each.tied for each in sy.load(one, model.charge_id).task.publics] == [(0, 2), (4,)]
    samples = [model.sample(rows=rows)["people"] for rows in (0, 1, 999)]
    for rows in samples:
        found = rows.to_pylist()
        for age, share in ((0, "1/2"), (1, "3/10"), (2, "1/5"), (3, 0)):
            have = sum(row["age"] == age for row in found)
            assert abs(have - Fraction(share) * len(found)) < 1
        first = sum(row["day"] == date(2020, 1, 1) for row in found)
        assert abs(first - Fraction(len(found), 3)) < 1
        for row in found:
            assert row["age"] == 0 or row["job"] is None
            assert row["sex"] == ("M" if row["job"] == "y" else "F")
            assert (row["day"] == date(2020, 1, 1)) == (row["pay"] < 500)


def test_a_fit_with_another_public_marginal_is_another_charge(tmp_path):
    with opened(tmp_path) as one:
        first = sy.fit(one, "people", rho=1, constraints=[SEX])
        other = sy.fit(one, "people", rho=1, constraints=[sy.public("sex", {"F": 1})])
        assert first.charge_id != other.charge_id
        assert sy.fit(one, "people", rho=1, constraints=[SEX]).charge_id == first.charge_id


@pytest.mark.parametrize(
    ("constraints", "error", "named"),
    [
        ([SEX, sy.require("sex = 'F'")], WrongUse, "contradicts the public marginal of sex"),
        ([PAIR, sy.require("age < 3")], WrongUse, "contradicts the public marginal of job, age"),
        ([PAIR, sy.implies("age = 0", "job = 'y'")], WrongUse, "contradicts"),
        ([SEX, sy.implies("sex = 'F'", "1 = 0")], WrongUse, "no row can have 'F'"),
        (TIED, WrongUse, "Constraints tie age to sex; both"),
        ([SEX, sy.public("sex", {"F": 1})], WrongUse, "Two public marginals"),
        ([PAIR, sy.public("age", {1: 1})], WrongUse, "Two public marginals"),
        ([sy.public("shoe", {"F": 1})], UnknownName, "shoe"),
        ([sy.public("sex", {"Z": 1})], WrongUse, "public value 'Z'"),
        ([sy.public("sex", {None: 1})], WrongUse, "public value None"),
        ([sy.public("age", {1: 1, "1": 2})], WrongUse, "A value twice"),
        ([sy.public("pay", {3: 1})], WrongUse, "without bins"),
    ],
)
def test_contradictions_are_named_before_the_charge(tmp_path, constraints, error, named):
    with opened(tmp_path) as one:
        before = one.budget.spent
        with pytest.raises(error, match=named):
            sy.fit(one, "people", rho=1, constraints=constraints)
        assert one.budget.spent == before


@pytest.mark.parametrize(
    ("columns", "counts"),
    [
        ("sex", {}),
        ("sex", {"F": 0}),
        ("sex", {"F": -1, "M": 3}),
        ("sex", 3),
        (["sex", "sex"], {("F", "F"): 1}),
        (["a", "b", "c"], {}),
        (["sex", "age"], {"F": 1}),
    ],
)
def test_what_is_no_marginal_is_refused(columns, counts):
    with pytest.raises(WrongUse):
        sy.public(columns, counts)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=6), st.integers(1, 30))
def test_counts_of_parts_add_up_and_each_is_less_than_one_from_its_share(counts, size):
    left = np.array(counts)
    while left.any():
        rows = min(size, int(left.sum()))
        drawn = next_counts(left, rows)
        assert drawn.sum() == rows and (drawn >= 0).all() and (drawn <= left).all()
        assert (np.abs(drawn * left.sum() - left * rows) < left.sum()).all()
        left = left - drawn
    assert next_counts(left, 0).tolist() == left.tolist()


@given(st.lists(st.integers(0, 9), min_size=1, max_size=6), st.integers(0, 200), st.data())
def test_counts_of_rows_are_less_than_one_from_their_shares(weights, rows, data):
    total = sum(weights) or 1
    weights = weights if sum(weights) else [1, *weights[1:]]
    shares = tuple(((at,), Fraction(each, total)) for at, each in enumerate(weights) if each)
    one = PublicCells((1,), (len(weights),), shares)
    counts = one.counts(rows)
    assert counts.sum() == rows
    for (at,), share in shares:
        assert abs(int(counts[at]) - rows * share) < 1
    cells = data.draw(st.lists(st.integers(0, len(weights) - 1), min_size=rows, max_size=rows))
    before = np.column_stack([np.arange(rows), cells]).astype(np.int64).reshape(rows, 2)
    moving, given = one.enforced(before, counts, Dice())
    after = before.copy()
    after[moving, 1] = given.cells[:, 0]
    assert np.bincount(after[:, 1], minlength=len(weights)).tolist() == counts.tolist()
    # no more rows are moved than must be
    moved = int((after[:, 1] != before[:, 1]).sum())
    have = np.bincount(np.array(cells, int), minlength=len(weights))
    assert moved == int(np.maximum(have - counts, 0).sum())
    assert (after[:, 0] == before[:, 0]).all()
