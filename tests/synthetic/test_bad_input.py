# SPDX-License-Identifier: Apache-2.0
"""Tables that are odd, costs that are tiny, and fits that are interrupted."""

from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import synthetic as sy
from sfumato.errors import SfumatoError, WrongUse
from sfumato.synthetic import fitting
from sfumato.synthetic.estimate import MaximumEntropy
from sfumato.synthetic.select import Discrepancies
from tests.synthetic.towns import session, town


def both(folder):
    """People who each made a trip or two."""
    random = np.random.default_rng(1)
    who = np.arange(300)
    people = pa.table(
        {"who": who, "age": random.integers(0, 9, 300), "sex": who % 2 == 0, "a": who % 3}
    )
    trips = pa.table({"who": np.repeat(who, 2), "far": random.integers(0, 5, 600)})
    columns = {"age": sf.Integer(0, 8), "sex": sf.Boolean(), "a": sf.Integer(0, 2)}
    unit, more = sf.Unit("who", max_rows_total=1), sf.Unit("who", max_rows_total=2)
    tables = {
        "people": sf.Table(people, unit=unit, columns=columns),
        "trips": sf.Table(trips, unit=more, columns={"far": sf.Integer(0, 4)}),
    }
    return sf.connect(tables, dataset="d", budget=sf.Budget(100, "1e-5"), ledger=folder / "l.db")


NONE = town(0)
CONSTANT = pa.table({"age": [7] * 500, "rich": [True] * 500})


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        (NONE, ["age", "job", "rich", "pay"]),
        (town(1), ["age", "job", "rich", "pay"]),
        (town(300).select(["rich"]), ["rich"]),
        (CONSTANT, ["age", "rich"]),
    ],
)
def test_odd_tables_have_rows_of_the_declared_columns(tmp_path, rows, columns):
    with session(tmp_path, rows) as opened:
        model = sy.fit(opened, "people", epsilon=1, delta="1e-9")
        drawn = model.sample(rows=30)["people"]
        assert drawn.column_names == columns and len(drawn) == 30
        assert model.rows >= 1 and len(model.sample(rows=0)["people"]) == 0
        assert model.report()
    assert set(drawn.column(0).to_pylist()) <= {None, *range(100)}


def test_a_constant_column_stays_so(tmp_path):
    with session(tmp_path, CONSTANT) as opened:
        drawn = sy.fit(opened, "people", rho=1).sample(rows=500)["people"]
    assert drawn["age"].to_pylist().count(7) > 480


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"rho": 1, "options": {"bins": 3}}, "sy.Options"),
        ({"rho": 1, "options": sy.Options(columns="age")}, r"columns=\['age'\]"),
        ({"rho": 1, "constraints": sy.require("age < 3")}, "a list of constraints"),
        ({"rho": 1, "constraints": "age < 3"}, "a list of constraints"),
        ({"rho": "1e-12"}, "rho = 1e-12 is too little to measure 2 columns"),
        ({"epsilon": "1e-12"}, "epsilon = 1e-12 is too little"),
    ],
)
def test_arguments_of_another_form_are_refused_in_words(tmp_path, asked, said):
    with session(tmp_path, CONSTANT) as opened:
        with pytest.raises(SfumatoError, match=said):
            sy.preview(opened, "people", **asked)
        with pytest.raises(SfumatoError, match=said):
            sy.fit(opened, "people", **asked)
        assert opened.budget.spent == "0"


@pytest.mark.parametrize("rows", [-1, 10**12, 2.5, "10", True])
def test_other_numbers_of_rows_are_refused(tmp_path, rows):
    with session(tmp_path, CONSTANT) as opened:
        model = sy.fit(opened, "people", rho=1)
    with pytest.raises(WrongUse, match="100,000,000"):
        model.sample(rows=rows)


@pytest.mark.parametrize(
    ("rho", "said"),
    [
        ("1e-9", "every count is noise if the table has about 30,000 rows: spend more"),
        ("2e-7", "this buys the one-way marginals only, of about 30,000 rows"),
        ("1", None),
    ],
)
def test_a_preview_says_when_counts_are_noise(tmp_path, rho, said):
    with session(tmp_path) as opened:
        notes = sy.preview(opened, "people", rho=rho).notes
    assert any("noise" in note or "one-way" in note for note in notes) is (said is not None)
    assert said is None or said in notes


