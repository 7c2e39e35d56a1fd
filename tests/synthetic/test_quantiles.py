# SPDX-License-Identifier: Apache-2.0
"""Bins at quantiles against exact quantiles, for data far narrower than the declared range."""

from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato import synthetic as sy
from sfumato.accounting.account import account
from sfumato.errors import EngineFailed, WrongUse
from sfumato.metadata.column import Column
from sfumato.query.allowance import allowance
from sfumato.synthetic.fit import _fit_task
from sfumato.synthetic.quantiles import Cells, QuantileTree
from tests.synthetic.towns import session

WIDE = {"pay": sf.Integer(0, 9_999_999)}


def wages(rows: int = 5000) -> np.ndarray:
    """One in five has nothing, the others about 20,000."""
    random = np.random.default_rng(3)
    pay = np.exp(random.normal(10, 0.5, rows)).astype(int)
    pay[: rows // 5] = 0
    return pay


def test_bins_hold_about_as_many_rows_each_and_zero_has_its_own(tmp_path):
    pay = wages()
    options = sy.Options(bins={"pay": sy.Quantiles(10)})
    with session(tmp_path, pa.table({"pay": pay}), columns=WIDE) as opened:
        model = sy.fit(opened, "people", rho=10, options=options)
        again = sy.load(opened, model.charge_id)
    (axis,) = model.released.base.schema.axes
    assert again.released.base.schema.axes == (axis,)
    # noise is about 5 rows a count; a finest cell has 153 codes
    assert axis.starts[:2] == (0, 1)
    counts = np.histogram(pay, axis.limits)[0]
    assert counts.max() == 1000 and counts[1:].max() < 700
    drawn = model.sample()["people"]["pay"].to_numpy()
    assert abs(drawn.mean() / pay.mean() - 1) < 0.08
    assert drawn.max() < 2 * pay.max()


def test_a_default_mean_is_right_in_a_range_that_is_far_too_wide(tmp_path):
    """With bins of one width, all rows were in the first one: the mean was far too high."""
    pay = wages()
    with session(tmp_path, pa.table({"pay": pay}), columns=WIDE) as opened:
        drawn = sy.fit(opened, "people", rho=10).sample()["people"]["pay"].to_numpy()
        wide = sy.fit(opened, "people", rho=10, options=sy.Options(bins={"pay": 64}))
    assert abs(drawn.mean() / pay.mean() - 1) < 0.08
    assert wide.sample()["people"]["pay"].to_numpy().mean() > 2 * pay.mean()


@pytest.mark.parametrize(
    ("kind", "values", "far"),
    [
        (sf.Real(-50, 1000, step="0.01"), [12.5, 13.25, 14.75] * 500, 3),
        (sf.Date("1900-01-01", "2100-12-31"), [date(2020, 2, 3)] * 1500, timedelta(2)),
        (
            sf.Timestamp("1990-01-01", "2030-01-01"),
            [datetime(2020, 2, 3, 4, 5, 6, tzinfo=UTC)] * 1500,
            timedelta(1),
        ),
    ],
)
def test_every_ordered_type_has_quantiles(tmp_path, kind, values, far):
    rows = pa.table({"v": values})
    options = sy.Options(bins={"v": sy.Quantiles(4)})
    with session(tmp_path, rows, columns={"v": kind}) as opened:
        drawn = sy.fit(opened, "people", rho=10, options=options).sample(rows=400)["people"]["v"]
    assert len(drawn) == 400 and drawn.null_count == 0
    assert sum(abs(value - values[0]) <= far for value in drawn.to_pylist()) > 300


def test_a_pure_epsilon_buys_quantiles_and_the_cost_is_what_was_asked(tmp_path):
    with session(tmp_path, pa.table({"pay": wages(100)}), columns=WIDE) as opened:
        task = _fit_task(opened.dataset, "people", allowance(epsilon=2))
        spent = account(task.event).epsilon
        assert spent is not None and Fraction("1.999") < spent <= 2
        assert len(opened.ask(task).body) <= task.size


def test_no_rows_have_bins_too(tmp_path):
    rows = pa.table({"pay": pa.array([], pa.int64())})
    with session(tmp_path, rows, columns=WIDE) as opened:
        model = sy.fit(opened, "people", rho=1)
        assert len(model.sample(rows=50)["people"]) == 50


class Deeper(QuantileTree):
    """The mutant counts one level more than it has paid for."""

    @property
    def levels(self):
        return 6

    def found(self, curator, schema, noise):
        return super().found(curator, schema, noise)


def test_levels_that_were_not_reserved_are_forfeited(tmp_path):
    with session(tmp_path, pa.table({"pay": wages(50)}), columns=WIDE) as opened:
        task = _fit_task(opened.dataset, "people", allowance(rho=1))
        event = task.event
        object.__setattr__(task.opening, "trees", (Deeper(Column("pay", WIDE["pay"]), 32),))
        assert task.event == event
        with pytest.raises(EngineFailed):
            opened.ask(task)


@given(st.lists(st.integers(0, 100), min_size=2, max_size=40), st.integers(2, 20))
def test_edges_are_starts_of_cells(masses, bins):
    starts = np.arange(len(masses)) * 7
    cells = Cells(starts, np.array(masses, float))
    for edges in (cells.quantiles(bins), cells.heavy(bins, 3.0)):
        assert set(edges.tolist()) <= set(starts.tolist())
        assert list(edges) == sorted(set(edges.tolist()))


def test_edges_of_equal_cells_are_the_quantiles():
    cells = Cells(np.arange(100), np.ones(100))
    assert cells.quantiles(10).tolist() == [10, 20, 30, 40, 50, 60, 70, 80, 90]
    assert cells.heavy(10, 0.5).tolist() == []


def test_bins_beyond_the_quantiles_double():
    tree = QuantileTree(Column("v", sf.Integer(0, 999)), 8)
    found = tree._possible_starts(np.array([500, 510]), np.array([], int))
    assert found == [0, 1, 190, 350, 430, 470, 490, 500, 510, 520, 540, 580, 660, 820]


@given(st.integers(-50, 50), st.integers(1, 10**7), st.lists(st.integers(0, 2**16)))
def test_bins_are_possible_whatever_the_edges_are(lower, size, edges):
    tree = QuantileTree(Column("v", sf.Integer(lower, lower + size)), 8)
    known = np.array(sorted(set(edges)), int)
    found = tree._possible_starts(known, known[:2])
    assert found[0] == lower and len(found) >= 2
    assert found == sorted(set(found))
    assert found[-1] <= lower + size


@pytest.mark.parametrize("bins", [1, 257, 2.5, True, "32", None])
def test_other_numbers_of_quantiles_are_refused(bins):
    with pytest.raises(WrongUse):
        sy.Quantiles(bins)