def test_a_fit_that_is_interrupted_is_loaded(tmp_path):
    """The charge is stored before anything is estimated from it."""

    with session(tmp_path) as opened:
        charge = sy.fit(opened, "people", rho=1).charge_id
        spent = opened.budget.spent
        model = sy.load(opened, charge, estimator=interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.sample()
        assert len(sy.load(opened, charge).sample(rows=9)["people"]) == 9
        assert len(sy.fit(opened, "people", rho=1).sample(rows=9)["people"]) == 9
        assert opened.budget.spent == spent


def interrupted(*_given, **_named):
    """Somebody presses Ctrl-C."""
    raise KeyboardInterrupt


@pytest.mark.parametrize("tables", ["people", ["people", "trips"]])
def test_ctrl_c_between_measurements_keeps_what_was_measured(tmp_path, monkeypatch, tables):
    with both(tmp_path) as opened:
        with monkeypatch.context() as patch:
            patch.setattr(fitting.Fitting, "after", interrupted)
            with pytest.raises(KeyboardInterrupt, match="is paid for and stored"):
                sy.fit(opened, tables, rho=1, options=sy.Options(rounds=5))
        spent = opened.budget.spent_rho
        again = sy.fit(opened, tables, rho=1, options=sy.Options(rounds=5))
        assert opened.budget.spent_rho == spent and again.stored.recalled
        assert "ended early by Ctrl-C" in repr(again)
        assert len(sy.load(opened, again.charge_id).sample(rows=9)["people"]) == 9


def test_ctrl_c_in_a_measurement_forfeits_the_charge(tmp_path, monkeypatch):
    """A step that was interrupted has failed: nothing of its run is ever stored."""
    with session(tmp_path) as opened:
        with monkeypatch.context() as patch:
            patch.setattr(Discrepancies, "exact", interrupted)
            with pytest.raises(KeyboardInterrupt):
                sy.fit(opened, "people", rho=1)
        spent = opened.budget.spent_rho
        assert not sy.fit(opened, "people", rho=1).stored.recalled
        assert opened.budget.spent_rho != spent


class Little:
    """An estimator without memory for more than a few tables."""

    def __init__(self, most):
        self.most, self.refused = most, 0

    def __call__(self, tree, measurements, *given, **named):
        if len(measurements) > self.most:
            self.refused += 1
            raise MemoryError
        return MaximumEntropy(5)(tree, measurements, *given, **named)


def test_little_memory_fits_fewer_pairs(tmp_path):
    little = Little(5)
    with session(tmp_path) as opened:
        model = sy.fit(opened, "people", rho=1)
        again = sy.load(opened, model.charge_id, estimator=little)
        assert len(again.sample(rows=9)["people"]) == 9 and little.refused
        nothing = sy.load(opened, model.charge_id, estimator=Little(0))
        with pytest.raises(MemoryError):
            nothing.sample()


def test_little_memory_between_rounds_loses_no_charge(tmp_path, monkeypatch):
    little = Little(4)
    monkeypatch.setattr(fitting, "QUICK", little)
    monkeypatch.setattr(fitting.Fitting.after, "__defaults__", (little,))
    with session(tmp_path) as opened:
        model = sy.fit(opened, "people", rho=1, options=sy.Options(rounds=5))
        assert little.refused and len(model.released.pairs) == 5


def test_sums_and_the_order_of_dates_hold_in_every_row(tmp_path):
    random = np.random.default_rng(1)
    first, second = random.integers(0, 3, 500), random.integers(0, 3, 500)
    start = random.integers(0, 6, 500)
    end = start + random.integers(0, 4, 500)
    rows = pa.table(
        {
            "a": first,
            "b": second,
            "total": first + second,
            "start": [date(2020, 1, 1) + timedelta(int(day)) for day in start],
            "finish": [date(2020, 1, 1) + timedelta(int(day)) for day in end],
        }
    )
    columns = {
        "a": sf.Integer(0, 2),
        "b": sf.Integer(0, 2),
        "total": sf.Integer(0, 4),
        "start": sf.Date("2020-01-01", "2020-01-10"),
        "finish": sf.Date("2020-01-01", "2020-01-10"),
    }
    # so little is spent that nothing but the constraints keeps them
    constraints = [sy.require("a + b = total"), sy.require("start <= finish")]
    with session(tmp_path, rows, columns=columns) as opened:
        model = sy.fit(opened, "people", rho="0.0001", constraints=constraints)
        without = sy.fit(opened, "people", rho="0.0001").sample(rows=500)["people"]
    drawn = model.sample(rows=500)["people"]
    assert not broken(drawn)
    assert broken(without)


def broken(rows):
    """How many rows have another total, or end before they begin."""
    a, b, total = (rows[name].to_numpy() for name in ("a", "b", "total"))
    pairs = zip(rows["start"].to_pylist(), rows["finish"].to_pylist(), strict=True)
    late = sum(start > finish for start, finish in pairs if start and finish)
    return int((a + b != total).sum()) + late
